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
"""The part of a child's settings that come from no parent."""


@final
@dataclass(frozen=True, slots=True)
class Judged:
    """The figures of a play."""

    value: float
    short: float
    """The excess over the limits, as parts of them; 0 if all are kept."""
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
        """Returns the figures of a play. Raises WorkloadError if it lacks one."""
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
        """Returns a key, smaller for plays nearer to the goal: limits come first."""
        value = fmean(verdict.value for verdict in judged)
        return fmean(verdict.short for verdict in judged), -value if self.is_maximised else value


def _judged(figure: ExpectedFigure, report: SimulationReport) -> Assertion:
    try:
        return figure.judge(report)
    except ExpectationError as exc:
        figures = [*(name for name, _ in figures_of(report)), "waiting.p50", "waiting.p90"]
        near = did_you_mean(figure.path, figures, 0.6) or f"; there are {', '.join(report.allocated)}"
        raise WorkloadError(f"{report.workload} has no {figure.path}{near}") from exc


Play = Callable[[Sequence[tuple[Candidate, int]]], Iterator[tuple[int, Played]]]
"""Plays candidates with seeds, and yields each play with its place."""


@final
@dataclass(slots=True)
class ConfigurationSearch:
    """State: the figures of each candidate by seed, and the number of plays done."""

    space: Space
    goal: Goal
    seeds: Sequence[int]
    plays: int
    """Their number, about."""
    play: Play
    advance: Callable[[int, float | None], None]
    """Takes the number of plays that are done, and the figure of the best so far; None at first."""
    done: int = 0
    _judged: dict[Candidate, dict[int, Judged]] = field(default_factory=dict)

    def run(self) -> None:
        """Searches until the plays are used up; `tried` has the best so far at any time."""
        self._try([self.space.unchanged, self.space.packing()], self.seeds)
        batch = self.space.beginning()[: self.plays // 2]
        while batch and self.done < 0.9 * self.plays:
            self._try(batch, self.seeds[:1])
            batch.sort(key=lambda candidate: self._rank(candidate, self.seeds[:1]))
            self._try(batch[: max(2, len(batch) // 3)], self.seeds[1:])
            batch = self._children()
        self._take_back()

    def tried(self) -> list[tuple[Candidate, list[Judged]]]:
        """Returns the candidates that were played with all seeds, the best first."""
        done = [candidate for candidate, judged in self._judged.items() if len(judged) == len(self.seeds)]
        return [
            (candidate, [self._judged[candidate][seed] for seed in self.seeds])
            for candidate in sorted(done, key=lambda one: self._rank(one, self.seeds))
        ]

    def _rank(self, candidate: Candidate, seeds: Sequence[int]) -> tuple[tuple[float, float], int, Candidate]:
        judged = self._judged[candidate]
        return self.goal.rank([judged[seed] for seed in seeds]), changes(candidate), candidate

    def _try(self, candidates: Sequence[Candidate], seeds: Sequence[int]) -> None:
        requests = [
            (candidate, seed)
            for candidate in candidates
            for seed in seeds
            if seed not in self._judged.setdefault(candidate, {})
        ]
        best = next((fmean(verdict.value for verdict in judged) for _, judged in self.tried()), None)
        for place, played in self.play(requests):
            candidate, seed = requests[place]
            self._judged[candidate][seed] = self.goal.judge(played.report)
            self.done += 1
            self.advance(self.done, best)

    def _children(self) -> list[Candidate]:
        parents = [candidate for candidate, _ in self.tried()[:PARENTS]]
        children: dict[Candidate, None] = {}
        chance = random.Random(f"{self.seeds[0]} {self.done}")
        for _ in range(20 * BATCH):
            child = tuple(
                chance.choice(parents)[place] if chance.random() > SURPRISE else chance.randint(0, len(setting.values))
                for place, setting in enumerate(self.space.settings)
            )
            if child not in self._judged and len(children) < BATCH:
                children[child] = None
        return [*children]

    def _take_back(self) -> None:
        """Tries the best candidate without each of its changes: among equals, the fewest changes win."""
        for place in range(len(self.space.settings)):
            best = self.tried()[0][0]
            if best[place] and self.done < self.plays:
                self._try([(*best[:place], 0, *best[place + 1 :])], self.seeds)
