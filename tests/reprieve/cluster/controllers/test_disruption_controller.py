"""How many pods may go is always known; what was promised to an eviction counts as gone, but not forever."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from extender.rules.api_resources import DEPLOYMENTS, POD_DISRUPTION_BUDGETS, PODS, Object
from extender.rules.seeding import seed
from reprieve.cluster.registry.object_registry import ObjectRegistry
from reprieve.cluster.registry.subresources import evict
from tests.kit.objects import obj, owner
from tests.kit.tables import cases
from tests.reprieve.cluster.controllers.running_cluster import (
    add_pod,
    change,
    condition_of,
    deployed,
    running_controllers,
    say_ready,
    scale,
    scheduled,
    settle,
)


def add_budget(registry: ObjectRegistry, app: str = "web", **spec: Any) -> None:
    budget = {"metadata": {"name": app}, "spec": {"selector": {"matchLabels": {"app": app}}, **spec}}
    registry.create(POD_DISRUPTION_BUDGETS, "default", budget)


@asynccontextmanager
async def guarded(*pods: str, stay: bool = False, **spec: Any) -> AsyncIterator[ObjectRegistry]:
    """Controllers at work on pods of the app `web`, which run on the node `a`, and on their budget.

    Arguments:
        stay: whether a finalizer keeps the pods when they are deleted.
    """
    metadata = {"labels": {"app": "web"}, **({"finalizers": ["example.com/stay"]} if stay else {})}
    async with running_controllers(node="a") as registry:
        for name in pods:
            add_pod(registry, name, node="a", metadata=metadata)
        add_budget(registry, **spec)
        await settle()
        yield registry


def numbers(registry: ObjectRegistry, name: str = "web") -> tuple[int, int, int, int]:
    """(expected, desired, healthy, allowed)"""
    status = registry.get(POD_DISRUPTION_BUDGETS, "default", name)["status"]
    return status["expectedPods"], status["desiredHealthy"], status["currentHealthy"], status["disruptionsAllowed"]


@cases(
    "spec, expected",
    ("a number of pods that are there", {"minAvailable": 3}, (4, 3, 4, 1)),
    ("a share of the scale, rounded up", {"minAvailable": "70%"}, (4, 3, 4, 1)),
    ("a number that may be missing", {"maxUnavailable": 1}, (4, 3, 4, 1)),
    ("a share that may be missing, rounded up", {"maxUnavailable": "30%"}, (4, 2, 4, 2)),
    ("more than there are", {"minAvailable": 9}, (4, 9, 4, 0)),
    ("all of them", {"maxUnavailable": 9}, (4, 0, 4, 4)),
)
async def test_the_budget_of_a_deployment_of_four(spec: Object, expected: tuple[int, ...]) -> None:
    async with deployed(4) as registry:
        add_budget(registry, **spec)
        await settle()

        budget = registry.get(POD_DISRUPTION_BUDGETS, "default", "web")

        assert numbers(registry) == expected
        assert budget["status"]["observedGeneration"] == budget["metadata"]["generation"]
        allowed = condition_of(budget, "DisruptionAllowed")
        assert (allowed["status"], allowed["reason"]) == (
            ("True", "SufficientPods") if expected[3] else ("False", "InsufficientPods")
        )


async def test_the_scale_counts_and_not_the_pods_that_there_are() -> None:
    async with deployed(2) as registry:
        add_budget(registry, maxUnavailable=1)
        scale(registry, DEPLOYMENTS, "web", 5)
        await settle()

        assert numbers(registry) == (5, 4, 2, 0)


async def test_pods_without_a_controller_count_only_against_a_number() -> None:
    async with guarded("x", "y", minAvailable=1) as registry:
        by_number = numbers(registry)
        change(
            registry, POD_DISRUPTION_BUDGETS, "web", lambda obj: obj.update(spec={**obj["spec"], "minAvailable": "50%"})
        )
        await settle()

        assert by_number == (2, 1, 2, 1)
        assert numbers(registry) == (0, 0, 2, 0)


async def test_a_pod_that_is_deleted_or_not_ready_is_not_healthy() -> None:
    async with guarded("x", "y", "z", stay=True, minAvailable=1) as registry:
        registry.delete(PODS, "default", "x", {})
        say_ready(registry, PODS, "y", "False")
        await settle()

        assert numbers(registry) == (3, 1, 1, 0)


async def test_a_pod_that_changes_its_labels_changes_its_budget() -> None:
    async with guarded("x", minAvailable=0) as registry:
        add_budget(registry, "db", minAvailable=0)
        await settle()
        before = numbers(registry, "web")[0], numbers(registry, "db")[0]
        change(registry, PODS, "x", lambda pod: pod["metadata"]["labels"].update(app="db"))
        await settle()

        assert before == (1, 0)
        assert (numbers(registry, "web")[0], numbers(registry, "db")[0]) == (0, 1)


async def test_a_controller_that_cannot_be_scaled_leaves_nothing_to_disrupt() -> None:
    async with running_controllers(node="a") as registry:
        agent = owner("DaemonSet", "agent", uid="1")
        add_pod(registry, "x", node="a", metadata={"labels": {"app": "web"}, "ownerReferences": [agent]})
        add_budget(registry, maxUnavailable=1)
        await settle()

        budget = registry.get(POD_DISRUPTION_BUDGETS, "default", "web")

    failure = condition_of(budget, "DisruptionAllowed")
    assert budget["status"]["disruptionsAllowed"] == 0
    assert (failure["status"], failure["reason"]) == ("False", "SyncFailed")
    assert failure["message"] == 'found no controllers for pod "x"'


async def test_a_controller_that_only_a_dump_names_counts_with_its_pods() -> None:
    """A dump of nodes, pods and budgets says nothing of ReplicaSets. Upstream would allow no disruption at all."""
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    metadata = {"namespace": "default", "labels": {"app": "web"}, "ownerReferences": [owner(name="web", uid="1")]}
    spec = {"nodeName": "a", "containers": [{"name": "c", "image": "i"}]}
    pods = [obj("Pod", spec=dict(spec), status=status) | {"metadata": {**metadata, "name": name}} for name in "wxyz"]
    async with running_controllers() as registry:
        seed(registry, pods)
        add_budget(registry, maxUnavailable="50%")
        await settle()

        assert numbers(registry) == (4, 2, 4, 2)


async def test_granted_eviction_counts_until_it_is_done_or_expires() -> None:
    async with guarded("x", "y", minAvailable=1) as registry:

        def promise(budget: Object) -> None:
            budget["status"].update(disruptedPods={"x": "2026-03-01T08:00:06Z", "gone": "2026-03-01T08:00:06Z"})

        change(registry, POD_DISRUPTION_BUDGETS, "web", promise, subresource="status")
        await settle(60)
        promised = registry.get(POD_DISRUPTION_BUDGETS, "default", "web")["status"]
        await settle(120)
        forgotten = registry.get(POD_DISRUPTION_BUDGETS, "default", "web")["status"]

    assert (promised["disruptedPods"], promised["currentHealthy"], promised["disruptionsAllowed"]) == (
        {"x": "2026-03-01T08:00:06Z"},
        1,
        0,
    )
    assert "disruptedPods" not in forgotten
    assert (forgotten["currentHealthy"], forgotten["disruptionsAllowed"]) == (2, 1)


async def test_granted_eviction_ends_once_its_pod_is_deleted() -> None:
    """A pod that says goodbye is not healthy any more, so that it must not be counted as gone besides."""
    async with guarded("x", "y", stay=True, minAvailable=1) as registry:
        evict(registry, "default", "x", {"metadata": {"name": "x"}})
        await settle()
        status = registry.get(POD_DISRUPTION_BUDGETS, "default", "web")["status"]

        assert "deletionTimestamp" in registry.get(PODS, "default", "x")["metadata"]
        assert "disruptedPods" not in status
        assert numbers(registry) == (2, 1, 1, 0)


async def test_evictions_spend_the_budget_and_new_pods_fill_it_up() -> None:
    async with deployed(3) as registry:
        add_budget(registry, maxUnavailable=1)
        await settle()
        victim = registry.list(PODS, "default")[0]["metadata"]["name"]
        evict(registry, "default", victim, {"metadata": {"name": victim}})
        await settle(0.5)
        spent = numbers(registry)
        await scheduled(registry, 5)

        assert spent == (3, 2, 2, 0)
        assert numbers(registry) == (3, 2, 3, 1)


async def test_disruption_target_of_a_pod_that_stays_is_withdrawn_after_two_minutes() -> None:
    async with running_controllers(node="a") as registry:
        add_pod(registry, "x", node="a")
        await settle()
        target = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "lastTransitionTime": "2026-03-01T08:00:06Z",
        }
        change(registry, PODS, "x", lambda pod: pod["status"]["conditions"].append(target), subresource="status")
        await settle(110)
        before = condition_of(registry.get(PODS, "default", "x"), "DisruptionTarget")["status"]
        await settle(20)

        assert (before, condition_of(registry.get(PODS, "default", "x"), "DisruptionTarget")["status"]) == (
            "True",
            "False",
        )


async def test_pods_that_come_and_go_are_counted_whatever_their_labels_are() -> None:
    """Each pod has labels of its own, as those of StatefulSets and Jobs have."""
    async with running_controllers(node="a") as registry:
        add_budget(registry, minAvailable=1)
        expressions = [{"key": "app", "operator": "NotIn", "values": ["n7", "n190"]}]
        change(
            registry,
            POD_DISRUPTION_BUDGETS,
            "web",
            lambda obj: obj["spec"].update(selector={"matchExpressions": expressions}),
        )
        counts = []
        for first, last in ((0, 150), (150, 200)):
            for number in range(first, last):
                add_pod(registry, f"p{number}", node="a", metadata={"labels": {"app": f"n{number}"}})
            await settle()
            counts.append(numbers(registry)[0])
            for number in range(first, last - 10):
                registry.delete(PODS, "default", f"p{number}", {"gracePeriodSeconds": 0})
            await settle()
            counts.append(numbers(registry)[0])

        assert counts == [149, 10, 59, 19]


async def test_a_budget_with_a_long_selector_is_counted() -> None:
    """Its selector is parsed in a thread; what happens meanwhile is not lost."""
    long = [{"key": f"key-{place}", "operator": "NotIn", "values": ["x"]} for place in range(3000)]
    async with running_controllers(node="a") as registry:
        add_pod(registry, "x", node="a", metadata={"labels": {"app": "web"}})
        registry.create(
            POD_DISRUPTION_BUDGETS,
            "default",
            {"metadata": {"name": "web"}, "spec": {"minAvailable": 1, "selector": {"matchExpressions": long}}},
        )
        for _ in range(20):
            await asyncio.sleep(0)
        add_pod(registry, "y", node="a", metadata={"labels": {"app": "web"}})
        add_pod(registry, "z", node="a", metadata={"labels": {"key-7": "x"}})
        await settle()

        assert numbers(registry) == (2, 1, 2, 1)
