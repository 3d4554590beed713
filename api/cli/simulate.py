"""`reprieve simulate`: what would become of a workload."""

import enum
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, final

import msgspec
import orjson
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from api.cli.showing import console, heading, plural, table
from api.fatal_errors import StartUpError
from api.starting import read_configuration
from api.ui.simulation_page import simulation_page
from api.ui.wording import seconds_words
from extender.config import ConfigErrors
from extender.simulation.playing import Advance, play
from extender.simulation.readers import read_workloads
from extender.simulation.report import SimulationReport
from extender.simulation.workload import Workload, WorkloadError


@final
class SimulationForm(enum.StrEnum):
    """The forms of --output."""

    TABLE = "table"
    JSON = "json"
    HTML = "html"


def simulate(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="WORKLOAD", help="A YAML file, a folder with nodes.csv and pods.csv, or a table of pods beside a nodes.csv."
        ),
    ],
    config: Annotated[Path | None, typer.Option(help="KubeSchedulerConfiguration of the scheduler.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of all chance. 0 keeps the order of a trace; any other number shuffles it.")] = 0,
    only: Annotated[
        list[str] | None, typer.Option(help="Of a file with many workloads, those whose names match: 'Spreading/*'; may be given again.")
    ] = None,
    label: Annotated[list[str] | None, typer.Option(help="Of these, those that have a label; may be given again.")] = None,
    output: Annotated[
        SimulationForm, typer.Option("--output", "-o", help="table, json, or html: a page with plots, complete in one file.")
    ] = SimulationForm.TABLE,
) -> None:
    """Play a workload against the real scheduler in virtual time, and report what happened.

    No cluster is needed. The report says how many pods were placed, how long they waited, how many were evicted, how much of the nodes was
    used, and how fast the scheduler decided. The exit code is 1 if a workload cannot be played, or if one of its expectations does not
    hold.
    """
    configuration = read_configuration(config)
    try:
        workloads = _chosen(read_workloads(path), only or ("*",), label or ())
    except WorkloadError as exc:
        raise StartUpError(_on_one_line(exc)) from exc
    if not workloads:
        raise StartUpError(f"{path}: no workload has such a name and label")
    reports: list[SimulationReport] = []
    for workload in workloads:
        try:
            with _progress(workload.name) as advance:
                reports.append(play(workload, configuration, seed, advance))
        except WorkloadError as exc:
            if len(workloads) == 1:
                raise StartUpError(_on_one_line(exc)) from exc
            print(f"refused: {_on_one_line(exc)}", file=sys.stderr)
        except ConfigErrors as exc:
            raise StartUpError(f"configuration {config}: {_on_one_line(exc)}") from exc
    _show(reports, output, is_list=len(workloads) > 1)
    if len(workloads) > 1 and output is SimulationForm.TABLE:
        print(f"\n{len(reports)} of {plural(len(workloads), 'workload')} played")
    if len(reports) < len(workloads) or not all(report.holds for report in reports):
        raise typer.Exit(1)


def _chosen(workloads: Sequence[Workload], only: Sequence[str], labels: Sequence[str]) -> list[Workload]:
    return [each for each in workloads if any(fnmatchcase(each.name, form) for form in only) and {*labels} <= {*each.labels}]


def _on_one_line(exc: Exception) -> str:
    return " ".join(str(exc).split())


@contextmanager
def _progress(name: str) -> Iterator[Advance]:
    """Yields what moves a bar on standard error, if that is a terminal; nothing is printed elsewhere."""
    shown = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("attempts"), TimeElapsedColumn())
    with Progress(*columns, console=shown, transient=True, disable=not shown.is_terminal) as bars:
        bar = bars.add_task(name, total=None)
        yield lambda attempts, expected: bars.update(bar, completed=attempts, total=max(expected, attempts) or None)


def _show(reports: Sequence[SimulationReport], output: SimulationForm, *, is_list: bool) -> None:
    if output is SimulationForm.JSON:
        found = [msgspec.to_builtins(report) for report in reports]
        sys.stdout.buffer.write(orjson.dumps(found if is_list else found[0], option=orjson.OPT_INDENT_2) + b"\n")
    elif output is SimulationForm.HTML:
        sys.stdout.buffer.write(simulation_page(reports).encode())
    else:
        for place, report in enumerate(reports):
            _in_words(console(), report, is_first=place == 0)


def _in_words(shown: Console, report: SimulationReport, *, is_first: bool) -> None:
    if not is_first:
        shown.print()
    shown.print(
        Text(f"{report.workload}: {report.placed} of {plural(report.pods, 'pod')} placed on {plural(report.nodes, 'node')}", style="bold")
    )
    _outcome(shown, report)
    _resources(shown, report)
    if report.refusals:
        shown.print(heading("Why pods were refused"))
        refusals = table("pods", "message")
        for refusal in report.refusals[:5]:
            refusals.add_row(str(refusal.pods), refusal.message)
        shown.print(refusals)
    for assertion in report.assertions:
        shown.print(
            Text(
                f"{'holds' if assertion.holds else 'FAILS'}  {assertion.text}  (found {assertion.found:g})",
                style="green" if assertion.holds else "bold red",
            )
        )
    for note in report.notes:
        shown.print(Text(f"note: {note}", style="dim"))


def _outcome(shown: Console, report: SimulationReport) -> None:
    rows = table("", "")
    rows.show_header = False
    others = [(report.refused, "refused"), (report.gated, "gated"), (report.withdrawn, "deleted before they had a node")]
    rows.add_row("without a node", ", ".join(f"{number} {word}" for number, word in others if number) or "none")
    if report.preemptions:
        rows.add_row("preemptions", f"{report.preemptions}, which evicted {plural(report.evicted, 'pod')}")
    if report.waiting.longest:
        waiting = report.waiting
        parts = (("on average", waiting.mean), ("half of them", waiting.p50), ("99 %", waiting.p99), ("the longest", waiting.longest))
        rows.add_row("waited", ", ".join(f"{who} {seconds_words(seconds)}" for who, seconds in parts))
    rows.add_row("simulated time", seconds_words(report.simulated_seconds))
    rows.add_row("speed", f"{report.decisions_per_second:,.0f} decisions a second, {report.cpu_ms_per_pod:.2f} ms of CPU a pod")
    for phase in report.phases:
        demanded = "" if phase.threshold is None else f" (threshold {phase.threshold:,.0f})"
        rows.add_row(phase.name, f"{plural(phase.pods, 'pod')}, {phase.pods_per_second:,.0f} a second{demanded}")
    shown.print(rows)


def _resources(shown: Console, report: SimulationReport) -> None:
    resources = table("resource", "allocated", "mean", "peak", "free but unusable")
    for name, share in report.allocated.items():
        usage, fragments = report.utilisation[name], report.fragmentation.get(name)
        resources.add_row(name, f"{share:.1%}", f"{usage.mean:.1%}", f"{usage.peak:.1%}", "" if fragments is None else f"{fragments:.1%}")
    shown.print(resources)
