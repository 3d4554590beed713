"""What a tenant may create in a namespace of his own: pods that demand as much as they can, claims that take long to
search for, and thousands of disruption budgets. `python -m bench hostile` measures with the same.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

from tests.api.test_questions import pod

Object = dict[str, Any]

BEYOND: Final = 300_000
"""Bytes of demands for which a waiting pod is not considered."""
WITHIN: Final = 30_000
"""Bytes of demands that are considered, with all that is read into them."""
NUM_NODES: Final = 200
DRIVER: Final = "gpu.example.com"


def as_many(make: Callable[[int], Any], num_bytes: int) -> list[Any]:
    """Returns as many different items as JSON of so many bytes has."""
    return [make(number) for number in range(num_bytes // (len(json.dumps(make(99_999), separators=(",", ":"))) + 1))]


# Pods.


def _affinity(kind: str, num_bytes: int, *, is_required: bool = True) -> Object:
    """Terms with a selector and a topology key each."""

    def term(number: int) -> Object:
        affinity_term = {
            "labelSelector": {"matchLabels": {"app": f"web-{number}"}},
            "topologyKey": f"nowhere-{number}" if number % 2 else "zone",
        }
        return affinity_term if is_required else {"weight": 1 + number % 100, "podAffinityTerm": affinity_term}

    when = "required" if is_required else "preferred"
    return {"affinity": {kind: {f"{when}DuringSchedulingIgnoredDuringExecution": as_many(term, num_bytes)}}}


def _spread(number: int) -> Object:
    return {
        "maxSkew": 1,
        "topologyKey": f"nowhere-{number}",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }


def _node_affinity(num_bytes: int) -> Object:
    expressions = as_many(lambda number: {"key": "zone", "operator": "NotIn", "values": [f"z{number}"]}, num_bytes)
    terms = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def _resources(num_bytes: int) -> Object:
    """Resources that no node has, of each one."""
    names = as_many(lambda number: [f"example.com/thing-{number}", "1", f"example.com/thing-{number}", "1"], num_bytes)
    amounts = {name: amount for name, amount, *_ in names}
    container = {"name": "main", "image": "registry.example/app:1"}
    return {"containers": [{**container, "resources": {"requests": amounts, "limits": amounts}}]}


def _containers(num_bytes: int) -> Object:
    def container(number: int) -> Object:
        return {"name": f"c{number}", "image": f"i{number}", "resources": {"requests": {"cpu": f"{number}u"}}}

    return {"containers": as_many(container, num_bytes)}


def _toleration(number: int) -> Object:
    return {"key": f"k{number}", "operator": "Exists", "effect": "NoSchedule"}


PODS: Final[dict[str, Callable[[int], Object]]] = {
    "anti-affinity": lambda num_bytes: _affinity("podAntiAffinity", num_bytes),
    "preferred affinity": lambda num_bytes: _affinity("podAffinity", num_bytes, is_required=False),
    "spread constraints": lambda num_bytes: {"topologySpreadConstraints": as_many(_spread, num_bytes)},
    "node affinity": _node_affinity,
    "tolerations": lambda num_bytes: {"tolerations": as_many(_toleration, num_bytes)},
    "resources": _resources,
    "containers": _containers,
}
"""By what they demand, the spec of a pod of so many bytes."""


def hostile_pod(name: str, spec: Object) -> Object:
    obj = pod(name, "1m", priority=100, **spec)
    return {**obj, "metadata": {**obj["metadata"], "labels": {"app": "web"}}}


def shop(*items: Object) -> Object:
    """Returns a cluster with the tenants' namespace and these objects."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    return {"kind": "List", "apiVersion": "v1", "items": [namespace, *items]}


def nodes(number: int) -> list[Object]:
    """Nodes in three zones."""
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"node-{place}", "labels": {"zone": f"z{place % 3}"}},
            "status": {"allocatable": {"cpu": "4", "pods": "110"}},
        }
        for place in range(number)
    ]


def ordinary_pods() -> list[Object]:
    return [pod(f"ordinary-{place}", "100m") for place in range(5)]


def cluster_of_pods(attack: Callable[[int], Object], beyond: int = BEYOND) -> Object:
    """Nodes; hostile pods, of which one runs and others wait first in the queue; and ordinary pods behind them."""
    return shop(
        *nodes(NUM_NODES),
        *(hostile_pod(f"beyond-{place}", attack(beyond)) for place in range(3)),
        *(hostile_pod(f"within-{place}", attack(WITHIN)) for place in range(3)),
        hostile_pod("running", {**attack(beyond), "nodeName": "node-0"}),
        *ordinary_pods(),
    )


# Claims.


