"""`reprieve top`, on a terminal that a program watches: the newest answers of a source, and the explanation of what is
chosen.
"""

import asyncio
import os
import pty
import subprocess
import sys
from pathlib import Path

from textual.widgets import DataTable, Static

from api.cli.sources import DEFAULT_SERVER
from api.cli.top_screen import TopScreen
from reprieve.errors import SourceAwayError
from reprieve.sources.dumps import about_dump
from reprieve.sources.local_answers import LocalAnswers
from reprieve.sources.service_answers import from_service
from tests.api.in_process import reprieve
from tests.api.test_questions import get
from tests.kit.ports import free_port
from tests.kit.service import serving
from tests.kit.waiting import until


def text_of(screen: TopScreen, name: str) -> str:
    return str(screen.query_one(name, Static).render())


def test_top_shows_pending_pods_preempted_pods_and_an_explanation(dump: Path) -> None:
    async def looked_at(address: str) -> tuple[str, list[str], str, str]:
        async with from_service(address, DEFAULT_SERVER, None) as source:
            screen = TopScreen(source, None, 3600)
            async with screen.run_test() as pilot:
                await pilot.pause()
                row = [str(cell) for cell in screen.query_one(DataTable).get_row_at(0)]
                texts = text_of(screen, "#counts"), row, text_of(screen, "#preempted"), text_of(screen, "#explanation")
                await pilot.press("q")
        assert screen.failed is None
        return texts

    with serving(state=dump) as service:
        until(lambda: get(service, "/v1/preemptions")["items"] and get(service, "/v1/pending")["pods"])
        counts, row, preempted, why = asyncio.run(looked_at(f"127.0.0.1:{service.port}"))

    assert "waiting, short of cpu" in counts
    assert row[1].startswith("shop") and row[4] == "Insufficient cpu"
    assert "shop/too-large  Pending" in why and "nearest:" in why
    assert "bank/batch-0 for shop/urgent on node-0" in preempted


def test_a_dump_is_shown_as_well_without_preemptions(dump: Path) -> None:
    async def looked_at() -> tuple[int, str]:
        async with about_dump(dump, None) as source:
            screen = TopScreen(LocalAnswers(source), "nobody", 3600)
            async with screen.run_test() as pilot:
                await pilot.pause()
                return screen.query_one(DataTable).row_count, text_of(screen, "#explanation")

    assert asyncio.run(looked_at()) == (0, "No pending pods.")


def test_a_source_that_goes_away_ends_it(dump: Path) -> None:
    async def looked_at() -> TopScreen:
        with serving(state=dump) as service:
            source = from_service(f"127.0.0.1:{service.port}", DEFAULT_SERVER, None)
            answers = await source.__aenter__()
        screen = TopScreen(answers, None, 3600)
        async with screen.run_test() as pilot:
            await pilot.pause()
        await source.__aexit__(None, None, None)
        return screen

    assert isinstance(asyncio.run(looked_at()).failed, SourceAwayError)


def test_top_without_a_terminal_is_refused_with_an_alternative(dump: Path) -> None:
    done = reprieve("top", "--dump", str(dump))

    assert done.returncode == 2
    assert b"`reprieve pending --watch` needs none" in done.stderr


def test_unreachable_service_is_reported_after_the_terminal_is_restored() -> None:
    reader, tty = pty.openpty()
    try:
        command = [sys.executable, "-m", "api.cli", "top", "--server", f"127.0.0.1:{free_port()}"]
        done = subprocess.run(command, stdin=tty, stdout=tty, stderr=subprocess.PIPE, timeout=120, check=False)
    finally:
        os.close(tty)
        os.close(reader)

    assert done.returncode == 3
    assert b"cannot be reached; is it running, and is the address right?" in done.stderr
