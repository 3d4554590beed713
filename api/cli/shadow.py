"""`reprieve shadow`: would this configuration decide as the scheduler of the cluster does?"""

import asyncio
import signal
from pathlib import Path
from typing import Annotated, Final, Literal

import typer
from rich.console import Console

from api.cli import Options
from api.cli.showing import OutputOption, WaitingLine, heading, name_of, show, table
from api.cli.sources import Source
from api.ui.wording import percent_of
from extender.answers.phrases import plural
from extender.engine.reporter import Decided
from extender.values.golang.times import Duration, DurationError
from reprieve.errors import StartUpError
from reprieve.lab import limits
from reprieve.lab.agreement import Agreement, AgreementQuestion, AgreementShare

SHOWN: Final = 30
"""The number of differences in the table, unless it is wide."""


def shadow(
    action: Annotated[
        Literal["report", "run"],
        typer.Argument(
            metavar="report|run", help="report: of a service or a recording; run: follow a cluster here, then report."
        ),
    ],
    path: Annotated[Path | None, typer.Argument(metavar="[RECORDING]", help="A recording to report on.")] = None,
    *,
    source: Annotated[Source, Options.of(Source, only=("server", "token", "kubeconfig", "context", "config"))],
    lasting: Annotated[
        str | None, typer.Option("--for", help="How long to follow, such as 24h (until interrupted).")
    ] = None,
    at_least: Annotated[
        float | None,
        typer.Option(min=0, max=100, help="Exit with code 1 if a smaller percentage of clear decisions agrees."),
    ] = None,
    output: OutputOption = "table",
) -> None:
    """Say how often this configuration agrees with a cluster's own scheduler, where it does not, and which plugin is
    the reason.

    Nothing is written to the cluster, and nothing has to be installed in it. `report` asks a service that was started
    with --shadow, or reads a recording; `run` follows the cluster of a kubeconfig for as long as --for says, or until
    Ctrl-C, and then reports.
    """
    if action == "run":
        report = _followed(source, _seconds(lasting))
    elif path is not None:
        report = _over(path, source.config)
    else:
        report = asyncio.run(_agreement_of_service(source))
    show(report, output, _in_words)
    agreement = report.total.agreement
    if at_least is not None and (agreement or 0.0) * 100 < at_least:
        raise typer.Exit(1)


async def _agreement_of_service(source: Source) -> Agreement:
    async with source.open_service() as service:
        agreement = await service.ask(AgreementQuestion(limit=limits.SHADOW_DIFFERENCES))
    if agreement is None:
        raise StartUpError(
            "the service has no shadow: start it with --shadow, or follow a cluster here with `reprieve shadow run`"
        )
    return agreement


def _over(path: Path, config: Path | None) -> Agreement:
    from api.cli.replay import quiet  # noqa: PLC0415 - asking a service takes no engine
    from api.cli.simulate import progress  # noqa: PLC0415
    from reprieve.lab.recordings import Recording  # noqa: PLC0415
    from reprieve.lab.shadow import agreement_over  # noqa: PLC0415
    from reprieve.sources.configurations import usable_configuration  # noqa: PLC0415

    recording = Recording(path)
    configuration = recording.configuration if config is None else usable_configuration(config)
    with quiet(), progress(path.name, "decisions") as advance:
        return agreement_over(recording, configuration, str(config or "the recorded one"), advance)


