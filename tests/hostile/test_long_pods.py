"""The longest pods that an API server takes do not keep the scheduler from others, in a cluster whose labels they name one by one."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.api.serving import serving
from tests.api.test_questions import pod
from tests.hostile.test_device_selectors import until_bound
from tests.hostile.test_pods import Manifest, as_many, hostile, node_affinity, nodes, selecting, shop
from tests.loop_budget import held_too_long

MOST_SECONDS = 0.25
"""Five times what is promised, in CPU time; each of these took some seconds."""

MOST_BYTES = 1_000_000

NUM_NODES, NUM_CLASSES, NUM_RUNNING = 1000, 400, 5

PODS = "/api/v1/namespaces/shop/pods"
JSON = {"content-type": "application/json"}

TERMS = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERENCES = "preferredDuringSchedulingIgnoredDuringExecution"


def many(make: Callable[[int], Any]) -> list[Any]:
    return as_many(make, MOST_BYTES)


def beyond(number: int) -> Manifest:
    return {"matchExpressions": [{"key": "place", "operator": "Gt", "values": [str(number)]}]}


def near_class(number: int) -> Manifest:
    return {"labelSelector": selecting(app=f"web-{number}"), "topologyKey": "zone"}


def without_label(key: str) -> Manifest:
    return {"labelSelector": {"matchExpressions": [{"key": key, "operator": "DoesNotExist"}]}, "topologyKey": "zone"}


ATTACKS: dict[str, Callable[[], Manifest]] = {
    "node affinity, a number for each node": lambda: node_affinity(*many(beyond)),
    "preferred node affinity, a number for each node": lambda: {
        "affinity": {"nodeAffinity": {PREFERENCES: many(lambda number: {"weight": 1, "preference": beyond(number)})}}
    },
    "anti-affinity to each class of pods": lambda: {"affinity": {"podAntiAffinity": {TERMS: many(near_class)}}},
    "affinity to pods without any of many labels": lambda: {
        "affinity": {"podAffinity": {TERMS: many(lambda number: without_label(f"key-{number}"))}}
    },
    "preferred affinity to pods with other labels": lambda: {
        "affinity": {"podAffinity": {PREFERENCES: many(lambda number: {"weight": 1, "podAffinityTerm": without_label(f"key-{number}")})}}
    },
    "preferred affinity to each class of pods": lambda: {
        "affinity": {"podAffinity": {PREFERENCES: many(lambda number: {"weight": 1, "podAffinityTerm": near_class(number)})}}
    },
}


def spec_of(place: int, spec: Manifest) -> Manifest:
    """Returns the spec with one more preference, so that no two pods have equal affinity."""
    preference = {"weight": 1, "podAffinityTerm": near_class(NUM_CLASSES + place)}
    affinity = spec["affinity"]
    return {**spec, "affinity": {**affinity, "podAffinity": {**affinity.get("podAffinity", {}), PREFERENCES: [preference]}}}


def cluster(spec: Manifest) -> Manifest:
    """Nodes that each have a number, running pods that each have labels of their own, and a long pod before ordinary ones."""
    return shop(
        *nodes(NUM_NODES),
        *(
            pod(f"web-{number}", "1m", nodeName=f"node-{number}")
            | {"metadata": {"name": f"web-{number}", "namespace": "shop", "labels": {"app": f"web-{number}"}}}
            for number in range(NUM_CLASSES)
        ),
        hostile("long", spec),
        *(pod(f"ordinary-{place}", "100m") for place in range(3)),
    )


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_a_tenant_with_a_long_pod_stops_nobody(attack: Callable[[], Manifest], tmp_path: Path) -> None:
    """
    Ordinary pods are bound, and the extender answers about the long pod, without a step that holds the event loop.
    """
    spec, state = attack(), tmp_path / "cluster.json"
    state.write_text(json.dumps(cluster(spec)))

    with held_too_long(MOST_SECONDS) as found, serving(loop="asyncio", state=state, schedule=True) as service:
        until_bound(service, [f"shop/ordinary-{place}" for place in range(3)])
        answer = service.call("filter", {"Pod": hostile("asked", spec), "NodeNames": ["node-999"]})

    assert answer.status_code == 200
    assert not found, "\n".join(found)


@pytest.mark.parametrize("attack", ["anti-affinity to each class of pods", "affinity to pods without any of many labels"])
def test_long_pods_that_run_already_stop_nobody(attack: str, tmp_path: Path) -> None:
    """
    A pod is bound in a cluster in which long pods run, and after another one came to a node.
    """
    spec, state = {**ATTACKS[attack](), "nodeName": "node-1"}, tmp_path / "cluster.json"
    state.write_text(json.dumps(shop(*nodes(10), *(hostile(f"long-{place}", spec_of(place, spec)) for place in range(NUM_RUNNING)))))
    late = {**hostile("late", spec_of(NUM_RUNNING, spec)), "apiVersion": "v1"}
    del late["spec"]["priority"]

    with held_too_long(MOST_SECONDS) as found, serving(loop="asyncio", state=state, schedule=True) as service:
        assert service.client.post(PODS, content=json.dumps(late).encode(), headers=JSON).status_code == 201
        assert service.client.post(PODS, content=json.dumps(pod("ordinary", "100m")).encode(), headers=JSON).status_code == 201
        until_bound(service, ["shop/ordinary"])

    assert not found, "\n".join(found)
