"""DynamicResources at its extension points: which pods are held back, which nodes are refused, and the reasons."""

import asyncio
from typing import Any, cast

import pytest

from extender.engine.framework import (
    SKIP,
    SUCCESS,
    Code,
    CycleState,
    LiveCluster,
    NodeStatuses,
    NotFoundError,
    PostFilterResult,
    Rows,
    Status,
    error,
    unresolvable,
    unschedulable,
)
from extender.engine.plugins.dynamic_resources.device_features import DeviceFeatures
from extender.engine.plugins.dynamic_resources.plugin import DynamicResources
from extender.engine.runtime.cycle import Cycle
from extender.engine.snapshot import Snapshot
from extender.testing import filter_nodes, make_framework, make_node, make_pod, make_snapshot, refusals, score_nodes
from extender.values.config.configuration import ConfigErrors
from extender.values.config.feature_gates import FeatureGates
from extender.values.config.plugin_args import DynamicResourcesArgs
from extender.values.golang.times import Duration
from extender.values.objects.decoding import replaced
from extender.values.objects.devices import ResourceClaim
from extender.values.objects.meta import HasMetadata
from extender.values.objects.pod import Pod, PodResourceClaim, PodResourceClaimStatus
from tests.kit.devices import (
    Manifest,
    allocation_of,
    exactly,
    first_of,
    label_selector,
    make_claim,
    make_device,
    make_device_class,
    make_slice,
    selecting,
    slice_of,
)
from tests.kit.tables import cases

NODES = (make_node("n1").label(zone="a"), make_node("n2").label(zone="b"))


def pod_with(*claims: str, **generated: str | None) -> Pod:
    """A pod with these claims, and others generated from templates: by name in the pod, the claim's name."""
    pod = make_pod("p").uid("pod").obj()
    by_name = [PodResourceClaim(name=name, resource_claim_name=name) for name in claims]
    from_templates = [PodResourceClaim(name=name, resource_claim_template_name="template") for name in generated]
    statuses = [PodResourceClaimStatus(name=name, resource_claim_name=claim) for name, claim in generated.items()]
    return replaced(
        pod,
        spec=replaced(pod.spec, resource_claims=[*by_name, *from_templates]),
        status=replaced(pod.status, resource_claim_statuses=statuses),
    )


def claim(name: str, *requests: Manifest, **more: Any) -> ResourceClaim:
    """A claim for one device, unless other requests are given."""
    return make_claim(name, *(requests or [exactly(1)]), **more)


def allocation(*devices: str, zone: str = "", **more: Any) -> Manifest:
    """Devices of node n1; usable in a zone only, if one is given."""
    results = [{"device": device, "pool": "n1", **more} for device in devices]
    return allocation_of(*results, node_selector=label_selector("zone", zone) if zone else None)


ANY = make_device_class("any", 'device.driver == "gpu.example.com"')
BROKEN = make_device_class("broken", "1")
TWO_AND_ONE = (ANY, BROKEN, slice_of("n1", "g0", "g1"), slice_of("n2", "g0"))


TOO_FEW, NOT_HERE = "cannot allocate all claims", "resourceclaim not available on the node"


def cluster(*objects: HasMetadata) -> Snapshot:
    return make_snapshot(*NODES, objects=objects)


def plugin_for(snapshot: Snapshot, gates: FeatureGates | None = None) -> DynamicResources:
    """The plugin with a handle that knows the objects of the snapshot."""
    return DynamicResources(handle=make_framework(live=cast("LiveCluster", snapshot), features=gates))


def pre_filter(pod: Pod, *objects: HasMetadata) -> Status:
    return DynamicResources().pre_filter(CycleState(), pod, cluster(*objects)).status


FAULTY_TERM = {"matchFields": [{"key": "metadata.name", "operator": "Is"}]}
BARE, NOT_FOUND = make_pod("p").obj(), unresolvable('could not find ResourceClaim "default/c"')
OWNED = {"ownerReferences": [{"kind": "Pod", "name": "p", "uid": "pod", "controller": True}]}