def _nested(depth: int, minimum: int) -> str:
    """Two lists in each other, so many deep; some milliseconds of work."""
    inner = "1"
    for place in range(depth):
        inner = f"[0,0].map(v{place}, {inner})"
    return f"{inner}.size() > {minimum}"


_LOOPS: Final = [_nested(11, -place) for place in range(1, 6)] + [_nested(11, 5000)]
_PATTERNS: Final = [
    " || ".join(f'"b".matches("(.{{1,30}}){{1,30}}c{number}{place}")' for number in range(200)) for place in range(3)
]
_DISTINCT: Final = [f'device.attributes["{DRIVER}"].numa != {place}' for place in range(32)]


def _claim(name: str, *expressions: str, requests: int = 1, **more: Any) -> Object:
    exactly = {"deviceClassName": "any", "allocationMode": "ExactCount", "count": 1}
    selectors = [{"cel": {"expression": expression}} for expression in expressions]
    items = [{"name": f"r{place}", "exactly": {**exactly, "selectors": selectors}} for place in range(requests)]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"devices": {"requests": items, **more}},
    }


CLAIMS: Final[dict[str, Callable[[str], Object]]] = {
    "loops in loops on every device": lambda name: _claim(name, *_LOOPS),
    "large patterns": lambda name: _claim(name, *_PATTERNS),
    "a search through all combinations": lambda name: _claim(
        name,
        "true",
        requests=16,
        constraints=[{"matchAttribute": f"{DRIVER}/numa"}, {"distinctAttribute": f"{DRIVER}/side"}],
    ),
    "many cheap selectors": lambda name: _claim(name, *_DISTINCT, requests=8),
}
"""By what takes long, the claim of a pod."""


def cluster_of_claims(attack: Callable[[str], Object]) -> Object:
    """Nodes with devices; pods with hostile claims first in the queue, and ordinary pods behind them."""
    group, on, hostile = {"apiVersion": "resource.k8s.io/v1"}, nodes(4), [f"hostile-{place}" for place in range(4)]
    devices = [
        {"name": f"d{place}", "attributes": {"numa": {"int": place // 8}, "side": {"int": place % 8}}}
        for place in range(64)
    ]
    selectors = [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]
    slices = [
        {
            **group,
            "kind": "ResourceSlice",
            "metadata": {"name": name},
            "spec": {
                "driver": DRIVER,
                "nodeName": name,
                "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                "devices": devices,
            },
        }
        for name in (node["metadata"]["name"] for node in on)
    ]
    claiming = [
        pod(name, "1m", priority=100, resourceClaims=[{"name": "c", "resourceClaimName": name}]) for name in hostile
    ]
    device_class = {**group, "kind": "DeviceClass", "metadata": {"name": "any"}, "spec": {"selectors": selectors}}
    return shop(device_class, *on, *slices, *map(attack, hostile), *claiming, *ordinary_pods())


# Budgets.

NUM_GUARDED: Final = 1000
"""Pods that run on 10 nodes and fill them, each with a label of its own."""
NUM_FULL: Final = 10


def _budget(number: int, selector: Object, allowed: int) -> Object:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": f"budget-{number}", "namespace": "shop"},
        "spec": {"minAvailable": 1, "selector": selector},
        "status": {"disruptionsAllowed": allowed, "expectedPods": 0, "currentHealthy": 0, "desiredHealthy": 0},
    }


def _not_in(key: str, value: str) -> Object:
    return {"key": key, "operator": "NotIn", "values": [value]}


BUDGETS: Final[dict[str, Callable[[], Iterator[Object]]]] = {
    "of one pod each": lambda: (
        _budget(number, {"matchLabels": {"app": f"app-{number}"}}, 0) for number in range(NUM_GUARDED)
    ),
    "of all pods but one": lambda: (
        _budget(number, {"matchExpressions": [_not_in("app", f"app-{number}")]}, NUM_GUARDED - 2)
        for number in range(NUM_GUARDED)
    ),
    "long ones": lambda: (
        _budget(number, {"matchExpressions": [_not_in(f"key-{place}", "x") for place in range(12_000)]}, 0)
        for number in range(2)
    ),
}


def cluster_of_budgets(budgets: Iterator[Object], *more: Object) -> Object:
    """Nodes that are full of pods, and budgets that protect these."""
    running = [pod(f"running-{number}", "1m", nodeName=f"node-{number % NUM_FULL}") for number in range(NUM_GUARDED)]
    for number, obj in enumerate(running):
        obj["metadata"]["labels"] = {"app": f"app-{number}"}
        obj["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    return shop(*nodes(NUM_FULL), *running, *budgets, *more)
