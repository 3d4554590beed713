"""`reprieve top`: what waits, live, in a terminal."""

import asyncio
import sys
from typing import Annotated

import typer

from api.cli.sources import Source, SourceOptions
from api.fatal_errors import StartUpError
from extender import how_to_install


def top(
    *,
    interval: Annotated[float, typer.Option(min=0.5, max=3600, help="Seconds between two questions.")] = 2.0,
    source: SourceOptions,
) -> None:
    """Show live which pods wait and for what, who was preempted, and why a pod that you choose waits.

    It needs the extra `top` and a terminal. Choose a workload with the arrow keys; q quits.
    """
    if not sys.stdout.isatty():
        raise StartUpError("top needs a terminal; `reprieve pending --watch` prints the same anywhere")
    asyncio.run(_shown(source, interval))


async def _shown(source: Source, interval: float) -> None:
    try:
        from api.cli.top_screen import TopScreen  # noqa: PLC0415 - an extra
    except ImportError as exc:
        raise StartUpError(f"the live view needs the extra top: {how_to_install('top')} ({exc})") from exc
    async with source.open(keeps_asking=True) as asked:
        screen = TopScreen(asked, source.namespace, interval)
        await screen.run_async()
    if screen.failed is not None:
        raise screen.failed