@cases(
    "pod, claims, answer",
    ("no claims", pod_with(), [], SKIP),
    ("a template for which no claim was needed", pod_with(t=None), [], SKIP),
    ("the claim is there", pod_with("c"), [claim("c")], SUCCESS),
    ("it is not", pod_with("c"), [], NOT_FOUND),
    ("in another namespace", pod_with("c"), [claim("c", metadata={"namespace": "other"})], NOT_FOUND),
    (
        "it is going away",
        pod_with("c"),
        [claim("c", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})],
        unresolvable('resourceclaim "c" is being deleted'),
    ),
    ("generated", pod_with(t="p-t-x"), [claim("p-t-x", metadata=OWNED)], SUCCESS),
    (
        "of that name, but not generated for this pod",
        pod_with(t="p-t-x"),
        [claim("p-t-x")],
        unresolvable("ResourceClaim default/p-t-x was not created for Pod default/p (Pod is not owner)"),
    ),
    (
        "not generated yet",
        replaced(pod_with(t="x"), status=BARE.status),
        [],
        unresolvable('pod "default/p": ResourceClaim not created yet'),
    ),
    (
        "neither claim nor template",
        replaced(BARE, spec=replaced(BARE.spec, resource_claims=[PodResourceClaim(name="x")])),
        [],
        unresolvable('pod "default/p", spec.resourceClaim "x": none of the supported fields are set'),
    ),
)
def test_claims_of_the_pod(pod: Pod, claims: list[ResourceClaim], answer: Status) -> None:
    """A pod needs its claims, named or generated, before anything else."""
    snapshot = cluster(ANY, *claims)
    plugin = plugin_for(snapshot)

    assert plugin.pre_filter(CycleState(), pod, snapshot).status == answer
    assert plugin.pre_enqueue(pod) == (SUCCESS if answer.is_skip else answer)


@cases(
    "pod_claim, answer",
    ("a class that is there", claim("c", exactly(1)), SUCCESS),
    (
        "one that is not",
        claim("c", exactly(1), exactly(1, "s", device_class="tpu")),
        unresolvable("request s: device class tpu does not exist"),
    ),
    (
        "for an alternative",
        claim("c", {"name": "r", "firstAvailable": [{"name": "x", "deviceClassName": "tpu"}]}),
        unresolvable("request r/x: device class tpu does not exist"),
    ),
    ("no class", claim("c", exactly(1, device_class="")), error("request r: unsupported request type")),
    (
        "nothing known",
        claim("c", {"name": "r"}),
        unresolvable("resource claim default/c, request r: unknown request type"),
    ),
    ("it is allocated already", claim("c", exactly(1, device_class="tpu"), allocation=allocation("g0")), SUCCESS),
    (
        "allocated to faulty nodes",
        claim("c", allocation={"nodeSelector": {"nodeSelectorTerms": [FAULTY_TERM]}}),
        error('nodeSelectorTerms[0].matchFields[0].operator: Unsupported value: "Is": supported values: "In", "NotIn"'),
    ),
)
def test_requests_of_claims(pod_claim: ResourceClaim, answer: Status) -> None:
    """A claim that is not allocated must ask for classes that exist."""
    assert pre_filter(pod_with("c"), ANY, pod_claim) == answer


