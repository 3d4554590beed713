"""What the page of a report shows over the run, as lines of points."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

from reprieve.lab.simulation.report import Sample, SimulationReport


@final
@dataclass(frozen=True, slots=True)
class Series:
    """A line and its name in the legend."""

    name: str
    points: Sequence[tuple[float, float]]
    """In order of x; the value holds until the next point."""
    colour: int
    is_dashed: bool = False


@final
@dataclass(frozen=True, slots=True)
class Plot:
    """Lines under one title."""

    title: str
    series: Sequence[Series]
    x_label: str
    is_share: bool = False
    """Whether values are shares of 1."""


LEAST_SECONDS: Final = 1.0
"""Plots are over virtual time if the workload takes longer; over attempts otherwise."""
_UNITS: Final = (("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0))


def plots_of(runs: Sequence[tuple[str, SimulationReport]]) -> tuple[Plot, ...]:
    """Returns the plots: what is allocated, the pods, and what is free but unusable; the second run is dashed."""
    longest = max(report.simulated_seconds for _, report in runs)
    is_over_time = longest > LEAST_SECONDS
    unit, length = next((scale for scale in _UNITS if longest >= 2 * scale[1]), _UNITS[-1])
    label = f"virtual time in {unit}" if is_over_time else "attempts"

    def lines(values: Mapping[str, Callable[[Sample], float | None]]) -> list[Series]:
        series = []
        for number, (run, report) in enumerate(runs):
            for colour, (name, value) in enumerate(values.items()):
                points = [
                    (sample.time / length if is_over_time else float(sample.attempts), y)
                    for sample in report.samples
                    if (y := value(sample)) is not None
                ]
                series.append(Series(f"{name}, {run}" if run else name, points, colour, is_dashed=number > 0))
        return series

    resources = list(runs[0][1].allocated)
    pods: dict[str, Callable[[Sample], float | None]] = {
        "placed so far": lambda sample: sample.placed,
        "running": lambda sample: sample.running,
        "waiting": lambda sample: sample.waiting,
    }
    return (
        Plot(
            "Allocated",
            lines({name: _of(lambda sample: sample.allocated, name) for name in resources}),
            label,
            is_share=True,
        ),
        Plot("Pods", lines(pods), label),
        Plot(
            "Free but unusable for an average pod",
            lines({name: _of(lambda sample: sample.fragmentation, name) for name in resources}),
            label,
            is_share=True,
        ),
    )


def _of(part: Callable[[Sample], Mapping[str, float]], name: str) -> Callable[[Sample], float | None]:
    return lambda sample: part(sample).get(name)
