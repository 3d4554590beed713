"""What was tried, as a picture in SVG: the figure of the goal over the first limited one, or over what is changed."""

from html import escape

from reprieve.lab.simulation.workload import ExpectedFigure
from reprieve.lab.tuning.tuning import TuneReport

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 420, 70, 20, 46, 52
TICKS = 4


def picture(report: TuneReport) -> str:
    """Returns the file. A dot is a configuration on the half that was learnt on; the line joins what nothing beats."""
    points = [
        (configuration.limited[0] if configuration.limited else float(len(configuration.settings)), configuration.value)
        for configuration in report.tried
    ]
    low, high = ([pick(point[axis] for point in points) for axis in (0, 1)] for pick in (min, max))
    wide, tall = (1.1 * (highest - lowest) or 1.0 for lowest, highest in zip(low, high, strict=True))
    low = [low[0] - 0.05 * wide, low[1] - 0.05 * tall]

    def place(x: float, y: float) -> tuple[float, float]:
        across, up = (x - low[0]) / wide, (y - low[1]) / tall
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        _text(LEFT, 22, f"{report.workload}: {report.goal}", "start"),
        _text(WIDTH / 2, HEIGHT - 12, report.limits[0] if report.limits else "settings changed"),
    ]
    for tick in range(TICKS + 1):
        x, y = low[0] + wide * tick / TICKS, low[1] + tall * tick / TICKS
        across, up = place(x, y)
        parts.append(f'<path d="M{LEFT} {up:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        parts += [_text(LEFT - 8, up + 4, f"{y:.4g}", "end"), _text(across, HEIGHT - BOTTOM + 18, f"{x:.3g}")]
    front = _front(report, points)
    line = " ".join("{:.1f},{:.1f}".format(*place(*point)) for point in front)
    parts.append(f'<polyline points="{line}" fill="none" stroke="#06c"/>')
    for point, configuration in zip(points, report.tried, strict=True):
        x, y = place(*point)
        colour = "#06c" if point in front else "#999"
        words = ", ".join(f"{name}: {value}" for name, value in configuration.settings.items()) or "unchanged"
        fill = colour if configuration.keeps_limits else "none"
        dot = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" stroke="{colour}" fill="{fill}">'
        parts.append(f"{dot}<title>{escape(words)}</title></circle>")
        if not configuration.settings or configuration.settings == report.candidates[report.chosen].settings:
            words, side = "chosen" if configuration.settings else "unchanged", 8 if x < WIDTH / 2 else -8
            parts.append(_text(x + side, y - 8, words, "start" if side > 0 else "end"))
    return "\n".join((*parts, "</svg>\n"))


def _front(report: TuneReport, points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Returns the points that no other one beats in both figures, the best across first."""
    is_more_better = bool(report.limits) and ExpectedFigure.read(report.limits[0]).relation.startswith(">")
    across, up = (-1 if is_more_better else 1), (-1 if report.goal.startswith("maximise") else 1)
    front: list[tuple[float, float]] = []
    for x, y in sorted(points, key=lambda point: (across * point[0], up * point[1])):
        if not front or up * y < up * front[-1][1]:
            front.append((x, y))
    return front


def _text(x: float, y: float, words: str, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="12" fill="#333">{escape(words)}</text>'
