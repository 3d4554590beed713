"""`reprieve mcp`: the questions as tools of the Model Context Protocol, on standard input and output.

Every tool is a question that a command asks, too: it changes nothing, and shows what the caller's credentials may see.
"""

import asyncio
from typing import Annotated

import typer

from api.cli.sources import Source, SourceOptions
from api.fatal_errors import StartUpError
from extender import how_to_install


def mcp(
    *,
    source: SourceOptions,
    list_tools: Annotated[bool, typer.Option("--list", help="Print the names of the tools and exit.")] = False,
) -> None:
    """Serve the questions as tools of the Model Context Protocol, on standard input and output.

    The tools are why, victims, whatif, who_preempted, fits and plan. They need the extra `mcp`.
    """
    asyncio.run(_served(source, list_tools=list_tools))


async def _served(source: Source, *, list_tools: bool) -> None:
    try:
        from api.cli.mcp_server import server_of  # noqa: PLC0415 - an extra
    except ImportError as exc:
        raise StartUpError(f"the Model Context Protocol needs the extra mcp: {how_to_install('mcp')} ({exc})") from exc
    async with source.open() as asked:
        server = server_of(asked, source)
        if list_tools:
            print(*(tool.name for tool in await server.list_tools()), sep="\n")
        else:
            await server.run_stdio_async()
