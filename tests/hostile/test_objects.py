"""The door of objects: whatever a tenant creates, other pods are bound and other requests are answered. A pod that
demands too much stays pending, and says why.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.api.test_questions import pod
from tests.hostile.attacks import (
    BEYOND,
    BUDGETS,
    CLAIMS,
    NUM_GUARDED,
    PODS,
    Object,
    cluster_of_budgets,
    cluster_of_claims,
    cluster_of_pods,
    hostile_pod,
    nodes,
    shop,
)
from tests.kit.objects import GROUP_GATES, pod_group, priority_class
from tests.kit.service import Service, serving
from tests.kit.waiting import until

IN_SHOP = "/api/v1/namespaces/shop/pods"
ORDINARY = [f"ordinary-{place}" for place in range(5)]
REFUSED = "more than the 65536 that are considered"


def dump(folder: Path, cluster: Object) -> Path:
    state = folder / "cluster.json"
    state.write_text(json.dumps(cluster))
    return state


def until_bound(service: Service, *names: str) -> None:
    for name in names:
        until(lambda name=name: service.client.get(f"{IN_SHOP}/{name}").json()["spec"].get("nodeName"))  # type: ignore[misc]


def condition(service: Service, name: str) -> str:
    """The message of PodScheduled; empty if there is none."""
    conditions = service.client.get(f"{IN_SHOP}/{name}").json()["status"].get("conditions", [])
    return next((item.get("message", "") for item in conditions if item["type"] == "PodScheduled"), "")


def why_not(service: Service, obj: Object, node: str) -> tuple[int, str]:
    """What a filter call of a kube-scheduler is answered: the status, and why the node is none for the pod."""
    answer = service.call("filter", {"Pod": obj, "NodeNames": [node]})
    failed = {**(answer.json()["FailedNodes"] or {}), **(answer.json()["FailedAndUnresolvableNodes"] or {})}
    return answer.status_code, failed.get(node, "")


def params(attacks: Iterable[str], *slow: str) -> list[Any]:
    """The attacks, of which some are slow."""
    return [pytest.param(name, marks=[pytest.mark.slow] * (name in slow)) for name in attacks]


@pytest.mark.parametrize("attack", params(PODS, "anti-affinity", "preferred affinity", "containers", "node affinity"))
def test_pods_that_demand_too_much_stay_pending_while_others_are_bound(attack: str, tmp_path: Path) -> None:
    """One of them runs already, and counts in full; another one comes with its node."""
    make = PODS[attack]
    late = hostile_pod("late", {**make(BEYOND), "nodeName": "node-1"})
    del late["spec"]["priority"]

    with serving(state=dump(tmp_path, cluster_of_pods(make)), schedule=True) as service:
        until_bound(service, *ORDINARY)
        for place in range(3):
            until(lambda place=place: condition(service, f"beyond-{place}"))  # type: ignore[misc]
            until(lambda place=place: is_decided(service, f"within-{place}"))  # type: ignore[misc]
        beyond_messages, within_messages = (
            [condition(service, f"{name}-{place}") for place in range(3)] for name in ("beyond", "within")
        )
        events = service.client.get("/api/v1/namespaces/shop/events").json()["items"]
        status, reason = why_not(service, hostile_pod("asked", make(BEYOND)), "node-2")
        came = service.post(IN_SHOP, late).status_code
        service.post(IN_SHOP, pod("last", "100m"))
        until_bound(service, "last")

    assert all(REFUSED in message for message in beyond_messages)
    assert not any(REFUSED in message for message in within_messages)
    named_pods = {event["involvedObject"]["name"] for event in events if REFUSED in event["message"]}
    assert named_pods == {f"beyond-{place}" for place in range(3)}
    assert (status, came) == (200, 201)
    assert REFUSED in reason


def is_decided(service: Service, name: str) -> bool:
    obj = service.client.get(f"{IN_SHOP}/{name}").json()
    return bool(obj["spec"].get("nodeName")) or bool(condition(service, name))


CONFIGURATION = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"pluginConfig": [{"name": "DynamicResources", "args": {"filterTimeout": "1s"}}]}],
}


@pytest.mark.parametrize("attack", params(CLAIMS, "large patterns", "a search through all combinations"))
def test_long_search_for_devices_delays_no_other_pod(attack: str, tmp_path: Path) -> None:
    configuration = tmp_path / "config.json"
    configuration.write_text(json.dumps(CONFIGURATION))
    cluster = cluster_of_claims(CLAIMS[attack])
    evil = next(item for item in cluster["items"] if item["kind"] == "Pod")

    with serving(state=dump(tmp_path, cluster), schedule=True, config=configuration) as service:
        until_bound(service, *ORDINARY)
        live, filter_status = service.client.get("/livez").status_code, why_not(service, evil, "node-0")[0]

    assert (live, filter_status) == (200, 200)


# Budgets.

BUDGETS_IN_SHOP = "/apis/policy/v1/namespaces/shop/poddisruptionbudgets"
URGENT = pod("urgent", "3999m", priority=100)


@pytest.mark.parametrize("attack", params(BUDGETS, "long ones"))
def test_a_pod_preempts_others_that_many_budgets_protect(attack: str, tmp_path: Path) -> None:
    state = dump(tmp_path, cluster_of_budgets(BUDGETS[attack](), URGENT))

    with serving(state=state, schedule=True) as service:
        until_bound(service, "urgent")
        num_pods = len(service.client.get(IN_SHOP).json()["items"])

    assert num_pods < NUM_GUARDED


def test_a_pod_group_preempts_others_that_many_budgets_protect(tmp_path: Path) -> None:
    group = pod_group(min_count=1, priority="high") | {"metadata": {"name": "g", "namespace": "shop"}}
    high = priority_class("high", 100)
    urgent = {**URGENT, "spec": {**URGENT["spec"], "schedulingGroup": {"podGroupName": "g"}}}
    state = dump(tmp_path, cluster_of_budgets(BUDGETS["of one pod each"](), high, group, urgent))
    gates = ",".join(f"{name}=true" for name in GROUP_GATES)

    with serving(state=state, schedule=True, feature_gates=gates) as service:
        until_bound(service, "urgent")


def healthy(service: Service, name: str) -> Any:
    """The number of healthy pods that the budget's status tells; None if it tells none yet."""
    answer = service.client.get(f"{BUDGETS_IN_SHOP}/{name}")
    return answer.json().get("status", {}).get("currentHealthy") if answer.status_code == 200 else None