@cases(
    "claims, reasons",
    ("there are enough devices", [claim("c", exactly(1))], {}),
    ("only on one node", [claim("c", exactly(2))], {"n2": TOO_FEW}),
    ("on none", [claim("c", exactly(3))], dict.fromkeys(("n1", "n2"), TOO_FEW)),
    ("for two claims together", [claim("c"), claim("d")], {"n2": TOO_FEW}),
    ("others have taken some", [claim("c"), claim("e", allocation=allocation("g0", "g1"))], {"n1": TOO_FEW}),
    ("allocated for any node", [claim("c", allocation=allocation("g0"))], {}),
    ("allocated elsewhere", [claim("c", allocation=allocation("g0", zone="a"))], {"n2": NOT_HERE}),
    (
        "what cannot be allocated is told before what is elsewhere",
        [claim("c", allocation=allocation("g0", zone="b")), claim("d", exactly(2))],
        dict.fromkeys(("n1", "n2"), TOO_FEW),
    ),
    (
        "one claim is elsewhere, the other could be here",
        [claim("c", allocation=allocation("g9", zone="b")), claim("d", exactly(1))],
        {"n1": NOT_HERE},
    ),
)
def test_filter(claims: list[ResourceClaim], reasons: dict[str, str]) -> None:
    """A node must reach the devices of allocated claims, and have devices for others. Removing pods helps neither."""
    snapshot = cluster(*TWO_AND_ONE, *claims)
    pod = pod_with(*(one.metadata.name for one in claims if one.metadata.name in "cd"))

    assert refusals(DynamicResources(), snapshot, pod) == reasons
    codes = {status.code for status in filter_nodes(DynamicResources(), snapshot, pod).values() if status.is_rejected}
    assert codes <= {Code.UNSCHEDULABLE_AND_UNRESOLVABLE}


SLOW: dict[str, Any] = {"bindingConditions": ["ready"], "bindingFailureConditions": ["failed"]}
DEVICE = {"driver": "gpu.example.com", "pool": "n1", "device": "g0"}


def condition(kind: str, status: str = "True") -> Manifest:
    return {**DEVICE, "conditions": [{"type": kind, "status": status}]}


@cases(
    "since, devices, is_available",
    ("the driver has said nothing, and no one counts", None, [], True),
    ("there is time left", "2999-01-01T00:00:00Z", [], True),
    ("nothing for too long", "2001-01-01T00:00:00Z", [], False),
    ("not ready for too long", "2001-01-01T00:00:00Z", [condition("ready", "False")], False),
    ("ready", "2001-01-01T00:00:00Z", [condition("ready")], True),
    ("failed", "2999-01-01T00:00:00Z", [condition("failed")], False),
    ("another device is ready", "2001-01-01T00:00:00Z", [{**condition("ready"), "device": "g1"}], False),
    ("a time that is none", "yesterday", [], True),
)
def test_devices_that_take_time(since: str | None, devices: list[Manifest], is_available: bool) -> None:
    """A claim whose devices do not get ready is not available anywhere."""
    slow = {**allocation("g0", **SLOW), "allocationTimestamp": since}
    snapshot = cluster(*TWO_AND_ONE, claim("c", allocation=slow, devices=devices))

    refused = refusals(DynamicResources(), snapshot, pod_with("c"))
    assert refused == ({} if is_available else {"n1": NOT_HERE, "n2": NOT_HERE})


@cases(
    "claims, message",
    (
        "a class",
        [claim("c", exactly(1, device_class="broken"))],
        "class broken: selector #0: CEL compile error: must evaluate to bool or the unknown type, not int",
    ),
    (
        "a claim",
        [claim("c", exactly(1, **selecting('device.attributes["gpu.example.com"].model == "a100"')))],
        "claim default/c: selector #0: CEL runtime error: no such key: model",
    ),
)
def test_faulty_selectors(claims: list[ResourceClaim], message: str) -> None:
    """A selector that is wrong ends the cycle, rather than to refuse nodes."""
    with pytest.raises(Exception, match="CEL") as raised:
        refusals(DynamicResources(), cluster(*TWO_AND_ONE, *claims), pod_with("c"))

    assert str(raised.value) == message


def test_looking_for_devices_may_take_too_long() -> None:
    """The cycle ends, naming the node at which the time was up."""
    plugin = DynamicResources(DynamicResourcesArgs(filter_timeout=Duration(1)))

    with pytest.raises(TimeoutError, match=r"^node n1: timed out trying to allocate devices$"):
        refusals(plugin, cluster(*TWO_AND_ONE, claim("c")), pod_with("c"))


