"""The report of simulations as one HTML file, which loads nothing from elsewhere."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from api.ui.assets import assets
from api.ui.line_plot import Series, line_plot
from api.ui.wording import figure_words, seconds_words
from extender.lab.simulation import RunComparison, Sample, SimulationReport

LEAST_SECONDS: Final = 1.0
"""Plots are over virtual time if the workload takes longer; over attempts otherwise."""
_UNITS: Final = (("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0))


@final
@dataclass(frozen=True, slots=True)
class PlayedWorkload:
    """A workload on the page."""

    report: SimulationReport
    plots: tuple[Markup, ...]


@final
@dataclass(frozen=True, slots=True)
class ComparedWorkload:
    """A workload on the page that was played several times."""

    comparison: RunComparison
    plots: tuple[Markup, ...]
    """Of the first seed."""


def simulation_page(reports: Sequence[SimulationReport]) -> str:
    """Returns the page of workloads that were played once."""
    return _page("simulation.html", [PlayedWorkload(report, plots_of([("", report)])) for report in reports])


def comparison_page(comparisons: Sequence[RunComparison]) -> str:
    """Returns the page of workloads that were played with several seeds or configurations."""
    shown = []
    for each in comparisons:
        first_of_each = [(name, reports[0]) for name, reports in zip(each.configurations, each.runs, strict=True)]
        shown.append(ComparedWorkload(each, plots_of(first_of_each)))
    return _page("comparison.html", shown)


def plots_of(runs: Sequence[tuple[str, SimulationReport]]) -> tuple[Markup, ...]:
    """Returns the plots: what is allocated, the pods, and what is free but unusable.

    Arguments:
        runs: plays with their names; the second one is drawn dashed. The name of a single one is not shown.
    """
    longest = max(report.simulated_seconds for _, report in runs)
    is_over_time = longest > LEAST_SECONDS
    unit, length = next((each for each in _UNITS if longest >= 2 * each[1]), _UNITS[-1])
    label = f"virtual time in {unit}" if is_over_time else "attempts"

    def lines(values: Mapping[str, Callable[[Sample], float | None]]) -> list[Series]:
        found = []
        for number, (run, report) in enumerate(runs):
            for colour, (name, value) in enumerate(values.items()):
                points = [
                    (sample.time / length if is_over_time else float(sample.attempts), shown)
                    for sample in report.samples
                    if (shown := value(sample)) is not None
                ]
                found.append(Series(f"{name}, {run}" if run else name, points, colour, is_dashed=number > 0))
        return found

    resources = list(runs[0][1].allocated)
    pods: dict[str, Callable[[Sample], float | None]] = {
        "placed so far": lambda sample: sample.placed,
        "running": lambda sample: sample.running,
        "waiting": lambda sample: sample.waiting,
    }
    return (
        line_plot(
            "Allocated",
            lines({name: _of(lambda sample: sample.allocated, name) for name in resources}),
            label,
            percent=True,
        ),
        line_plot("Pods", lines(pods), label),
        line_plot(
            "Free but unusable for an average pod",
            lines({name: _of(lambda sample: sample.fragmentation, name) for name in resources}),
            label,
            percent=True,
        ),
    )


def _of(part: Callable[[Sample], Mapping[str, float]], name: str) -> Callable[[Sample], float | None]:
    return lambda sample: part(sample).get(name)


def _page(template: str, workloads: Sequence[PlayedWorkload] | Sequence[ComparedWorkload]) -> str:
    style = assets().files["page.css"].content.decode()
    return _environment().get_template(template).render(workloads=workloads, style=Markup(style))  # noqa: S704 - our own file


@cache
def _environment() -> Environment:
    found = Environment(
        loader=PackageLoader("api.ui"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    found.globals.update(seconds_words=seconds_words, figure_words=figure_words)
    return found
