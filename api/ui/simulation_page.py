"""The report of simulations as one HTML file, which loads nothing from elsewhere."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from api.ui.assets import assets
from api.ui.line_plot import Series, line_plot
from api.ui.wording import seconds_words
from extender.simulation.report import Sample, SimulationReport

LEAST_SECONDS: Final = 1.0
"""Plots are over virtual time if the workload takes longer; over attempts otherwise."""
_UNITS: Final = (("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0))


@final
@dataclass(frozen=True, slots=True)
class PlayedWorkload:
    """A workload on the page."""

    report: SimulationReport
    plots: tuple[Markup, ...]


def simulation_page(reports: Sequence[SimulationReport]) -> str:
    """Returns the page."""
    style = assets().files["page.css"].content.decode()
    shown = [PlayedWorkload(report, plots_of(report)) for report in reports]
    return _environment().get_template("simulation.html").render(workloads=shown, style=Markup(style))  # noqa: S704 - our own file


def plots_of(report: SimulationReport) -> tuple[Markup, ...]:
    """Returns the plots: what is allocated, the pods, and what is free but unusable."""
    is_over_time = report.simulated_seconds > LEAST_SECONDS
    unit, length = next((each for each in _UNITS if report.simulated_seconds >= 2 * each[1]), _UNITS[-1])
    label = f"virtual time in {unit}" if is_over_time else "attempts"

    def series(name: str, colour: int, values: Sequence[tuple[Sample, float]]) -> Series:
        points = [(sample.time / length if is_over_time else float(sample.attempts), value) for sample, value in values]
        return Series(name, points, colour)

    samples = report.samples
    resources = list(report.allocated)
    allocated = [
        series(name, place, [(sample, sample.allocated.get(name, 0.0)) for sample in samples]) for place, name in enumerate(resources)
    ]
    pods = [
        series("placed so far", 2, [(sample, float(sample.placed)) for sample in samples]),
        series("running", 0, [(sample, float(sample.running)) for sample in samples]),
        series("waiting", 5, [(sample, float(sample.waiting)) for sample in samples]),
    ]
    fragments = [
        series(name, place, [(sample, sample.fragmentation[name]) for sample in samples if name in sample.fragmentation])
        for place, name in enumerate(resources)
    ]
    return (
        line_plot("Allocated", allocated, label, percent=True),
        line_plot("Pods", pods, label),
        line_plot("Free but unusable for an average pod", fragments, label, percent=True),
    )


@cache
def _environment() -> Environment:
    found = Environment(loader=PackageLoader("api.ui"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    found.globals.update(seconds_words=seconds_words)
    return found