def test_looking_for_devices_may_take_any_time_while_the_gate_of_the_timeout_is_off() -> None:
    """DRASchedulerFilterTimeout=false."""
    snapshot = cluster(*TWO_AND_ONE, claim("c"))

    assert refusals(plugin_with({"DRASchedulerFilterTimeout": False}), snapshot, pod_with("c")) == {}


@pytest.mark.parametrize(("is_on", "refused"), [(True, ["n1", "n2"]), (False, ["n2"])])
def test_taints_of_devices_count_only_while_their_gate_is_on(is_on: bool, refused: list[str]) -> None:
    """DRADeviceTaints. Node n1 has a tainted device, node n2 none at all."""
    tainted = make_device("gpu", taints=[{"key": "broken", "effect": "NoSchedule"}])
    snapshot = cluster(ANY, make_slice(tainted, name="n1", pool="n1", nodeName="n1"), claim("c"))

    assert sorted(refusals(plugin_with({"DRADeviceTaints": is_on}), snapshot, pod_with("c"))) == refused


def test_a_list_of_alternatives_is_refused_while_its_gate_is_off() -> None:
    """DRAPrioritizedList."""
    pod_claim = claim("c", {"name": "r", "firstAvailable": [{"name": "x", "deviceClassName": "gpu"}]})

    answer = filter_nodes(plugin_with({"DRAPrioritizedList": False}), cluster(*TWO_AND_ONE, pod_claim), pod_with("c"))

    why = "resource claim default/c, request r: has subrequests, but the DRAPrioritizedList feature is disabled"
    assert answer == dict.fromkeys(("n1", "n2"), unresolvable(why))


@pytest.mark.parametrize("gate", ["DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"])
def test_binding_conditions_of_devices_count_only_while_both_gates_are_on(gate: str) -> None:
    """Both are needed: the conditions, and the status that has them."""
    slow = {**allocation("g0", **SLOW), "allocationTimestamp": "2999-01-01T00:00:00Z"}
    snapshot = cluster(*TWO_AND_ONE, claim("c", allocation=slow, devices=[condition("failed")]))
    off = {"DRADeviceBindingConditions": False, gate: False}

    assert sorted(refusals(plugin_with({}), snapshot, pod_with("c"))) == ["n1", "n2"]
    assert refusals(plugin_with(off), snapshot, pod_with("c")) == {}


def test_gates_of_devices_have_the_defaults_of_the_version() -> None:
    features = {version: DeviceFeatures.of(FeatureGates.of({}, version)) for version in ("1.34", "1.36", "1.37")}

    assert features["1.34"] == DeviceFeatures(taints=False, partitions=False, binding_conditions=False)
    assert features["1.36"] == DeviceFeatures()
    assert features["1.37"] == DeviceFeatures(fractional_ranges=True, taint_rules=True)


def plugin_with(gates: dict[str, bool]) -> DynamicResources:
    """The plugin while these feature gates have other values than by default."""
    [(_, plugin)] = make_framework(DynamicResources, features=gates).plugins.filter
    assert isinstance(plugin, DynamicResources)
    return plugin


def test_arguments_are_checked() -> None:
    """Less than a second is no time to bind devices."""
    with pytest.raises(ConfigErrors, match="bindingTimeout: Invalid value"):
        DynamicResources(DynamicResourcesArgs(binding_timeout=Duration(1)))


def post_filter(pod: Pod, *objects: HasMetadata, gates: FeatureGates | None = None) -> PostFilterResult:
    """What PostFilter says when every node was refused by this plugin."""
    snapshot = cluster(*objects)
    plugin, state = plugin_for(snapshot, gates), Cycle(make_framework(), snapshot, pod)
    if not plugin.pre_filter(state, pod, snapshot).status.is_success:
        return asyncio.run(plugin.post_filter(state, pod, NodeStatuses()))
    rows = Rows.of(snapshot)
    verdicts = plugin.filter(state, pod, rows)
    statuses = {
        name: verdicts.status_of(row).by(plugin.name) for row, name in enumerate(rows.names) if not verdicts.ok[row]
    }
    return asyncio.run(plugin.post_filter(state, pod, NodeStatuses(statuses)))


