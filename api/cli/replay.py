"""`reprieve replay`: what a recorded scheduler would decide now."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from api.cli.showing import OutputOption, show, table
from api.cli.simulate import progress
from extender.answers.phrases import plural
from extender.engine.reporter import Decided
from reprieve.lab.recordings import Recording
from reprieve.lab.simulation import ReplayReport, replay as replay_recording
from reprieve.sources.configurations import usable_configuration

SHOWN: Final = 50
"""The number of differences in the table, unless it is wide."""


def replay(
    path: Annotated[Path, typer.Argument(metavar="RECORDING", help="A file that serve --record wrote.")],
    config: Annotated[
        Path | None, typer.Option(help="KubeSchedulerConfiguration that decides instead of the recorded one.")
    ] = None,
    output: OutputOption = "table",
) -> None:
    """Repeat the decisions of a recording, and show where they differ.

    Each decision is made again in its recorded state, with the same choice among equally good nodes. The exit code is 0
    if all decisions are the same, and 1 otherwise.
    """
    recording = Recording(path)
    configuration = recording.deciding_configuration if config is None else usable_configuration(config)
    with quiet(), progress(path.name, "decisions") as advance:
        report = replay_recording(recording, configuration, advance)
    show(report, output, _print)
    if report.different or report.not_decided:
        raise typer.Exit(1)


@contextmanager
def quiet() -> Iterator[None]:
    """Logs nothing: what the scheduler says about its attempts was logged when they were recorded."""
    logger = logging.getLogger("extender")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def _print(terminal: Console, report: ReplayReport, is_wide: bool) -> None:
    title = (
        f"{report.recording}: {report.same} of {plural(report.decisions, 'decision')} the same, {report.different} "
        "different"
    )
    terminal.print(title, style="bold")
    terminal.print(f"recorded from {report.began}, for {report.seconds:g} s")
    if report.differences:
        differences = report.differences if is_wide else report.differences[:SHOWN]
        rows = ((f"{row.at:.3f} s", row.pod, _words(row.recorded), _words(row.replayed)) for row in differences)
        terminal.print(table("at", "pod", "recorded", "now", rows=rows))
    hidden = report.different - (len(report.differences) if is_wide else min(SHOWN, len(report.differences)))
    if hidden:
        terminal.print(f"and {hidden} more", style="dim")
    if report.unknown:
        unknown = report.unknown if is_wide else report.unknown[:SHOWN]
        terminal.print(table("at", "pod", "not known", rows=((f"{one.at:.3f} s", one.pod, one.why) for one in unknown)))
    if not report.decisions:
        terminal.print(
            "note: the recording has no decisions: those of a scheduler are recorded, those of an extender are not",
            style="dim",
        )
    if report.not_decided:
        terminal.print(f"note: {plural(report.not_decided, 'decision')} could not be repeated", style="dim")
    if not report.is_complete:
        terminal.print("note: the end of the recording is missing", style="dim")


def _words(decided: Decided) -> str:
    if decided.node:
        return decided.node
    if decided.victims:
        return (
            f"{decided.nominated}, once {', '.join(decided.victims)} {'is' if len(decided.victims) == 1 else 'are'} "
            "gone"
        )
    return f"{decided.status}: {decided.message}" if decided.message else decided.status
