"""`reprieve tune`: the configuration with which kube-scheduler does best on a workload."""

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import typer
import yaml
from rich.console import Console

from api.cli.showing import console, printable, show_document, table, tell
from api.cli.simulate import print_comparison, progress
from api.ui.wording import figure_words
from extender.answers.phrases import plural
from extender.values.reasons import in_one_line
from reprieve.errors import StartUpError
from reprieve.lab.simulation import read_workloads
from reprieve.lab.tuning import Goal, TuneReport, picture as drawn, tune as tuned
from reprieve.sources.configurations import usable_configuration

SHOWN = 5
"""Pods that have no node any more, as they are listed in the table."""


def tune(
    path: Annotated[Path, typer.Argument(metavar="SOURCE", help="A recording, a dump, or what else `simulate` plays.")],
    maximise: Annotated[str, typer.Option(help="Figure that should be large, such as allocated.nvidia.com/gpu.")] = "",
    minimise: Annotated[str, typer.Option(help="Figure that should be small instead, such as waiting.p90.")] = "",
    keep: Annotated[
        list[str] | None, typer.Option(help="Limit of a figure, such as 'waiting.p90 <= 600'; can be repeated.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="KubeSchedulerConfiguration to begin with.")] = None,
    plays: Annotated[int, typer.Option(min=20, max=10_000, help="About how many plays to learn from.")] = 150,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the search, and the first one of the plays.")] = 0,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Number of seeds in each half.")] = 3,
    only: Annotated[str, typer.Option(help="Name of the workload, if SOURCE has several.")] = "*",
    on: Annotated[str | None, typer.Option(help="Play on the workers of this dask.distributed scheduler.")] = None,
    write: Annotated[Path | None, typer.Option(help="Write the configuration to this file, if it is better.")] = None,
    picture: Annotated[Path | None, typer.Option(help="Draw what was tried into this file, as SVG.")] = None,
    output: Annotated[
        Literal["table", "yaml", "json"],
        typer.Option("--output", "-o", help="table, yaml (the configuration alone) or json."),
    ] = "table",
) -> None:
    """Find the scheduler configuration that fits your own workload, and try it where it was not learnt.

    What kube-scheduler itself runs is searched: whole weights, scoring strategies, default constraints, percentages.
    Half of the workload is learnt on, and the figures are those of the other half. Ctrl-C ends the search, and the best
    so far is tried. The exit code is 1 if nothing beats the configuration within the limits; then nothing is written.
    """
    if bool(maximise) is bool(minimise):
        raise StartUpError("give --maximise FIGURE or --minimise FIGURE, such as --maximise allocated.nvidia.com/gpu")
    goal = Goal.read(maximise or minimise, is_maximised=bool(maximise), limits=keep or ())
    workloads = [workload for workload in read_workloads(path) if fnmatchcase(workload.name, only)]
    if len(workloads) != 1:
        raise StartUpError(f"{path}: {plural(len(workloads), 'workload')} here; --only NAME chooses one")
    for file in (write, picture):
        if file is not None and (file.is_dir() or not file.parent.is_dir()):
            raise StartUpError(f"{file}: {'a folder' if file.is_dir() else 'its folder does not exist'}")
    present = None if config is None else usable_configuration(config)
    with progress(workloads[0].name, "plays") as bar:

        def advance(done: int, total: int, best: float | None) -> None:
            bar(done, total, workloads[0].name if best is None else f"best so far {figure_words(goal.figure, best)}")

        report = tuned(workloads[0], present, goal, seed=seed, seeds=seeds, plays=plays, on=on, advance=advance)
    text = "" if report.configuration is None else yaml.safe_dump(report.configuration, sort_keys=False)
    for file, content in ((write, text), (picture, drawn(report))):
        try:
            if file is not None and content:
                file.write_text(content, encoding="utf-8")
        except OSError as exc:
            raise StartUpError(f"{file}: {in_one_line(exc)}") from exc
    if output == "json":
        show_document(msgspec.to_builtins(report), is_json=True)
    elif output == "yaml":
        tell(_verdict(report, goal.figure))
        print(text, end="")
    else:
        _print(console(), printable(report), goal.figure)
        print(text if write is None else "", end="")
    if not text:
        raise typer.Exit(1)


def _verdict(report: TuneReport, figure: str) -> str:
    first, *_ = report.candidates
    before, now = (figure_words(figure, report.candidates[name].value) for name in (first, report.chosen))
    limits_words = f" within {', '.join(report.limits)}" if report.limits else ""
    if report.configuration is not None:
        return f"{figure}: {before} -> {now}{limits_words}, where it was not learnt"
    if report.candidates[report.chosen].keeps_limits:
        return f"Nothing beats the {first} configuration: {figure} {before}{limits_words}"
    return f"No configuration stays{limits_words}; the nearest is {report.chosen}, {figure} {now}"


def _print(terminal: Console, report: TuneReport, figure: str) -> None:
    terminal.print(_verdict(report, figure), style="bold")
    terminal.print(f"learnt on {report.learnt_on}, in {plural(report.plays, 'play')}; tried on {report.tried_on}")
    if report.configuration is not None:
        terminal.print(table("setting", "value", rows=report.candidates[report.chosen].settings.items()))
        moved = f"{report.moved} on another node, {report.gained} that had none have one, {report.lost} have none now"
        terminal.print(f"Pods elsewhere than before, with the seed {report.held_out.seeds[0]}: {moved}")
        for move in [move for move in report.elsewhere if not move.now][:SHOWN]:
            terminal.print(f"without a node: {move.pod}, before on {move.before}")
    print_comparison(terminal, report.held_out)
    for note in report.notes:
        terminal.print(f"note: {note}", style="dim")
