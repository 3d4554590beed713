from extender.engine.framework import Code
from extender.engine.plugins.queueing import SchedulingGates
from extender.testing import make_pod


def test_pod_without_gates_passes_pre_enqueue() -> None:
    status = SchedulingGates().pre_enqueue(make_pod().obj())

    assert status.is_success


def test_a_gated_pod_waits_for_all_its_gates() -> None:
    status = SchedulingGates().pre_enqueue(make_pod().gate("quota.example.com/ok").gate("b").obj())

    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.message == "waiting for scheduling gates: [quota.example.com/ok b]"
