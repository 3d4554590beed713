"""Others get their turn between the reading of a long body and the decision about it."""

import asyncio

import pytest

from api.face import DECODED_IN_THREAD, LONG, decoded


@pytest.mark.parametrize(
    ("length", "order"),
    [
        pytest.param(LONG, ["decided", "another"], id="a short body"),
        pytest.param(LONG + 1, ["another", "decided"], id="a long body"),
        pytest.param(DECODED_IN_THREAD + 1, ["another", "decided"], id="a body for a thread"),
    ],
)
def test_others_get_their_turn_after_a_long_body(length: int, order: list[str]) -> None:
    done: list[str] = []

    async def another() -> None:
        done.append("another")

    async def decide() -> None:
        waiting = asyncio.create_task(another())
        assert await decoded(len, b" " * length) == length
        done.append("decided")
        await waiting

    asyncio.run(decide())

    assert done == order