def _followed(source: Source, seconds: float | None) -> Agreement:
    from extender.assembly.live_backend import LiveOptions  # noqa: PLC0415 - asking a service takes no engine
    from reprieve.lab.shadow import Shadow  # noqa: PLC0415
    from reprieve.sources.configurations import shadow_configuration  # noqa: PLC0415
    from reprieve.sources.live_clusters import following  # noqa: PLC0415
    from reprieve.sources.reaching import reach, target_of  # noqa: PLC0415

    async def follow() -> Agreement:
        ended = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
        await reach(source.kubeconfig, source.context)
        target, configuration = target_of(source.kubeconfig, source.context), shadow_configuration(source.config)
        shadow = Shadow(configuration, str(source.config or "default"))
        with WaitingLine("listing") as line:
            async with following(configuration, target, LiveOptions(taps=[shadow.tap()]), line.show):
                words = (
                    "following the cluster; press Ctrl-C to end"
                    if seconds is None
                    else f"following the cluster for {seconds:g} s"
                )
                typer.echo(words, err=True)
                line.show(words)
                try:
                    async with asyncio.timeout(seconds):
                        await ended.wait()
                except TimeoutError:
                    await shadow.caught_up()
                return shadow.agreement(limits.SHADOW_DIFFERENCES)

    return asyncio.run(follow())


def _seconds(text: str | None) -> float | None:
    try:
        return None if text is None else Duration.parse(text).seconds
    except DurationError as exc:
        raise StartUpError(f"--for {text!r:.40}: give a duration such as 90s or 24h") from exc


def _in_words(terminal: Console, agreement: Agreement, is_wide: bool) -> None:
    total = agreement.total
    terminal.print(
        f"{_percent(total.agreement)} of {plural(total.decisions - total.unclear, 'clear decision')} agree",
        style="bold",
    )
    terminal.print(
        f"{total.same} the same, {total.ties} among equals, {total.different} different, {total.unclear} unclear"
    )
    terminal.print(f"{agreement.configuration} beside the scheduler, from {agreement.since} to {agreement.until}")
    if agreement.evicted:
        terminal.print(f"{plural(agreement.evicted, 'pod')} evicted, of which {agreement.spared} would have stayed")
    for title, shares in (
        ("By plugin", agreement.by_plugin),
        ("By shape", agreement.by_shape),
        ("By the scheduler's message", agreement.by_reason),
    ):
        _shares(terminal, title, shares, is_wide=is_wide)
    if agreement.differences:
        listed = agreement.differences if is_wide else agreement.differences[:SHOWN]
        terminal.print(heading("Differences, newest first"))
        lines = table("time", "pod", "what", "plugin", "scheduler", "here", "why")
        for difference in listed:
            what = difference.kind if difference.is_clear else f"{difference.kind} (unclear)"
            preemptor, nodes = difference.preemptor, (_words(difference.theirs), _words(difference.ours))
            why = difference.reason + (f", evicted for {name_of(preemptor)}" if preemptor is not None else "")
            lines.add_row(difference.time, name_of(difference.pod), what, difference.plugin, *nodes, why)
        terminal.print(lines)
        hidden = sum(agreement.by_kind.values()) - len(listed)
        if hidden:
            terminal.print(f"and {hidden} more", style="dim")
    costs = agreement.costs
    terminal.print(
        f"it took {costs.seconds:.3f} s of CPU time, {costs.per_decision * 1000:.2f} ms a decision", style="dim"
    )
    if costs.behind > 1:
        terminal.print(
            f"note: {costs.behind:.0f} s behind the cluster, with {plural(costs.waiting, 'change')} waiting",
            style="dim",
        )
    for note in agreement.notes:
        terminal.print(f"note: {note}", style="dim")


def _shares(terminal: Console, title: str, shares: tuple[AgreementShare, ...], *, is_wide: bool) -> None:
    listed = shares if is_wide else [share for share in shares if share.different or share.unclear]
    if not listed:
        return
    terminal.print(heading(title))
    rows = (
        (share.name, str(share.decisions), _percent(share.agreement), str(share.different), str(share.unclear))
        for share in listed
    )
    terminal.print(table("", "decisions", "agree", "different", "unclear", rows=rows))


def _words(decided: Decided) -> str:
    if decided.nominated and decided.status != "Evicted":
        return f"{decided.nominated}, by preemption"
    return decided.node or decided.status


def _percent(part: float | None) -> str:
    return "-" if part is None else percent_of(part)
