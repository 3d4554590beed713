"""DynamicResources after a node was chosen: PreBind writes and waits for drivers, Unreserve withdraws."""

import asyncio
from collections.abc import Callable
from typing import Any

from extender.engine.framework import (
    PLUGIN_METRICS,
    SKIP,
    SUCCESS,
    ApiCall,
    CallConflict,
    CallError,
    CallNotFound,
    PluginMetrics,
    RecordEvent,
    error,
    unresolvable,
)
from extender.engine.framework.storage_calls import ProtectResourceClaim, ReadResourceClaim, ReserveResourceClaim
from extender.testing import make_framework, virtual_time
from extender.values.objects.decoding import replaced
from extender.values.objects.devices import ResourceClaim
from tests.extender.engine.plugins.reserved_claims import ATTACHED, Scheduler, allocated, claim, make
from tests.kit.devices import DRIVER, allocation_of, make_slice, pod_with
from tests.kit.tables import cases

RESERVING = "add allocation and reservation to claim default/c"


def test_an_allocation_is_written_with_a_finalizer_a_time_and_a_reservation() -> None:
    """The finalizer comes first: an allocated claim must not vanish."""
    scheduler = Scheduler(claim())

    status, _ = scheduler.bind()

    written_claim = scheduler.cached_claim()
    assert status == SUCCESS
    assert scheduler.kinds_written() == [ProtectResourceClaim, ReserveResourceClaim]
    assert written_claim.metadata.finalizers == ("resource.kubernetes.io/delete-protection",)
    assert written_claim.status.allocation is not None
    assert [result.device for result in written_claim.status.allocation.devices.results] == ["gpu-1"]
    assert written_claim.status.allocation.allocation_timestamp == "2026-01-01T00:00:00Z"
    assert [(one.resource, one.name, one.uid) for one in written_claim.status.reserved_for] == [("pods", "p", "p")]


def test_an_allocated_claim_is_only_reserved() -> None:
    scheduler = Scheduler(claim(**allocated("another")))

    status, _ = scheduler.bind()

    (call,) = scheduler.writes.calls
    assert status == SUCCESS
    assert isinstance(call, ReserveResourceClaim)
    assert call.allocation is None
    assert [one.uid for one in scheduler.cached_claim().status.reserved_for] == ["another", "p"]


def test_a_claim_that_is_reserved_already_is_not_written() -> None:
    scheduler = Scheduler(claim(**allocated("p")))

    assert scheduler.bind() == (SUCCESS, 0)
    assert scheduler.writes.calls == []


def test_a_finalizer_that_is_there_is_not_written_again() -> None:
    """As after an attempt that was interrupted."""
    scheduler = Scheduler(claim(finalizers=("resource.kubernetes.io/delete-protection",)))

    scheduler.bind()

    assert scheduler.kinds_written() == [ReserveResourceClaim]


def test_pods_without_claims_skip_pre_bind() -> None:
    scheduler = Scheduler()
    state, _ = scheduler.pre_filter(pod_with())

    pre_flight = scheduler.plugin.pre_bind_pre_flight(state, pod_with(), "n")

    assert pre_flight.status == SKIP
    assert asyncio.run(scheduler.plugin.pre_bind(state, pod_with(), "n")) == SUCCESS


def test_pods_with_claims_do_not_skip_pre_bind() -> None:
    scheduler = Scheduler(claim())
    state, _ = scheduler.reserve(pod_with("c"))

    assert scheduler.plugin.pre_bind_pre_flight(state, pod_with("c"), "n").status == SUCCESS


def test_a_claim_that_changed_harmlessly_is_read_and_written_again() -> None:
    scheduler = Scheduler(claim())
    scheduler.writes.fail(ReserveResourceClaim, CallConflict("newer"))

    status, _ = scheduler.bind()

    assert status == SUCCESS
    kinds = [ProtectResourceClaim, ReserveResourceClaim, ReadResourceClaim, ReserveResourceClaim]
    assert scheduler.kinds_written() == kinds


