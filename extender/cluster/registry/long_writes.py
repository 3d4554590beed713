"""Long writes: they are worked out in a thread, and written in the event loop if nothing that they looked at has
changed meanwhile.
"""

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar, final

from extender.cluster import statuses
from extender.cluster.api_resources import Resource
from extender.cluster.registry.object_registry import ObjectRegistry
from extender.cluster.store.transaction import Transaction
from extender.values.concurrency.abandoned import in_thread

T = TypeVar("T")

LONG: Final = 2**16
"""Bytes of a body and of the object that it changes. To read, validate and compare more takes more than ten
milliseconds.
"""
MAX_ATTEMPTS: Final = 5
"""How often a long write is worked out when others write meanwhile. Upstream: handlers/patch.go,
MaxRetryWhenPatchConflicts.
"""


@final
class LongWrites:
    """Works out one long write after the other. State: whether one is worked out."""

    def __init__(self, registry: ObjectRegistry) -> None:
        self._registry: Final = registry
        # One thread: each more would let the event loop wait longer for its turn.
        self.turn: Final = asyncio.Lock()

    async def done(self, resource: Resource, name: str, write: Callable[[ObjectRegistry], T]) -> T:
        """Returns what `write` returns, once its writes are done.

        Arguments:
            resource, name: what is written, for the refusal.
            write: is called in a thread, perhaps several times; it creates, updates or patches in the registry that it
                is given.

        Raises:
            ApiStatus: the write is refused; 409 if others have written each time.
        """
        async with self.turn:
            for _ in range(MAX_ATTEMPTS):
                found, is_written = await self._attempt(write)
                if is_written:
                    return found
        raise statuses.conflict(resource, name)

    async def _attempt(self, write: Callable[[ObjectRegistry], T]) -> tuple[T, bool]:
        transaction = Transaction(self._registry.store)
        beside = self._registry.within(transaction)
        found = await in_thread(lambda _: write(beside))
        return found, transaction.commit()
