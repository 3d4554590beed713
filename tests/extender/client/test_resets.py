"""Connections that are reset at any moment, many at once, over TLS: each request has an answer or an ApiError, and no
descriptor of anybody else is touched.
"""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest

from extender.client import errors
from extender.client.client import Client
from extender.values.targets.target import Target
from extender.values.targets.tls import Pem, Tls
from tests.extender.client.sockets import LIST, closed_down_to, num_sockets, ok, serve
from tests.extender.client.test_tls import server_side
from tests.kit.certificates import Authority, CertificateFiles
from tests.kit.faults.resets import ResettingProxy

pytestmark = pytest.mark.usefixtures("stage")

PODS = "/api/v1/pods"
AT_ONCE = 40


@asynccontextmanager
async def between(authority: Authority, files: CertificateFiles) -> AsyncIterator[tuple[Client, ResettingProxy]]:
    async with serve(ok, server_side(files)) as server:
        with ResettingProxy(server.port, Random(1)).running() as proxy:
            client = Client(Target(f"https://127.0.0.1:{proxy.port}", tls=Tls(ca=Pem(file=authority.certificate))))
            try:
                yield client, proxy
            finally:
                await client.aclose()


async def outcome(client: Client, seconds: float) -> str:
    """A write, which is not sent again, so that each is one dial or one use of a kept connection."""
    try:
        answer = await client.create(PODS, {}, timeout=seconds)
    except errors.ApiError as error:
        return type(error).__name__
    assert answer == LIST
    return "answered"


@asynccontextmanager
async def unhurt() -> AsyncIterator[None]:
    """Pipes of somebody else, opened all the while, still carry what they are given; none stays open, and
    the loop has no complaint.
    """
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    pipes = [os.pipe() for _ in range(20)]
    num_open = num_sockets()
    yield
    await closed_down_to(num_open)
    for reads, writes in pipes:
        os.write(writes, b"x")
        assert os.read(reads, 1) == b"x"
        os.close(reads)
        os.close(writes)
    assert [context for context in complaints if not isinstance(context.get("exception"), OSError)] == []


@pytest.mark.parametrize("num_requests", [10, pytest.param(100, marks=pytest.mark.slow)])
async def test_resets_at_any_moment_are_errors_of_requests_and_nothing_more(
    num_requests: int, authority: Authority, server_files: CertificateFiles
):
    """Forty callers at once, some of whom give up early."""
    outcomes: Counter[str] = Counter()
    rng = Random(2)

    async def ask(client: Client, proxy: ResettingProxy) -> None:
        for _ in range(num_requests):
            outcomes[await outcome(client, rng.choice((0.04, 0.2, 20)))] += 1
            if rng.random() < 0.02:
                proxy.cut()

    async with unhurt(), between(authority, server_files) as (client, proxy):
        proxy.share = 0.8
        await asyncio.gather(*(ask(client, proxy) for _ in range(AT_ONCE)))
        proxy.share = 0
        after = await client.get(PODS)

    assert after == LIST
    assert set(outcomes) <= {"answered", "NoAnswer", "Unreachable"}
    assert outcomes["Unreachable"] > num_requests