def elsewhere(**more: Any) -> ResourceClaim:
    return claim("c", allocation=allocation("g0", zone="nowhere"), **more)


NO_CLAIMS, IN_VAIN = "no new claims to deallocate", "still not schedulable"
DONE = "deallocation of ResourceClaim completed"


@cases(
    "pod, claims, message",
    ("no claims", pod_with(), [], NO_CLAIMS),
    ("the claims are not there", pod_with("c"), [], NO_CLAIMS),
    ("not enough devices", pod_with("c"), [claim("c", exactly(9))], IN_VAIN),
    ("allocated for other nodes", pod_with("c"), [elsewhere()], DONE),
    ("for this pod", pod_with("c"), [elsewhere(reservedFor=[{"resource": "pods", "name": "p", "uid": "pod"}])], DONE),
    (
        "someone else is using it",
        pod_with("c"),
        [elsewhere(reservedFor=[{"resource": "pods", "name": "q", "uid": "other"}])],
        IN_VAIN,
    ),
    ("someone else, too", pod_with("c"), [elsewhere(reservedFor=[{"uid": "pod"}, {"uid": "other"}])], IN_VAIN),
    ("it was not what kept the pod away", pod_with("c", "d"), [elsewhere(), claim("d", exactly(9))], IN_VAIN),
)
def test_post_filter(pod: Pod, claims: list[ResourceClaim], message: str) -> None:
    """An allocated claim that no node of the pod can use is given up, unless others hold it. The pod has to wait in any
    case.
    """
    assert post_filter(pod, *TWO_AND_ONE, *claims) == PostFilterResult(unschedulable(message))


@pytest.mark.parametrize(("version", "no_claims", "in_vain"), [("1.33", NO_CLAIMS, IN_VAIN), ("1.37", "", "")])
def test_post_filter_that_does_nothing_has_words_up_to_1_36(version: str, no_claims: str, in_vain: str) -> None:
    gates = FeatureGates.of({}, version)

    assert post_filter(pod_with(), gates=gates).status.message == no_claims
    assert post_filter(pod_with("c"), *TWO_AND_ONE, claim("c", exactly(9)), gates=gates).status.message == in_vain
    assert post_filter(pod_with("c"), *TWO_AND_ONE, elsewhere(), gates=gates).status.message == DONE


def test_post_filter_considers_only_its_own_refusals() -> None:
    """A claim that is elsewhere is not given up for nodes that another plugin refused."""
    snapshot, pod = cluster(*TWO_AND_ONE, elsewhere()), pod_with("c")
    plugin, state = plugin_for(snapshot), Cycle(make_framework(), snapshot, pod)
    plugin.pre_filter(state, pod, snapshot)
    tainted = dict.fromkeys(("n1", "n2"), unresolvable("node(s) had untolerated taint(s)").by("TaintToleration"))

    result = asyncio.run(plugin.post_filter(state, pod, NodeStatuses(tainted)))

    assert result.status.message == IN_VAIN


def test_post_filter_without_pre_filter() -> None:
    """A pod that another PreFilter refused was never seen here, and PostFilter fails for it."""
    plugin = plugin_for(cluster())

    with pytest.raises(NotFoundError, match=r"^not found$"):
        asyncio.run(plugin.post_filter(CycleState(), pod_with(), NodeStatuses()))


TWO_OR_ONE = first_of(exactly(2, "two"), exactly(1, "one"))


