"""`reprieve doctor`: does this extender answer as kube-scheduler needs it?"""

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer
from rich.console import Console
from rich.table import Table

from api.cli.showing import WaitingLine, printable, show_document
from extender.values.config.configuration import ExtenderTLSConfig
from reprieve.lab.doctor import Finding, Grade, skipped
from reprieve.lab.doctor.examination import examine
from reprieve.lab.doctor.examined_service import ExaminedService
from reprieve.sources.extenders import VERBS, from_configuration, from_url

_SIGNS: Final = {
    Grade.OK: "[green]✔[/]",
    Grade.WARNING: "[yellow]![/]",
    Grade.BAD: "[red]✘[/]",
    Grade.SKIPPED: "[dim]-[/]",
}


def doctor(
    url: Annotated[
        str, typer.Argument(help="urlPrefix of the extender; by default, the extenders of --config.", metavar="[URL]")
    ] = "",
    config: Annotated[Path | None, typer.Option(help="KubeSchedulerConfiguration whose extenders are checked.")] = None,
    verbs: Annotated[
        str, typer.Option(help="Verbs that the extender must serve (by default, those that it serves).")
    ] = ",".join(VERBS),
    form: Annotated[str, typer.Option(help="How nodes are sent: full, names, or both.")] = "both",
    nodes: Annotated[
        str, typer.Option(help="Names of nodes that the extender knows, for requests that send only names.")
    ] = "",
    timeout: Annotated[int, typer.Option(min=1, max=30, help="httpTimeout, in seconds.")] = 5,
    ca_file: Annotated[
        Path | None, typer.Option(help="File with the CA certificates (PEM) to trust, for https.")
    ] = None,
    insecure: Annotated[bool, typer.Option(help="Do not verify the extender's certificate.")] = False,
    output: Annotated[
        Literal["table", "json", "yaml"], typer.Option("--output", "-o", help="How the findings are printed.")
    ] = "table",
) -> None:
    """Check a scheduler extender: ask all that kube-scheduler may ask, and report wrong answers.

    Every finding says what to do. Nothing is bound, and nothing changes in an extender that works. --verbs takes
    `preempt=preemption` for a verb of another name. An extender that does not answer is given up after twice --timeout.
    The exit code is 1 if kube-scheduler would be misled or left without an answer.
    """
    patients = list(from_configuration(config) if not url else from_url(url, verbs, form, timeout, ca_file, insecure))
    node_names = tuple(name for name in nodes.split(",") if name)
    report: dict[str, list[Finding]] = {}
    away: dict[tuple[str, ExtenderTLSConfig | None], str] = {}
    for title, extender in patients:
        door = extender.url_prefix, extender.tls_config
        why = away.get(door)
        if why is not None:
            report[title] = [skipped("answers every question", f"not asked, because {why}")]
            continue
        service = ExaminedService(
            extender, protocol_schema, node_names, may_lack_verbs=bool(url) and verbs == ",".join(VERBS)
        )
        with WaitingLine(f"examining {title}"):
            report[title] = asyncio.run(examined(service))
        if service.given_up:
            away[door] = service.given_up
    _print(report, output)
    if any(finding.grade is Grade.BAD for findings in report.values() for finding in findings):
        raise typer.Exit(1)


def protocol_schema() -> dict[str, Any]:
    """Returns the JSON Schema of the extender protocol."""
    from api.routing import routed  # noqa: PLC0415 - the commands begin sooner without the service
    from api.settings.settings import Settings  # noqa: PLC0415
    from reprieve.lab.extender_schema import extender_schema  # noqa: PLC0415

    return extender_schema(routed(Settings()).openapi())


async def examined(service: ExaminedService) -> list[Finding]:
    """Returns the findings about an extender, and closes the connections to it."""
    try:
        return [finding async for finding in examine(service)]
    finally:
        await service.aclose()


def _print(report: dict[str, list[Finding]], output: str) -> None:
    if output != "table":
        plain = [{"extender": title, "findings": [*map(asdict, findings)]} for title, findings in report.items()]
        show_document(plain, is_json=output == "json")
        return
    console = Console(highlight=False)
    for title, findings in printable(report).items():
        console.print(f"[bold]{title}[/]")
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1))
        table.add_column(width=1)
        table.add_column(no_wrap=True, style="cyan")
        table.add_column(ratio=1)
        for finding in findings:
            advice = f"\n[dim]→ {finding.advice}[/]" if finding.advice and finding.grade is not Grade.OK else ""
            table.add_row(
                _SIGNS[finding.grade], finding.verb or "connection", finding.words.replace("[", r"\[") + advice
            )
        console.print(table)
    grades = [finding.grade for findings in report.values() for finding in findings]
    bad, warnings, ok = map(grades.count, (Grade.BAD, Grade.WARNING, Grade.OK))
    console.print(f"{bad} bad, {warnings} warnings, {ok} ok")
