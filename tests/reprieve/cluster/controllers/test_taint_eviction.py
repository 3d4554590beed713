"""NoExecute taints drive pods away: at once, after a while, or never."""

from extender.rules.api_resources import NODES, PODS, Object
from reprieve.cluster.controllers.node_lifecycle_controller import PatientToleration, patience
from reprieve.cluster.controllers.observed_objects import NodeTaint
from reprieve.cluster.registry.object_registry import ObjectRegistry
from tests.kit.tables import cases
from tests.reprieve.cluster.controllers.running_cluster import (
    add_node,
    add_pod,
    change,
    condition_of,
    names,
    running_controllers,
    say_ready,
    settle,
)

TAINT = {"key": "example.com/maintenance", "effect": "NoExecute"}


def taint(registry: ObjectRegistry, *taints: Object) -> None:
    change(registry, NODES, "a", lambda node: node["spec"].update(taints=list(taints)))


def tolerating(seconds: int | None = None) -> Object:
    toleration: Object = {"key": TAINT["key"], "operator": "Exists", "effect": "NoExecute"}
    return {"tolerations": [toleration if seconds is None else {**toleration, "tolerationSeconds": seconds}]}


async def test_pods_leave_at_once_after_a_while_or_never() -> None:
    async with running_controllers(node="a") as registry:
        add_pod(registry, "intolerant", node="a")
        add_pod(registry, "patient", node="a", **tolerating(60))
        add_pod(registry, "tolerant", node="a", **tolerating())
        add_pod(registry, "elsewhere")
        await settle()
        taint(registry, TAINT)
        pod_names = []
        for seconds in (5, 50, 10):
            await settle(seconds)
            pod_names.append(names(registry, PODS))

    three = ["elsewhere", "patient", "tolerant"]
    assert pod_names == [three, three, ["elsewhere", "tolerant"]]


async def test_deleted_pod_gets_a_disruption_condition() -> None:
    async with running_controllers(node="a") as registry:
        add_pod(registry, "x", node="a", metadata={"finalizers": ["example.com/stay"]})
        taint(registry, TAINT)
        await settle()

        target = condition_of(registry.get(PODS, "default", "x"), "DisruptionTarget")

    assert (target["status"], target["reason"]) == ("True", "DeletionByTaintManager")
    assert target["message"] == "Taint manager: deleting due to NoExecute taint"


async def test_a_taint_that_goes_in_time_is_forgiven() -> None:
    async with running_controllers(node="a") as registry:
        add_pod(registry, "patient", node="a", **tolerating(60))
        await settle()
        for taints in ([TAINT], [], [TAINT]):
            taint(registry, *taints)
            await settle(40)

        assert names(registry, PODS) == ["patient"]


async def test_a_pod_that_comes_to_a_tainted_node_is_driven_away() -> None:
    async with running_controllers() as registry:
        add_node(registry, "a", spec={"taints": [TAINT]})
        await settle()
        add_pod(registry, "x", node="a")
        await settle()

        assert names(registry, PODS) == []


async def test_pods_stay_five_minutes_on_a_node_that_does_not_answer() -> None:
    """By the tolerations that every pod gets."""
    async with running_controllers(node="a") as registry:
        add_pod(registry, "x", node="a")
        await settle()
        say_ready(registry, NODES, "a", "Unknown")
        await settle(295)
        before = "deletionTimestamp" in registry.get(PODS, "default", "x")["metadata"]
        await settle(10)

        assert (before, "deletionTimestamp" in registry.get(PODS, "default", "x")["metadata"]) == (False, True)


@cases(
    "tolerations, seconds",
    ("none", [], 0),
    ("not all taints", [("a", None)], 0),
    ("forever", [("a", None), ("b", None)], None),
    ("one for a while", [("a", 30), ("b", None)], 30),
    ("the shortest counts", [("a", 30), ("b", 20)], 20),
    ("less than nothing is nothing", [("a", 30), ("b", -5)], 0),
    ("the first that covers a taint counts", [("", 40), ("a", None), ("b", 10)], 40),
)
def test_shortest_toleration_limits_how_long_a_pod_stays(
    tolerations: list[tuple[str, int | None]], seconds: int | None
) -> None:
    taints = [NodeTaint(key=key, effect="NoExecute") for key in ("a", "b")]
    using = [PatientToleration(key=key, operator="Exists", toleration_seconds=limit) for key, limit in tolerations]

    assert patience(taints, using) == seconds
