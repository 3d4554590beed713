"""What a change of a pod or a node is told as."""

import pytest

from extender.engine.scheduler.event_handlers import node_scheduling_properties_change, pod_scheduling_properties_change
from extender.testing import NodeBuilder, PodBuilder, make_node, make_pod
from extender.values.objects.decoding import replaced
from extender.values.objects.meta import Condition
from extender.values.objects.pod import (
    ContainerStatus,
    PodExtendedResourceClaimStatus,
    PodResourceClaimStatus,
    ResourceRequirements,
)
from tests.kit.tables import cases

ONE_CPU, TWO_CPUS = make_pod().req(cpu="1"), make_pod().req(cpu="2")
INFEASIBLE = Condition(type="PodResizePending", reason="Infeasible")
SMALL = make_node().capacity(cpu="1")


def running(cpu: str) -> dict[str, object]:
    """The status of a pod that runs with so much."""
    container = ContainerStatus(name="c0", resources=ResourceRequirements(requests={"cpu": cpu}))
    return {"container_statuses": [container]}


@cases(
    "old, new, events",
    ("something", make_pod(), make_pod().annotation(a="b"), ["Update"]),
    ("a label came", make_pod(), make_pod().label(app="web"), ["UpdatePodLabel"]),
    ("a label has another value", make_pod().label(app="web"), make_pod().label(app="db"), ["UpdatePodLabel"]),
    ("less is asked for", TWO_CPUS, ONE_CPU, ["UpdatePodScaleDown"]),
    ("no more of it", make_pod().req(cpu="2", memory="1"), TWO_CPUS, ["UpdatePodScaleDown"]),
    ("more is asked for", ONE_CPU, TWO_CPUS, ["Update"]),
    ("the same, spelled otherwise", ONE_CPU, make_pod().req(cpu="1000m"), ["Update"]),
    ("unreadable: perhaps less", ONE_CPU, make_pod().req(cpu="?"), ["UpdatePodScaleDown"]),
    ("one gate of two is gone", make_pod().gate("a").gate("b"), make_pod().gate("a"), ["Update"]),
    ("the last gate is gone", make_pod().gate("a"), make_pod(), ["UpdatePodSchedulingGatesEliminated"]),
    ("a toleration came", make_pod(), make_pod().toleration("t"), ["UpdatePodToleration"]),
    (
        "all of it, in this order",
        make_pod().gate("a").req(cpu="2"),
        ONE_CPU.label(app="web").toleration("t"),
        ["UpdatePodLabel", "UpdatePodScaleDown", "UpdatePodSchedulingGatesEliminated", "UpdatePodToleration"],
    ),
)
def test_changes_of_a_pod(old: PodBuilder, new: PodBuilder, events: list[str]) -> None:
    """Told of the pod while it waits, and of the pod on its node alike."""
    waiting = pod_scheduling_properties_change(old.obj(), new.obj())
    on_node = pod_scheduling_properties_change(old.node("n").obj(), new.node("n").obj())

    assert [event.label for event in waiting] == [f"UnschedulablePod{event}" for event in events]
    assert [event.label for event in on_node] == [f"AssignedPod{event}" for event in events]


@pytest.mark.parametrize(
    "status",
    [
        {"resource_claim_statuses": [PodResourceClaimStatus(name="gpu", resource_claim_name="web-gpu")]},
        {"extended_resource_claim_status": PodExtendedResourceClaimStatus(resource_claim_name="web-gpu")},
    ],
    ids=["from a template", "for extended resources"],
)
def test_a_claim_was_made_for_a_pod(status: dict[str, object]) -> None:
    old = make_pod().obj()
    new = replaced(old, status=replaced(old.status, **status))

    events = pod_scheduling_properties_change(old, new)

    assert [event.label for event in events] == ["UnschedulablePodUpdatePodGeneratedResourceClaim"]


@cases(
    "before, after, event",
    ("it runs with less", running("2"), running("1"), "UpdatePodScaleDown"),
    ("it runs with more", running("1"), running("2"), "Update"),
    (
        "the resize that was asked for cannot be done",
        running("500m"),
        running("500m") | {"conditions": [INFEASIBLE]},
        "UpdatePodScaleDown",
    ),
    ("it is ready", {}, {"conditions": [Condition(type="Ready", status="True")]}, "Update"),
)
def test_resource_change_reported_by_the_kubelet_is_a_scheduling_event(
    before: dict[str, object], after: dict[str, object], event: str
) -> None:
    pod = make_pod().node("n").req(cpu="1").obj()

    old, new = (replaced(pod, status=replaced(pod.status, **status)) for status in (before, after))

    assert [change.label for change in pod_scheduling_properties_change(old, new)] == [f"AssignedPod{event}"]


def ready(status: str, reason: str = "") -> NodeBuilder:
    node = make_node().obj()
    condition = Condition(type="Ready", status=status, reason=reason)
    return NodeBuilder(replaced(node, status=replaced(node.status, conditions=[condition])))


def with_annotation(value: str) -> NodeBuilder:
    node = make_node().obj()
    return NodeBuilder(replaced(node, metadata=replaced(node.metadata, annotations={"a": value})))


@cases(
    "old, new, events",
    ("nothing", make_node(), make_node(), []),
    ("a heartbeat", ready("True"), ready("True", "StillFine"), []),
    ("a condition", ready("True"), ready("False"), ["UpdateNodeCondition"]),
    ("a cordon was lifted", make_node().unschedulable(), make_node(), ["UpdateNodeTaint"]),
    ("a cordon: helps no pod", make_node(), make_node().unschedulable(), []),
    ("a taint", make_node(), make_node().taint("t"), ["UpdateNodeTaint"]),
    ("both are told", make_node().unschedulable(), make_node().taint("t"), ["UpdateNodeTaint"] * 2),
    ("another size", SMALL, make_node().capacity(cpu="2"), ["UpdateNodeAllocatable"]),
    ("the same size, spelled otherwise", SMALL, make_node().capacity(cpu="1000m"), []),
    ("unreadable", SMALL, make_node().capacity(cpu="?"), ["UpdateNodeAllocatable"]),
    ("a label", make_node(), make_node().label(zone="a"), ["UpdateNodeLabel"]),
    ("an annotation", make_node(), with_annotation("b"), ["UpdateNodeAnnotation"]),
    ("a feature", make_node(), make_node().declared_features("f"), ["UpdateNodeDeclaredFeature"]),
)
def test_changes_of_a_node(old: NodeBuilder, new: NodeBuilder, events: list[str]) -> None:
    """Most changes of nodes are told as nothing."""
    changes = node_scheduling_properties_change(old.obj(), new.obj())

    assert [event.label for event in changes] == [f"Node{event}" for event in events]