def test_evictions_and_changes_are_counted_by_many_budgets(tmp_path: Path) -> None:
    another = next(BUDGETS["of all pods but one"]())
    another["metadata"]["name"] = "another"
    del another["status"]
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "running-1", "namespace": "shop"}}

    with serving(state=dump(tmp_path, cluster_of_budgets(BUDGETS["of one pod each"]())), schedule=True) as service:
        until(lambda: healthy(service, "budget-0") == 1)
        refused = service.post(f"{IN_SHOP}/running-1/eviction", eviction).status_code
        created = service.post(BUDGETS_IN_SHOP, another).status_code
        until(lambda: healthy(service, "another") is not None)
        deleted = service.client.delete(f"{IN_SHOP}/running-0").status_code
        until(lambda: healthy(service, "budget-0") == 0)

    assert (refused, created, deleted) == (429, 201, 200)


# Workloads.


@pytest.mark.slow
def test_a_workload_of_thousands_of_pods_is_counted_and_shrunk(tmp_path: Path) -> None:
    number, labels = 2000, {"app": "many"}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "many", "uid": "many", "controller": True}
    replicas = [
        {**obj, "metadata": {**obj["metadata"], "labels": labels, "ownerReferences": [owner]}}
        for obj in (pod(f"many-{place}", "1m", nodeName=f"node-{place % 30}") for place in range(number))
    ]
    for obj in replicas:
        obj["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    workload = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "many", "namespace": "shop", "uid": "many"},
        "spec": {
            "replicas": number,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod("many", "1m")["spec"]},
        },
    }
    path, merge = "/apis/apps/v1/namespaces/shop/replicasets/many", {"content-type": "application/merge-patch+json"}

    with serving(state=dump(tmp_path, shop(*nodes(30), workload, *replicas))) as service:

        def ready() -> int:
            return int((service.client.get(path).json().get("status") or {}).get("readyReplicas", 0))

        until(lambda: ready() == number)
        shrunk = service.client.patch(path, content=b'{"spec": {"replicas": 100}}', headers=merge).status_code
        until(lambda: ready() == 100)

    assert shrunk == 200
