"""The longest pods that an API server takes do not keep the scheduler from others, in a cluster whose labels they name
one by one.

Each of these took some seconds.
"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.api.serving import serving
from tests.api.test_questions import pod
from tests.hostile.test_device_selectors import until_bound
from tests.hostile.test_pods import Manifest, as_many, hostile, node_affinity, nodes, selecting, shop

NUM_NODES, NUM_CLASSES, NUM_RUNNING = 1000, 400, 5

PODS = "/api/v1/namespaces/shop/pods"
JSON = {"content-type": "application/json"}

TERMS = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERENCES = "preferredDuringSchedulingIgnoredDuringExecution"


def beyond(number: int) -> Manifest:
    return {"matchExpressions": [{"key": "place", "operator": "Gt", "values": [str(number)]}]}


def near_class(number: int) -> Manifest:
    return {"labelSelector": selecting(app=f"web-{number}"), "topologyKey": "zone"}


def near_tier_without(key: str) -> Manifest:
    return {
        "labelSelector": {**selecting(tier="web"), "matchExpressions": [{"key": key, "operator": "DoesNotExist"}]},
        "topologyKey": "zone",
    }


def without_label(key: str) -> Manifest:
    return {"labelSelector": {"matchExpressions": [{"key": key, "operator": "DoesNotExist"}]}, "topologyKey": "zone"}


ATTACKS: dict[str, Callable[[], Manifest]] = {
    "node affinity, a number for each node": lambda: node_affinity(*as_many(beyond)),
    "preferred node affinity, a number for each node": lambda: {
        "affinity": {"nodeAffinity": {PREFERENCES: as_many(lambda number: {"weight": 1, "preference": beyond(number)})}}
    },
    "anti-affinity to each class of pods": lambda: {"affinity": {"podAntiAffinity": {TERMS: as_many(near_class)}}},
    "affinity to pods without any of many labels": lambda: {
        "affinity": {"podAffinity": {TERMS: as_many(lambda number: without_label(f"key-{number}"))}}
    },
    "anti-affinity to pods with one label and without any of others": lambda: {
        "affinity": {"podAntiAffinity": {TERMS: as_many(lambda number: near_tier_without(f"key-{number}"))}}
    },
    "preferred affinity to pods with one label and without any of others": lambda: {
        "affinity": {
            "podAffinity": {
                PREFERENCES: as_many(
                    lambda number: {"weight": 1 + number % 100, "podAffinityTerm": near_tier_without(f"key-{number}")}
                )
            }
        }
    },
    "preferred affinity to pods with other labels": lambda: {
        "affinity": {
            "podAffinity": {
                PREFERENCES: as_many(lambda number: {"weight": 1, "podAffinityTerm": without_label(f"key-{number}")})
            }
        }
    },
    "preferred affinity to each class of pods": lambda: {
        "affinity": {
            "podAffinity": {PREFERENCES: as_many(lambda number: {"weight": 1, "podAffinityTerm": near_class(number)})}
        }
    },
}


def spec_of(place: int, spec: Manifest) -> Manifest:
    """Returns the spec with one more preference, so that no two pods have equal affinity."""
    preference = {"weight": 1, "podAffinityTerm": near_class(NUM_CLASSES + place)}
    affinity = spec["affinity"]
    return {
        **spec,
        "affinity": {**affinity, "podAffinity": {**affinity.get("podAffinity", {}), PREFERENCES: [preference]}},
    }


def cluster(spec: Manifest) -> Manifest:
    """Nodes that each have a number, running pods that each have labels of their own, and a long pod before ordinary
    ones.
    """
    return shop(
        *nodes(NUM_NODES),
        *(
            pod(f"web-{number}", "1m", nodeName=f"node-{number}")
            | {
                "metadata": {
                    "name": f"web-{number}",
                    "namespace": "shop",
                    "labels": {"app": f"web-{number}", "tier": "web"},
                }
            }
            for number in range(NUM_CLASSES)
        ),
        hostile("long", spec),
        *(pod(f"ordinary-{place}", "100m") for place in range(3)),
    )


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_a_tenant_with_a_long_pod_stops_nobody(attack: Callable[[], Manifest], tmp_path: Path) -> None:
    """
    Ordinary pods are bound, and the extender answers about the long pod.
    """
    spec, state = attack(), tmp_path / "cluster.json"
    state.write_text(json.dumps(cluster(spec)))

    with serving(loop="asyncio", state=state, schedule=True) as service:
        until_bound(service, [f"shop/ordinary-{place}" for place in range(3)])
        answer = service.call("filter", {"Pod": hostile("asked", spec), "NodeNames": ["node-999"]})

    assert answer.status_code == 200


@pytest.mark.parametrize(
    "attack",
    [
        "anti-affinity to each class of pods",
        "affinity to pods without any of many labels",
        "anti-affinity to pods with one label and without any of others",
    ],
)
def test_long_pods_that_run_already_stop_nobody(attack: str, tmp_path: Path) -> None:
    """
    A pod is bound in a cluster in which long pods run, and after another one came to a node.
    """
    spec, state = {**ATTACKS[attack](), "nodeName": "node-1"}, tmp_path / "cluster.json"
    state.write_text(
        json.dumps(shop(*nodes(10), *(hostile(f"long-{place}", spec_of(place, spec)) for place in range(NUM_RUNNING))))
    )
    late = {**hostile("late", spec_of(NUM_RUNNING, spec)), "apiVersion": "v1"}
    del late["spec"]["priority"]

    with serving(loop="asyncio", state=state, schedule=True) as service:
        assert service.client.post(PODS, content=json.dumps(late).encode(), headers=JSON).status_code == 201
        ordinary = pod("ordinary", "100m")
        ordinary["metadata"]["labels"] = {"tier": "web"}
        assert service.client.post(PODS, content=json.dumps(ordinary).encode(), headers=JSON).status_code == 201
        until_bound(service, ["shop/ordinary"])
