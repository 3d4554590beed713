"""The report of simulations as one HTML file with its line plots, which loads nothing from elsewhere."""

from collections.abc import Sequence
from functools import cache
from typing import Final

from jinja2 import Environment
from markupsafe import Markup

from api.ui.frame import assets
from api.ui.node_drawing import drawing, element
from api.ui.wording import environment, figure_words, seconds_words
from reprieve.lab.simulation import RunComparison, Series, SimulationReport, plots_of

WIDTH, HEIGHT = 640, 240
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 12, 34
COLOURS: Final = 8
"""The number of CSS classes, c0 to c7; further series use them again."""
TICKS: Final = 4


def line_plot(title: str, series: Sequence[Series], x_label: str, *, percent: bool = False) -> Markup:
    """Returns the plot with its legend. Axes begin at zero; with `percent`, values are shares of 1, the top."""
    last_x = max((point[0] for line in series for point in line.points), default=0.0) or 1.0
    top = 1.0 if percent else _round_up(max((point[1] for line in series for point in line.points), default=0.0) or 1.0)
    parts = [*_axes(last_x, top, x_label, percent=percent)]
    for line in series:
        path = _path(line.points, last_x, top)
        parts.append(element("path", class_=f"line {_key(line)}", d=path))
    legend = [element("li", _swatch(line), line.name) for line in series]
    picture = drawing(WIDTH, HEIGHT, *parts, label=f"{title}: {', '.join(line.name for line in series)}", class_="plot")
    return element(
        "figure", element("figcaption", title), picture, element("ul", *legend, class_="key"), class_="plotted"
    )


def amount(value: float) -> str:
    """Returns a number as an axis shows it: 0.5, 250, 12k."""
    if value >= 10_000:
        return f"{value / 1000:,.3g}k" if value < 1_000_000 else f"{value / 1_000_000:,.3g}M"
    return f"{value:,.3g}" if value < 1000 else f"{value:,.0f}"


def _key(series: Series) -> str:
    return f"c{series.colour % COLOURS}{' dashed' if series.is_dashed else ''}"


def _swatch(series: Series) -> Markup:
    line = element("rect", class_=_key(series), width=22, height=3)
    return element("svg", line, class_="series-key", width=22, height=3, aria_hidden="true")


def _axes(last_x: float, top: float, x_label: str, *, percent: bool) -> list[Markup]:
    parts = []
    for tick in range(TICKS + 1):
        part = tick / TICKS
        x, y = LEFT + part * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)
        tick_label = f"{part * top:.0%}" if percent else amount(part * top)
        parts.append(element("line", class_="axis", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y))
        parts.append(element("text", tick_label, class_="tick", x=LEFT - 6, y=y + 4, text_anchor="end"))
        anchor = "end" if tick == TICKS else "middle" if tick else "start"
        parts.append(
            element("text", amount(part * last_x), class_="tick", x=x, y=HEIGHT - BOTTOM + 15, text_anchor=anchor)
        )
    parts.append(element("text", x_label, class_="tick", x=(LEFT + WIDTH) / 2, y=HEIGHT - 4, text_anchor="middle"))
    return parts


def _path(points: Sequence[tuple[float, float]], last_x: float, top: float) -> str:
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    places = [(LEFT + x / last_x * wide, HEIGHT - BOTTOM - min(y / top, 1.05) * high) for x, y in points]
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places) if places else ""


def _round_up(value: float) -> float:
    """Returns the next number of one digit, or of a digit and a half."""
    unit = 10.0 ** len(f"{int(value)}") / 10 if value >= 1 else 1.0
    return next(step * unit for step in (1, 1.5, 2, 3, 4, 5, 6, 8, 10, 15) if step * unit >= value)


def simulation_page(reports: Sequence[SimulationReport]) -> str:
    """Returns the page of workloads that were played once."""
    return _page("simulation.html", [(report, _drawn([("", report)])) for report in reports])


def comparison_page(comparisons: Sequence[RunComparison]) -> str:
    """Returns the page of workloads that were played several times, with the plots of the first seed."""
    drawn_comparisons = []
    for comparison in comparisons:
        first_of_each = [
            (name, reports[0]) for name, reports in zip(comparison.configurations, comparison.runs, strict=True)
        ]
        drawn_comparisons.append((comparison, _drawn(first_of_each)))
    return _page("comparison.html", drawn_comparisons)


def _drawn(runs: Sequence[tuple[str, SimulationReport]]) -> tuple[Markup, ...]:
    return tuple(line_plot(plot.title, plot.series, plot.x_label, percent=plot.is_share) for plot in plots_of(runs))


def _page(template: str, workloads: Sequence[tuple[SimulationReport | RunComparison, tuple[Markup, ...]]]) -> str:
    style = assets().files["page.css"].content.decode()
    return _environment().get_template(template).render(workloads=workloads, style=Markup(style))  # noqa: S704 - our own file


@cache
def _environment() -> Environment:
    page_environment = environment()
    page_environment.globals.update(seconds_words=seconds_words, figure_words=figure_words)
    return page_environment
