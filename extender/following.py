"""Following a cluster: what its API server says comes in through informers, what is decided goes out through the dispatcher."""

import asyncio
import logging
import random
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, final

from extender.apiserver.client import Client
from extender.apiserver.dispatcher import Dispatcher
from extender.apiserver.health import Health
from extender.apiserver.informers import Informers
from extender.apiserver.kinds import KINDS
from extender.apiserver.store import Change
from extender.cluster import Cluster
from extender.cluster_state import TABLES
from extender.config import Configuration
from extender.engine import Engine
from extender.http_extender import Transports, no_transport
from extender.standalone import Standalone, standalone

_LOGGER: Final = logging.getLogger(__name__)

SECONDS_TO_FINISH: Final = 5.0
"""For writes that are under way at the end."""

_TABLE_OF: Final[Mapping[type, str]] = {table.kind: table.field for table in TABLES}


async def _schedule(informers: Informers, alone: Standalone) -> None:
    # The first decision must see every pod that has a node.
    await informers.wait_for_sync()
    await alone.scheduler.run()


def _tell(engine: Engine, table: str, changes: Sequence[Change[Any]]) -> None:
    for change in changes:
        try:
            engine.changed(table, change.old, change.new)
        except Exception:
            # One object that nobody has reckoned with must not keep the others from being known.
            _LOGGER.exception("%s: a change was not taken in: %.200r", table, change)


@final
@dataclass(frozen=True, slots=True)
class Following:
    """An engine that knows a cluster as its API server does."""

    engine: Engine
    informers: Informers

    def health(self) -> Sequence[Health]:
        """How each resource is doing."""
        return self.informers.health(asyncio.get_running_loop().time())


@asynccontextmanager
async def following(
    configuration: Configuration,
    client: Client,
    *,
    decides: bool = False,
    rng: random.Random | None = None,
    transports: Transports = no_transport,
) -> AsyncIterator[Following]:
    """Follow the cluster of the client for as long as the block runs. The engine is ready once everything was listed.

    Arguments:
        decides: schedule the pods of the configuration's profiles, too.
        transports: what carries the calls to the configuration's extenders then.

    Raises:
        ConfigErrors: what is wrong with the configuration or with a plugin, all at once.
    """
    chance, loop = rng or random.Random(), asyncio.get_running_loop()
    dispatcher = Dispatcher(client, rng=chance, instance=socket.gethostname())
    informers = Informers(client, rng=chance)
    cluster = Cluster()
    alone = standalone(configuration, cluster, dispatcher, chance, transports=transports) if decides else None
    engine = Engine(
        configuration,
        cluster,
        is_ready=lambda: informers.has_synced and not informers.is_stale(loop.time()),
        dispatcher=dispatcher,
        take=alone.handlers.changed if alone is not None else None,
        rng=chance,
    )
    for kind in KINDS:
        informers.add(kind, partial(_tell, engine, _TABLE_OF[kind.type]))
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(informers.run(), name="informers"), group.create_task(dispatcher.run(), name="dispatcher")]
        if alone is not None:
            tasks.append(group.create_task(_schedule(informers, alone), name="scheduler"))
        try:
            yield Following(engine, informers)
        finally:
            if alone is not None:
                alone.world.queue.close()  # nothing more is decided; what was decided is done
            await dispatcher.drain(SECONDS_TO_FINISH)
            for task in tasks:
                task.cancel()