def test_a_claim_that_changes_all_the_time_is_given_up() -> None:
    scheduler = Scheduler(claim())
    for _ in range(5):
        scheduler.writes.fail(ReserveResourceClaim, CallConflict("newer"))

    status, _ = scheduler.bind()

    assert status == error(f"{RESERVING}: newer")
    assert scheduler.kinds_written().count(ReserveResourceClaim) == 5


GOING = claim(version="2")
GOING = replaced(GOING, metadata=replaced(GOING.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))


@cases(
    "meanwhile, message",
    (
        "others were faster",
        claim(version="2", allocation=allocation_of("gpu-2")),
        "claim default/c got allocated elsewhere in the meantime",
    ),
    ("it is going away", GOING, "claim default/c got deleted in the meantime"),
)
def test_changes_of_the_claim_meanwhile_are_errors(meanwhile: ResourceClaim, message: str) -> None:
    scheduler = Scheduler(claim())
    state, _ = scheduler.reserve(pod_with("c"))
    scheduler.show(meanwhile)

    assert virtual_time.run(scheduler.plugin.pre_bind(state, pod_with("c"), "n")) == error(message)


def test_a_claim_that_another_scheduler_gave_the_same_device_meanwhile_is_shared() -> None:
    """kube-scheduler returns an error, and tries the pod again (kubernetes#140053)."""
    scheduler = Scheduler(claim())
    state, _ = scheduler.reserve(pod_with("c"))
    scheduler.show(claim(version="2", **allocated("another")))

    status = virtual_time.run(scheduler.plugin.pre_bind(state, pod_with("c"), "n"))

    assert status == SUCCESS
    assert [one.uid for one in scheduler.cached_claim().status.reserved_for] == ["another", "p"]


@cases(
    "kind, refusal, message",
    ("finalizer", ProtectResourceClaim, CallError("no"), "add finalizer to claim default/c: no"),
    ("allocation", ReserveResourceClaim, CallError("no"), f"{RESERVING}: no"),
    ("gone", ReserveResourceClaim, CallNotFound("gone"), f"{RESERVING}: gone"),
)
def test_refusals_name_the_write(kind: type[ApiCall[Any]], refusal: CallError, message: str) -> None:
    scheduler = Scheduler(claim())
    scheduler.writes.fail(kind, refusal)

    status, _ = scheduler.bind()

    assert status == error(message)


def test_a_claim_that_cannot_be_read_after_a_conflict_is_an_error() -> None:
    scheduler = Scheduler(claim())
    scheduler.writes.fail(ProtectResourceClaim, CallConflict("newer"))
    scheduler.writes.fail(ReadResourceClaim, CallNotFound("gone"))

    status, _ = scheduler.bind()

    assert status == error("get updated claim default/c after conflict: gone")


def test_256_pods_can_share_a_claim_and_no_more() -> None:
    scheduler = Scheduler(claim(**allocated(*(f"p{number}" for number in range(256)))))

    status, _ = scheduler.bind()

    assert status == error(
        'add reservation to claim default/c: ResourceClaim.resource.k8s.io "c" is invalid: '
        "status.reservedFor: Too many: 257: must have at most 256 items"
    )


def test_between_reserve_and_pre_bind_no_other_pod_gets_claim_or_device() -> None:
    scheduler = Scheduler(claim("c"), claim("d"), claim("e"))
    scheduler.reserve(pod_with("c"))
    scheduler.reserve(pod_with("d", name="q"))

    _, same_claim = scheduler.pre_filter(pod_with("c", name="r"))
    _, no_device = scheduler.reserve(pod_with("e", name="r"))

    in_process = unresolvable("resource claim default/c is in the process of being allocated")
    assert same_claim == in_process.by("DynamicResources")
    assert no_device == error("claim allocation not found for node")


