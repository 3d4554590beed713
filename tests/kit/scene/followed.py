"""Clusters whose pods the scheduler of a service places. Everything is real but time."""

import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from extender.assembly.backend import Backend, Tap
from extender.assembly.live_backend import LiveOptions, live_backend
from extender.client.client import Client
from extender.client.http_extender import Transports, no_transport
from extender.rules.api_resources import Object
from extender.values.config.configuration import Configuration
from reprieve.cluster import own_cluster
from tests.kit.scene.by_hand import ClusterByHand


@asynccontextmanager
async def a_cluster(*objects: Object) -> AsyncIterator[ClusterByHand]:
    """A cluster with these objects whose pods are scheduled."""
    async with a_followed_cluster(*objects) as (cluster, _):
        yield cluster


@asynccontextmanager
async def a_followed_cluster(
    *objects: Object,
    configuration: Configuration | None = None,
    transports: Transports = no_transport,
    taps: Sequence[Tap] = (),
    kubelet: bool = True,
    rng: random.Random | None = None,
) -> AsyncIterator[tuple[ClusterByHand, Backend]]:
    """The same, and what follows it."""
    async with own_cluster(objects, rng=random.Random(1), kubelet=kubelet) as cluster:
        client, chosen = Client.over(cluster.transport()), configuration or Configuration()
        async with live_backend(
            chosen, client, LiveOptions(decides=True, taps=taps, transports=transports), rng=rng or random.Random(1)
        ) as backend:
            yield ClusterByHand(cluster.api.registry), backend
        await client.aclose()
