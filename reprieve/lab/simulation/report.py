"""The report of a simulation, and the comparison of several. Shares are parts of 1, times seconds."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Final, final

import msgspec


class Reported(msgspec.Struct, frozen=True, kw_only=True):
    """A report or a part of one. Names stay as they are on the wire, unlike in answers: expectations use them, too."""


@final
class Waiting(Reported, frozen=True, kw_only=True):
    """How long pods waited for a node, in seconds of virtual time. A decision takes none."""

    mean: float = 0.0
    p50: float = 0.0
    p90: float = 0.0
    p99: float = 0.0
    longest: float = 0.0


@final
class Usage(Reported, frozen=True, kw_only=True):
    """The part of a resource that was allocated, while pods came and went."""

    mean: float = 0.0
    """Over virtual time; equal to the end where no time passed."""
    peak: float = 0.0


@final
class RefusedPods(Reported, frozen=True, kw_only=True):
    """Pods that have no node in the end, by what the scheduler last said."""

    message: str
    pods: int


@final
class Sample(Reported, frozen=True, kw_only=True):
    """The cluster at one moment."""

    time: float
    attempts: int
    arrived: int
    placed: int
    waiting: int
    running: int
    allocated: dict[str, float]
    fragmentation: dict[str, float]


@final
class Phase(Reported, frozen=True, kw_only=True):
    """A part of the workload that is measured by itself."""

    name: str
    pods: int
    pods_per_second: float
    threshold: float | None = None
    """The pods a second that the workload's authors demand; None if they demand nothing."""


@final
class Assertion(Reported, frozen=True, kw_only=True):
    """One of the workload's expectations, and what was found."""

    text: str
    found: float
    holds: bool


@final
class SimulationReport(Reported, frozen=True, kw_only=True):
    """What happened when a workload was played."""

    workload: str
    seed: int
    nodes: int
    pods: int
    """The pods that arrived: those placed, refused, gated and withdrawn."""
    placed: int
    """Pods that got a node, also if they have left it since."""
    refused: int
    """Pods that have no node in the end."""
    gated: int
    """Pods whose scheduling gates were never opened."""
    withdrawn: int
    """Pods that were deleted before they got a node."""
    preemptions: int
    evicted: int
    attempts: int
    decisions_per_second: float
    """Attempts a second of real time."""
    cpu_ms_per_pod: float
    """CPU time of this process for each pod, from the first arrival to the end, without the time for observing."""
    wall_seconds: float
    simulated_seconds: float
    allocated: dict[str, float]
    """By resource: the part of what the nodes have that is requested in the end."""
    utilisation: dict[str, Usage]
    fragmentation: dict[str, float]
    """By resource: the part of what is free that an average pod of the workload cannot use; see `fragmentation`."""
    waiting: Waiting
    refusals: tuple[RefusedPods, ...]
    samples: tuple[Sample, ...]
    phases: tuple[Phase, ...]
    assertions: tuple[Assertion, ...]
    notes: tuple[str, ...]

    @property
    def holds(self) -> bool:
        return all(assertion.holds for assertion in self.assertions)


# Several plays. Those with equal seeds have equal arrivals, so that what differs between two of them is due to the
# configuration.

_COUNTS: Final[Mapping[str, Callable[[SimulationReport], float]]] = {
    "placed": lambda report: report.placed,
    "refused": lambda report: report.refused,
    "preemptions": lambda report: report.preemptions,
    "evicted": lambda report: report.evicted,
    "waiting.mean": lambda report: report.waiting.mean,
    "waiting.p99": lambda report: report.waiting.p99,
    "simulated_seconds": lambda report: report.simulated_seconds,
    "decisions_per_second": lambda report: report.decisions_per_second,
    "cpu_ms_per_pod": lambda report: report.cpu_ms_per_pod,
}


@final
class ComparedFigure(Reported, frozen=True, kw_only=True):
    """One figure of all plays."""

    name: str
    means: tuple[float, ...]
    """For each configuration."""
    lowest: tuple[float, ...]
    highest: tuple[float, ...]
    difference: float | None = None
    """The mean over the seeds of the second configuration's figure less the first's; None with one configuration."""
    larger: int = 0
    """In how many seeds the second one's figure is larger."""
    smaller: int = 0


@final
class RunComparison(Reported, frozen=True, kw_only=True):
    """All plays of one workload."""

    workload: str
    configurations: tuple[str, ...]
    seeds: tuple[int, ...]
    figures: tuple[ComparedFigure, ...]
    runs: tuple[tuple[SimulationReport, ...], ...]
    """For each configuration, a report for each seed."""

    @property
    def holds(self) -> bool:
        """Whether every expectation of the workload holds in every play."""
        return all(report.holds for reports in self.runs for report in reports)


def compared(
    configurations: Sequence[str], seeds: Sequence[int], runs: Sequence[Sequence[SimulationReport]]
) -> RunComparison:
    """Returns the comparison of one workload with one or two configurations, each with a report for every seed."""
    first = runs[0][0]
    figures = []
    for name, figure in figures_of(first):
        values = [[figure(report) for report in reports] for reports in runs]
        pairs = list(zip(*values, strict=True)) if len(values) == 2 else []
        figures.append(
            ComparedFigure(
                name=name,
                means=tuple(map(fmean, values)),
                lowest=tuple(map(min, values)),
                highest=tuple(map(max, values)),
                difference=fmean(second - one for one, second in pairs) if pairs else None,
                larger=sum(second > one for one, second in pairs),
                smaller=sum(second < one for one, second in pairs),
            )
        )
    return RunComparison(
        workload=first.workload,
        configurations=tuple(configurations),
        seeds=tuple(seeds),
        figures=tuple(figures),
        runs=tuple(map(tuple, runs)),
    )


def figures_of(report: SimulationReport) -> Iterator[tuple[str, Callable[[SimulationReport], float]]]:
    """Yields each compared figure's name, and the function that reads it from a report with these resources."""
    yield from _COUNTS.items()
    for resource in report.allocated:
        yield f"allocated.{resource}", lambda run, name=resource: run.allocated.get(name, 0.0)  # type: ignore[misc]
        yield f"utilisation.{resource}.mean", lambda run, name=resource: run.utilisation[name].mean  # type: ignore[misc]
        yield f"fragmentation.{resource}", lambda run, name=resource: run.fragmentation.get(name, 0.0)  # type: ignore[misc]
