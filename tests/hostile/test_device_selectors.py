"""Device selectors, which every user of a namespace may write, do not keep the scheduler from others."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.api.serving import Service, serving
from tests.api.test_questions import pod

NUM_NODES, NUM_DEVICES, NUM_HOSTILE = 4, 64, 4
DRIVER = "gpu.example.com"


CONFIGURATION = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"pluginConfig": [{"name": "DynamicResources", "args": {"filterTimeout": "1s"}}]}],
}


def nested(depth: int, least: int) -> str:
    """Two lists in each other, so many deep; some milliseconds of work."""
    inner = "1"
    for place in range(depth):
        inner = f"[0,0].map(v{place}, {inner})"
    return f"{inner}.size() > {least}"


LOOPS = [nested(11, -place) for place in range(1, 6)] + [nested(11, 5000)]
PATTERNS = [
    " || ".join(f'"b".matches("(.{{1,30}}){{1,30}}c{number}{place}")' for number in range(200)) for place in range(3)
]
DISTINCT = [f'device.attributes["{DRIVER}"].numa != {place}' for place in range(32)]


def claim(name: str, *expressions: str, requests: int = 1, **more: Any) -> dict[str, Any]:
    exactly = {"deviceClassName": "any", "allocationMode": "ExactCount", "count": 1}
    selectors = [{"cel": {"expression": expression}} for expression in expressions]
    named = [{"name": f"r{place}", "exactly": {**exactly, "selectors": selectors}} for place in range(requests)]
    spec = {"devices": {"requests": named, **more}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": spec,
    }


ATTACKS = {
    "loops in loops on every device": lambda name: claim(name, *LOOPS),
    "large patterns": lambda name: claim(name, *PATTERNS),
    "a search through all combinations": lambda name: claim(
        name,
        "true",
        requests=16,
        constraints=[{"matchAttribute": f"{DRIVER}/numa"}, {"distinctAttribute": f"{DRIVER}/side"}],
    ),
    "many cheap selectors": lambda name: claim(name, *DISTINCT, requests=8),
}


def cluster(attack: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    """Nodes with devices, pods with hostile claims first, and ordinary pods behind them."""
    nodes = [f"node-{place}" for place in range(NUM_NODES)]
    allocatable = {"cpu": "4", "pods": "110"}
    devices = [
        {"name": f"d{place}", "attributes": {"numa": {"int": place // 8}, "side": {"int": place % 8}}}
        for place in range(NUM_DEVICES)
    ]
    hostile = [f"hostile-{place}" for place in range(NUM_HOSTILE)]
    return {
        "kind": "List",
        "apiVersion": "v1",
        "items": [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}},
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "DeviceClass",
                "metadata": {"name": "any"},
                "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
            },
            *(
                {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": allocatable}}
                for name in nodes
            ),
            *(
                {
                    "apiVersion": "resource.k8s.io/v1",
                    "kind": "ResourceSlice",
                    "metadata": {"name": name},
                    "spec": {
                        "driver": DRIVER,
                        "nodeName": name,
                        "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                        "devices": devices,
                    },
                }
                for name in nodes
            ),
            *(attack(name) for name in hostile),
            *(
                pod(name, "1m", priority=100, resourceClaims=[{"name": "c", "resourceClaimName": name}])
                for name in hostile
            ),
            *(pod(f"ordinary-{place}", "100m") for place in range(5)),
        ],
    }


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_a_tenant_with_hostile_claims_stops_nobody(attack: Callable[[str], dict[str, Any]], tmp_path: Path) -> None:
    """
    Ordinary pods are bound, and other requests are answered, while the claims of a tenant cost what they may.
    """
    state = tmp_path / "cluster.json"
    objects = cluster(attack)
    state.write_text(json.dumps(objects))
    configuration = tmp_path / "config.json"
    configuration.write_text(json.dumps(CONFIGURATION))
    evil = next(item for item in objects["items"] if item["kind"] == "Pod")

    with serving(loop="asyncio", state=state, schedule=True, config=configuration) as service:
        until_bound(service, [f"shop/ordinary-{place}" for place in range(5)])
        assert service.client.get("/livez").status_code == 200
        answer = service.call("filter", {"Pod": evil, "NodeNames": ["node-0"]})

    assert answer.status_code == 200


def until_bound(service: Service, keys: list[str]) -> None:
    """Waits until the pods are known and bound."""
    for key in keys:
        while service.client.get(f"/v1/explain/{key}").json().get("state") != "Scheduled":
            time.sleep(0.05)
