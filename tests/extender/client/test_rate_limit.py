import asyncio

import pytest

from extender.client.client import RateLimit


async def times_of(turns: int, limit: RateLimit) -> list[float]:
    """When each of some requests may go, from now on."""
    loop = asyncio.get_running_loop()
    began, times = loop.time(), []
    for _ in range(turns):
        await limit.wait()
        times.append(loop.time() - began)
    return times


async def test_a_burst_goes_at_once_and_then_so_many_a_second():
    times = await times_of(6, RateLimit(qps=2, burst=3))

    assert times == pytest.approx([0, 0, 0, 0.5, 1, 1.5])


async def test_pause_restores_the_burst_and_no_more():
    limit = RateLimit(qps=1, burst=2)
    await times_of(2, limit)
    await asyncio.sleep(100)

    assert await times_of(3, limit) == pytest.approx([0, 0, 1])


async def test_waiting_requests_proceed_in_their_order():
    limit = RateLimit(qps=10, burst=1)
    came = []

    async def one(number: int) -> None:
        await limit.wait()
        came.append((number, asyncio.get_running_loop().time()))

    async with asyncio.TaskGroup() as tasks:
        for number in range(4):
            tasks.create_task(one(number))

    assert [number for number, _ in came] == [0, 1, 2, 3]
    assert [time for _, time in came] == pytest.approx([0, 0.1, 0.2, 0.3])


async def test_cancelled_wait_returns_its_turn():
    limit = RateLimit(qps=1, burst=1)
    await limit.wait()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await limit.wait()
    await limit.wait()

    assert asyncio.get_running_loop().time() == pytest.approx(1)


@pytest.mark.parametrize(("qps", "burst"), [(0, 1), (-1, 1), (1, 0)])
def test_limit_of_zero_or_less_is_refused(qps: float, burst: int):
    with pytest.raises(ValueError, match="positive"):
        RateLimit(qps, burst)
