"""Calls of extenders whose connections are reset at any moment, on the event loop of the service: each has its answer or
an ExtenderError, and no descriptor of anybody else is touched.
"""

import asyncio
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
import uvloop

from api.serving.certificate import Loop
from extender.client.http_extender import HTTPExtender
from extender.engine.framework import ExtenderError
from extender.testing import make_node, make_pod
from extender.values.config.configuration import Extender
from tests.extender.client.http_extender.serving import says_json, serving
from tests.extender.client.http_extender.test_calling import server_side
from tests.kit.certificates import Authority
from tests.kit.faults.resets import ResettingProxy

AT_ONCE = 40


class CallingLoop(Loop):
    """Serves the extender, too, which is no service of ours."""

    create_server = uvloop.Loop.create_server


@pytest.fixture(autouse=True)
def stage() -> Iterator[asyncio.Runner]:
    with asyncio.Runner(loop_factory=CallingLoop) as runner:
        yield runner


@pytest.mark.parametrize("num_calls", [8, pytest.param(80, marks=pytest.mark.slow)])
async def test_reset_call_is_an_extender_error_and_nothing_more(num_calls: int, tmp_path: Path) -> None:
    outcomes: Counter[str] = Counter()
    node, pod = make_node("a").obj(), make_pod("p").obj()
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: None if isinstance(context.get("exception"), OSError) else complaints.append(context)
    )

    async def call(extender: HTTPExtender) -> None:
        for _ in range(num_calls):
            try:
                passing = (await extender.filter(pod, [node])).nodes
                outcomes["answered"] += 1
                assert passing == [node]
            except ExtenderError as exc:
                outcomes[str(exc)] += 1

    reads, writes = os.pipe()
    async with serving(
        says_json({"NodeNames": ["a"]}), server_side(Authority(tmp_path, "ca"), "IP:127.0.0.1")
    ) as served:
        with ResettingProxy(int(served.address.rpartition(":")[2]), Random(1)).running() as proxy:
            proxy.share = 0.7
            url = f"https://127.0.0.1:{proxy.port}"
            extender = HTTPExtender(
                Extender(url_prefix=url, filter_verb="filter", node_cache_capable=True, enable_https=True)
            )
            await asyncio.gather(*(call(extender) for _ in range(AT_ONCE)))
            await extender.aclose()
    os.write(writes, b"x")

    assert os.read(reads, 1) == b"x"
    os.close(reads)
    os.close(writes)
    assert complaints == []
    assert outcomes.total() == AT_ONCE * num_calls
    assert 0 < outcomes.pop("answered") < AT_ONCE * num_calls
    assert {words.rpartition(": ")[2] for words in outcomes} <= {"EOF", "connection reset by peer", "unexpected EOF"}