def test_a_written_claim_counts_before_the_watch_shows_it() -> None:
    """The next pods share the claim, and do not get its device."""
    scheduler = Scheduler(claim("c"), claim("d"), late=True, slices=make_slice("gpu-1", nodeName="n"))
    scheduler.bind()
    assert scheduler.cached_claim().status.allocation is None

    _, no_device = scheduler.reserve(pod_with("d", name="q"))
    sharing, status = scheduler.reserve(pod_with("c", name="r"))

    assert no_device == error("claim allocation not found for node")
    assert status == SUCCESS
    assert virtual_time.run(scheduler.plugin.pre_bind(sharing, pod_with("c", name="r"), "n")) == SUCCESS


def test_two_profiles_share_pending_allocations() -> None:
    """The API server would not notice a device that is given away twice."""
    shared: dict[Any, Any] = {}
    first, second = (Scheduler(claim("c"), claim("d"), slices=make_slice("gpu-1", nodeName="n")) for _ in range(2))
    second.cache = first.cache
    first.framework, second.framework = (
        make_framework(make, dispatcher=first.writes, live=first.cache, shared=shared) for _ in range(2)
    )
    first.reserve(pod_with("c"))

    _, status = second.reserve(pod_with("d", name="q"))

    assert status == error("claim allocation not found for node")


# Devices that have to be got ready.


def waits(scheduler: Scheduler) -> dict[tuple[str, ...], int]:
    """(profile, driver, how it ended) -> how often."""
    return scheduler.framework.shared(PLUGIN_METRICS, PluginMetrics).device_waits.counts()


def test_the_pod_waits_until_the_driver_reports_the_device_ready() -> None:
    """It is looked at once in five seconds, and people are told."""
    scheduler = Scheduler(claim(), slices=ATTACHED)

    status, seconds = scheduler.bind(later=(12.0, lambda: scheduler.device_says("ready")))

    (event,) = [call for call in scheduler.writes.calls if isinstance(call, RecordEvent)]
    assert (status, seconds) == (SUCCESS, 15.0)
    assert (event.type, event.reason, event.action) == ("Normal", "BindingConditionsPending", "Scheduling")
    assert event.note == "waiting for binding conditions for device on node n"
    assert (event.regarding.name, event.reporting_controller) == ("p", "default-scheduler")
    assert waits(scheduler) == {("default-scheduler", DRIVER, "success"): 1}


@cases(
    "happens, message, outcome",
    (
        "the driver failed",
        lambda scheduler: scheduler.device_says("broken", reason="NoCable", message='port "1"'),
        'claim c binding failed: reason=NoCable, message="port \\"1\\""',
        "failure",
    ),
    (
        "the claim went",
        lambda scheduler: scheduler.cache.objects.resource_claims.clear(),
        'could not find ResourceClaim "default/c"',
        "error",
    ),
    (
        "it takes too long",
        lambda scheduler: scheduler.device_says("ready", "False"),
        "device binding timeout",
        "timeout",
    ),
)
def test_waiting_ends_with_a_failure_or_a_timeout(
    happens: Callable[[Scheduler], None], message: str, outcome: str
) -> None:
    scheduler = Scheduler(claim(), slices=ATTACHED)

    status, _ = scheduler.bind(later=(7.0, lambda: happens(scheduler)))

    assert status == error(message)
    assert waits(scheduler) == {("default-scheduler", DRIVER, outcome): 1}


def test_time_that_passed_before_counts() -> None:
    """The claim was allocated longer ago than a driver may take."""
    old = allocated()
    old["allocation"]["allocationTimestamp"] = "2025-12-31T23:58:30Z"
    old["allocation"]["devices"]["results"][0]["bindingConditions"] = ["ready"]
    scheduler = Scheduler(claim(**old))
    state, _ = scheduler.reserve(pod_with("c"))

    assert virtual_time.run(scheduler.plugin.pre_bind(state, pod_with("c"), "n")) == error("claim c binding timeout")
