"""A configuration that is learnt on one half of a workload, and tried on the other."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import fmean
from typing import Any, Final, final

import msgspec

from extender.answers.phrases import plural
from extender.values.config.configuration import Configuration
from extender.values.objects.resource_names import CPU, MEMORY
from reprieve.lab import limits
from reprieve.lab.simulation.playing import Played, play
from reprieve.lab.simulation.report import Reported, RunComparison, SimulationReport, compared
from reprieve.lab.simulation.sweeping import Players, players
from reprieve.lab.simulation.workload import Workload, WorkloadError
from reprieve.lab.tuning.search import ConfigurationSearch, Goal, Judged
from reprieve.lab.tuning.settings import Candidate, Space

PACKING: Final = "MostAllocated"
LEARNT: Final = "learnt"
MOST_RESOURCES: Final = 3


@final
class TriedConfiguration(Reported, frozen=True, kw_only=True):
    """The figures of a configuration, averaged over all seeds of one half."""

    settings: dict[str, str]
    """The settings that it changes."""
    value: float
    limited: tuple[float, ...]
    """The figures that have limits."""
    keeps_limits: bool


@final
class PodElsewhere(Reported, frozen=True, kw_only=True):
    """A pod with another node than before. A name is empty where it had none, or has none now."""

    pod: str
    before: str
    now: str


@final
class TuneReport(Reported, frozen=True, kw_only=True):
    """What was learnt, and how it does where it was not learnt."""

    workload: str
    goal: str
    limits: tuple[str, ...]
    learnt_on: str
    tried_on: str
    plays: int
    chosen: str
    """The best where it was not learnt: the name of one of the `candidates`."""
    configuration: dict[str, Any] | None
    """The chosen configuration; None if it does not keep the limits, or is not better than the first candidate."""
    candidates: dict[str, TriedConfiguration]
    """Where they were not learnt: the present configuration, MostAllocated, and the one that was learnt."""
    held_out: RunComparison
    """All figures of the candidates."""
    moved: int
    gained: int
    """Pods that have a node now and had none, with the first seed of `held_out`."""
    lost: int
    elsewhere: tuple[PodElsewhere, ...]
    tried: tuple[TriedConfiguration, ...]
    """What was learnt from, the best first; the present configuration among them."""
    notes: tuple[str, ...]


def tune(
    workload: Workload,
    present: Configuration | None,
    goal: Goal,
    *,
    seed: int = 0,
    seeds: int = 3,
    plays: int = 150,
    on: str | None = None,
    advance: Callable[[int, int, float | None], None] = lambda done, all_of_them, best: None,
) -> TuneReport:
    """Returns what was learnt. Ctrl-C ends the search only. Raises WorkloadError.

    Arguments:
        present: the configuration to begin with; None for the workload's own, or the default one.
        seed: that of the search, and the first one of those that are learnt on; the same number follows for the trial.
        on: the address of a scheduler of dask.distributed, whose workers play; None for processes of this machine.
        advance: called with the number of plays that are done, that of all, and the figure of the best so far, which is
            None at first.
    """
    halves = workload.half(is_later=False), workload.half(is_later=True)
    learning, trying = range(seed, seed + seeds), range(seed + seeds, seed + 2 * seeds)
    present = present or workload.own_configuration
    with players(on, plays) as pool:
        first, *_ = [_first_play(half, present or Configuration(), goal) for half in dict.fromkeys(halves)]
        space = Space(present, _resources(goal, first), first.nodes)
        earlier, later = map(pool.send, halves)

        def played(pool: Players, half: Any, requests: Sequence[tuple[Candidate, int]]) -> Iterator[tuple[int, Played]]:
            gates = (present or Configuration()).feature_gates
            return pool.played(
                half, [((msgspec.json.encode(space.document(candidate)), gates), seed) for candidate, seed in requests]
            )

        search = ConfigurationSearch(
            space, goal, learning, plays, partial(played, pool, earlier), lambda done, best: advance(done, plays, best)
        )
        note = _searched(search)
        names = {space.unchanged: "present" if present else "default", space.packing(): PACKING}
        names.setdefault(search.tried()[0][0], LEARNT)
        trial_plays = [(candidate, seed) for candidate in names for seed in trying]
        try:
            outcomes = dict(played(pool, later, trial_plays))
        except WorkloadError:
            if on is None:
                raise
            with players(None, len(trial_plays)) as local_pool:  # what was learnt is not lost with the cluster
                outcomes = dict(played(local_pool, local_pool.send(halves[1]), trial_plays))
    runs = {candidate: [outcomes[trial_plays.index((candidate, seed))] for seed in trying] for candidate in names}
    judged = {candidate: [goal.judge(one.report) for one in of_each] for candidate, of_each in runs.items()}
    best = min(names, key=lambda candidate: goal.rank(judged[candidate]))
    candidates = {names[candidate]: _outcome(goal, space, candidate, judged[candidate]) for candidate in names}
    is_better = best != space.unchanged and candidates[names[best]].keeps_limits
    before, now = ({fate.pod: fate.node for fate in runs[candidate][0].fates} for candidate in (space.unchanged, best))
    elsewhere = [
        PodElsewhere(pod=pod, before=before.get(pod, ""), now=node)
        for pod, node in now.items()
        if node != before.get(pod, "")
    ]
    return TuneReport(
        workload=workload.name,
        goal=f"{'maximise' if goal.is_maximised else 'minimise'} {goal.figure}",
        limits=tuple(limit.text for limit in goal.limits),
        learnt_on=f"{halves[0].name}, {_words(learning)}",
        tried_on=f"{halves[1].name}, {_words(trying)}",
        plays=search.done,
        chosen=names[best],
        configuration=space.document(best) if is_better else None,
        candidates=candidates,
        held_out=compared([*candidates], trying, [[one.report for one in of_each] for of_each in runs.values()]),
        moved=sum(bool(pod.before and pod.now) for pod in elsewhere),
        gained=sum(not pod.before for pod in elsewhere),
        lost=sum(not pod.now for pod in elsewhere),
        elsewhere=tuple(elsewhere[: limits.REPLAY_DIFFERENCES]),
        tried=tuple(_outcome(goal, space, *trial) for trial in search.tried()),
        notes=(f"the search has ended after {plural(search.done, 'play')}: {note}",) if note else (),
    )


def _first_play(half: Workload, present: Configuration, goal: Goal) -> SimulationReport:
    """Plays the half with the present configuration. Raises WorkloadError if it says nothing about the goal."""
    if half.configured(Configuration(profiles=())).profiles:
        raise WorkloadError(
            f"{half.name} is played with its own schedulerConfigPath, whatever is set: take that out of its file, and "
            "begin with the configuration that it names"
        )
    report = play(half, present, keeps_decisions=False).report
    if not report.pods:
        raise WorkloadError(f"{half.name}: no pod arrives: there is nothing to place")
    goal.judge(report)
    return report


def _words(seeds: range) -> str:
    return f"seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}"


def _searched(search: ConfigurationSearch) -> str:
    """Searches to the end, or until Ctrl-C or a WorkloadError, whose words it returns."""
    try:
        search.run()
    except (KeyboardInterrupt, WorkloadError) as exc:
        if not search.tried():
            raise
        return str(exc) or "it was interrupted"
    return ""


def _resources(goal: Goal, report: SimulationReport) -> list[str]:
    """Returns the resources that strategies may weigh: that of the goal, or all but CPU and memory."""
    of_goal = [name for name in report.allocated if goal.figure.partition(".")[2].startswith(name)]
    return of_goal or [name for name in report.allocated if name not in (CPU, MEMORY)][:MOST_RESOURCES] or [CPU]


def _outcome(goal: Goal, space: Space, candidate: Candidate, judged: Sequence[Judged]) -> TriedConfiguration:
    return TriedConfiguration(
        settings=space.words(candidate),
        value=fmean(verdict.value for verdict in judged),
        limited=tuple(map(fmean, zip(*(verdict.limited for verdict in judged), strict=True))),
        keeps_limits=not goal.rank(judged)[0],
    )
