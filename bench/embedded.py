"""The embedded Kubernetes API: a LIST of 150,000 pods in process and in pages, and what one create costs with ten
watchers.
"""

import asyncio
import gc
import statistics
import time
from datetime import UTC, datetime

from extender.rules.api_resources import PODS, Object
from reprieve.cluster.kube_api import KubeApi
from reprieve.cluster.requests.request_info import Request
from reprieve.cluster.responses.response import Response, StreamResponse
from reprieve.cluster.store.object_store import ObjectStore
from tests.kit.cluster import make_registry

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def make_pod(number: int) -> Object:
    """As a workload would have it: a container with requests, a few labels and tolerations."""
    return {
        "metadata": {
            "name": f"pod-{number:06}",
            "labels": {"app": f"app-{number % 60}", "pod-template-hash": "6f7c9d"},
        },
        "spec": {
            "nodeName": f"node-{number // 10}",
            "containers": [
                {
                    "name": "c",
                    "image": "registry.example/app:1",
                    "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
                }
            ],
        },
    }


def make_api(num_pods: int) -> KubeApi:
    """With pods that have been through admission once and differ by their names."""
    store = ObjectStore()
    registry = make_registry("default", store=store)
    whole = registry.create(PODS, "default", make_pod(0))
    for number in range(1, num_pods):
        small = make_pod(number)
        metadata = {**whole["metadata"], **small["metadata"]}
        pod = {**whole, "metadata": metadata, "spec": {**whole["spec"], "nodeName": small["spec"]["nodeName"]}}
        store.put(PODS, "default", metadata["name"], pod)
    return KubeApi(registry)


def get(api: KubeApi, path: str, **query: str) -> bytes:
    """The body of an answer."""
    answer = api.handle(Request("GET", path, {name: [value] for name, value in query.items()}))
    assert isinstance(answer, Response)
    return answer.body


def timed_list(api: KubeApi, **query: str) -> tuple[float, int]:
    """(seconds, bytes) of a whole list, in pages if it has a limit."""
    began, size = time.perf_counter(), 0
    token = ""
    while True:
        body = get(api, "/api/v1/pods", **query, **({"continue": token} if token else {}))
        size += len(body)
        head = body[: body.index(b'"items"')]
        _, separator, rest = head.partition(b'"continue":"')
        if not separator:
            return time.perf_counter() - began, size
        token = rest[: rest.index(b'"')].decode()


async def timed_creates(api: KubeApi, num_watchers: int, num_pods: int) -> tuple[float, float]:
    """Median milliseconds of a create until every watcher has its event, and of the create alone."""
    answers = [
        api.handle(Request("GET", "/api/v1/pods", {"watch": ["1"], "resourceVersion": [version(api)]}))
        for _ in range(num_watchers)
    ]
    watches = [answer.chunks for answer in answers if isinstance(answer, StreamResponse)]
    whole, alone = [], []
    for number in range(num_pods):
        waiting = [asyncio.ensure_future(anext(watch)) for watch in watches]
        await asyncio.sleep(0)
        began = time.perf_counter()
        api.registry.create(PODS, "default", make_pod(1_000_000 + num_pods * num_watchers + number))
        alone.append(time.perf_counter() - began)
        await asyncio.gather(*waiting)
        whole.append(time.perf_counter() - began)
    for watch in watches:
        await watch.aclose()
    return statistics.median(whole) * 1e3, statistics.median(alone) * 1e3


def version(api: KubeApi) -> str:
    """The resourceVersion as of now."""
    return str(api.registry.store.resource_version)


def run(num_pods: int = 150_000) -> None:
    """Print the figures."""
    began = time.perf_counter()
    api = make_api(num_pods)
    print(f"embedded API with {num_pods:,} pods, stored in {time.perf_counter() - began:.1f} s")
    gc.collect()
    gc.freeze()
    for words, query in (
        ("whole", {}),
        ("pages of 10,000", {"limit": "10000"}),
        ("pages of 500", {"limit": "500"}),
        ("one in sixty by label", {"labelSelector": "app=app-7"}),
        ("one node's by field", {"fieldSelector": "spec.nodeName=node-7"}),
        (
            "not finished, as schedulers ask",
            {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed", "limit": "500"},
        ),
    ):
        seconds, size = timed_list(api, **query)
        print(f"LIST {words:32} {seconds * 1e3:9.1f} ms {size / 2**20:8.1f} MiB", flush=True)
    for num_watchers in (0, 10, 100):
        whole, alone = asyncio.run(timed_creates(api, num_watchers, 200))
        print(f"create with {num_watchers:3} watchers: {alone:6.3f} ms, {whole:6.3f} ms until all have it", flush=True)
    gc.unfreeze()
