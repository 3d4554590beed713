"""A search ends when about as many plays are done as were asked for, or when no new candidate is found."""

from collections.abc import Iterator, Sequence

import pytest

from extender.values.config.configuration import Configuration
from extender.values.config.loading import load
from reprieve.lab.simulation.playing import Played, play
from reprieve.lab.tuning.search import ConfigurationSearch, Goal
from reprieve.lab.tuning.settings import Candidate, Space
from tests.reprieve.lab.simulation.test_playing import OBJECTS, URGENT, Given

PLAYED = play(Given(OBJECTS, URGENT), Configuration())
WITHOUT_SCORES = load(
    """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {multiPoint: {disabled: [{name: "*"}], enabled: [{name: PrioritySort}, {name: DefaultBinder}]}}}]
"""
)


def plays_of(space: Space, plays: int) -> list[tuple[Candidate, int]]:
    """What a search plays, with two seeds, if all plays are equally good."""
    done: list[tuple[Candidate, int]] = []

    def playing(requests: Sequence[tuple[Candidate, int]]) -> Iterator[tuple[int, Played]]:
        assert requests and len(done) < 2 * plays, "it does not end"
        done.extend(requests)
        return ((place, PLAYED) for place in range(len(requests)))

    goal = Goal.read("placed", is_maximised=True)
    ConfigurationSearch(space, goal, (0, 1), plays, playing, lambda number, best: None).run()
    return done


@pytest.mark.parametrize("plays", [20, 100, 300])
def test_about_as_many_plays_are_done_as_were_asked_for(plays: int) -> None:
    assert 0.9 * plays <= len(plays_of(Space(None, [], nodes=3), plays)) <= plays + 10


def test_a_search_ends_when_no_new_candidate_is_found() -> None:
    done = plays_of(Space(WITHOUT_SCORES, [], nodes=3), 10_000)

    assert 50 < len({*done}) == len(done) <= 2 * 8 * 4 * 5
