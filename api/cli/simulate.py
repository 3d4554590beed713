"""`reprieve simulate`: what would become of a workload."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from api.cli.showing import console, heading, printable, show_document, table
from api.ui.simulation_page import comparison_page, simulation_page
from api.ui.wording import figure_words, seconds_words
from extender.answers.phrases import plural
from extender.values.config.configuration import Configuration
from extender.values.reasons import in_one_line
from reprieve.errors import StartUpError
from reprieve.lab.simulation import (
    Advance,
    Assertion,
    ComparedFigure,
    PlayExport,
    RunComparison,
    SimulationReport,
    Workload,
    WorkloadError,
    compared,
    exported_to,
    play,
    read_workloads,
    sweep,
)
from reprieve.sources.configurations import usable_configuration

_SHOWN_REFUSALS = 5


def print_report(terminal: Console, report: SimulationReport) -> None:
    title = (
        f"{report.workload}: {report.placed} of {plural(report.pods, 'pod')} placed on {plural(report.nodes, 'node')}"
    )
    terminal.print(title, style="bold")
    _outcome(terminal, report)
    _resources(terminal, report)
    if report.refusals:
        terminal.print(heading("Why pods were refused"))
        rows = ((str(refusal.pods), refusal.message) for refusal in report.refusals[:_SHOWN_REFUSALS])
        terminal.print(table("pods", "message", rows=rows))
    for assertion in report.assertions:
        text = f"{'holds' if assertion.holds else 'FAILS'}  {assertion.text}  (found {_value_words(assertion)})"
        terminal.print(text, style="green" if assertion.holds else "bold red")
    for note in report.notes:
        terminal.print(f"note: {note}", style="dim")


def print_comparison(terminal: Console, comparison: RunComparison) -> None:
    """Prints the figures of a workload that was played several times."""
    seeds = comparison.seeds
    over = f"with the seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"with the seed {seeds[0]}"
    terminal.print(f"{comparison.workload}: {plural(comparison.runs[0][0].pods, 'pod')}, {over}", style="bold")
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
    terminal.print(figures)
    for name, reports in zip(comparison.configurations, comparison.runs, strict=True):
        for report in reports:
            for assertion in report.assertions:
                if not assertion.holds:
                    text = f"FAILS  {assertion.text}  (found {_value_words(assertion)} with {name}, seed {report.seed})"
                    terminal.print(text, style="bold red")


def _value_words(assertion: Assertion) -> str:
    """Returns what was found in the unit of what is expected."""
    return f"{100 * assertion.found:g}%" if "%" in assertion.text else f"{assertion.found:g}"


def _mean(figure: ComparedFigure, place: int) -> str:
    mean, low, high = (
        figure_words(figure.name, values[place]) for values in (figure.means, figure.lowest, figure.highest)
    )
    return mean if low == high else f"{mean} ({low} to {high})"


def _outcome(terminal: Console, report: SimulationReport) -> None:
    rows = table("", "")
    unplaced = (
        (report.refused, "refused"),
        (report.gated, "gated"),
        (report.withdrawn, "deleted before they had a node"),
    )
    rows.add_row("without a node", ", ".join(f"{number} {word}" for number, word in unplaced if number) or "none")
    if report.preemptions:
        rows.add_row("preemptions", f"{report.preemptions}, which evicted {plural(report.evicted, 'pod')}")
    if report.waiting.longest:
        waiting = report.waiting
        times = waiting.mean, waiting.p50, waiting.p99, waiting.longest
        parts = zip(("on average", "half of them", "99 %", "the longest"), times, strict=True)
        rows.add_row("waited", ", ".join(f"{who} {seconds_words(seconds)}" for who, seconds in parts))
    rows.add_row("simulated time", seconds_words(report.simulated_seconds))
    rows.add_row(
        "speed",
        f"{report.decisions_per_second:,.0f} decisions a second here, the simulation of the cluster included; "
        f"{report.cpu_ms_per_pod:.2f} ms of CPU a pod",
    )
    for phase in report.phases:
        demanded = "" if phase.threshold is None else f" (threshold {phase.threshold:,.0f})"
        rows.add_row(phase.name, f"{plural(phase.pods, 'pod')}, {phase.pods_per_second:,.0f} a second{demanded}")
    terminal.print(rows)


def _resources(terminal: Console, report: SimulationReport) -> None:
    resources = table("resource", "allocated", "mean", "peak", "free but unusable")
    for name, share in report.allocated.items():
        usage, fragments = report.utilisation[name], report.fragmentation.get(name)
        unusable = "" if fragments is None else f"{fragments:.1%}"
        resources.add_row(name, f"{share:.1%}", f"{usage.mean:.1%}", f"{usage.peak:.1%}", unusable)
    terminal.print(resources)


R = TypeVar("R", SimulationReport, RunComparison)


def simulate(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="WORKLOAD",
            help="A YAML file, a recording, or a folder with nodes.csv and pods.csv, or with performance-config.yaml.",
        ),
    ],
    config: Annotated[Path | None, typer.Option(help="KubeSchedulerConfiguration of the scheduler.")] = None,
    against: Annotated[
        list[Path] | None,
        typer.Option(help="Another KubeSchedulerConfiguration, to compare with the first one; can be repeated."),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the random numbers. 0 keeps the order of a trace; others shuffle it.")
    ] = 0,
    seeds: Annotated[
        int, typer.Option(min=1, help="Number of seeds to play with, the first of them --seed; uses all processors.")
    ] = 1,
    only: Annotated[
        list[str] | None,
        typer.Option(help="Play only the workloads with these names, such as 'Spreading/*'; can be repeated."),
    ] = None,
    label: Annotated[
        list[str] | None, typer.Option(help="Play only the workloads with this label; can be repeated.")
    ] = None,
    half: Annotated[
        Literal["earlier", "later"] | None, typer.Option(help="Play one of the halves that `tune` makes.")
    ] = None,
    output: Annotated[
        Literal["table", "json", "html"],
        typer.Option("--output", "-o", help="table, json, or html: a page with plots, complete in one file."),
    ] = "table",
    export: Annotated[
        Path | None, typer.Option(help="Write every play to this folder as Parquet: decisions, pods, data of plots.")
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(help="Play on the workers of this dask.distributed scheduler, such as tcp://host:8786."),
    ] = None,
) -> None:
    """Play a workload against the real scheduler in virtual time, and report what happened.

    No cluster is needed. The report says how many pods were placed, how long they waited, how many were evicted, how
    much of the nodes was used, and how fast the scheduler decided. The exit code is 1 if an expectation does not
    hold, or if one of several workloads cannot be played.
    """
    files = [config, *(against or ())]
    chosen = [None if file is None else usable_configuration(file) for file in files]
    workloads = [
        workload if half is None else workload.half(is_later=half == "later")
        for workload in read_workloads(path)
        if any(fnmatchcase(workload.name, form) for form in only or ("*",)) and {*(label or ())} <= {*workload.labels}
    ]
    if not workloads:
        raise StartUpError(f"{path}: no workload has this name and label")
    with exported_to(export) if export is not None else nullcontext() as exported:
        if len(files) == 1 and seeds == 1 and on is None:
            holds = _play_once(workloads, chosen[0], seed, output, _names(files)[0], exported)
        else:
            holds = _compare(workloads, chosen, range(seed, seed + seeds), output, _names(files), exported, on)
    if not holds:
        raise typer.Exit(1)


def _play_once(
    workloads: Sequence[Workload],
    configuration: Configuration | None,
    seed: int,
    output: str,
    name: str,
    exported: PlayExport | None,
) -> bool:
    """Plays each workload and shows its report; returns whether all were played and whatever they expect holds."""

    def report_of(workload: Workload, advance: Advance) -> SimulationReport:
        chosen = configuration or workload.own_configuration or usable_configuration(None)
        played = play(workload, chosen, seed, advance, keeps_decisions=exported is not None)
        if exported is not None:
            exported.add(name, played)
        return played.report

    reports = _play_all(workloads, report_of)
    _show(reports, output, len(workloads), simulation_page, print_report)
    return len(reports) == len(workloads) and all(report.holds for report in reports)


def _compare(
    workloads: Sequence[Workload],
    configurations: Sequence[Configuration | None],
    seeds: Sequence[int],
    output: str,
    names: Sequence[str],
    exported: PlayExport | None,
    on: str | None,
) -> bool:
    """Plays each workload with all seeds and configurations and shows the comparison; returns as `_play_once`."""
    keep = None if exported is None else lambda place, played: exported.add(names[place], played)
    comparisons = _play_all(
        workloads,
        lambda workload, advance: compared(
            names, seeds, sweep(workload, configurations, seeds, advance, on=on, keep=keep)
        ),
        unit="plays",
    )
    _show(comparisons, output, len(workloads), comparison_page, print_comparison)
    return len(comparisons) == len(workloads) and all(comparison.holds for comparison in comparisons)


def _names(files: Sequence[Path | None]) -> list[str]:
    names = ["default" if file is None else file.name for file in files]
    return names if len({*names}) == len(names) else [str(file) for file in files]


def _play_all(
    workloads: Sequence[Workload], played: Callable[[Workload, Advance], R], unit: str = "attempts"
) -> list[R]:
    """Returns what was found of each workload; one of several that cannot be played is reported on standard error."""
    results: list[R] = []
    for workload in workloads:
        try:
            with progress(workload.name, unit) as advance:
                results.append(played(workload, advance))
        except WorkloadError as exc:
            if len(workloads) == 1:
                raise
            print(f"refused: {printable(in_one_line(exc))}", file=sys.stderr)
    return results


@contextmanager
def progress(name: str, unit: str) -> Iterator[Callable[..., None]]:
    """Yields what moves a bar on standard error, if that is a terminal, and may name it anew: `Advance`, and words."""
    terminal = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn(unit), TimeElapsedColumn()
    with Progress(*columns, console=terminal, transient=True, disable=not terminal.is_terminal) as bars:
        bar = bars.add_task(name, total=None)
        # Where more comes than was foreseen, nobody knows how much.
        yield lambda done, expected, words=name: bars.update(
            bar, completed=done, total=expected if done < expected else None, description=words
        )


def _show(
    results: Sequence[R],
    output: str,
    num_workloads: int,
    page: Callable[[Sequence[R]], str],
    show: Callable[[Console, R], None],
) -> None:
    is_list = num_workloads > 1
    if output == "json":
        plain = [msgspec.to_builtins(result) for result in results]
        show_document(plain if is_list else plain[0], is_json=True)
    elif output == "html":
        sys.stdout.buffer.write(page(results).encode())
    else:
        for result in results:
            show(console(), printable(result))
            if is_list:
                print()
        if is_list:
            print(f"{len(results)} of {plural(num_workloads, 'workload')} played")
