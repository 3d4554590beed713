"""Who may not write any more does not: not after waiting for a turn, not on a second attempt; and what was begun ends
in time.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest

from extender.client.client import Client, RateLimit
from extender.client.errors import Fenced, NoAnswer
from extender.values.targets.target import Target
from tests.extender.client.scripted import Scripted, never, refusal

PODS = "/api/v1/namespaces/default/pods"


def now() -> float:
    return asyncio.get_running_loop().time()


def fence() -> str | None:
    """Writes are allowed for ten seconds."""
    return "the lease is over" if now() >= 10 else None


def client_of(server: Scripted, rate_limit: RateLimit | None = None) -> Client:
    return Client(
        Target("http://server"),
        transport=server,
        rng=random.Random(1),
        rate_limit=rate_limit,
        fence=fence,
        write_seconds=5,
    )


async def at(time: float) -> None:
    await asyncio.sleep(time - now())


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(lambda client: client.create(PODS, {}), id="create"),
        pytest.param(lambda client: client.update(f"{PODS}/p", {}), id="update"),
        pytest.param(lambda client: client.patch(f"{PODS}/p", {}, "application/merge-patch+json"), id="patch"),
        pytest.param(lambda client: client.delete(f"{PODS}/p"), id="delete"),
    ],
)
async def test_second_write_is_fenced_once_the_lease_is_over(write: Callable[[Client], Awaitable[bytes]]) -> None:
    server = Scripted()
    client = client_of(server)
    await write(client)
    await at(10)

    with pytest.raises(Fenced, match="the lease is over") as caught:
        await write(client)

    assert not caught.value.may_have_happened
    assert len(server.asked) == 1


async def test_fence_does_not_stop_reading() -> None:
    server = Scripted()
    await at(20)

    await client_of(server).get(PODS)

    assert len(server.asked) == 1


async def test_a_second_attempt_is_not_made_behind_it() -> None:
    """The server asks for a pause, and the lease is over when that is."""
    server = Scripted(refusal(429, "TooManyRequests", retry_after="30"))

    with pytest.raises(Fenced):
        await client_of(server).create(PODS, {})

    assert len(server.asked) == 1


async def test_write_is_fenced_when_the_lease_ends_while_it_waits_for_its_turn() -> None:
    server = Scripted()
    client = client_of(server, RateLimit(0.05, 1))
    await client.create(PODS, {})

    with pytest.raises(Fenced):
        await client.create(PODS, {})

    assert len(server.asked) == 1


async def test_a_write_that_hangs_is_given_up_before_others_may_write() -> None:
    await at(9)

    with pytest.raises(NoAnswer):
        await client_of(Scripted(never)).create(PODS, {}, timeout=30)

    assert now() == 14
