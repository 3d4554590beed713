"""The reports of simulations as tables."""

from rich.console import Console
from rich.text import Text

from api.cli.showing import heading, plural, table
from api.ui.wording import figure_words, seconds_words
from extender.lab.simulation import ComparedFigure, RunComparison, SimulationReport

_SHOWN_REFUSALS = 5


def print_report(shown: Console, report: SimulationReport) -> None:
    """Prints one report."""
    title = (
        f"{report.workload}: {report.placed} of {plural(report.pods, 'pod')} placed on {plural(report.nodes, 'node')}"
    )
    shown.print(Text(title, style="bold"))
    _outcome(shown, report)
    _resources(shown, report)
    if report.refusals:
        shown.print(heading("Why pods were refused"))
        refusals = table("pods", "message")
        for refusal in report.refusals[:_SHOWN_REFUSALS]:
            refusals.add_row(str(refusal.pods), refusal.message)
        shown.print(refusals)
    for assertion in report.assertions:
        text = f"{'holds' if assertion.holds else 'FAILS'}  {assertion.text}  (found {assertion.found:g})"
        shown.print(Text(text, style="green" if assertion.holds else "bold red"))
    for note in report.notes:
        shown.print(Text(f"note: {note}", style="dim"))


def print_comparison(shown: Console, comparison: RunComparison) -> None:
    """Prints the figures of a workload that was played several times."""
    seeds = comparison.seeds
    over = f"with the seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"with the seed {seeds[0]}"
    shown.print(Text(f"{comparison.workload}: {plural(comparison.runs[0][0].pods, 'pod')}, {over}", style="bold"))
    is_pair = len(comparison.configurations) == 2
    figures = table(
        "figure", *comparison.configurations, *(("difference", "larger in", "smaller in") if is_pair else ())
    )
    for figure in comparison.figures:
        cells = [_mean(figure, place) for place in range(len(comparison.configurations))]
        if is_pair and figure.difference is not None:
            cells.append(figure_words(figure.name, figure.difference, sign=True))
            cells += [f"{count} of {len(seeds)}" for count in (figure.larger, figure.smaller)]
        figures.add_row(figure.name, *cells)
    shown.print(figures)
    for name, reports in zip(comparison.configurations, comparison.runs, strict=True):
        for report in reports:
            for assertion in report.assertions:
                if not assertion.holds:
                    text = f"FAILS  {assertion.text}  (found {assertion.found:g} with {name}, seed {report.seed})"
                    shown.print(Text(text, style="bold red"))


def _mean(figure: ComparedFigure, place: int) -> str:
    mean, low, high = (
        figure_words(figure.name, values[place]) for values in (figure.means, figure.lowest, figure.highest)
    )
    return mean if low == high else f"{mean} ({low} to {high})"


def _outcome(shown: Console, report: SimulationReport) -> None:
    rows = table("", "")
    others = [
        (report.refused, "refused"),
        (report.gated, "gated"),
        (report.withdrawn, "deleted before they had a node"),
    ]
    rows.add_row("without a node", ", ".join(f"{number} {word}" for number, word in others if number) or "none")
    if report.preemptions:
        rows.add_row("preemptions", f"{report.preemptions}, which evicted {plural(report.evicted, 'pod')}")
    if report.waiting.longest:
        waiting = report.waiting
        parts = (
            ("on average", waiting.mean),
            ("half of them", waiting.p50),
            ("99 %", waiting.p99),
            ("the longest", waiting.longest),
        )
        rows.add_row("waited", ", ".join(f"{who} {seconds_words(seconds)}" for who, seconds in parts))
    rows.add_row("simulated time", seconds_words(report.simulated_seconds))
    rows.add_row(
        "speed", f"{report.decisions_per_second:,.0f} decisions a second, {report.cpu_ms_per_pod:.2f} ms of CPU a pod"
    )
    for phase in report.phases:
        demanded = "" if phase.threshold is None else f" (threshold {phase.threshold:,.0f})"
        rows.add_row(phase.name, f"{plural(phase.pods, 'pod')}, {phase.pods_per_second:,.0f} a second{demanded}")
    shown.print(rows)


def _resources(shown: Console, report: SimulationReport) -> None:
    resources = table("resource", "allocated", "mean", "peak", "free but unusable")
    for name, share in report.allocated.items():
        usage, fragments = report.utilisation[name], report.fragmentation.get(name)
        resources.add_row(
            name,
            f"{share:.1%}",
            f"{usage.mean:.1%}",
            f"{usage.peak:.1%}",
            "" if fragments is None else f"{fragments:.1%}",
        )
    shown.print(resources)
