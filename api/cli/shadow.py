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
        found = _followed(source, _seconds(lasting))
    elif path is not None:
        found = _over(path, source.config)
    else:
        found = asyncio.run(_asked(source))
    show(found, output, _in_words)
    agreement = found.total.agreement
    if at_least is not None and (agreement or 0.0) * 100 < at_least:
        raise typer.Exit(1)


async def _asked(source: Source) -> Agreement:
    async with source.open_service() as service:
        found = await service.ask(AgreementQuestion(limit=limits.SHADOW_DIFFERENCES))
    if found is None:
        raise StartUpError(
            "the service has no shadow: start it with --shadow, or follow a cluster here with `reprieve shadow run`"
        )
    return found


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


def _in_words(shown: Console, found: Agreement, is_wide: bool) -> None:
    total = found.total
    shown.print(
        f"{_percent(total.agreement)} of {plural(total.decisions - total.unclear, 'clear decision')} agree",
        style="bold",
    )
    shown.print(
        f"{total.same} the same, {total.ties} among equals, {total.different} different, {total.unclear} unclear"
    )
    shown.print(f"{found.configuration} beside the scheduler, from {found.since} to {found.until}")
    if found.evicted:
        shown.print(f"{plural(found.evicted, 'pod')} evicted, of which {found.spared} would have stayed")
    for title, shares in (
        ("By plugin", found.by_plugin),
        ("By shape", found.by_shape),
        ("By the scheduler's message", found.by_reason),
    ):
        _shares(shown, title, shares, is_wide=is_wide)
    if found.differences:
        listed = found.differences if is_wide else found.differences[:SHOWN]
        shown.print(heading("Differences, newest first"))
        made = table("time", "pod", "what", "plugin", "scheduler", "here", "why")
        for each in listed:
            what = each.kind if each.is_clear else f"{each.kind} (unclear)"
            why = f"{each.reason}, evicted for {name_of(each.preemptor)}" if each.preemptor is not None else each.reason
            made.add_row(each.time, name_of(each.pod), what, each.plugin, _words(each.theirs), _words(each.ours), why)
        shown.print(made)
        hidden = sum(found.by_kind.values()) - len(listed)
        if hidden:
            shown.print(f"and {hidden} more", style="dim")
    costs = found.costs
    shown.print(
        f"it took {costs.seconds:.3f} s of CPU time, {costs.per_decision * 1000:.2f} ms a decision", style="dim"
    )
    if costs.behind > 1:
        shown.print(
            f"note: {costs.behind:.0f} s behind the cluster, with {plural(costs.waiting, 'change')} waiting",
            style="dim",
        )
    for note in found.notes:
        shown.print(f"note: {note}", style="dim")


def _shares(shown: Console, title: str, shares: tuple[AgreementShare, ...], *, is_wide: bool) -> None:
    listed = shares if is_wide else [share for share in shares if share.different or share.unclear]
    if not listed:
        return
    shown.print(heading(title))
    rows = (
        (share.name, str(share.decisions), _percent(share.agreement), str(share.different), str(share.unclear))
        for share in listed
    )
    shown.print(table("", "decisions", "agree", "different", "unclear", rows=rows))


def _words(decided: Decided) -> str:
    if decided.nominated and decided.status != "Evicted":
        return f"{decided.nominated}, by preemption"
    return decided.node or decided.status


def _percent(part: float | None) -> str:
    return "-" if part is None else percent_of(part)
