"""Pods that every user of a namespace may create do not keep the scheduler from others, however much they ask for."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.api.serving import serving
from tests.api.test_questions import pod
from tests.hostile.test_device_selectors import until_bound

MOST_BYTES = 1_000_000
"""About what the API server stores as one object: ten thousand terms."""

MOST_BYTES_OF_CONTAINERS = 300_000
"""As many containers as it stores with what it adds to each."""

NUM_NODES, NUM_HOSTILE = 200, 3

GPU = "example.com/gpu"

Manifest = dict[str, Any]


def selecting(**labels: str) -> Manifest:
    return {"matchLabels": labels}


def as_many(make: Callable[[int], Any], most: int | None = None) -> list[Any]:
    """Returns as many different items as an object of so many bytes holds, MOST_BYTES unless said otherwise."""
    return [
        make(number)
        for number in range((most or MOST_BYTES) // (len(json.dumps(make(99_999), separators=(",", ":"))) + 1) - 10)
    ]


def affinity(kind: str, *, is_required: bool = True, **differing: Callable[[int], Any]) -> Manifest:
    """Returns a spec with terms that differ in this."""

    def one(number: int) -> Manifest:
        written = {
            "labelSelector": selecting(app="web"),
            "topologyKey": "zone",
            **{key: make(number) for key, make in differing.items()},
        }
        return written if is_required else {"weight": 1 + number % 100, "podAffinityTerm": written}

    stanza = (
        "requiredDuringSchedulingIgnoredDuringExecution"
        if is_required
        else "preferredDuringSchedulingIgnoredDuringExecution"
    )
    return {"affinity": {kind: {stanza: as_many(one)}}}


def key(number: int) -> str:
    return f"nowhere-{number}"


def some_label(number: int) -> Manifest:
    return selecting(app=f"web-{number}")


def expression(number: int) -> Manifest:
    return {"key": "zone", "operator": "NotIn", "values": [f"z{number}"]}


def spread(when: str) -> Callable[[int], Manifest]:
    return lambda number: {
        "maxSkew": 1,
        "topologyKey": key(number),
        "whenUnsatisfiable": when,
        "labelSelector": selecting(app="web"),
    }


def node_affinity(*terms: Manifest) -> Manifest:
    return {
        "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
        }
    }


def containers(**container: Any) -> Manifest:
    return {"containers": [{"name": "main", "image": "registry.example/app:1", **container}]}


def requesting(amount: str) -> Manifest:
    pairs = as_many(lambda number: [f"example.com/thing-{number}", amount, f"example.com/thing-{number}", amount])
    resources = {name: amount for name, *_ in pairs}
    return containers(resources={"requests": resources, "limits": resources})


ATTACKS: dict[str, Callable[[], Manifest]] = {
    "anti-affinity, keys that no node has": lambda: affinity("podAntiAffinity", topologyKey=key),
    "anti-affinity, different selectors": lambda: affinity("podAntiAffinity", labelSelector=some_label),
    "anti-affinity, different namespaces": lambda: affinity(
        "podAntiAffinity", namespaces=lambda number: [f"team-{number}"]
    ),
    "anti-affinity to pods of all namespaces": lambda: affinity(
        "podAntiAffinity", labelSelector=lambda number: {}, namespaceSelector=lambda number: {}, topologyKey=key
    ),
    "affinity, keys that no node has": lambda: affinity("podAffinity", topologyKey=key),
    "affinity, different selectors": lambda: affinity("podAffinity", labelSelector=some_label),
    "preferred affinity, keys that no node has": lambda: affinity("podAffinity", is_required=False, topologyKey=key),
    "preferred affinity, different selectors": lambda: affinity(
        "podAffinity", is_required=False, labelSelector=some_label
    ),
    "a selector with many values": lambda: {
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "labelSelector": {
                            "matchExpressions": [{"key": "app", "operator": "In", "values": ["web", *as_many(str)]}]
                        },
                        "topologyKey": "zone",
                    }
                ]
            }
        }
    },
    "spread constraints that must hold": lambda: {"topologySpreadConstraints": as_many(spread("DoNotSchedule"))},
    "spread constraints that should hold": lambda: {"topologySpreadConstraints": as_many(spread("ScheduleAnyway"))},
    "tolerations": lambda: {
        "tolerations": as_many(lambda number: {"key": f"k{number}", "operator": "Exists", "effect": "NoSchedule"})
    },
    "node affinity terms": lambda: node_affinity(
        *as_many(lambda number: {"matchExpressions": [{"key": key(number), "operator": "Exists"}]})
    ),
    "node affinity expressions": lambda: node_affinity({"matchExpressions": as_many(expression)}),
    "node affinity numbers": lambda: node_affinity(
        *as_many(lambda number: {"matchExpressions": [{"key": "zone", "operator": "Gt", "values": [str(number)]}]})
    ),
    "preferred node affinity": lambda: {
        "affinity": {
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": as_many(
                    lambda number: {"weight": 1, "preference": {"matchExpressions": [expression(number)]}}
                )
            }
        }
    },
    "node selector": lambda: {
        "nodeSelector": {name: "x" for name, _ in as_many(lambda number: [f"nowhere-{number}", "x"])}
    },
    "host ports": lambda: containers(
        ports=as_many(lambda number: {"containerPort": 80, "hostPort": 1 + number % 65535, "protocol": "TCP"})
    ),
    "scheduling gates": lambda: {"schedulingGates": as_many(lambda number: {"name": f"example.com/gate-{number}"})},
    "distinct resources, none of each": lambda: requesting("0"),
    "distinct resources, one of each": lambda: requesting("1"),
    "containers": lambda: {
        "containers": as_many(
            lambda number: {
                "name": f"c{number}",
                "image": f"i{number}",
                "resources": {"requests": {"cpu": f"{number}u"}},
            },
            MOST_BYTES_OF_CONTAINERS,
        )
    },
}


def with_device(name: str) -> Manifest:
    return {"name": name, "image": "i", "resources": {"requests": {GPU: "1"}, "limits": {GPU: "1"}}}


ATTACKS |= {
    "containers with a device each": lambda: {
        "containers": as_many(lambda number: with_device(f"c{number}"), MOST_BYTES_OF_CONTAINERS)
    },
    "init containers with the devices of containers": lambda: {
        "initContainers": as_many(lambda number: with_device(f"i{number}"), MOST_BYTES_OF_CONTAINERS // 2),
        "containers": as_many(lambda number: with_device(f"c{number}"), MOST_BYTES_OF_CONTAINERS // 2),
    },
}


def hostile(name: str, spec: Manifest) -> Manifest:
    return pod(name, "1m", priority=100, **spec) | {
        "metadata": {"name": name, "namespace": "shop", "labels": {"app": "web"}}
    }


_GROUP = {"apiVersion": "resource.k8s.io/v1"}
DEVICES = [
    {**_GROUP, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {"extendedResourceName": GPU}},
    {
        **_GROUP,
        "kind": "ResourceSlice",
        "metadata": {"name": "slice"},
        "spec": {
            "driver": "gpu.example.com",
            "allNodes": True,
            "pool": {"name": "pool", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"gpu-{place}"} for place in range(64)],
        },
    },
]


def shop(*items: Manifest) -> Manifest:
    """Returns a cluster with the tenants' namespace and these objects."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    return {"kind": "List", "apiVersion": "v1", "items": [namespace, *items]}


