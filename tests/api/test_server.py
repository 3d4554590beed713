"""When the server ends without being told to."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from starlette.applications import Starlette

from api.serving.server import Server
from api.settings.settings import Settings
from extender.values.klog.setup import TextFormatter
from tests.kit.service import serving_app
from tests.kit.waiting import DEADLINE


def test_failing_service_ends_with_the_reason(caplog: pytest.LogCaptureFixture) -> None:
    """As when a task of the service raises: the process that runs it has to know, and its log, to the last word."""
    fails = threading.Event()

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            group.create_task(failing())
            yield

    async def failing() -> None:
        await asyncio.to_thread(fails.wait)
        raise RuntimeError("x" * 5000 + " out of luck")

    with serving_app(Starlette(lifespan=lifespan), Settings(port=0)) as service:
        assert isinstance(service.server, Server)
        fails.set()
        end = time.monotonic() + DEADLINE
        while not service.server.why_over:
            assert time.monotonic() < end, "it serves on"
            time.sleep(0.01)

    assert service.server.why_over == "the service has failed; see its log"
    assert any("out of luck" in TextFormatter().format(record) for record in caplog.records)
