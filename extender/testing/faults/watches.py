"""What can go wrong with a watch, line by line."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import httpx

from extender.testing.faults.answers import status_object
from extender.testing.faults.script import Action, Call, Forward
from extender.testing.faults.streams import Lines, connection_reset, edited

Which = Callable[[Mapping[str, Any]], bool]
"""Chooses events."""


def event_of(name: str, *kinds: str) -> Which:
    """Events of an object of that name; of certain types only, if they are given."""

    def chosen(event: Mapping[str, Any]) -> bool:
        return event["object"].get("metadata", {}).get("name") == name and (not kinds or event["type"] in kinds)

    return chosen


def close_after(count: int) -> Action:
    """The server ends the watch after so many events, as it does when its time is over."""

    async def edit(lines: Lines) -> Lines:
        if count == 0:
            return
        seen = 0
        async for line in lines:
            yield line
            seen += 1
            if seen == count:
                return

    return _edit(edit)


def reset_after(count: int, partial: int = 0) -> Action:
    """The connection is reset after so many events and `partial` bytes of the next."""

    async def edit(lines: Lines) -> Lines:
        async for line in _first(lines, count):
            yield line
        if partial:
            async for line in _first(lines, 1):
                yield line[:partial]
        raise connection_reset()

    return _edit(edit)


def silent_after(count: int) -> Action:
    """The peer has vanished after so many events, and nobody was told."""

    async def edit(lines: Lines) -> Lines:
        async for line in _first(lines, count):
            yield line
        await asyncio.get_running_loop().create_future()

    return _edit(edit)


def error_after(count: int, code: int, message: str = "injected", *, reason: str | None = None) -> Action:
    """An ERROR event after so many others, then the end."""

    async def edit(lines: Lines) -> Lines:
        async for line in _first(lines, count):
            yield line
        yield _line({"type": "ERROR", "object": status_object(code, message, reason=reason)})

    return _edit(edit)


def line_after(count: int, line: bytes) -> Action:
    """Something that the server never wrote, after so many events; then it goes on."""

    async def edit(lines: Lines) -> Lines:
        seen = 0
        if count == 0:
            yield line
        async for real in lines:
            yield real
            seen += 1
            if seen == count:
                yield line

    return _edit(edit)


def held(seconds: float) -> Action:
    """Every event comes so much later."""

    async def edit(lines: Lines) -> Lines:
        async for line in lines:
            await asyncio.sleep(seconds)
            yield line

    return _edit(edit)


def skipping(which: Which) -> Action:
    """Some events are never said."""
    return _edit_events(lambda event: [] if which(event) else [event])


def repeating(times: int, which: Which | None = None) -> Action:
    """Events are said several times over."""
    return _edit_events(lambda event: [event] * (times if which is None or which(event) else 1))


def changed(edit: Callable[[dict[str, Any]], object]) -> Action:
    """Events are changed in place."""

    def act(event: dict[str, Any]) -> list[dict[str, Any]]:
        edit(event)
        return [event]

    return _edit_events(act)


def reordered(distance: int, which: Which) -> Action:
    """A chosen event comes only after so many later ones, or with the end of the watch."""

    async def edit(lines: Lines) -> Lines:
        waiting: list[tuple[int, bytes]] = []
        async for line in lines:
            if which(json.loads(line)):
                waiting.append((distance, line))
                continue
            yield line
            waiting = [(left - 1, late) for left, late in waiting]
            for left, late in waiting:
                if left <= 0:
                    yield late
            waiting = [(left, late) for left, late in waiting if left > 0]
        for _, late in waiting:
            yield late

    return _edit(edit)


def rewound(past: list[bytes]) -> Action:
    """The watch begins with lines from the past: a server that lags behind."""

    async def edit(lines: Lines) -> Lines:
        for line in past:
            yield line
        async for line in lines:
            yield line

    return _edit(edit)


def recorded(into: list[bytes]) -> Action:
    """Nothing goes wrong; what was said is written down."""

    async def edit(lines: Lines) -> Lines:
        async for line in lines:
            into.append(line)
            yield line

    return _edit(edit)


async def _first(lines: Lines, count: int) -> Lines:
    """So many of them; fewer, if there are no more. The rest is left to others."""
    for _ in range(count):
        line = await anext(lines, None)
        if line is None:
            return
        yield line


def _edit_events(edit_event: Callable[[dict[str, Any]], list[dict[str, Any]]]) -> Action:
    async def edit(lines: Lines) -> Lines:
        async for line in lines:
            for event in edit_event(json.loads(line)):
                yield _line(event)

    return _edit(edit)


def _edit(edit: Callable[[Lines], Lines]) -> Action:
    async def act(call: Call, forward: Forward) -> httpx.Response:
        return edited(await forward(), edit)

    return act


def _line(event: object) -> bytes:
    return json.dumps(event, separators=(",", ":")).encode() + b"\n"
