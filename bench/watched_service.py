"""`reprieve` with a loop that is watched: `python -m bench.watched_service FILE serve ...`.

Each time that a timer of a millisecond is late, the file gets a line with the time and the seconds it was late: so long
somebody had the event loop, or the process had no processor.
"""

import asyncio
import sys
import time
from pathlib import Path
from typing import TextIO

from api.cli import app
from api.serving.server import Server

TICK = 0.001
LATE = 0.01


def longest_step(noted: Path, since: float) -> float:
    """Returns the longest that the loop was held since that time, in seconds."""
    lines = (line.split() for line in noted.read_text().splitlines())
    return max((float(late) for moment, late in lines if float(moment) >= since), default=0.0)


async def _watch(noted: TextIO) -> None:
    last = time.monotonic()
    while True:
        await asyncio.sleep(TICK)
        now = time.monotonic()
        if now - last - TICK > LATE:
            print(f"{now} {now - last - TICK:.3f}", file=noted, flush=True)
        last = now


def run(noted: Path) -> None:
    """Runs the command that is left in `sys.argv`."""
    main_loop = Server.main_loop

    async def watched(server: Server) -> None:
        with noted.open("a") as file:
            watching = asyncio.ensure_future(_watch(file))
            try:
                await main_loop(server)
            finally:
                watching.cancel()

    Server.main_loop = watched  # type: ignore[method-assign, assignment]
    app()


if __name__ == "__main__":
    run(Path(sys.argv.pop(1)))
