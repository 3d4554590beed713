"""RunComparison: the same workloads played with several seeds, or with two configurations, figure by figure.

Plays with equal seeds have equal arrivals, so that figures are compared in pairs: what differs within a pair is due to
the configuration.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Final, final

from extender.lab.simulation.report import Reported, SimulationReport

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
    """Returns the comparison of one workload.

    Arguments:
        configurations: their names; one or two.
        runs: for each configuration, the reports in the order of the seeds.
    """
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
    """Yields the names of figures that are compared, and what reads them from a report with the resources of this
    one.
    """
    yield from _COUNTS.items()
    for resource in report.allocated:
        yield f"allocated.{resource}", lambda each, name=resource: each.allocated.get(name, 0.0)  # type: ignore[misc]
        yield f"utilisation.{resource}.mean", lambda each, name=resource: each.utilisation[name].mean  # type: ignore[misc]
        yield f"fragmentation.{resource}", lambda each, name=resource: each.fragmentation.get(name, 0.0)  # type: ignore[misc]
