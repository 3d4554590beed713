"""A scheduler in a process of its own: `python -m bench.standalone_client URL PODS`; one line of JSON when
all is done.
"""

import asyncio
import gc
import json
import resource
import sys
import time

import uvloop

from extender.assembly.live_backend import LiveOptions, live_backend
from extender.client.client import Client
from extender.values.config.configuration import Configuration
from extender.values.targets.target import Target
from extender.verbs import Verbs


async def _drain(url: str, num_pods: int) -> None:
    client = Client(Target(url))
    began = time.process_time()
    async with live_backend(Configuration(), client, LiveOptions(decides=True)) as backend:
        gc.collect()
        gc.freeze()  # as the service does
        assert isinstance(backend.verbs, Verbs)
        cache = backend.verbs._cluster.cache
        first = None
        while (bound := cache.num_pods - len(cache.assumed_pods)) < num_pods:
            if bound and first is None:
                first = time.perf_counter(), bound
            await asyncio.sleep(0.01)
        assert first is not None
        seconds = time.perf_counter() - first[0]
        while await _num_events(client) < num_pods:  # noqa: ASYNC110 - they let bindings go first, and nobody here hears of the last one
            await asyncio.sleep(0.1)
        cpu = time.process_time() - began
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    await client.aclose()
    print(
        json.dumps({"per_second": (num_pods - first[1]) / seconds, "cpu_ms": cpu / num_pods * 1000, "peak": peak}),
        flush=True,
    )


async def _num_events(client: Client) -> int:
    answer = json.loads(await client.get("/apis/events.k8s.io/v1/events", params={"limit": "1"}))
    return len(answer["items"]) + int(answer["metadata"].get("remainingItemCount", 0))


uvloop.run(_drain(sys.argv[1], int(sys.argv[2])))
