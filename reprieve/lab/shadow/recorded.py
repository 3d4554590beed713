"""The shadow of a recorded cluster."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Final

from extender.values.concurrency import virtual_time
from extender.values.config.configuration import Configuration
from extender.values.objects.meta import HasMetadata
from reprieve.lab import limits
from reprieve.lab.agreement import Agreement
from reprieve.lab.recordings.entries import ObjectGone, ObjectPut, Ready, Recording, RecordingStarted, key_of
from reprieve.lab.shadow.shadow import Shadow

_HORIZON: Final = 10 * 366 * 24 * 3600.0
_PORTION: Final = limits.SHADOW_CHANGES // 10
"""The number of entries after which the shadow catches up: one that is far behind decides nothing."""


def agreement_over(
    recording: Recording,
    configuration: Configuration,
    name: str,
    advance: Callable[[int, int], None] = lambda done, expected: None,
) -> Agreement:
    """Returns how far the configuration agrees with the decisions in the recording, by whichever scheduler.

    `name` is the configuration's name in the answer; `advance(done, 0)` reports progress. Raises RecordingError and
    ConfigErrors.
    """
    return virtual_time.run(_followed(recording, configuration, name, advance), horizon=_HORIZON)


async def _followed(
    recording: Recording, configuration: Configuration, name: str, advance: Callable[[int, int], None]
) -> Agreement:
    loop, began = asyncio.get_running_loop(), recording.began
    shadow = Shadow(configuration, name, now=lambda: began + timedelta(seconds=loop.time()))
    running = asyncio.create_task(shadow.run(), name="shadow")
    objects: dict[tuple[str, str, str], HasMetadata] = {}
    for number, entry in enumerate(recording.entries()):
        if isinstance(entry, RecordingStarted):
            continue
        if entry.seconds > loop.time():
            await asyncio.sleep(entry.seconds - loop.time())
        if isinstance(entry, ObjectPut):
            new = recording.object_of(entry)
            if new is not None:
                key = key_of(entry.kind, new.metadata.namespace, new.metadata.name)
                shadow.changed(objects.get(key), new)
                objects[key] = new
        elif isinstance(entry, ObjectGone):
            old = objects.pop(key_of(entry.kind, entry.namespace, entry.name), None)
            if old is not None:
                shadow.changed(old, None)
        if isinstance(entry, Ready) or number % _PORTION == 0:
            await shadow.caught_up()
            advance(shadow.agreement(0).total.decisions, 0)
    await shadow.caught_up()
    agreement = shadow.agreement()
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    return agreement
