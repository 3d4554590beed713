"""DynamicResources withdraws reservations of a pod, and deallocates claims that keep it off nodes."""

import asyncio

from extender.engine.framework import (
    SUCCESS,
    CallConflict,
    CallError,
    CallUnknown,
    Status,
    error,
    unresolvable,
    unschedulable,
)
from extender.engine.framework.status import NodeStatuses
from extender.engine.framework.storage_calls import (
    DeallocateResourceClaim,
    ProtectResourceClaim,
    ReserveResourceClaim,
    UnreserveResourceClaim,
)
from extender.engine.plugins.dynamic_resources.plugin import DynamicResources
from extender.testing import make_framework
from extender.values.objects.devices import ResourceClaim
from tests.extender.engine.plugins.reserved_claims import Scheduler, allocated, claim
from tests.kit.devices import allocation_of, label_selector, make_slice, pod_with

# Taking back.


async def test_a_written_reservation_is_withdrawn() -> None:
    """What was allocated stays: another pod, or the next attempt, may use it."""
    scheduler = Scheduler(claim())
    pod = pod_with("c")
    state, _ = scheduler.reserve(pod)

    await scheduler.plugin.pre_bind(state, pod, "n")
    scheduler.unreserve(state, pod)
    await asyncio.sleep(1)

    assert scheduler.writes.calls[-1] == UnreserveResourceClaim("default", "c", "c", "p")
    assert scheduler.cached_claim().status.reserved_for == []
    assert scheduler.cached_claim().status.allocation is not None


def test_a_pending_allocation_is_released_without_a_write() -> None:
    scheduler = Scheduler(claim())
    state, _ = scheduler.reserve(pod_with("c"))

    scheduler.unreserve(state, pod_with("c"))

    assert scheduler.writes.calls == []
    assert scheduler.reserve(pod_with("c", name="q"))[1] == SUCCESS


def test_a_failed_write_leaves_nothing_reserved() -> None:
    scheduler = Scheduler(claim())
    scheduler.writes.fail(ProtectResourceClaim, CallError("no"))
    scheduler.bind()

    assert scheduler.reserve(pod_with("c", name="q"))[1] == SUCCESS


async def test_a_cancelled_write_is_withdrawn_and_its_device_reserved_until_then() -> None:
    """A victim of preemption in PreBind: its claim may have been written."""
    scheduler = Scheduler(claim("c"), claim("d"), late=True, slices=make_slice("gpu-1", nodeName="n"))
    pod = pod_with("c")
    state, _ = scheduler.reserve(pod)

    pre_binding = asyncio.ensure_future(scheduler.plugin.pre_bind(state, pod, "n"))
    await asyncio.sleep(0)
    pre_binding.cancel()
    await asyncio.wait([pre_binding])
    scheduler.unreserve(state, pod)
    before = scheduler.reserve(pod_with("d", name="q"))[1]
    await asyncio.sleep(1)

    assert before == error("claim allocation not found for node")
    assert scheduler.reserve(pod_with("d", name="q"))[1] == SUCCESS
    assert scheduler.kinds_written()[-1] is UnreserveResourceClaim


async def test_a_write_whose_response_is_lost_is_withdrawn() -> None:
    scheduler = Scheduler(claim())
    scheduler.writes.fail(ReserveResourceClaim, CallUnknown("no answer"))
    pod = pod_with("c")
    state, _ = scheduler.reserve(pod)

    status = await scheduler.plugin.pre_bind(state, pod, "n")
    scheduler.unreserve(state, pod)
    await asyncio.sleep(1)

    assert status == error("add allocation and reservation to claim default/c: no answer")
    assert scheduler.kinds_written()[-1] is UnreserveResourceClaim


async def test_the_next_attempt_waits_until_the_reservation_is_withdrawn() -> None:
    """The watch still shows the one that is being taken back: believing it, the pod would be bound without one."""
    scheduler = Scheduler(claim(**allocated("p")), late=True)
    pod = pod_with("c")
    first, _ = scheduler.reserve(pod)

    scheduler.unreserve(first, pod)
    second, _ = scheduler.reserve(pod)
    status = await scheduler.plugin.pre_bind(second, pod, "n")
    scheduler.writes.deliver()

    assert status == SUCCESS
    assert [one.uid for one in scheduler.cached_claim().status.reserved_for] == ["p"]


# Deallocation.


def post_filter(scheduler: Scheduler) -> Status:
    """What PostFilter says after the claim kept the pod from the node."""
    pod = pod_with("c")
    state, _ = scheduler.pre_filter(pod)
    not_here = unresolvable("resourceclaim not available on the node").by("DynamicResources")
    refused = NodeStatuses({"n": not_here}, SUCCESS)
    return asyncio.run(scheduler.framework.plugins.post_filter[0].post_filter(state, pod, refused)).status


def elsewhere(*pods: str) -> ResourceClaim:
    allocation = allocation_of("gpu-9", node_selector=label_selector("zone", "b"))
    return claim(**{**allocated(*pods), "allocation": allocation})


def test_a_claim_that_keeps_the_pod_off_a_node_is_deallocated() -> None:
    scheduler = Scheduler(elsewhere("p"))

    status = post_filter(scheduler)

    assert status == unschedulable("deallocation of ResourceClaim completed")
    assert scheduler.writes.calls == [DeallocateResourceClaim("default", "c", "c", "1")]
    assert (scheduler.cached_claim().status.allocation, scheduler.cached_claim().status.reserved_for) == (None, [])


def test_a_claim_with_other_consumers_is_not_deallocated() -> None:
    scheduler = Scheduler(elsewhere("another"))

    assert post_filter(scheduler) == unschedulable("still not schedulable")
    assert scheduler.writes.calls == []


def test_a_refused_deallocation_is_an_error() -> None:
    scheduler = Scheduler(elsewhere())
    scheduler.writes.fail(DeallocateResourceClaim, CallConflict("newer"))

    assert post_filter(scheduler) == error("newer")


def test_without_an_api_server_claims_are_not_bound() -> None:
    framework = make_framework(DynamicResources)
    scheduler = Scheduler(claim())
    scheduler.framework, (scheduler.plugin,) = framework, framework.plugins.pre_bind

    status, _ = scheduler.bind()

    assert status == error("binding resource claims: there is no API server to bind through")