@cases(
    "claims, scores",
    ("no claims", [], {"n1": 0, "n2": 0}),
    ("no alternatives", [claim("c", exactly(1))], {"n1": 0, "n2": 0}),
    ("the first alternative here, the second there", [claim("c", TWO_OR_ONE)], {"n1": 100, "n2": 87}),
    ("nothing to allocate", [claim("c", allocation=allocation("g9"))], {"n1": 0, "n2": 0}),
    (
        "allocated alternatives count on every node",
        [claim("c", TWO_OR_ONE), claim("d", first_of(exactly(1, "x")), allocation=allocation("g9", request="r/x"))],
        {"n1": 100, "n2": 93},
    ),
)
def test_score(claims: list[ResourceClaim], scores: dict[str, int]) -> None:
    """A node is better the earlier the alternatives are that it has: 8 for a first one, 7 for a second."""
    snapshot, state = cluster(*TWO_AND_ONE, *claims), CycleState()
    pod, plugin, rows = pod_with(*(one.metadata.name for one in claims)), DynamicResources(), Rows.of(snapshot)
    if plugin.pre_filter(state, pod, snapshot).status.is_success:
        plugin.filter(state, pod, rows)

    normalized = plugin.normalize_score(state, pod, plugin.score(state, pod, rows))

    assert dict(zip(rows.names, normalized.tolist(), strict=True)) == scores


def test_score_without_anything_before() -> None:
    """Asked out of the blue, nothing is preferred."""
    assert score_nodes(DynamicResources(), cluster(), pod_with()) == {"n1": 0, "n2": 0}


def filtered(snapshot: Snapshot, pod: Pod) -> tuple[DynamicResources, CycleState]:
    """The plugin once PreFilter and Filter have looked at the pod, and what they keep of it."""
    plugin, state = plugin_for(snapshot), CycleState()
    plugin.pre_filter(state, pod, snapshot)
    plugin.filter(state, pod, Rows.of(snapshot))
    return plugin, state


def test_reserved_devices_are_taken() -> None:
    """What a pod on its way to a node has got, no other pod gets, until it is given back; and its claims are not
    allocated twice.
    """
    snapshot = cluster(*TWO_AND_ONE, claim("c", exactly(2)), claim("d", exactly(1)))
    plugin, state = filtered(snapshot, pod_with("c"))

    assert plugin.reserve(state, pod_with("c"), "n1") == SUCCESS
    assert refusals(plugin, snapshot, pod_with("d")) == {"n1": TOO_FEW}
    in_process = unresolvable("resource claim default/c is in the process of being allocated")
    assert plugin.pre_filter(CycleState(), pod_with("c"), snapshot).status == in_process

    plugin.unreserve(state, pod_with("c"), "n1")
    assert refusals(plugin, snapshot, pod_with("d")) == {}


def test_reserving_where_nothing_was_found() -> None:
    """Only a node that the Filter has passed can be reserved; pods without unallocated claims need no reservation."""
    snapshot = cluster(*TWO_AND_ONE, claim("c", exactly(2)), claim("e", allocation=allocation("g9")))
    plugin, state = filtered(snapshot, pod_with("c"))

    assert plugin.reserve(state, pod_with("c"), "n2") == error("claim allocation not found for node")
    plugin.pre_filter(state, pod_with("e"), snapshot)
    assert plugin.reserve(state, pod_with("e"), "n1") == SUCCESS
    plugin.unreserve(CycleState(), pod_with("c"), "n1")


def test_shares_of_a_device_have_names() -> None:
    """Two pods can share a device that allows it, as far as its capacity goes."""
    shared = make_device("nic", capacity={"bandwidth": {"value": "10G"}}, allowMultipleAllocations=True)
    nic = make_slice(shared, pool="n1", allNodes=True)
    request = exactly(1, capacity={"requests": {"bandwidth": "6G"}})
    snapshot = cluster(ANY, nic, claim("c", request), claim("d", request))
    plugin, state = filtered(snapshot, pod_with("c"))

    plugin.reserve(state, pod_with("c"), "n1")

    assert set(refusals(plugin, snapshot, pod_with("d"))) == {"n1", "n2"}


def test_slices_published_anew() -> None:
    """A device that comes or changes is looked at, whatever was known of the ones before."""
    plugin = DynamicResources()
    before, after = cluster(ANY, slice_of("n1", "g0"), claim("c")), cluster(ANY, slice_of("n2", "g0"), claim("c"))

    assert set(refusals(plugin, before, pod_with("c"))) == {"n2"}
    assert set(refusals(plugin, after, pod_with("c"))) == {"n1"}
