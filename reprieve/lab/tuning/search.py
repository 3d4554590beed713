"""A search for the configuration that comes nearest to a goal: what differs much, then what the best of it have.

Candidates are played with one seed first; the best third of them with all. A child has each setting of one of the four
best, or by chance another value. What is tried next depends on the results only, not on which play is done first, so
that one seed gives one result wherever it is played.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Final, final

from extender.values.near_names import did_you_mean
from reprieve.lab.simulation.playing import Played
from reprieve.lab.simulation.report import Assertion, SimulationReport, figures_of
from reprieve.lab.simulation.workload import ExpectationError, ExpectedFigure, WorkloadError
from reprieve.lab.tuning.settings import Candidate, Space, changes

BATCH: Final = 8
"""The number of candidates that are played before the next ones are chosen."""
PARENTS: Final = 4
SURPRISE: Final = 0.15
"""The part of the settings of a child that are of none of its parents."""


@final
@dataclass(frozen=True, slots=True)
class Judged:
    """What a play came to."""

    value: float
    short: float
    """By how much limits are broken, as parts of them; 0 if all are kept."""
    limited: tuple[float, ...]
    """The figures that have limits."""


@final
@dataclass(frozen=True, slots=True)
class Goal:
    """A figure of the report that should be large, or small, and the limits of others."""

    figure: str
    is_maximised: bool
    limits: tuple[ExpectedFigure, ...] = ()

    @staticmethod
    def read(figure: str, *, is_maximised: bool, limits: Sequence[str] = ()) -> "Goal":
        """Returns the goal that these texts state. Raises WorkloadError if there is no such figure."""
        try:
            ExpectedFigure.read(f"{figure} > 0")
        except ExpectationError as exc:
            raise WorkloadError(f"{figure!r:.80} is no figure of a report of `simulate`, such as waiting.p90") from exc
        try:
            return Goal(figure, is_maximised, tuple(map(ExpectedFigure.read, limits)))
        except ExpectationError as exc:
            raise WorkloadError(f"--keep {exc}") from exc

    def judge(self, report: SimulationReport) -> Judged:
        """Returns what the play came to. Raises WorkloadError if it has no such figure."""
        value, *limited = (
            _judged(figure, report) for figure in (ExpectedFigure(self.figure, self.figure, ">", 0.0), *self.limits)
        )
        short = sum(
            max(abs(now.found - limit.bound), 1e-9) / (abs(limit.bound) or 1.0)
            for now, limit in zip(limited, self.limits, strict=True)
            if not now.holds
        )
        return Judged(value.found, short, tuple(now.found for now in limited))

    def rank(self, judged: Sequence[Judged]) -> tuple[float, float]:
        """Returns what is smaller for plays that are nearer to the goal: limits first."""
        value = fmean(each.value for each in judged)
        return fmean(each.short for each in judged), -value if self.is_maximised else value


def _judged(figure: ExpectedFigure, report: SimulationReport) -> Assertion:
    try:
        return figure.judge(report)
    except ExpectationError as exc:
        there = [*(name for name, _ in figures_of(report)), "waiting.p50", "waiting.p90"]
        near = did_you_mean(figure.path, there, 0.6) or f"; there are {', '.join(report.allocated)}"
        raise WorkloadError(f"{report.workload} has no {figure.path}{near}") from exc


Play = Callable[[Sequence[tuple[Candidate, int]]], Iterator[tuple[int, Played]]]
"""Plays candidates with seeds, and yields each play with its place."""


@final
@dataclass(slots=True)
class ConfigurationSearch:
    """State: what each candidate came to by seed, and how many plays are done."""

    space: Space
    goal: Goal
    seeds: Sequence[int]
    plays: int
    """About how many are enough."""
    play: Play
    advance: Callable[[int, float | None], None]
    """Takes the number of plays that are done, and the figure of the best so far; None at first."""
    done: int = 0
    _judged: dict[Candidate, dict[int, Judged]] = field(default_factory=dict)

    def run(self) -> None:
        """Searches until the plays are used up; what is the best so far is there at any time, also if it is stopped."""
        self._try([self.space.unchanged, self.space.packing()], self.seeds)
        batch = self.space.beginning()[: self.plays // 2]
        while batch and self.done < 0.9 * self.plays:
            self._try(batch, self.seeds[:1])
            batch.sort(key=lambda each: self._rank(each, self.seeds[:1]))
            self._try(batch[: max(2, len(batch) // 3)], self.seeds[1:])
            batch = self._children()
        self._take_back()

    def tried(self) -> list[tuple[Candidate, list[Judged]]]:
        """Returns the candidates that were played with all seeds, the best first."""
        done = [each for each, judged in self._judged.items() if len(judged) == len(self.seeds)]
        return [
            (each, [self._judged[each][seed] for seed in self.seeds])
            for each in sorted(done, key=lambda one: self._rank(one, self.seeds))
        ]

    def _rank(self, candidate: Candidate, seeds: Sequence[int]) -> tuple[tuple[float, float], int, Candidate]:
        judged = self._judged[candidate]
        return self.goal.rank([judged[seed] for seed in seeds]), changes(candidate), candidate

    def _try(self, candidates: Sequence[Candidate], seeds: Sequence[int]) -> None:
        asked = [(each, seed) for each in candidates for seed in seeds if seed not in self._judged.setdefault(each, {})]
        best = next((fmean(each.value for each in judged) for _, judged in self.tried()), None)
        for place, played in self.play(asked):
            candidate, seed = asked[place]
            self._judged[candidate][seed] = self.goal.judge(played.report)
            self.done += 1
            self.advance(self.done, best)

    def _children(self) -> list[Candidate]:
        parents = [each for each, _ in self.tried()[:PARENTS]]
        found: dict[Candidate, None] = {}
        chance = random.Random(f"{self.seeds[0]} {self.done}")
        for _ in range(20 * BATCH):
            child = tuple(
                chance.choice(parents)[place] if chance.random() > SURPRISE else chance.randint(0, len(setting.values))
                for place, setting in enumerate(self.space.settings)
            )
            if child not in self._judged and len(found) < BATCH:
                found[child] = None
        return [*found]

    def _take_back(self) -> None:
        """Tries the best candidate without each of its changes: of those that are as good, the one with fewest wins."""
        for place in range(len(self.space.settings)):
            best = self.tried()[0][0]
            if best[place] and self.done < self.plays:
                self._try([(*best[:place], 0, *best[place + 1 :])], self.seeds)
