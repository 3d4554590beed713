"""Why pods wait, in groups: one question for a cluster in which hundreds do."""

from extender.answers.parts import PodName
from extender.answers.pending import PendingResource, pending
from extender.answers.redaction import redacted
from extender.answers.types import Queue, QueuePlace, ReasonCount

CPU = (
    "0/9 nodes are available: {} Insufficient cpu, {} node(s) had untolerated taint(s). preemption: 0/9 nodes are "
    "available: 9 No."
)
CLAIM = '0/9 nodes are available: persistentvolumeclaim "{}" not found. not found'


def waiting(
    name: str, message: str = "", *, workload: str = "", namespace: str = "shop", **fields: object
) -> QueuePlace:
    pod = PodName(namespace=namespace, name=name, priority=len(name))
    return QueuePlace(pod=pod, queue="unschedulable", message=message, workload=workload, **fields)  # type: ignore[arg-type]


def in_all(*places: QueuePlace) -> Queue:
    return Queue(items=places, counts={"unschedulable": len(places)})


def test_pods_that_wait_for_the_same_reasons_are_one_group_however_many_nodes_each_names() -> None:
    answer = pending(
        in_all(
            waiting("web-1", CPU.format(5, 4), workload="Deployment/web", since="2026-01-01T12:00:00Z"),
            waiting("web-22", CPU.format(7, 2), workload="Deployment/web", since="2026-01-01T11:00:00Z"),
            waiting("alone", CPU.format(7, 2)),
            waiting("db-0", CLAIM.format("data-0"), workload="StatefulSet/db"),
            waiting("db-1", CLAIM.format("data-1"), workload="StatefulSet/db"),
        )
    )

    assert (answer.pods, [(group.pods, group.reason) for group in answer.reasons]) == (
        5,
        [(3, "Insufficient cpu, node(s) had untolerated taint(s)"), (2, 'persistentvolumeclaim "…" not found')],
    )
    cpu, _ = answer.reasons
    assert cpu.nodes == (
        ReasonCount(reason="Insufficient cpu", nodes=7),
        ReasonCount(reason="node(s) had untolerated taint(s)", nodes=4),
    )
    web, alone = cpu.workloads
    assert (web.namespace, web.workload, web.since) == ("shop", "Deployment/web", "2026-01-01T11:00:00Z")
    assert (web.pods, web.priority) == (2, 6)
    assert [pod.name for pod in web.first] == ["web-1", "web-22"]
    assert (alone.workload, alone.pods) == ("", 1)


def test_a_lack_of_resources_is_named_before_what_keeps_the_pod_from_other_nodes() -> None:
    answer = pending(
        in_all(waiting("a", "0/9 nodes are available: 1 Insufficient cpu, 8 node(s) had untolerated taint(s)."))
    )

    assert answer.reasons[0].reason == "Insufficient cpu, node(s) had untolerated taint(s)"


def test_pods_without_refusing_nodes_are_grouped_by_their_reason() -> None:
    gated = QueuePlace(
        pod=PodName("shop", "a"), queue="gated", gated_by="SchedulingGates", message="Scheduling is blocked"
    )
    new = QueuePlace(pod=PodName("shop", "b"), queue="active")
    other = QueuePlace(pod=PodName("shop", "c"), queue="unschedulable", refused_by=("NodePorts", "NodeAffinity"))

    answer = pending(in_all(gated, new, other, waiting("d")))

    assert {group.reason: group.pods for group in answer.reasons} == {
        "gated by SchedulingGates": 1, "not tried yet": 1, "refused by NodePorts, NodeAffinity": 1,
        "no reason is known": 1,
    }  # fmt: skip
    assert all(group.nodes == () for group in answer.reasons)


def test_numbers_within_a_reason_are_no_numbers_of_nodes() -> None:
    answer = pending(in_all(waiting("a", "0/9 nodes are available: the pod demands 70000 bytes, more than 65536 are.")))

    assert [(group.reason, group.nodes) for group in answer.reasons] == [
        ("the pod demands 70000 bytes, more than 65536 are", ())
    ]


def test_the_resource_that_most_pods_lack_is_the_first() -> None:
    gpu = "0/9 nodes are available: 8 Insufficient nvidia.com/gpu, {} Insufficient cpu."

    full = "0/9 nodes are available: 9 Too many pods."
    answer = pending(
        in_all(
            waiting("a", gpu.format(1)), waiting("b", gpu.format(1)), waiting("c", CPU.format(3, 1)), waiting("d", full)
        )
    )

    assert [(lack.resource, lack.pods) for lack in answer.lacking] == [("cpu", 3), ("nvidia.com/gpu", 2), ("pods", 1)]
    assert pending(in_all(waiting("a", gpu.format(1)))).lacking[0] == PendingResource(resource="nvidia.com/gpu", pods=1)


def test_pods_of_other_namespaces_are_counted_without_names() -> None:
    queue = in_all(
        waiting("web-1", CPU.format(5, 4), workload="Deployment/web"),
        waiting("vault-0", CPU.format(5, 4), workload="StatefulSet/vault", namespace="bank"),
        waiting("ledger-0", CLAIM.format("ledger"), workload="StatefulSet/ledger", namespace="bank"),
    )

    answer = pending(redacted(queue, {"shop"}))

    assert [(workload.namespace, workload.workload, workload.pods, len(workload.first)) for reason in answer.reasons for workload in reason.workloads] == [
        ("", "", 1, 0), ("shop", "Deployment/web", 1, 1), ("", "", 1, 0),
    ]  # fmt: skip
    assert not any(name in str(answer) for name in ("vault", "ledger", "bank"))


def test_with_very_many_all_are_counted() -> None:
    assert pending(Queue(items=(waiting("a"),), counts={"unschedulable": 7000, "active": 1})).pods == 7001