def nodes(number: int) -> list[Manifest]:
    """Nodes in three zones, each with its place as a label."""
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"node-{place}", "labels": {"zone": f"z{place % 3}", "place": str(place)}},
            "status": {"allocatable": {"cpu": "4", "pods": "110"}},
        }
        for place in range(number)
    ]


JSON = {"content-type": "application/json"}
TOO_LARGE = 500
"""The API server's answer if an object is too large with all that it keeps about it."""
PODS = "/api/v1/namespaces/shop/pods"


def evil_pod(name: str, spec: Manifest, metadata: Manifest | None = None) -> Manifest:
    found = hostile(name, spec)
    return {**found, "metadata": {**found["metadata"], **(metadata or {})}}


def cluster(
    spec: Manifest,
    metadata: Manifest | None = None,
    objects: Sequence[Manifest] = DEVICES,
    on: Sequence[Manifest] = tuple(nodes(NUM_NODES)),
) -> Manifest:
    """Nodes, a hostile pod that runs, others that wait first in the queue, and ordinary pods behind them."""
    return shop(
        *objects,
        *on,
        *([] if "schedulingGates" in spec else [evil_pod("running", {**spec, "nodeName": "node-0"}, metadata)]),
        *(evil_pod(f"hostile-{place}", spec, metadata) for place in range(NUM_HOSTILE)),
        *(pod(f"ordinary-{place}", "100m") for place in range(5)),
    )


def stops_nobody(state: Path, spec: Manifest, metadata: Manifest | None = None, **settings: Any) -> None:
    """Checks that others are served in a `cluster` of such pods; while one is asked about, and
    one comes with a node.

    Arguments:
        state: the file with the cluster.
        settings: further ones of the service.
    """
    on_node = {} if "schedulingGates" in spec else {"nodeName": "node-1"}
    late = {"apiVersion": "v1", "kind": "Pod", **evil_pod("late", {**spec, **on_node}, metadata)}
    del late["spec"]["priority"]

    with serving(loop="asyncio", state=state, schedule=True, **settings) as service:
        until_bound(service, [f"shop/ordinary-{place}" for place in range(5)])
        codes = [
            service.client.get("/livez").status_code,
            service.call("filter", {"Pod": evil_pod("asked", spec, metadata), "NodeNames": ["node-0"]}).status_code,
            service.client.get("/v1/explain/shop/hostile-0").status_code,
            service.client.post(PODS, content=json.dumps(late).encode(), headers=JSON).status_code,
        ]
        service.client.post(PODS, content=json.dumps(pod("last", "100m")).encode(), headers=JSON)
        until_bound(service, ["shop/last"])

    assert codes in ([200, 200, 200, 201], [200, 200, 200, TOO_LARGE])


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_a_tenant_with_hostile_pods_stops_nobody(attack: Callable[[], Manifest], tmp_path: Path) -> None:
    """
    Ordinary pods are bound, and other requests are answered, while the pods of a tenant cost what they may.
    """
    spec, state = attack(), tmp_path / "cluster.json"
    state.write_text(json.dumps(cluster(spec)))
    stops_nobody(state, spec)
