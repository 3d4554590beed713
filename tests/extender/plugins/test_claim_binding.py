"""DynamicResources after a node was chosen: PreBind writes, waits for drivers, and Unreserve takes back."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from extender.cache import Cache
from extender.config.duration import Duration
from extender.config.plugin_args import DynamicResourcesArgs
from extender.framework import (
    SKIP,
    SUCCESS,
    ApiCall,
    CallConflict,
    CallError,
    CallNotFound,
    CallUnknown,
    CycleState,
    DeallocateResourceClaim,
    Handle,
    ProtectResourceClaim,
    ReadResourceClaim,
    RecordEvent,
    ReserveResourceClaim,
    Status,
    UnreserveResourceClaim,
    error,
    unresolvable,
    unschedulable,
)
from extender.framework.status import NodeStatuses
from extender.objects.decoding import convert, replaced
from extender.objects.devices import ResourceClaim, ResourceClaimStatus
from extender.objects.meta import ApiObject
from extender.objects.pod import Pod, PodResourceClaim
from extender.plugins.dynamic_resources.plugin import DynamicResources
from extender.snapshot import Rows
from extender.testing import make_cache, make_framework, make_node, make_pod, virtual_time
from extender.testing.devices import (
    Manifest,
    allocation_of,
    exactly,
    label_selector,
    make_claim,
    make_device,
    make_device_class,
    make_slice,
)
from extender.testing.writes import RecordedWrites

CLASS = make_device_class("any")
GPU = make_slice("gpu-1", "gpu-2", nodeName="n")
ATTACHED = make_slice(make_device("gpu-1", bindingConditions=["ready"], bindingFailureConditions=["broken"]), nodeName="n")


def make(_: object, handle: Handle) -> DynamicResources:
    """The plugin, with less patience than usual."""
    return DynamicResources(DynamicResourcesArgs(binding_timeout=Duration(60 * 10**9)), handle)


def pod_with(*claims: str, name: str = "p") -> Pod:
    pod = make_pod(name).uid(name).obj()
    return replaced(pod, spec=replaced(pod.spec, resource_claims=[PodResourceClaim(name=c, resource_claim_name=c) for c in claims]))


def claim(name: str = "c", *, version: str = "1", finalizers: tuple[str, ...] = (), **status: Any) -> ResourceClaim:
    return make_claim(name, exactly(1), metadata={"resourceVersion": version, "finalizers": list(finalizers)}, **status)


def allocated(*pods: str, **more: Any) -> Manifest:
    """Status of a claim that has gpu-1 and is reserved for these pods."""
    reserved_for = [{"resource": "pods", "name": pod, "uid": pod} for pod in pods]
    return {"allocation": allocation_of("gpu-1", allocationTimestamp="2026-01-01T00:00:00Z", **more), "reservedFor": reserved_for}


class Scheduler:
    """One profile with DynamicResources and one node `n`."""

    def __init__(self, *objects: ApiObject, late: bool = False, slices: ApiObject = GPU) -> None:
        self.cache: Cache = make_cache(make_node("n").label(zone="a"), objects=(CLASS, slices, *objects))
        self.writes = RecordedWrites(self.cache, late=late)
        self.framework = make_framework(make, dispatcher=self.writes, live=self.cache)
        (self.plugin,) = self.framework.plugins.pre_bind

    def pre_filter(self, pod: Pod) -> tuple[CycleState, Status]:
        state = self.framework.begin_cycle(self.cache.update_snapshot())
        return state, self.framework.run_pre_filter_plugins(state, pod).status

    def reserve(self, pod: Pod) -> tuple[CycleState, Status]:
        state, status = self.pre_filter(pod)
        if not status.is_success:
            return state, status
        self.framework.run_filter_plugins(state, pod, Rows.of(self.framework.snapshot))
        return state, self.framework.plugins.reserve[0].reserve(state, pod, "n")

    def unreserve(self, state: CycleState, pod: Pod) -> None:
        self.framework.plugins.reserve[0].unreserve(state, pod, "n")

    def shown(self, name: str = "c") -> ResourceClaim:
        return self.cache.objects.resource_claims[("default", name)]

    def show(self, new: ResourceClaim) -> None:
        self.cache.objects.resource_claims[("default", new.metadata.name)] = new

    def device_says(self, kind: str, status: str = "True", **more: str) -> None:
        """The driver publishes a condition of gpu-1."""
        condition = {"type": kind, "status": status, **more}
        device = {"driver": "gpu.example.com", "pool": "pool", "device": "gpu-1", "conditions": [condition]}
        known = self.shown()
        said = convert(ResourceClaimStatus, {"devices": [device]}).devices
        meta = replaced(known.metadata, resource_version=str(int(known.metadata.resource_version) + 5000))
        self.show(replaced(known, metadata=meta, status=replaced(known.status, devices=said)))

    def bind(self, *claims: str, later: tuple[float, Callable[[], None]] | None = None) -> tuple[Status, float]:
        """What PreBind says to a pod with these claims, and after how many seconds, while something happens in between."""
        pod = pod_with(*claims or ("c",))
        state, status = self.reserve(pod)
        assert status.is_success, status

        async def story() -> tuple[Status, float]:
            loop = asyncio.get_running_loop()
            if later is not None:
                loop.call_at(*later)
            return await self.plugin.pre_bind(state, pod, "n"), loop.time()

        return virtual_time.run(story())

    def kinds_written(self) -> list[type[ApiCall[Any]]]:
        return [type(call) for call in self.writes.calls]


def test_an_allocation_is_written_with_a_finalizer_a_time_and_a_reservation() -> None:
    """
    The finalizer comes first: an allocated claim must not vanish.
    """
    scheduler = Scheduler(claim())

    status, _ = scheduler.bind()

    written = scheduler.shown()
    assert status == SUCCESS
    assert scheduler.kinds_written() == [ProtectResourceClaim, ReserveResourceClaim]
    assert written.metadata.finalizers == ("resource.kubernetes.io/delete-protection",)
    assert written.status.allocation is not None
    assert [result.device for result in written.status.allocation.devices.results] == ["gpu-1"]
    assert written.status.allocation.allocation_timestamp == "2026-01-01T00:00:00Z"
    assert [(one.resource, one.name, one.uid) for one in written.status.reserved_for] == [("pods", "p", "p")]


def test_an_allocated_claim_is_only_reserved() -> None:
    scheduler = Scheduler(claim(**allocated("another")))

    status, _ = scheduler.bind()

    (call,) = scheduler.writes.calls
    assert status == SUCCESS
    assert isinstance(call, ReserveResourceClaim)
    assert call.allocation is None
    assert [one.uid for one in scheduler.shown().status.reserved_for] == ["another", "p"]


def test_a_claim_that_is_reserved_already_is_not_written() -> None:
    scheduler = Scheduler(claim(**allocated("p")))

    assert scheduler.bind() == (SUCCESS, 0)
    assert scheduler.writes.calls == []


def test_a_finalizer_that_is_there_is_not_written_again() -> None:
    """
    As after an attempt that was interrupted.
    """
    scheduler = Scheduler(claim(finalizers=("resource.kubernetes.io/delete-protection",)))

    scheduler.bind()

    assert scheduler.kinds_written() == [ReserveResourceClaim]


def test_pods_without_claims_skip_pre_bind() -> None:
    scheduler = Scheduler()
    state, _ = scheduler.pre_filter(pod_with())

    pre_flight = scheduler.plugin.pre_bind_pre_flight(state, pod_with(), "n")

    assert pre_flight.status == SKIP
    assert asyncio.run(scheduler.plugin.pre_bind(state, pod_with(), "n")) == SUCCESS


def test_pods_with_claims_do_not() -> None:
    scheduler = Scheduler(claim())
    state, _ = scheduler.reserve(pod_with("c"))

    assert scheduler.plugin.pre_bind_pre_flight(state, pod_with("c"), "n").status == SUCCESS


def test_a_claim_that_changed_harmlessly_is_read_and_written_again() -> None:
    scheduler = Scheduler(claim())
    scheduler.writes.fail(ReserveResourceClaim, CallConflict("newer"))

    status, _ = scheduler.bind()

    assert status == SUCCESS
    assert scheduler.kinds_written() == [ProtectResourceClaim, ReserveResourceClaim, ReadResourceClaim, ReserveResourceClaim]


def test_a_claim_that_changes_all_the_time_is_given_up() -> None:
    scheduler = Scheduler(claim())
    for _ in range(5):
        scheduler.writes.fail(ReserveResourceClaim, CallConflict("newer"))

    status, _ = scheduler.bind()

    assert status == error("add allocation and reservation to claim default/c: newer")
    assert scheduler.kinds_written().count(ReserveResourceClaim) == 5


GOING = claim(version="2")
GOING = replaced(GOING, metadata=replaced(GOING.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))


@pytest.mark.parametrize(
    ("meanwhile", "message"),
    [
        pytest.param(
            claim(version="2", **allocated("another")), "claim default/c got allocated elsewhere in the meantime", id="others were faster"
        ),
        pytest.param(GOING, "claim default/c got deleted in the meantime", id="it is going away"),
    ],
)
def test_what_happened_meanwhile_may_be_in_the_way(meanwhile: ResourceClaim, message: str) -> None:
    scheduler = Scheduler(claim())
    state, _ = scheduler.reserve(pod_with("c"))
    scheduler.show(meanwhile)

    status = virtual_time.run(scheduler.plugin.pre_bind(state, pod_with("c"), "n"))

    assert status == error(message)


@pytest.mark.parametrize(
    ("kind", "refusal", "message"),
    [
        pytest.param(ProtectResourceClaim, CallError("no"), "add finalizer to claim default/c: no", id="finalizer"),
        pytest.param(ReserveResourceClaim, CallError("no"), "add allocation and reservation to claim default/c: no", id="allocation"),
        pytest.param(ReserveResourceClaim, CallNotFound("gone"), "add allocation and reservation to claim default/c: gone", id="gone"),
    ],
)
def test_refusals_say_what_was_tried(kind: type[ApiCall[Any]], refusal: CallError, message: str) -> None:
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


def test_between_reserve_and_pre_bind_nobody_else_gets_claim_or_device() -> None:
    scheduler = Scheduler(claim("c"), claim("d"), claim("e"))
    scheduler.reserve(pod_with("c"))
    scheduler.reserve(pod_with("d", name="q"))

    _, same_claim = scheduler.pre_filter(pod_with("c", name="r"))
    _, no_device = scheduler.reserve(pod_with("e", name="r"))

    assert same_claim == unresolvable("resource claim default/c is in the process of being allocated").by("DynamicResources")
    assert no_device == error("claim allocation not found for node")


def test_what_was_written_counts_before_the_watch_shows_it() -> None:
    """
    The next pods share the claim, and do not get its device.
    """
    scheduler = Scheduler(claim("c"), claim("d"), late=True, slices=make_slice("gpu-1", nodeName="n"))
    scheduler.bind()
    assert scheduler.shown().status.allocation is None

    _, no_device = scheduler.reserve(pod_with("d", name="q"))
    sharing, status = scheduler.reserve(pod_with("c", name="r"))

    assert no_device == error("claim allocation not found for node")
    assert status == SUCCESS
    assert virtual_time.run(scheduler.plugin.pre_bind(sharing, pod_with("c", name="r"), "n")) == SUCCESS


def test_two_profiles_share_what_is_on_its_way() -> None:
    """
    The API server would not notice a device that is given away twice.
    """
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


def test_the_pod_waits_until_the_driver_says_that_the_device_is_ready() -> None:
    """
    It is looked at once in five seconds, and people are told.
    """
    scheduler = Scheduler(claim(), slices=ATTACHED)

    status, seconds = scheduler.bind(later=(12.0, lambda: scheduler.device_says("ready")))

    (event,) = [call for call in scheduler.writes.calls if isinstance(call, RecordEvent)]
    assert (status, seconds) == (SUCCESS, 15.0)
    assert (event.type, event.reason, event.action) == ("Normal", "BindingConditionsPending", "Scheduling")
    assert event.note == "waiting for binding conditions for device on node n"
    assert (event.regarding.name, event.reporting_controller) == ("p", "default-scheduler")


@pytest.mark.parametrize(
    ("happens", "message"),
    [
        pytest.param(
            lambda scheduler: scheduler.device_says("broken", reason="NoCable", message='port "1"'),
            'claim c binding failed: reason=NoCable, message="port \\"1\\""',
            id="the driver failed",
        ),
        pytest.param(
            lambda scheduler: scheduler.cache.objects.resource_claims.clear(),
            'could not find ResourceClaim "default/c"',
            id="the claim went",
        ),
        pytest.param(lambda scheduler: scheduler.device_says("ready", "False"), "device binding timeout", id="it takes too long"),
    ],
)
def test_waiting_can_be_in_vain(happens: Callable[[Scheduler], None], message: str) -> None:
    scheduler = Scheduler(claim(), slices=ATTACHED)

    status, _ = scheduler.bind(later=(7.0, lambda: happens(scheduler)))

    assert status == error(message)


def test_time_that_passed_before_counts() -> None:
    """
    The claim was allocated longer ago than a driver may take.
    """
    old = allocated()
    old["allocation"]["allocationTimestamp"] = "2025-12-31T23:58:30Z"  # type: ignore[index]
    old["allocation"]["devices"]["results"][0]["bindingConditions"] = ["ready"]  # type: ignore[index]
    scheduler = Scheduler(claim(**old))
    state, _ = scheduler.reserve(pod_with("c"))

    assert virtual_time.run(scheduler.plugin.pre_bind(state, pod_with("c"), "n")) == error("claim c binding timeout")


# Taking back.


def test_a_reservation_that_was_written_is_taken_back() -> None:
    """
    What was allocated stays: another pod, or the next attempt, may use it.
    """
    scheduler = Scheduler(claim())
    pod = pod_with("c")
    state, _ = scheduler.reserve(pod)

    async def story() -> None:
        await scheduler.plugin.pre_bind(state, pod, "n")
        scheduler.unreserve(state, pod)
        await asyncio.sleep(1)

    virtual_time.run(story())

    assert scheduler.writes.calls[-1] == UnreserveResourceClaim("default", "c", "c", "p")
    assert scheduler.shown().status.reserved_for == []
    assert scheduler.shown().status.allocation is not None


def test_what_was_only_kept_is_given_back_without_a_write() -> None:
    scheduler = Scheduler(claim())
    state, _ = scheduler.reserve(pod_with("c"))

    scheduler.unreserve(state, pod_with("c"))

    assert scheduler.writes.calls == []
    assert scheduler.reserve(pod_with("c", name="q"))[1] == SUCCESS


def test_a_failed_write_leaves_nothing_kept() -> None:
    scheduler = Scheduler(claim())
    scheduler.writes.fail(ProtectResourceClaim, CallError("no"))
    scheduler.bind()

    assert scheduler.reserve(pod_with("c", name="q"))[1] == SUCCESS


def test_a_write_that_was_interrupted_is_taken_back_and_its_device_kept_until_then() -> None:
    """
    A victim of preemption in PreBind: its claim may have been written.
    """
    scheduler = Scheduler(claim("c"), claim("d"), late=True, slices=make_slice("gpu-1", nodeName="n"))
    pod = pod_with("c")
    state, _ = scheduler.reserve(pod)

    async def story() -> tuple[Status, Status]:
        pre_binding = asyncio.ensure_future(scheduler.plugin.pre_bind(state, pod, "n"))
        await asyncio.sleep(0)
        pre_binding.cancel()
        await asyncio.wait([pre_binding])
        scheduler.unreserve(state, pod)
        before = scheduler.reserve(pod_with("d", name="q"))[1]
        await asyncio.sleep(1)
        return before, scheduler.reserve(pod_with("d", name="q"))[1]

    assert virtual_time.run(story()) == (error("claim allocation not found for node"), SUCCESS)
    assert scheduler.kinds_written()[-1] is UnreserveResourceClaim


def test_a_write_whose_answer_is_lost_is_taken_back() -> None:
    scheduler = Scheduler(claim())
    scheduler.writes.fail(ReserveResourceClaim, CallUnknown("no answer"))
    pod = pod_with("c")
    state, _ = scheduler.reserve(pod)

    async def story() -> Status:
        status = await scheduler.plugin.pre_bind(state, pod, "n")
        scheduler.unreserve(state, pod)
        await asyncio.sleep(1)
        return status

    assert virtual_time.run(story()) == error("add allocation and reservation to claim default/c: no answer")
    assert scheduler.kinds_written()[-1] is UnreserveResourceClaim


def test_the_next_attempt_waits_until_the_last_one_has_let_go() -> None:
    """
    The watch still shows the reservation that is being taken back: believing it, the pod would be bound without one.
    """
    scheduler = Scheduler(claim(**allocated("p")), late=True)
    pod = pod_with("c")
    first, _ = scheduler.reserve(pod)

    async def story() -> Status:
        scheduler.unreserve(first, pod)
        second, _ = scheduler.reserve(pod)
        return await scheduler.plugin.pre_bind(second, pod, "n")

    status = virtual_time.run(story())
    scheduler.writes.deliver()

    assert status == SUCCESS
    assert [one.uid for one in scheduler.shown().status.reserved_for] == ["p"]


# Deallocation.


def post_filter(scheduler: Scheduler) -> Status:
    """What PostFilter says after the claim kept the pod from the node."""
    pod = pod_with("c")
    state, _ = scheduler.pre_filter(pod)
    refused = NodeStatuses({"n": unresolvable("resourceclaim not available on the node").by("DynamicResources")}, SUCCESS)
    return asyncio.run(scheduler.framework.plugins.post_filter[0].post_filter(state, pod, refused)).status


def elsewhere(*pods: str) -> ResourceClaim:
    return claim(**{**allocated(*pods), "allocation": allocation_of("gpu-9", node_selector=label_selector("zone", "b"))})


def test_a_claim_in_the_way_is_deallocated() -> None:
    scheduler = Scheduler(elsewhere("p"))

    status = post_filter(scheduler)

    assert status == unschedulable("deallocation of ResourceClaim completed")
    assert scheduler.writes.calls == [DeallocateResourceClaim("default", "c", "c", "1")]
    assert (scheduler.shown().status.allocation, scheduler.shown().status.reserved_for) == (None, [])


def test_a_claim_that_others_hold_is_not() -> None:
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
