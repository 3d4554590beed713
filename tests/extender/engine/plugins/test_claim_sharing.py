"""Pods of a group share a claim that none of them has written yet.

Upstream: framework/plugins/dynamicresources, dynamicresources_test.go, dra_manager_test.go (v1.36.2, kubernetes#137647,
#139418, #140269).
"""

import asyncio
from typing import Any

import pytest

from extender.engine.framework import SUCCESS, CallConflict, CallError, CallUnknown, Status, error, unresolvable
from extender.engine.framework.storage_calls import ProtectResourceClaim, ReserveResourceClaim
from extender.engine.runtime.cycle import Cycle
from extender.values.objects.pod import Pod
from tests.extender.engine.plugins.reserved_claims import Scheduler, claim
from tests.kit.devices import Manifest, allocation_of, make_claim, make_device, make_slice, pod_with
from tests.kit.tables import cases

IN_PROCESS = unresolvable("resource claim default/c is in the process of being allocated").by("DynamicResources")
ONE_DEVICE = make_slice("gpu-1", nodeName="n")


def group_of(scheduler: Scheduler, number: int) -> list[tuple[Cycle, Pod]]:
    """Pods of a group that are reserved, one after the other in the cycle of their group."""
    reserved: list[tuple[Cycle, Pod]] = []
    for place in range(number):
        pod = pod_with("c", name=f"g{place}")
        cycle, status = scheduler.reserve(pod, after=frozenset(one.uid for _, one in reserved))
        assert status == SUCCESS
        reserved.append((cycle, pod))
    return reserved


def users(scheduler: Scheduler) -> list[str]:
    return sorted(one.uid for one in scheduler.cached_claim().status.reserved_for)


async def bound(scheduler: Scheduler, *members: tuple[Cycle, Pod]) -> list[Status]:
    """What PreBind says to each of them, at the same time; those that failed are unreserved."""

    async def binding_of(cycle: Cycle, pod: Pod) -> Status:
        status = await scheduler.plugin.pre_bind(cycle, pod, "n")
        assert status is not None
        if not status.is_success:
            scheduler.unreserve(cycle, pod)
        return status

    return await asyncio.gather(*(binding_of(*member) for member in members))


# Reserve.


@cases(
    "after",
    ("a pod by itself", None),
    ("a pod of another group, or of the same one in a later cycle", frozenset()),
    ("one that comes after some of those that share it", frozenset({"g0"})),
)
def test_pods_outside_the_cycle_of_the_group_wait_for_the_claim(after: frozenset[str] | None) -> None:
    scheduler = Scheduler(claim())
    group_of(scheduler, 2)

    assert scheduler.pre_filter(pod_with("c", name="late"), after)[1] == IN_PROCESS


def test_a_member_may_need_other_devices_besides() -> None:
    scheduler = Scheduler(claim(), claim("own"))
    group_of(scheduler, 1)

    _, status = scheduler.reserve(pod_with("c", "own", name="g1"), after=frozenset({"g0"}))

    assert status == SUCCESS


def test_the_devices_are_free_once_the_last_member_has_let_go() -> None:
    """In whatever order, and however often one of them does."""
    scheduler = Scheduler(claim(), claim("d"), slices=ONE_DEVICE)
    first, second = group_of(scheduler, 2)

    scheduler.unreserve(*first)
    scheduler.unreserve(*first)
    still_held = scheduler.reserve(pod_with("d", name="q"))[1]
    scheduler.unreserve(*second)

    assert still_held == error("claim allocation not found for node")
    assert scheduler.reserve(pod_with("d", name="q"))[1] == SUCCESS


def test_a_group_that_was_tried_is_reserved_for_good_with_the_same_devices() -> None:
    """Although the member that chose them has fallen out."""
    scheduler = Scheduler(claim(), slices=ONE_DEVICE)
    first, second = group_of(scheduler, 2)
    for member in (second, first):
        scheduler.unreserve(*member)

    status = scheduler.framework.plugins.reserve[0].reserve(*second, "n")

    assert status == SUCCESS
    assert scheduler.reserve(pod_with("d", name="q"))[1] != SUCCESS


async def test_a_claim_that_a_member_has_written_is_no_longer_pending() -> None:
    """kubernetes#140269: the last member of a group reserves after the first has bound."""
    scheduler = Scheduler(claim())
    first, second = group_of(scheduler, 2)
    scheduler.unreserve(*second)
    await bound(scheduler, first)

    status = scheduler.framework.plugins.reserve[0].reserve(*second, "n")

    assert status == SUCCESS
    assert scheduler.pre_filter(pod_with("c", name="another"))[1] == SUCCESS
    assert await bound(scheduler, second) == [SUCCESS]
    assert users(scheduler) == ["g0", "g1"]


