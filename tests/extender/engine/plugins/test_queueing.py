from extender.engine.framework import Code
from extender.engine.plugins.queueing import PrioritySort, SchedulingGates
from extender.testing import PodBuilder, make_pod
from tests.kit.tables import cases


@cases(
    "waiting, order",
    ("important pods go first, however late they came", [("low", 1, 10.0), ("high", 2, 20.0)], ["high", "low"]),
    ("of equals the one that came first", [("late", 5, 20.0), ("early", 5, 10.0)], ["early", "late"]),
    ("no priority is priority 0", [("low", -1, 0.0), ("none", None, 9.0)], ["none", "low"]),
)
def test_order(waiting: list[tuple[str, int | None, float]], order: list[str]) -> None:
    """The queue goes by priority, then by time of entry."""
    plugin = PrioritySort()

    ordered = sorted(waiting, key=lambda entry: plugin.sort_key(pod_with(entry[0], entry[1]).obj(), entry[2]))

    assert order == [name for name, _, _ in ordered]


def pod_with(name: str, priority: int | None) -> PodBuilder:
    pod = make_pod(name)
    return pod if priority is None else pod.priority(priority)


def test_pod_without_gates_passes_pre_enqueue() -> None:
    status = SchedulingGates().pre_enqueue(make_pod().obj())

    assert status.is_success


def test_a_gated_pod_waits_for_all_its_gates() -> None:
    status = SchedulingGates().pre_enqueue(make_pod().gate("quota.example.com/ok").gate("b").obj())

    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.message == "waiting for scheduling gates: [quota.example.com/ok b]"
