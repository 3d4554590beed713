"""Thousands of disruption budgets, or long ones, keep the scheduler from nobody, also while a pod preempts others or
budgets change.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.api.serving import Service, serving
from tests.api.test_questions import pod
from tests.hostile.test_device_selectors import until_bound
from tests.hostile.test_pods import Manifest, nodes, shop
from tests.hostile.test_workloads import until
from tests.stories.scenery import GROUP_GATES, pod_group

NUM_PODS, NUM_NODES = 3000, 30

BUDGETS = "/apis/policy/v1/namespaces/shop/poddisruptionbudgets"
PODS = "/api/v1/namespaces/shop/pods"


def excluding(key: str, value: str) -> Manifest:
    return {"key": key, "operator": "NotIn", "values": [value]}


def budget(number: int, selector: Manifest, available: int = 1) -> Manifest:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": f"budget-{number}", "namespace": "shop"},
        "spec": {"minAvailable": available, "selector": selector},
        "status": {
            "disruptionsAllowed": max(NUM_PODS - 1 - available, 0),
            "expectedPods": 0,
            "currentHealthy": 0,
            "desiredHealthy": 0,
        },
    }


def of_all_but_one(available: int) -> Iterator[Manifest]:
    for number in range(NUM_PODS):
        yield budget(number, {"matchExpressions": [excluding("app", f"app-{number}")]}, available)


ATTACKS: dict[str, Callable[[], Iterator[Manifest]]] = {
    "of all pods, which allow none": lambda: of_all_but_one(NUM_PODS),
    "of all pods, which allow a few": lambda: of_all_but_one(NUM_PODS - 60),
    "of one pod each": lambda: (
        budget(number, {"matchLabels": {"app": f"app-{number}"}}) for number in range(NUM_PODS)
    ),
    "long ones": lambda: (
        budget(number, {"matchExpressions": [excluding(f"key-{place}", "x") for place in range(12_000)]})
        for number in range(2)
    ),
}


def cluster(budgets: Iterator[Manifest], *waiting: Manifest) -> Manifest:
    """Returns nodes that are full of pods, each with a label of its own, and budgets that protect them."""
    running = [pod(f"running-{number}", "1m", nodeName=f"node-{number % NUM_NODES}") for number in range(NUM_PODS)]
    for number, each in enumerate(running):
        each["metadata"]["labels"] = {"app": f"app-{number}"}
        each["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    return shop(*nodes(NUM_NODES), *running, *budgets, *waiting)


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_tenant_with_budgets_stops_nobody(attack: str, tmp_path: Path) -> None:
    """
    A pod preempts others that the budgets protect.
    """
    state = tmp_path / "cluster.json"
    state.write_text(json.dumps(cluster(ATTACKS[attack](), pod("urgent", "3999m", priority=100))))

    with serving(loop="asyncio", state=state, schedule=True) as service:
        until_bound(service, ["shop/urgent"])


def test_a_pod_group_preempts_among_many_budgets(tmp_path: Path) -> None:
    """
    As a whole, for which all pods of the cluster are counted against all budgets.
    """
    group = pod_group(min_count=1, priority="high") | {"metadata": {"name": "g", "namespace": "shop"}}
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 100}
    state, urgent = (
        tmp_path / "cluster.json",
        pod("urgent", "3999m", priority=100, schedulingGroup={"podGroupName": "g"}),
    )
    state.write_text(json.dumps(cluster(ATTACKS["of one pod each"](), high, group, urgent)))
    gates = ",".join(f"{name}=true" for name in GROUP_GATES)

    with serving(loop="asyncio", state=state, schedule=True, feature_gates=gates) as service:
        until_bound(service, ["shop/urgent"])


def healthy(service: Service, name: str) -> Any:
    """The number of healthy pods that the budget's status tells; None if it tells none yet."""
    answer = service.client.get(f"{BUDGETS}/{name}")
    return answer.json().get("status", {}).get("currentHealthy") if answer.status_code == 200 else None


@pytest.mark.parametrize(
    ("attack", "watched", "before", "evicted"),
    [
        ("of all pods, which allow a few", "budget-1", NUM_PODS - 1, 500),
        ("of one pod each", "budget-0", 1, 429),
        ("long ones", "budget-1", NUM_PODS, 500),
    ],
)
def test_changing_one_of_many_budgets_stops_nobody(
    attack: str, watched: str, before: int, evicted: int, tmp_path: Path
) -> None:
    """
    Pods are evicted, get other labels and go, and budgets come and go.
    """
    state, another = tmp_path / "cluster.json", next(ATTACKS[attack]())
    state.write_text(json.dumps(cluster(ATTACKS[attack]())))
    another["metadata"]["name"] = "another"
    del another["status"]
    patch = {"content-type": "application/merge-patch+json"}
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "running-1", "namespace": "shop"}}

    with serving(loop="asyncio", state=state, schedule=True) as service:
        until(lambda: healthy(service, watched) == before)
        created = service.post(BUDGETS, another)
        until(lambda: healthy(service, "another") is not None)
        refused = service.post(f"{PODS}/running-1/eviction", eviction)
        relabelled = service.client.patch(
            f"{PODS}/running-2", content=b'{"metadata":{"labels":{"app":"none"}}}', headers=patch
        )
        gone = service.client.delete(f"{PODS}/running-0")
        until(lambda: healthy(service, watched) == before - 1)
        deleted = service.client.delete(f"{BUDGETS}/another")

    assert [answer.status_code for answer in (created, refused, relabelled, gone, deleted)] == [
        201,
        evicted,
        200,
        200,
        200,
    ]
