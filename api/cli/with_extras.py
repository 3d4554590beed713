"""`reprieve top`, what waits, live in a terminal; and `reprieve mcp`, the questions as tools. Both need an extra."""

import asyncio
import sys
from typing import Annotated

import typer

from api.cli.sources import Source, SourceOptions
from extender import how_to_install
from reprieve.errors import StartUpError


def top(
    *,
    interval: Annotated[float, typer.Option(min=0.5, max=3600, help="Seconds between two questions.")] = 2.0,
    source: SourceOptions,
) -> None:
    """Show live which pods wait and for what, who was preempted, and why a pod that you choose waits.

    It needs the extra `top` and a terminal. Choose a workload with the arrow keys; q quits.
    """
    if not sys.stdout.isatty():
        raise StartUpError("top needs a terminal; `reprieve pending --watch` needs none")
    asyncio.run(_show_screen(source, interval))


async def _show_screen(source: Source, interval: float) -> None:
    try:
        from api.cli.top_screen import TopScreen  # noqa: PLC0415 - an extra
    except ImportError as exc:
        raise StartUpError(f"the live view needs the extra top: {how_to_install('top')} ({exc})") from exc
    async with source.open(keeps_asking=True) as answers:
        screen = TopScreen(answers, source.namespace, interval)
        await screen.run_async()
    if screen.failed is not None:
        raise screen.failed


def mcp(
    *,
    source: SourceOptions,
    list_tools: Annotated[bool, typer.Option("--list", help="Print the names of the tools and exit.")] = False,
) -> None:
    """Serve the questions as tools of the Model Context Protocol, on standard input and output.

    The tools are why, victims, whatif, who_preempted, fits and plan. They need the extra `mcp`.
    """
    # A tool changes nothing, and shows what the caller's credentials may see, as the command that asks the same.
    asyncio.run(_served(source, list_tools=list_tools))


async def _served(source: Source, *, list_tools: bool) -> None:
    try:
        from api.cli.mcp_server import server_of  # noqa: PLC0415 - an extra
    except ImportError as exc:
        raise StartUpError(f"the Model Context Protocol needs the extra mcp: {how_to_install('mcp')} ({exc})") from exc
    async with source.open(keeps_asking=True) as answers:
        server = server_of(answers, source)
        if list_tools:
            print(*(tool.name for tool in await server.list_tools()), sep="\n")
        else:
            await server.run_stdio_async()
