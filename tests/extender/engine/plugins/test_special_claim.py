"""DynamicResources and extended resources that device classes back: what is requested, what each node has to provide,
and the reasons.

The cases of requests and mappings are upstream's: framework/plugins/dynamicresources/extendeddynamicresources_test.go.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from extender.engine.framework import (
    DEVICE_TOTALS,
    PLUGIN_METRICS,
    SKIP,
    SUCCESS,
    CallConflict,
    CallError,
    CallUnknown,
    EventResource,
    Handle,
    NodeStatuses,
    PatchPodStatus,
    Plugin,
    PluginMetrics,
    PostFilterResult,
    Status,
    error,
    unresolvable,
    unschedulable,
)
from extender.engine.framework.devices import MAY_DEFER, LongWork
from extender.engine.framework.storage_calls import (
    CreateResourceClaim,
    DeallocateResourceClaim,
    DeleteResourceClaim,
    ProtectResourceClaim,
    ReserveResourceClaim,
    UnprotectResourceClaim,
)
from extender.engine.plugins.dynamic_resources.plugin import DynamicResources
from extender.engine.plugins.dynamic_resources.special_claim import new_special_claim, requests_and_mappings
from extender.engine.plugins.node_resources.balanced_allocation import NodeResourcesBalancedAllocation
from extender.engine.plugins.node_resources.fit import NodeResourcesFit
from extender.engine.runtime.cycle import Cycle
from extender.engine.snapshot import Rows
from extender.testing import NodeBuilder, PodBuilder, make_cache, make_framework, make_node, make_pod, virtual_time
from extender.values.config.plugin_args import (
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    ResourceSpec,
    ScoringStrategy,
)
from extender.values.objects.decoding import convert, replaced
from extender.values.objects.devices import DeviceRequest, ResourceClaim
from extender.values.objects.meta import HasMetadata
from extender.values.objects.pod import Pod
from tests.kit.devices import allocation_of, exactly, make_claim, make_device, make_device_class, make_slice, slice_of
from tests.kit.reservations import Reservations
from tests.kit.tables import cases

GPU, NIC, INIT = "example.com/gpu", "example.com/nic", "example.com/init"
CLASSES = {GPU: "gpu", NIC: "nic", INIT: "init"}


def request_row(request: DeviceRequest) -> tuple[str, str, int]:
    assert request.exactly is not None
    assert request.exactly.allocation_mode == "ExactCount"
    return request.name, request.exactly.device_class_name, request.exactly.count


@cases(
    "pod, resources, requests, mappings",
    ("nothing is lacking", make_pod().req({GPU: 1}), [], [], []),
    (
        "one resource of two",
        make_pod().req({GPU: 1, NIC: 2}),
        [GPU],
        [("container-0-request-0", "gpu", 1)],
        [("c0", GPU, "container-0-request-0")],
    ),
    (
        "two resources",
        make_pod().req({GPU: 1, NIC: 2}),
        [GPU, NIC],
        [("container-0-request-0", "gpu", 1), ("container-0-request-1", "nic", 2)],
        [("c0", GPU, "container-0-request-0"), ("c0", NIC, "container-0-request-1")],
    ),
    (
        "two containers",
        make_pod().req({GPU: 1}).req({NIC: 2}),
        [GPU, NIC],
        [("container-0-request-0", "gpu", 1), ("container-1-request-0", "nic", 2)],
        [("c0", GPU, "container-0-request-0"), ("c1", NIC, "container-1-request-0")],
    ),
    (
        "all requests of the container are numbered, by name",
        make_pod().req({"memory": "1Gi", GPU: 1, "cpu": 1}),
        [GPU],
        [("container-0-request-1", "gpu", 1)],
        [("c0", GPU, "container-0-request-1")],
    ),
    (
        "an init container with a resource of its own",
        make_pod().req({GPU: 1}).init_req({INIT: 2}),
        [GPU, INIT],
        [("container-0-request-0", "init", 2), ("container-1-request-0", "gpu", 1)],
        [("c0", GPU, "container-1-request-0"), ("i1", INIT, "container-0-request-0")],
    ),
    (
        "init containers share the largest request",
        make_pod().req({GPU: 1}).init_req({INIT: 1}).init_req({INIT: 2}),
        [GPU, INIT],
        [("container-1-request-0", "init", 2), ("container-2-request-0", "gpu", 1)],
        [
            ("c0", GPU, "container-2-request-0"),
            ("i1", INIT, "container-1-request-0"),
            ("i2", INIT, "container-1-request-0"),
        ],
    ),
    (
        "only what starts later is used by init containers before",
        make_pod().req({GPU: 1}).init_req({INIT: 1}).sidecar_req({INIT: 1}).init_req({INIT: 2}),
        [GPU, INIT],
        [
            ("container-1-request-0", "init", 1),
            ("container-2-request-0", "init", 2),
            ("container-3-request-0", "gpu", 1),
        ],
        [
            ("c0", GPU, "container-3-request-0"),
            ("s2", INIT, "container-1-request-0"),
            ("i1", INIT, "container-1-request-0"),
            ("i3", INIT, "container-2-request-0"),
        ],
    ),
    (
        "an init container with less than comes later",
        make_pod().req({GPU: 3}).init_req({GPU: 2}),
        [GPU],
        [("container-1-request-0", "gpu", 3)],
        [("c0", GPU, "container-1-request-0"), ("i1", GPU, "container-1-request-0")],
    ),
    ("zero", make_pod().req({GPU: 0}), [GPU], [], []),
    ("no whole number", make_pod().req({GPU: "500m"}), [GPU], [], []),
    ("overhead is no container's", make_pod().req(cpu=1).overhead({GPU: 1}), [GPU], [], []),
)
def test_requests_and_mappings(
    pod: PodBuilder, resources: list[str], requests: list[tuple[str, str, int]], mappings: list[tuple[str, str, str]]
) -> None:
    device_requests, mapped = requests_and_mappings(pod.obj(), {resource: CLASSES[resource] for resource in resources})

    assert [request_row(request) for request in device_requests] == requests
    assert [(mapping.container_name, mapping.resource_name, mapping.request_name) for mapping in mapped] == mappings


# What is said of nodes.


def evaluated(
    pod: Pod, *objects: HasMetadata, nodes: tuple[NodeBuilder, ...] = (make_node("n"),)
) -> tuple[Status, dict[str, Status]]:
    """What PreFilter says, and what Filter says of each node."""
    cache = make_cache(*nodes, objects=objects)
    cycle = Cycle(make_framework(DynamicResources), cache.update_snapshot(), pod)
    (plugin,) = cycle.framework.plugins.pre_filter
    status = plugin.pre_filter(cycle, pod, cycle.snapshot).status
    if not status.is_success:
        return status, {}
    rows = Rows.of(cycle.snapshot)
    verdicts = cycle.framework.plugins.filter[0][1].filter(cycle, pod, rows)
    return status, {name: verdicts.status_of(row) for row, name in enumerate(rows.names)}


WANTING = make_pod("p").uid("p").req({GPU: 1}).obj()
OFFERING = make_node("n").capacity({GPU: 4})
GPU_AND_NIC = make_pod("p").req({GPU: 1, NIC: 1}).obj()
NO_DEVICE = unresolvable("cannot allocate all claims")


@cases(
    "pod, objects",
    ("it requests no extended resource", make_pod().req(cpu=1).obj(), [make_device_class("gpu", backs=GPU)]),
    ("it requests none of it", make_pod().req({GPU: 0}).obj(), [make_device_class("gpu", backs=GPU)]),
    ("no class", WANTING, []),
    ("a class for another resource", WANTING, [make_device_class("gpu", backs=NIC)]),
)
def test_a_pod_without_resources_that_a_class_backs_is_skipped(pod: Pod, objects: list[HasMetadata]) -> None:
    assert evaluated(pod, *objects) == (SKIP, {})


@cases(
    "pod, objects, node, status",
    ("a device", WANTING, [make_slice("gpu-1")], make_node("n"), SUCCESS),
    ("no device", WANTING, [], make_node("n"), NO_DEVICE),
    ("a device plugin", WANTING, [], OFFERING, SUCCESS),
    (
        "another resource, that the node does not know",
        GPU_AND_NIC,
        [make_slice("gpu-1")],
        make_node("n"),
        unresolvable("cannot fit resource"),
    ),
    (
        "another resource, of which NodeResourcesFit sees that there is none",
        GPU_AND_NIC,
        [make_slice("gpu-1")],
        make_node("n").capacity({NIC: 0}),
        SUCCESS,
    ),
)
def test_filter(pod: Pod, objects: list[HasMetadata], node: NodeBuilder, status: Status) -> None:
    assert evaluated(pod, make_device_class("gpu", backs=GPU), *objects, nodes=(node,)) == (SUCCESS, {"n": status})


def test_each_node_provides_what_it_lacks() -> None:
    """A device plugin on one node, devices on another, neither on the third."""
    nodes = make_node("plugin").capacity({GPU: 1}), make_node("devices"), make_node("neither")

    _, statuses = evaluated(
        WANTING, make_device_class("gpu", backs=GPU), make_slice("gpu-1", nodeName="devices"), nodes=nodes
    )

    assert statuses == {"plugin": SUCCESS, "devices": SUCCESS, "neither": NO_DEVICE}


def test_claims_of_the_pod_and_extended_resources_do_not_share_a_device() -> None:
    pod = convert(Pod, {
        "metadata": {"name": "p", "uid": "p"},
        "spec": {
            "resourceClaims": [{"name": "c", "resourceClaimName": "c"}],
            "containers": [{"name": "c", "resources": {"requests": {GPU: "1"}}}],
        },
    })  # fmt: skip
    objects = make_device_class("gpu", backs=GPU), make_claim("c", exactly(1, device_class="gpu"))

    assert evaluated(pod, *objects, make_slice("gpu-1"))[1] == {"n": NO_DEVICE}
    assert evaluated(pod, *objects, make_slice("gpu-1", "gpu-2"))[1] == {"n": SUCCESS}
    assert evaluated(pod, *objects, make_slice("gpu-1"), nodes=(OFFERING,))[1] == {"n": SUCCESS}


def left_over(pod: Pod, **metadata: Any) -> ResourceClaim:
    """The special claim of an earlier attempt."""
    claim = new_special_claim(pod, "left")
    meta = replaced(claim.metadata, name="p-extended-resources-1", resource_version="7", **metadata)
    allocated = convert(ResourceClaim, {"status": {"allocation": allocation_of("gpu-1")}}).status
    return replaced(claim, metadata=meta, status=allocated)


def test_a_special_claim_of_an_earlier_attempt_keeps_the_pod_off_all_nodes() -> None:
    refused = unresolvable("cannot schedule extended resource claim")
    answer = evaluated(WANTING, make_device_class("gpu", backs=GPU), make_slice("gpu-1", "gpu-2"), left_over(WANTING))

    assert answer == (SUCCESS, {"n": refused})


@cases(
    "claim",
    ("of the former pod of that name", left_over(make_pod("p").uid("former").obj())),
    ("that is not marked as special", left_over(WANTING, annotations={})),
)
def test_foreign_claims_are_not_taken_for_the_special_claim(claim: ResourceClaim) -> None:
    assert evaluated(WANTING, make_device_class("gpu", backs=GPU), make_slice("gpu-1", "gpu-2"), claim) == (
        SUCCESS,
        {"n": SUCCESS},
    )


# What is written.


class Scheduler(Reservations):
    """One profile with DynamicResources, and one node `n` with one device."""

    def __init__(self, *objects: HasMetadata, node: NodeBuilder | None = None, late: bool = False) -> None:
        all_objects = make_device_class("gpu", backs=GPU), make_slice("gpu-1"), *objects
        super().__init__(DynamicResources, node or make_node("n"), *all_objects, late=late)

    def bind(self, pod: Pod, cycle: Cycle | None = None) -> Status:
        """What PreBind says; what was reserved is withdrawn if it fails."""
        reserved = cycle or self.reserved(pod)

        async def story() -> Status:
            status = await self.framework.plugins.pre_bind[0].pre_bind(reserved, pod, "n")
            assert status is not None
            if not status.is_success:
                self.unreserve(reserved, pod)
                await asyncio.sleep(1)
            return status

        return virtual_time.run(story())

    def post_filter(self, pod: Pod, cycle: Cycle) -> PostFilterResult:
        statuses = cycle.run_filter_plugins(Rows.of(cycle.snapshot))
        node_statuses = NodeStatuses({"n": statuses.status_of(0).by("DynamicResources")})
        return virtual_time.run(self.framework.plugins.post_filter[0].post_filter(cycle, pod, node_statuses))

    @property
    def claims(self) -> Mapping[Any, ResourceClaim]:
        return self.cache.objects.resource_claims

    @property
    def creations(self) -> dict[str, int]:
        return dict(self.framework.shared(PLUGIN_METRICS, PluginMetrics).resource_claim_creates)


OTHER = make_pod("other").uid("other").req({GPU: 1}).obj()
LACKING = NO_DEVICE.by("DynamicResources")
WORDS_OF: Mapping[type[Any], str] = {
    CreateResourceClaim: "create claim for extended resources default/",
    ReserveResourceClaim: "add allocation and reservation to claim default/p-extended-resources-1",
    PatchPodStatus: "update pod default/p ExtendedResourceClaimStatus",
}


def test_a_claim_is_created_protected_allocated_and_named_in_the_pod() -> None:
    scheduler = Scheduler()

    assert scheduler.bind(WANTING) == SUCCESS

    (claim,) = scheduler.claims.values()
    patch = scheduler.writes.calls[-1]
    kinds = [CreateResourceClaim, ProtectResourceClaim, ReserveResourceClaim, PatchPodStatus]
    assert scheduler.kinds_written() == kinds
    assert isinstance(patch, PatchPodStatus) and patch.extended_resource_claim is not None
    assert patch.extended_resource_claim.resource_claim_name == claim.name
    assert claim.status.allocation is not None
    assert [consumer.uid for consumer in claim.status.reserved_for] == ["p"]
    assert scheduler.creations == {"success": 1}


def test_no_claim_is_written_where_a_device_plugin_offers_the_resource() -> None:
    scheduler = Scheduler(node=OFFERING)

    assert scheduler.bind(WANTING) == SUCCESS
    assert scheduler.writes.calls == []


def test_a_device_is_held_from_reserve_on() -> None:
    scheduler = Scheduler()
    cycle = scheduler.reserved(WANTING)
    assert scheduler.filtered(OTHER)[1] == LACKING

    scheduler.framework.plugins.reserve[0].unreserve(cycle, WANTING, "n")

    assert scheduler.filtered(OTHER)[1] == SUCCESS


def test_a_device_is_held_while_the_watch_does_not_show_the_claim_yet() -> None:
    scheduler = Scheduler(late=True)

    assert scheduler.bind(WANTING) == SUCCESS

    assert not scheduler.claims
    assert scheduler.filtered(OTHER)[1] == LACKING


def test_a_claim_that_is_deleted_once_it_was_shown_holds_nothing() -> None:
    scheduler = Scheduler(late=True)
    scheduler.bind(WANTING)
    scheduler.writes.deliver()
    assert scheduler.filtered(OTHER)[1] == LACKING

    (claim,) = list(scheduler.claims.values())
    scheduler.cache.objects.changed(claim, None)

    assert scheduler.filtered(OTHER)[1] == SUCCESS


@cases("late", ("shown at once", False), ("shown later", True))
async def test_a_claim_holds_nothing_once_it_was_shown_and_deleted_with_no_attempt_in_between(late: bool) -> None:
    scheduler = Scheduler(late=late)
    cycle = scheduler.reserved(WANTING)

    assert await scheduler.framework.plugins.pre_bind[0].pre_bind(cycle, WANTING, "n") == SUCCESS
    await asyncio.sleep(0.5)
    scheduler.writes.deliver()
    await asyncio.sleep(2)
    (claim,) = list(scheduler.claims.values())
    scheduler.cache.objects.changed(claim, None)

    assert scheduler.filtered(OTHER)[1] == SUCCESS


@cases(
    "kind, failure",
    ("create", CreateResourceClaim, CallError("no")),
    ("create, conflict", CreateResourceClaim, CallConflict("no")),
    ("reserve", ReserveResourceClaim, CallError("no")),
    ("reserve, outcome unknown", ReserveResourceClaim, CallUnknown("no")),
    ("name it in the pod", PatchPodStatus, CallError("no")),
    ("another pod", PatchPodStatus, CallConflict("no")),
)
def test_a_write_that_fails_leaves_neither_claim_nor_reservation(kind: type[Any], failure: CallError) -> None:
    scheduler = Scheduler()
    scheduler.writes.fail(kind, failure)

    assert scheduler.bind(WANTING) == error(f"{WORDS_OF[kind]}: no")

    assert not scheduler.claims
    assert scheduler.filtered(OTHER)[1] == SUCCESS
    assert scheduler.creations == {"failure" if kind is CreateResourceClaim else "success": 1}


def test_a_claim_that_no_container_would_use_is_not_created() -> None:
    """Overhead is requested by no container. Upstream creates the claim before it says so."""
    pod = make_pod("p").uid("p").req(cpu=1).overhead({GPU: 1}).obj()
    scheduler = Scheduler()

    assert scheduler.bind(pod) == error(
        "nil or empty request mappings, no update of pod default/p ExtendedResourceClaimStatus"
    )
    assert scheduler.writes.calls == []


def test_a_claim_of_an_earlier_attempt_is_deallocated_and_deleted() -> None:
    """In that order, because the event of a deallocated claim requeues the pods that wait for devices."""
    scheduler = Scheduler(left_over(WANTING, finalizers=("resource.kubernetes.io/delete-protection",)))
    cycle, _ = scheduler.filtered(WANTING)

    assert scheduler.post_filter(WANTING, cycle).status == unschedulable("deletion of ResourceClaim completed")

    assert scheduler.kinds_written() == [DeallocateResourceClaim, UnprotectResourceClaim, DeleteResourceClaim]
    assert not scheduler.claims
    assert scheduler.filtered(WANTING)[1] == SUCCESS


def test_a_claim_of_an_earlier_attempt_that_is_gone_is_no_error() -> None:
    scheduler = Scheduler(left_over(WANTING))
    cycle, _ = scheduler.filtered(WANTING)
    scheduler.cache.objects.resource_claims.clear()

    assert scheduler.post_filter(WANTING, cycle).status == unschedulable("deletion of ResourceClaim completed")


def test_a_deletion_that_is_refused_is_an_error() -> None:
    scheduler = Scheduler(left_over(WANTING))
    scheduler.writes.fail(DeleteResourceClaim, CallError("no"))
    cycle, _ = scheduler.filtered(WANTING)

    assert scheduler.post_filter(WANTING, cycle).status == error("no")


def test_no_claim_is_deleted_where_devices_are_lacking() -> None:
    scheduler = Scheduler()
    scheduler.bind(OTHER)
    cycle, status = scheduler.filtered(WANTING)
    num_written = len(scheduler.writes.calls)

    assert status == LACKING
    assert scheduler.post_filter(WANTING, cycle).status == unschedulable("still not schedulable")
    assert len(scheduler.writes.calls) == num_written


# With NodeResourcesFit.


def test_equal_pods_are_judged_anew_when_a_class_comes_or_goes() -> None:
    """What is remembered of equal pods depends on nodes alone, which have not changed."""
    cache = make_cache(make_node("n").capacity(pods=10), objects=(make_slice("gpu-1"),))
    framework = make_framework(NodeResourcesFit, DynamicResources)
    device_class = make_device_class("gpu", backs=GPU)

    def feasible(pod: Pod) -> list[str]:
        cycle = Cycle(framework, cache.update_snapshot(), pod)
        cycle.run_pre_filter_plugins()
        return list(cycle.feasible_rows().names)

    assert feasible(WANTING) == []
    cache.objects.changed(None, device_class)
    assert feasible(OTHER) == ["n"]
    cache.objects.changed(device_class, None)
    assert feasible(WANTING) == []


def test_pods_on_a_node_count_where_its_device_plugin_offers_the_resource() -> None:
    """NodeResourcesFit leaves only nodes to DynamicResources that offer none."""
    running = make_pod("running").node("plugin").req({GPU: 1}), make_pod("elsewhere").node("devices").req({GPU: 1})
    cache = make_cache(
        make_node("plugin").capacity({GPU: 1}, pods=10),
        make_node("devices").capacity(pods=10),
        pods=running,
        objects=(make_device_class("gpu", backs=GPU),),
    )
    cycle = Cycle(make_framework(NodeResourcesFit), cache.update_snapshot(), WANTING)
    cycle.run_pre_filter_plugins()
    verdicts = cycle.run_filter_plugins(Rows.of(cycle.snapshot))

    assert verdicts.status_of(0) == unschedulable(f"Insufficient {GPU}").by("NodeResourcesFit")
    assert verdicts.status_of(1) == SUCCESS


def test_while_the_feature_is_off_the_resource_is_counted_as_any_other() -> None:
    """Neither plugin looks at device classes for it."""
    cache = make_cache(
        make_node("n").capacity(pods=10), objects=(make_device_class("gpu", backs=GPU), make_slice("gpu-1"))
    )
    framework = make_framework(NodeResourcesFit, DynamicResources, features={"DRAExtendedResource": False})
    cycle = Cycle(framework, cache.update_snapshot(), WANTING)
    cycle.run_pre_filter_plugins()
    status = cycle.run_filter_plugins(Rows.of(cycle.snapshot)).status_of(0)
    listens_to = {entry.event.resource for entry in NodeResourcesFit(None, framework).events_to_register()}

    assert cycle.skip_filter_plugins == {"DynamicResources"}
    assert status == unresolvable(f"Insufficient {GPU}").by("NodeResourcesFit")
    assert EventResource.DEVICE_CLASS not in listens_to


# Scores.

RUNNING = make_claim(
    "running", exactly(1, device_class="gpu"), allocation=allocation_of({"device": "gpu-1", "pool": "half"})
)


def totals(
    plugin: type[Plugin], args: Any, *objects: HasMetadata, nodes: Sequence[NodeBuilder], pod: Pod = WANTING
) -> dict[str, int]:
    """The scores of one plugin, beside DynamicResources."""

    def make_plugin(_: object, handle: Handle) -> Plugin:
        return plugin(args, handle)

    cache = make_cache(*nodes, objects=objects)
    cycle = Cycle(make_framework(make_plugin, DynamicResources), cache.update_snapshot(), pod)
    assert cycle.run_pre_filter_plugins().status.is_success
    rows = cycle.feasible_rows()
    cycle.run_pre_score_plugins(rows)
    return dict(zip(rows.names, cycle.run_score_plugins(rows).raw[plugin.name].tolist(), strict=True))


DEVICES = (
    make_device_class("gpu", backs=GPU),
    slice_of("empty", "gpu-1", "gpu-2"),
    slice_of("half", "gpu-1", "gpu-2"),
    RUNNING,
)
PLACES = make_node("empty"), make_node("half"), make_node("plugin").capacity({GPU: 4})


@cases(
    "strategy, scores",
    ("least", "LeastAllocated", {"empty": 50, "half": 0, "plugin": 75}),
    ("most", "MostAllocated", {"empty": 50, "half": 100, "plugin": 25}),
)
def test_devices_count_like_amounts_where_they_are_scored(strategy: str, scores: Mapping[str, int]) -> None:
    args = NodeResourcesFitArgs(scoring_strategy=ScoringStrategy(strategy, (ResourceSpec(GPU, 1),)))
    nodes = [node.capacity(pods=10) for node in PLACES]

    assert totals(NodeResourcesFit, args, *DEVICES, nodes=nodes) == scores


def test_devices_count_in_the_balance_of_resources() -> None:
    """Half of the cpu and half of the devices are in balance; half of the cpu and all devices are not."""
    pod = make_pod("p").uid("p").req({GPU: 1, "cpu": 2}).obj()
    args = NodeResourcesBalancedAllocationArgs(resources=(ResourceSpec("cpu", 1), ResourceSpec(GPU, 1)))
    nodes = [node.capacity(cpu=4) for node in PLACES[:2]]

    scores = totals(NodeResourcesBalancedAllocation, args, *DEVICES, nodes=nodes, pod=pod)

    # Without the pod: 0 and 0, 0 and 1/2; with it: 1/2 and 1/2, 1/2 and 1.
    assert scores == {"empty": 75, "half": 75}


def test_only_devices_of_the_class_count() -> None:
    """A node without any of them scores nothing for the resource."""
    fast = make_device_class("gpu", 'device.attributes["gpu.example.com"].model == "a"', backs=GPU)
    devices = [make_device(f"{model}-{n}", {"model": model}) for model in "ab" for n in range(2)]
    gpu_slice = make_slice(*devices, nodeName="n")
    args = NodeResourcesFitArgs(scoring_strategy=ScoringStrategy("MostAllocated", (ResourceSpec(GPU, 1),)))

    assert totals(NodeResourcesFit, args, fast, gpu_slice, nodes=[make_node("n").capacity(pods=10)]) == {"n": 50}


def test_many_devices_are_counted_in_a_thread() -> None:
    """Which devices match is kept, so that each cycle comes further."""
    expression = " || ".join(f'device.attributes["gpu.example.com"].model == "{number}"' for number in range(5))
    hundred = [make_device(f"gpu-{n}", {"model": "4"}) for n in range(100)]
    objects = (
        make_device_class("gpu", expression, backs=GPU),
        make_slice(*hundred, allNodes=True),
        *(make_slice(*hundred, name=f"s{n}", pool=f"p{n}", nodeName="n") for n in range(9)),
    )
    cache = make_cache(make_node("n").capacity(pods=10), objects=objects)
    framework = make_framework(DynamicResources, shared={MAY_DEFER: True})

    def device_counts() -> tuple[int, int]:
        cycle = Cycle(framework, cache.update_snapshot(), WANTING)
        cycle.run_pre_filter_plugins()
        total, in_use = cycle.read(DEVICE_TOTALS)(GPU, Rows.of(cycle.snapshot))
        return int(total[0]), int(in_use[0])

    with pytest.raises(LongWork) as raised:
        device_counts()
    for _ in range(20):
        raised.value.work(lambda: True)
    assert device_counts() == (1000, 0)


# What is suggested.


def test_a_pod_may_do_without_the_resource() -> None:
    cache = make_cache(make_node("n"), objects=(make_device_class("gpu", backs=GPU),))
    pod = make_pod().req({GPU: 1, NIC: 1, "cpu": 1}).init_req({GPU: 1}).obj()
    plugin = DynamicResources(None, make_framework())
    rows = Rows.of(cache.update_snapshot())

    (suggestion,) = plugin.suggest(pod, rows)

    assert suggestion.text == "drop the extended resource example.com/gpu"
    assert [dict(container.resources.requests) for container in suggestion.pod.spec.containers] == [{NIC: 1, "cpu": 1}]
    assert [dict(container.resources.requests) for container in suggestion.pod.spec.init_containers] == [{}]
    assert plugin.suggest_for_node(pod, rows) == suggestion
