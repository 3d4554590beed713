"""The indexes are what a look at all objects would give, whatever came, changed and went; and so is what controllers
count by them.
"""

from random import Random
from typing import Any

import orjson
import pytest

from extender.rules.api_resources import DEPLOYMENTS, NODES, POD_DISRUPTION_BUDGETS, PODS, REPLICA_SETS, Object
from extender.rules.statuses import ApiStatus
from reprieve.cluster.controllers.cluster_view import ClusterView
from reprieve.cluster.controllers.observed_objects import ObservedPod
from reprieve.cluster.registry.object_registry import ObjectRegistry
from tests.reprieve.cluster.controllers.running_cluster import (
    add_deployment,
    add_node,
    add_pod,
    bind_all,
    change,
    condition_of,
    running_controllers,
    say_ready,
    scale,
    scheduled,
    settle,
)

KEYS = [("one", "a"), ("one", "b"), ("two", "a"), ("two", "c")]


def random_pod(rng: Random, key: tuple[str, str]) -> bytes:
    owner = rng.choice([None, "u1", "u2"])
    metadata: Object = {
        "namespace": key[0],
        "name": key[1],
        "uid": rng.choice(["x", "y"]) + key[1],
        "labels": rng.choice([{}, {"app": "a"}, {"app": "b"}]),
        "ownerReferences": [{"kind": "ReplicaSet", "name": "r", "uid": owner, "controller": True}] if owner else [],
        **rng.choice([{}, {"deletionTimestamp": "2026-03-01T08:00:00Z", "deletionGracePeriodSeconds": 30}]),
    }
    ready = [{"type": "Ready", "status": rng.choice(["True", "False"])}]
    status = {"phase": rng.choice(["Pending", "Running", "Failed"]), "conditions": ready}
    return orjson.dumps({"metadata": metadata, "spec": {"nodeName": rng.choice(["", "n1", "n2"])}, "status": status})


def answers_of(cluster: ClusterView) -> Any:
    """Every question about pods, with the answers in an order of their own."""

    def counts_of(uid: str) -> Any:
        group = cluster.pods_of(uid)
        labels = sorted((sorted(label_set.by_name.items()), count) for label_set, count in group.labels.items())
        return sorted(group.pods), group.active, group.ready, group.terminating, labels

    def labelled(index: Any) -> Any:
        return sorted((sorted(labels.by_name.items()), sorted(pods)) for labels, pods in index.items())

    return (
        sorted(cluster.pods),
        {node: sorted(cluster.pods_on(node)) for node in ("", "n1", "n2")},
        {uid: counts_of(uid) for uid in ("u1", "u2")},
        {uid: sorted(cluster.dependents(uid)) for uid in ("u1", "u2")},
        {namespace: labelled(cluster.loose_pods(namespace)) for namespace in ("one", "two")},
        {namespace: labelled(cluster.pods_in(namespace)) for namespace in ("one", "two")},
        {namespace: sorted(cluster.in_namespace(namespace)) for namespace in ("one", "two")},
    )


@pytest.mark.parametrize("number", range(20))
def test_after_many_changes_the_indexes_are_those_of_a_fresh_look(number: int) -> None:
    rng = Random(number)
    cluster, state = ClusterView(), {}
    for _ in range(60):
        key = rng.choice(KEYS)
        raw = random_pod(rng, key) if rng.random() < 0.7 else None
        cluster.apply_pod(key, raw)
        state[key] = raw

    fresh = ClusterView()
    for key, raw in state.items():
        fresh.apply_pod(key, raw)

    assert answers_of(cluster) == answers_of(fresh)


def test_pods_with_equal_labels_share_them() -> None:
    cluster, rng = ClusterView(), Random(1)
    for name in "ab":
        raw = orjson.loads(random_pod(rng, ("one", name)))
        raw["metadata"]["labels"] = {"app": "a", "tier": "web"} if name == "a" else {"tier": "web", "app": "a"}
        cluster.apply_pod(("one", name), orjson.dumps(raw))

    first, second = cluster.pods.values()

    assert isinstance(first, ObservedPod)
    assert first.labels is second.labels


