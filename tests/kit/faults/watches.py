"""Faults of a watch, line by line."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import httpx

from tests.kit.faults.answers import status_object
from tests.kit.faults.script import Action, Call, Forward
from tests.kit.faults.streams import Lines, connection_reset, edited

Which = Callable[[Mapping[str, Any]], bool]
"""Returns whether an event is chosen."""


def event_of(name: str, *kinds: str) -> Which:
    """Chooses the events of an object with that name, of certain types if they are given."""

    def chosen(event: Mapping[str, Any]) -> bool:
        return event["object"].get("metadata", {}).get("name") == name and (not kinds or event["type"] in kinds)

    return chosen


def close_after(count: int) -> Action:
    """Ends the watch after this many events, as a server does when its time is over."""

    async def edit(lines: Lines) -> Lines:
        if count == 0:
            return
        num_lines = 0
        async for line in lines:
            yield line
            num_lines += 1
            if num_lines == count:
                return

    return _edit(edit)


def reset_after(count: int, partial: int = 0) -> Action:
    """Resets the connection after this many events and `partial` bytes of the next."""

    async def edit(lines: Lines) -> Lines:
        async for line in _first(lines, count):
            yield line
        if partial:
            async for line in _first(lines, 1):
                yield line[:partial]
        raise connection_reset()

    return _edit(edit)


def silent_after(count: int) -> Action:
    """Sends nothing any more after this many events, as a peer that has vanished."""

    async def edit(lines: Lines) -> Lines:
        async for line in _first(lines, count):
            yield line
        await asyncio.get_running_loop().create_future()

    return _edit(edit)


def error_after(count: int, code: int, message: str = "injected", *, reason: str | None = None) -> Action:
    """Sends an ERROR event after this many others, and ends the watch."""

    async def edit(lines: Lines) -> Lines:
        async for line in _first(lines, count):
            yield line
        yield _line({"type": "ERROR", "object": status_object(code, message, reason=reason)})

    return _edit(edit)


def line_after(count: int, line: bytes) -> Action:
    """Inserts a line that the server did not write after this many events."""

    async def edit(lines: Lines) -> Lines:
        num_lines = 0
        if count == 0:
            yield line
        async for real in lines:
            yield real
            num_lines += 1
            if num_lines == count:
                yield line

    return _edit(edit)


def delayed(seconds: float) -> Action:
    """Delays every event by this many seconds."""

    async def edit(lines: Lines) -> Lines:
        async for line in lines:
            await asyncio.sleep(seconds)
            yield line

    return _edit(edit)


def skipping(which: Which) -> Action:
    """Drops the chosen events."""
    return _edit_events(lambda event: [] if which(event) else [event])


def repeating(times: int, which: Which | None = None) -> Action:
    """Repeats the chosen events, or all of them."""
    return _edit_events(lambda event: [event] * (times if which is None or which(event) else 1))


def changed(edit: Callable[[dict[str, Any]], object]) -> Action:
    """Changes events in place."""

    def act(event: dict[str, Any]) -> list[dict[str, Any]]:
        edit(event)
        return [event]

    return _edit_events(act)


def reordered(distance: int, which: Which) -> Action:
    """Delays a chosen event until this many later ones were sent, or until the end of the watch."""

    async def edit(lines: Lines) -> Lines:
        waiting: list[tuple[int, bytes]] = []
        async for line in lines:
            if which(json.loads(line)):
                waiting.append((distance, line))
                continue
            yield line
            waiting = [(remaining - 1, late) for remaining, late in waiting]
            for remaining, late in waiting:
                if remaining <= 0:
                    yield late
            waiting = [(remaining, late) for remaining, late in waiting if remaining > 0]
        for _, late in waiting:
            yield late

    return _edit(edit)


def rewound(past: list[bytes]) -> Action:
    """Begins the watch with lines from the past, as a server that lags behind."""

    async def edit(lines: Lines) -> Lines:
        for line in past:
            yield line
        async for line in lines:
            yield line

    return _edit(edit)


def recorded(into: list[bytes]) -> Action:
    """Records the lines without changing them."""

    async def edit(lines: Lines) -> Lines:
        async for line in lines:
            into.append(line)
            yield line

    return _edit(edit)


async def _first(lines: Lines, count: int) -> Lines:
    """Yields this many lines, or fewer if there are no more, and leaves the rest to the caller."""
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