def test_a_claim_that_others_have_allocated_meanwhile_is_not_reserved() -> None:
    scheduler = Scheduler(claim())
    _, second = group_of(scheduler, 2)
    scheduler.show(claim(version="2", allocation=allocation_of("gpu-2")))

    status = scheduler.framework.plugins.reserve[0].reserve(*second, "n")

    assert status == error("claim default/c got allocated elsewhere in the meantime")


# PreBind.


@cases("late", ("watched at once", False), ("the watch is late", True))
@pytest.mark.parametrize("number", [2, 3, 20])
async def test_one_member_writes_the_allocation_and_the_others_add_themselves(number: int, late: bool) -> None:
    """None of them has to try again."""
    scheduler = Scheduler(claim(), slices=ONE_DEVICE, late=late)
    members = group_of(scheduler, number)

    statuses = await bound(scheduler, *members)
    scheduler.writes.deliver()

    assert statuses == [SUCCESS] * number
    assert scheduler.kinds_written() == [ProtectResourceClaim, *[ReserveResourceClaim] * number]
    allocations = [call.allocation for call in scheduler.writes.calls if isinstance(call, ReserveResourceClaim)]
    assert allocations[0] is not None
    assert allocations[1:] == [None] * (number - 1)
    assert users(scheduler) == sorted(pod.uid for _, pod in members)


@pytest.mark.parametrize("first", [0, 1])
async def test_whichever_member_comes_first_writes_the_allocation(first: int) -> None:
    scheduler = Scheduler(claim(), slices=ONE_DEVICE)
    members = group_of(scheduler, 2)

    statuses = await bound(scheduler, members[first]) + await bound(scheduler, members[1 - first])

    assert statuses == [SUCCESS, SUCCESS]
    assert users(scheduler) == ["g0", "g1"]


@cases("failure", ("refused", CallError("no")), ("whether it was written is not known", CallUnknown("no answer")))
async def test_a_member_that_fails_leaves_the_devices_to_the_others(failure: CallError) -> None:
    """kubernetes#139418: its share counts once, although PreBind fails and Unreserve follows."""
    scheduler = Scheduler(claim(), claim("d"), slices=ONE_DEVICE)
    first, *rest = group_of(scheduler, 3)
    scheduler.writes.fail(ReserveResourceClaim, failure)

    (failed,) = await bound(scheduler, first)
    meanwhile = scheduler.reserve(pod_with("d", name="q"))[1]
    statuses = await bound(scheduler, *rest)
    await asyncio.sleep(1)

    assert not failed.is_success
    assert meanwhile == error("claim allocation not found for node")
    assert statuses == [SUCCESS, SUCCESS]
    assert users(scheduler) == ["g1", "g2"]


async def test_a_member_writes_the_allocation_again_if_it_was_taken_back_meanwhile() -> None:
    """The first was bound and deleted before the second got to PreBind; no other pod could get the device."""
    scheduler = Scheduler(claim(), claim("d"), slices=ONE_DEVICE)
    first, second = group_of(scheduler, 2)
    await bound(scheduler, first)
    scheduler.show(claim(version="5000"))

    no_device = scheduler.reserve(pod_with("d", name="q"))[1]
    statuses = await bound(scheduler, second)

    assert no_device == error("claim allocation not found for node")
    assert statuses == [SUCCESS]
    assert users(scheduler) == ["g1"]


async def test_a_conflict_with_somebody_else_is_tried_again() -> None:
    scheduler = Scheduler(claim(), slices=ONE_DEVICE)
    members = group_of(scheduler, 2)
    scheduler.writes.fail(ReserveResourceClaim, CallConflict("newer"), after=1)

    assert await bound(scheduler, *members) == [SUCCESS, SUCCESS]
    assert users(scheduler) == ["g0", "g1"]


async def test_a_share_of_a_device_counts_once_while_members_of_a_group_bind() -> None:
    """The first has written the claim, and the second still holds it as pending."""
    shared = make_device("gpu-1", allowMultipleAllocations=True, capacity={"memory": {"value": "10Gi"}})

    def part(name: str, memory: str) -> Any:
        capacity: Manifest = {"requests": {"memory": memory}}
        exactly = {"deviceClassName": "any", "allocationMode": "ExactCount", "count": 1, "capacity": capacity}
        return make_claim(name, {"name": "r", "exactly": exactly})

    scheduler = Scheduler(part("c", "6Gi"), part("d", "4Gi"), part("e", "1Gi"), slices=make_slice(shared, nodeName="n"))
    first, second = group_of(scheduler, 2)
    await bound(scheduler, first)

    fits = scheduler.reserve(pod_with("d", name="q"))[1]
    is_full = scheduler.reserve(pod_with("e", name="r"))[1]

    assert fits == SUCCESS
    assert is_full == error("claim allocation not found for node")
    assert await bound(scheduler, second) == [SUCCESS]