def disturb(registry: ObjectRegistry, rng: Random) -> None:
    """One of the things that users, nodes and schedulers do."""
    pods = [pod["metadata"]["name"] for pod in registry.list(PODS, "default")]
    node = f"n{rng.randrange(3)}"
    match rng.randrange(8):
        case 0:
            scale(registry, DEPLOYMENTS, rng.choice(["web", "api"]), rng.randrange(6))
        case 1 if pods:
            registry.delete(PODS, "default", rng.choice(pods), {"gracePeriodSeconds": rng.choice([0, 30])})
        case 2 if pods:
            ready = rng.choice(["True", "False"])
            say_ready(registry, PODS, rng.choice(pods), ready)
        case 3:
            change(registry, NODES, node, lambda obj: obj["spec"].update(unschedulable=rng.random() < 0.5))
        case 4 if pods:
            change(
                registry,
                PODS,
                rng.choice(pods),
                lambda pod: pod["metadata"]["labels"].update(app=rng.choice(["web", "api", "none"])),
            )
        case 5:
            image = f"i:{rng.randrange(3)}"
            change(
                registry,
                DEPLOYMENTS,
                "web",
                lambda obj: obj["spec"]["template"]["spec"]["containers"][0].update(image=image),
            )
        case 6:
            add_pod(registry, f"bare-{rng.randrange(10**6)}", metadata={"labels": {"app": rng.choice(["web", "none"])}})
        case _:
            bind_all(registry, node)


@pytest.mark.parametrize("number", range(6))
async def test_after_a_storm_everything_is_as_it_should_be(number: int) -> None:
    rng = Random(number)
    async with running_controllers() as registry:
        for node in range(3):
            add_node(registry, f"n{node}")
        for app in ("web", "api"):
            add_deployment(registry, app, 3, app=app)
            budget = {"metadata": {"name": app}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}}}
            registry.create(POD_DISRUPTION_BUDGETS, "default", budget)
        for _ in range(80):
            try:
                disturb(registry, rng)
            except ApiStatus as refused:
                assert refused.code in (404, 409, 422)
            await settle(rng.choice([0, 0, 0.02, 0.3]))
        for pod in registry.list(PODS, "default"):
            change(registry, PODS, pod["metadata"]["name"], make_ready, subresource="status")
        await scheduled(registry, 60, "n0")

        check(registry)


def make_ready(pod: Object) -> None:
    if condition_of(pod, "Ready"):
        condition_of(pod, "Ready").update(status="True")


def check(registry: ObjectRegistry) -> None:
    pods = registry.list(PODS, "default")
    assert {pod["status"]["phase"] for pod in pods} <= {"Running"}
    for deployment in registry.list(DEPLOYMENTS, "default"):
        status, desired = deployment["status"], deployment["spec"]["replicas"]
        assert [status.get(name, 0) for name in ("replicas", "updatedReplicas", "availableReplicas")] == [desired] * 3
    for replica_set in registry.list(REPLICA_SETS, "default"):
        owned = [pod for pod in pods if replica_set["metadata"]["uid"] in str(pod["metadata"].get("ownerReferences"))]
        assert len(owned) == replica_set["spec"]["replicas"]
    for budget in registry.list(POD_DISRUPTION_BUDGETS, "default"):
        mine = [pod for pod in pods if pod["metadata"]["labels"].get("app") == budget["metadata"]["name"]]
        healthy = sum(condition_of(pod, "Ready").get("status") == "True" for pod in mine)
        assert (budget["status"]["expectedPods"], budget["status"]["currentHealthy"]) == (len(mine), healthy)
        assert budget["status"]["disruptionsAllowed"] == (max(healthy - 1, 0) if mine else 0)
