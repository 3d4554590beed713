"""Workloads with as many pods as a tenant asks for do not keep the embedded API's controllers from letting others have
their turn.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.api.serving import Service, serving
from tests.hostile.test_pods import Manifest, nodes, shop

REPLICAS = 30_000
SHRUNK = REPLICAS - 1000


def workload(kind: str) -> Manifest:
    labels = {"app": "many"}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "many", "namespace": "shop", "uid": "many"},
        "spec": {
            "replicas": REPLICAS,
            "serviceName": "many",
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "i"}]}},
        },
    }


def replica(kind: str, number: int) -> Manifest:
    """Returns a pod that runs and is ready."""
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": "many", "uid": "many", "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"many-{number}",
            "namespace": "shop",
            "labels": {"app": "many", "controller-revision-hash": "old"},
            "ownerReferences": [owner],
        },
        "spec": {"nodeName": f"node-{number % 300}", "containers": [{"name": "main", "image": "i"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


def ready(service: Service, resource: str) -> int:
    status = service.client.get(f"/apis/apps/v1/namespaces/shop/{resource}/many").json().get("status") or {}
    return int(status.get("readyReplicas", 0))


def until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.parametrize(("kind", "resource"), [("ReplicaSet", "replicasets"), ("StatefulSet", "statefulsets")])
def test_a_workload_of_many_pods_is_counted_and_shrunk_in_parts(kind: str, resource: str, tmp_path: Path) -> None:
    """
    The status says how many pods are ready, and the pods that are too many go.
    """
    state = tmp_path / "cluster.json"
    state.write_text(
        json.dumps(shop(*nodes(300), workload(kind), *(replica(kind, number) for number in range(REPLICAS))))
    )
    fewer = json.dumps({"spec": {"replicas": SHRUNK}})
    merge = {"content-type": "application/merge-patch+json"}

    with serving(loop="asyncio", state=state) as service:
        until(lambda: ready(service, resource) == REPLICAS)
        until(lambda: service.client.get("/readyz").status_code == 200)
        assert (
            service.client.patch(
                f"/apis/apps/v1/namespaces/shop/{resource}/many", content=fewer, headers=merge
            ).status_code
            == 200
        )
        until(lambda: ready(service, resource) < REPLICAS)
