"""Clusters that one scheduler schedules and another one shadows: everything is real but time."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from extender.assembly.live_backend import LiveOptions, live_backend
from extender.client.client import Client
from extender.rules.api_resources import Object
from extender.testing import virtual_time
from extender.values.config.configuration import Configuration
from extender.values.config.loading import load
from reprieve.cluster import own_cluster
from reprieve.cluster.registry.object_registry import ObjectRegistry
from reprieve.lab.agreement import Agreement
from reprieve.lab.shadow.shadow import Shadow

Tell = Callable[[ObjectRegistry], Awaitable[None]]

DEFAULT = Configuration()
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def profile(text: str) -> Configuration:
    """A configuration with one profile, of which this is the rest."""
    return load(HEAD + f"profiles: [{text}]")


def without(*plugins: str) -> Configuration:
    """The default profile without some plugins."""
    disabled = ", ".join(f"{{name: {name}}}" for name in plugins)
    return profile(f"{{plugins: {{multiPoint: {{disabled: [{disabled}]}}}}}}")


def shadowed(
    tell: Tell,
    *objects: Object,
    theirs: Configuration = DEFAULT,
    ours: Configuration = DEFAULT,
    seed: int = 1,
    limit: int = 1000,
) -> Agreement:
    """Tells a story in a cluster, and returns how far the shadow agrees with its scheduler."""

    async def story() -> Agreement:
        async with own_cluster(objects, rng=random.Random(seed), now=_virtual_now) as cluster:
            deciding, following = Client.over(cluster.transport()), Client.over(cluster.transport())
            shadow, decides = Shadow(ours), LiveOptions(decides=True)
            async with (
                live_backend(theirs, deciding, decides, rng=random.Random(seed)) as one,
                live_backend(ours, following, LiveOptions(taps=[shadow.tap()]), rng=random.Random(2)) as other,
            ):
                await one.wait_for_sync()
                await other.wait_for_sync()
                await tell(cluster.api.registry)
                await shadow.caught_up()
                agreement = shadow.agreement(limit)
            await deciding.aclose()
            await following.aclose()
        return agreement

    return virtual_time.run(story())


def _virtual_now() -> datetime:
    return datetime(2026, 11, 23, tzinfo=UTC) + timedelta(seconds=asyncio.get_running_loop().time())
