"""Whom an event of nodes and pods calls, plugin by plugin.

Upstream: test/integration/scheduler/queueing/queue.go, CoreResourceEnqueueTestCases. Each case is one of upstream's, in
its order; those about selected namespaces, about more than one term and about what changes without helping anybody are
ours.

Not told: those of GangScheduling, which is behind a gate that is off; those of extended resources that device classes
back (a known difference); and the pod that an update frees from a feature, for no feature that there is can be taken
from a pod.
"""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from extender.rules.api_resources import DEVICE_CLASSES, NAMESPACES, NODES, RESOURCE_CLAIMS, Object
from tests.kit.device_objects import BY_CLASS, DRIVER, GPU, device_claim, device_class, devices, wanting
from tests.kit.objects import node, pod
from tests.kit.pod_specs import away_from, near, on_node_named, on_nodes_with, port, spread, taint, tolerating
from tests.stories.cluster_changes import (
    allocatable,
    annotations,
    changed,
    changed_node,
    changed_pod,
    comes,
    goes,
    labels,
    leaves,
    new_node,
    new_pod,
    only_labels,
    spec,
    then,
    tolerates,
)
from tests.stories.enqueueing import Case, assert_called

pytestmark = pytest.mark.with_whole_objects

TAINTS, AFFINITY, FIT, PODS, PORTS = (
    "TaintToleration",
    "NodeAffinity",
    "NodeResourcesFit",
    "InterPodAffinity",
    "NodePorts",
)
CORDON, SPREAD, FEATURES = "NodeUnschedulable", "PodTopologySpread", "NodeDeclaredFeatures"
DEVICES = "DynamicResources"

BROKEN: dict[str, Any] = {"taints": [taint("example.com/broken")]}
ON_N: dict[str, Any] = {"nodeName": "n"}
ON_M: dict[str, Any] = {"nodeName": "m"}
CLOSED = node("n", unschedulable=True)
HOST_USERS: dict[str, Any] = {"hostNetwork": True, "hostUsers": False}


def both(one: Object, other: Object) -> Object:
    """A stanza with the required terms of two of one kind."""
    (kind,), required = one, "requiredDuringSchedulingIgnoredDuringExecution"
    return {kind: {required: [*one[kind][required], *other[kind][required]]}}


def asks(**amounts: str) -> Object:
    wants = {name.replace("gpu", GPU): amount for name, amount in amounts.items()}
    return {"container": {"resources": {"requests": wants, "limits": {GPU: wants[GPU]} if GPU in wants else {}}}}


def with_gpu() -> Object:
    obj = node("n", "4")
    obj["status"]["allocatable"][GPU] = "1"
    return obj


def in_group(name: str) -> Object:
    return {"affinity": on_nodes_with(group=name)}


CASES = {
    "a larger node helps whom it was too small for and nobody who minds its taint": Case(
        [TAINTS, FIT], [node("n", **BROKEN)], [pod("minds", "4"), pod("large", "4", **tolerating("example.com/broken"))],
        changed_node("n", allocatable(cpu="4"), subresource="status"), {"large"},
    ),
    "a new node helps whom others keep from this one": Case(
        [PODS], [node("n"), pod("there", labels={"alone": ""}, affinity=away_from(labelled="alone"), **ON_N)],
        [pod("p", labels={"alone": ""}, affinity=away_from(labelled="alone"))], new_node("m"), {"p"},
    ),
    "a label helps those who want it": Case(
        [AFFINITY], [node("n", labels={"group": "a"})], [pod("b", **in_group("b")), pod("c", **in_group("c"))],
        changed_node("n", labels(group="b")), {"b"},
    ),
    "a label of a node whose labels did well already helps nobody": Case(
        [AFFINITY, FIT], [node("n", labels={"group": "a"}), node("m", labels={"group": "b"})], [pod("p", "4", **in_group("a"))],
        changed_node("n", labels(more="x")),
    ),
    "a new node helps those who want its labels": Case(
        [AFFINITY], [node("n", labels={"group": "a"})], [pod("b", **in_group("b")), pod("c", **in_group("c"))],
        new_node("m", labels={"group": "b"}), {"b"},
    ),
    "a toleration helps the pod that gets it": Case(
        [TAINTS], [node("n", **BROKEN)], [pod("p"), pod("q")], changed_pod("p", tolerates("example.com/broken")), {"p"},
    ),
    "another taint helps those who tolerate it": Case(
        [TAINTS], [node("n", **BROKEN)], [pod("one", **tolerating("one")), pod("two", **tolerating("two")), pod("none")],
        changed_node("n", spec(taints=[taint("one")])), {"one"},
    ),
    "a new node helps those who tolerate its taint": Case(
        [TAINTS], [node("n", **BROKEN)], [pod("one", **tolerating("one")), pod("none")], new_node("m", taints=[taint("one")]), {"one"},
    ),
    "a pod that goes helps those for whom there was no room": Case(
        [FIT], [node("n"), pod("there", "2", **ON_N)], [pod("p", "2")], leaves("there"), {"p"},
    ),
    "a new node helps those for whom it is large enough": Case(
        [FIT], [node("n")], [pod("four", "4"), pod("five", "5")], new_node("m", "4"), {"four"},
    ),
    "a node that grows helps those for whom it is large enough now": Case(
        [FIT], [node("n")], [pod("four", "4"), pod("five", "5")], changed_node("n", allocatable(cpu="4"), subresource="status"), {"four"},
    ),
    "memory helps nobody who lacks cpu, though the node has the device": Case(
        [FIT], [with_gpu()], [pod("p", **asks(cpu="5", gpu="1"))], changed_node("n", allocatable(memory="128Gi"), subresource="status"),
    ),
    "memory helps nobody who lacks a device": Case(
        [FIT], [node("n", "4")], [pod("p", **asks(gpu="1"))], changed_node("n", allocatable(memory="128Gi"), subresource="status"),
    ),
    "more of what was not asked for helps nobody": Case(
        [FIT, AFFINITY], [node("n", "4"), node("m", labels={"group": "b"})], [pod("p", "4", **in_group("b"))],
        changed_node("n", allocatable(memory="128Gi"), subresource="status"),
    ),
    "more of what was asked for may help, whatever else is minded": Case(
        [FIT, AFFINITY], [node("n", "4"), node("m", labels={"group": "b"})], [pod("p", "4", **in_group("b"))],
        changed_node("n", allocatable(cpu="5"), subresource="status"), {"p"},
    ),
    "a larger node helps nobody who minds its labels": Case(
        [AFFINITY], [node("n")], [pod("p", **in_group("b"))], changed_node("n", allocatable(cpu="4"), subresource="status"),
    ),
    "a label of a node helps nobody for whom it is too small": Case(
        [FIT], [node("n")], [pod("p", "3")], changed_node("n", labels(zone="b")),
    ),
    "a label of a pod does not help it where there is no room": Case(
        [FIT], [node("n")], [pod("p", "3")], changed_pod("p", labels(app="x")),
    ),
    "room for more pods may help, whatever else is minded": Case(
        [FIT, AFFINITY], [node("n", pods="2"), node("m", pods="1", labels={"group": "b"}), pod("there", "100m", **ON_M)],
        [pod("p", "100m", **in_group("b"))], changed_node("n", allocatable(pods="3"), subresource="status"), {"p"},
    ),
    "a label of a pod does not help it with taints": Case(
        [TAINTS], [node("n", **BROKEN)], [pod("p")], changed_pod("p", labels(app="x")),
    ),
    "who was sent to one node by name hears what happens to its room": Case(
        [AFFINITY, FIT], [node("n"), node("m", labels={"zone": "a"})], [pod("p", "4", affinity=on_node_named("n"))],
        changed_node("n", allocatable(cpu="4"), labels(more="x"), subresource="status"), {"p"},
    ),
    "a pod that is not minded any more helps those who minded it": Case(
        [PODS], [node("n"), pod("there", labels={"one": "", "two": ""}, **ON_N)],
        [pod("one", affinity=away_from(labelled="one")), pod("two", affinity=away_from(labelled="two"))],
        changed_pod("there", only_labels(two="")), {"one"},
    ),
    "a pod that goes helps those who minded it": Case(
        [PODS], [node("n"), pod("first", "100m", labels={"one": ""}, **ON_N), pod("second", "100m", labels={"two": ""}, **ON_N)],
        [pod("one", affinity=away_from(labelled="one")), pod("two", affinity=away_from(labelled="two"))], leaves("first"), {"one"},
    ),
    "a pod that goes helps those whom it minded": Case(
        [PODS],
        [node("n"), pod("first", affinity=away_from(labelled="one"), **ON_N), pod("second", affinity=away_from(labelled="two"), **ON_N)],
        [pod("one", labels={"one": ""}), pod("two", labels={"two": ""})], leaves("first"), {"one"},
    ),
    "a pod that becomes a friend helps those who want to be near it": Case(
        [PODS], [node("n"), pod("there", **ON_N)], [pod("one", affinity=near(labelled="one")), pod("two", affinity=near(labelled="two"))],
        changed_pod("there", labels(one="")), {"one"},
    ),
    "a new node helps those who need its topology to be near somebody": Case(
        [PODS], [node("n")],
        [pod("zone", affinity=near("zone", labelled="one")), pod("region", affinity=near("region", labelled="two"))],
        new_node("m", labels={"zone": "a"}), {"zone"},
    ),
    "a node whose topology is another now helps those who look at that": Case(
        [PODS, AFFINITY],
        [node("n", labels={"region": "1"}), node("m", labels={"region": "2", "group": "b"}), pod("there", labels={"one": ""}, **ON_N)],
        [
            pod("rack", labels={"one": ""}, affinity=near("rack", labelled="one")),
            pod("other", labels={"one": ""}, affinity=near("other", labelled="one")),
            pod("region", affinity=near("region", labelled="one") | on_nodes_with(group="b")),
        ],
        changed_node("n", labels(rack="a", region="2")), {"rack", "region"},
    ),
    "a node whose topology is another now helps those whom that kept away": Case(
        [PODS], [node("n", labels={"rack": "a", "service": "a", "other": "a"}), pod("there", labels={"one": ""}, **ON_N)],
        [pod(key, labels={"one": ""}, affinity=away_from(key, labelled="one")) for key in ("rack", "service", "other")],
        changed_node("n", only_labels(service="b", other="a")), {"rack", "service"},
    ),
    "a new node may help those who are kept away, though it is of the same zone": Case(
        [PODS], [node("n", labels={"zone": "a", "rack": "a"}), pod("there", labels={"one": ""}, **ON_N)],
        [pod("zone", affinity=away_from("zone", labelled="one")), pod("rack", affinity=away_from("rack", labelled="one"))],
        new_node("m", labels={"zone": "a"}), {"zone", "rack"},
    ),
    "a pod that goes helps those who want its port": Case(
        [PORTS], [node("n"), pod("first", container=port(8080), **ON_N), pod("second", container=port(8081), **ON_N)],
        [pod("one", container=port(8080)), pod("two", container=port(8081))], leaves("first"), {"one"},
    ),
    "a new node helps those whose port is taken": Case(
        [PORTS], [node("n"), pod("there", container=port(8080), **ON_N)], [pod("p", container=port(8080))], new_node("m"), {"p"},
    ),
    "a label of a closed node helps nobody": Case([CORDON], [CLOSED], [pod("p")], changed_node("n", labels(zone="a"))),
    "a node that is opened helps": Case([CORDON], [CLOSED], [pod("p")], changed_node("n", spec(unschedulable=False)), {"p"}),
    "a new node helps where all are closed": Case([CORDON], [CLOSED], [pod("p")], new_node("m"), {"p"}),
    "a new node that is closed helps nobody": Case([CORDON], [CLOSED], [pod("p")], new_node("m", unschedulable=True)),
}  # fmt: skip


def _spread(name: str, topology: str, label: str = "one", domains: int = 3, **more: Any) -> Object:
    return pod(name, labels={label: ""}, **spread(topology, labelled=label, min_domains=domains), **more)


TWO = [node("n"), pod("first", labels={"one": ""}, **ON_N), pod("second", labels={"two": ""}, **ON_N)]
HERE_AND_THERE = [
    node("n", labels={"rack": "a"}), node("m", labels={"zone": "a"}),
    pod("first", labels={"one": ""}, **ON_N), pod("second", labels={"one": ""}, **ON_M),
]  # fmt: skip
ALIKE = {"rack": "a", "region": "a", "service": "a"}
HOSTS = "kubernetes.io/hostname"

SPREADING = {
    "a pod that gets a node helps those who count it": Case(
        [SPREAD],
        TWO,
        [_spread("one", HOSTS), _spread("two", HOSTS, "two")],
        new_pod("third", labels={"one": ""}, **ON_N),
        {"one"},
    ),
    "a pod that is not counted any more helps those who counted it": Case(
        [SPREAD],
        TWO,
        [_spread("one", HOSTS), _spread("two", HOSTS, "two")],
        changed_pod("first", only_labels(three="")),
        {"one"},
    ),
    "a pod that goes helps those who counted it": Case(
        [SPREAD], TWO, [_spread("one", HOSTS, domains=2), _spread("two", HOSTS, "two")], leaves("first"), {"one"}
    ),
    "a new node helps those who look at its topology": Case(
        [SPREAD],
        HERE_AND_THERE,
        [_spread("rack", "rack", domains=2), _spread("zone", "zone", domains=2)],
        new_node("o", labels={"rack": "a"}),
        {"rack"},
    ),
    "a node that gets, loses or changes a topology helps those who look at that": Case(
        [SPREAD],
        [
            node("n", labels=ALIKE),
            node("m", labels=ALIKE),
            pod("first", labels={"one": ""}, **ON_N),
            *(pod(name, labels={"one": ""}, **ON_M) for name in ("second", "third", "fourth")),
        ],
        [_spread(topology, topology) for topology in ("rack", "zone", "region", "other", "service")],
        changed_node("m", only_labels(zone="a", region="a", service="b")),
        {"rack", "zone", "service"},
    ),
    "a node that goes helps those who looked at its topology": Case(
        [SPREAD], HERE_AND_THERE, [_spread("rack", "rack"), _spread("zone", "zone")], goes(NODES, "m"), {"zone"}
    ),
    "a taint of a node may help those who look at its topology": Case(
        [SPREAD],
        [*HERE_AND_THERE, node("o", labels={"zone": "a"}, **BROKEN)],
        [_spread("rack", "rack"), _spread("zone", "zone", **tolerating("aaa"))],
        changed_node("o", spec(taints=[taint("aaa")])),
        {"zone"},
    ),
}

HERE, ELSEWHERE = ("kubernetes.io/metadata.name", "In", "default"), ("kubernetes.io/metadata.name", "NotIn", "default")
OF_TEAM, OF_NO_TEAM = ("team", "Exists"), ("team", "DoesNotExist")


def wishing(term: Callable[..., Object], **selectors: Sequence[str]) -> list[Object]:
    """Pods by name, each with a term about the pods labelled `one` in the namespaces that it selects."""
    return [pod(name, affinity=term(labelled="one", namespaces=selector)) for name, selector in selectors.items()]


IN_SELECTED_NAMESPACES = {
    "a pod that comes helps those who want to be near pods of its namespace": Case(
        [PODS], [node("n")], wishing(near, here=HERE, untold=OF_NO_TEAM, elsewhere=ELSEWHERE, team=OF_TEAM),
        new_pod("friend", labels={"one": ""}, **ON_N), {"here", "untold"},
    ),
    "a pod that becomes a friend helps those who want to be near pods of its namespace": Case(
        [PODS], [node("n"), pod("there", **ON_N)], wishing(near, here=HERE, elsewhere=ELSEWHERE),
        changed_pod("there", labels(one="")), {"here"},
    ),
    "a pod that goes helps those who minded pods of its namespace": Case(
        [PODS], [node("n"), pod("there", labels={"one": ""}, **ON_N)], wishing(away_from, here=HERE, untold=OF_NO_TEAM),
        leaves("there"), {"here", "untold"},
    ),
    "a pod that is not minded any more helps those who minded pods of its namespace": Case(
        [PODS], [node("n"), pod("there", labels={"one": ""}, **ON_N)], wishing(away_from, here=HERE),
        changed_pod("there", only_labels(two="")), {"here"},
    ),
    "a pod that goes helps those of whose namespace it minded pods": Case(
        [PODS], [node("n"), pod("there", affinity=away_from(labelled="one", namespaces=HERE), **ON_N)],
        [pod("p", labels={"one": ""})], leaves("there"), {"p"},
    ),
    "a namespace that is selected from now on helps those who want to be near its pods": Case(
        [PODS], [node("n"), pod("there", labels={"one": ""}, **ON_N)], wishing(near, team=OF_TEAM, other=("other", "Exists")),
        changed(NAMESPACES, "default", labels(team="a")), {"team", "other"},
    ),
    "a namespace that is not selected any more helps those who minded its pods": Case(
        [PODS], [node("n"), pod("there", labels={"one": ""}, **ON_N)], wishing(away_from, untold=OF_NO_TEAM),
        changed(NAMESPACES, "default", labels(team="a")), {"untold"},
    ),
    "a namespace whose labels stay helps nobody": Case(
        [PODS], [node("n"), pod("there", labels={"one": ""}, **ON_N)], wishing(away_from, here=HERE),
        changed(NAMESPACES, "default", annotations(team="a")),
    ),
}  # fmt: skip

MORE_THAN_ONE_TERM = {
    "a pod that goes helps those who minded it for one of several reasons": Case(
        [PODS], [node("n"), pod("there", labels={"one": ""}, **ON_N)],
        [pod("p", affinity=both(away_from(labelled="one"), away_from(labelled="two")))], leaves("there"), {"p"},
    ),
    "a pod that is not minded for one of several reasons any more helps those who minded it": Case(
        [PODS], [node("n"), pod("there", labels={"one": "", "two": ""}, **ON_N)],
        [pod("p", affinity=both(away_from(labelled="one"), away_from("zone", labelled="two")))],
        changed_pod("there", only_labels(two="")), {"p"},
    ),
    "a pod that goes helps those whom it minded for one of several reasons": Case(
        [PODS], [node("n"), pod("there", affinity=both(away_from(labelled="one"), away_from(labelled="two")), **ON_N)],
        [pod("p", labels={"one": ""})], leaves("there"), {"p"},
    ),
    "the last pod of a group that goes helps those who may be the first of it": Case(
        [PODS, CORDON], [CLOSED, node("m"), pod("there", labels={"one": ""}, **ON_N)],
        [pod("p", labels={"one": ""}, affinity=near(labelled="one")), pod("other", affinity=near(labelled="one"))],
        leaves("there"), {"p"},
    ),
}  # fmt: skip

FEATURE = "UserNamespacesHostNetworkSupport"
NEEDING_IT = pod("p", **HOST_USERS)

OF_FEATURES = {
    "a feature that a node declares helps those who need it": Case(
        [FEATURES], [node("n")], [NEEDING_IT],
        changed_node("n", lambda obj: obj["status"].update(declaredFeatures=[FEATURE]), subresource="status"), {"p"},
    ),
    "a label of a node helps nobody who needs a "
    "feature": Case([FEATURES], [node("n")], [NEEDING_IT], changed_node("n", labels(foo="bar"))),
    "a label of a pod does not help it with "
    "features": Case([FEATURES], [node("n")], [NEEDING_IT], changed_pod("p", labels(foo="bar"))),
}  # fmt: skip


NIC = "example.com/nic"

OF_EXTENDED_RESOURCES = {
    "a new class that backs a resource helps those who request it": Case(
        [FIT], [node("n")], [wanting("p"), wanting("q", resource=NIC)], comes(device_class()), {"p"},
    ),
    "a new class helps those who request its devices by its name": Case(
        [FIT], [node("n")], [wanting("p", resource=BY_CLASS), wanting("q")], comes(device_class(None)), {"p"},
    ),
    "a class that backs a resource from now on helps those who request it": Case(
        [FIT], [node("n"), device_class(None)], [wanting("p"), wanting("q", resource=NIC)],
        changed(DEVICE_CLASSES, "gpu", lambda obj: obj["spec"].update(extendedResourceName=GPU)), {"p"},
    ),
    "a class that backs another resource from now on helps those who request that one": Case(
        [FIT], [node("n"), device_class("example.com/old")], [wanting("p"), wanting("q", resource=NIC)],
        changed(DEVICE_CLASSES, "gpu", lambda obj: obj["spec"].update(extendedResourceName=NIC)), {"q"},
    ),
    "a class that is changed in something else helps nobody": Case(
        [FIT], [node("n"), device_class("example.com/old")], [wanting("p")], changed(DEVICE_CLASSES, "gpu", labels(unrelated="x")),
    ),
}  # fmt: skip


def with_gpu_1(claim: Object) -> Object:
    """The claim, allocated."""
    result = {"request": "gpu", "driver": DRIVER, "pool": "n", "device": "gpu-1"}
    return {**claim, "status": {"allocation": {"devices": {"results": [result]}}}}


def pod_with(claim: str) -> Object:
    return pod("p", resourceClaims=[{"name": "gpu", "resourceClaimName": claim}])


GPUS = [node("n"), device_class(), devices("n", "gpu-1")]

OF_CLAIMS = {
    "an allocated claim that goes helps those who wait for its device": Case(
        [FIT, DEVICES], [*GPUS, with_gpu_1(device_claim("its")), device_claim("gpu")], [pod_with("gpu")],
        goes(RESOURCE_CLAIMS, "its"), {"p"},
    ),
    "an allocated claim that goes helps those who request its device as an extended resource": Case(
        [FIT, DEVICES], [*GPUS, with_gpu_1(device_claim("its"))], [wanting("p"), wanting("q", 2)],
        goes(RESOURCE_CLAIMS, "its"), {"p", "q"},
    ),
    "an allocated claim that goes helps nobody who waits for something else": Case(
        [FIT, DEVICES], [*GPUS, with_gpu_1(device_claim("its"))], [pod("p", "100")], goes(RESOURCE_CLAIMS, "its"),
    ),
    "a claim without devices that goes helps nobody": Case(
        [FIT, DEVICES], [*GPUS, with_gpu_1(device_claim("its")), device_claim("gpu"), device_claim("unused")],
        [pod_with("gpu")], goes(RESOURCE_CLAIMS, "unused"),
    ),
    "an allocated claim that goes does not help whose own claim goes, too": Case(
        [FIT, DEVICES], [*GPUS, with_gpu_1(device_claim("its")), device_claim("gpu")], [pod_with("gpu")],
        then(goes(RESOURCE_CLAIMS, "gpu"), goes(RESOURCE_CLAIMS, "its")),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", OF_CLAIMS.values(), ids=OF_CLAIMS.keys())
async def test_event_requeues_the_refused_pods_with_claims_that_it_may_help(case: Case) -> None:
    """Not upstream's: v1.36.2 does not register for claims that go, which came with kubernetes#140831."""
    await assert_called(case)


@pytest.mark.parametrize("case", OF_EXTENDED_RESOURCES.values(), ids=OF_EXTENDED_RESOURCES.keys())
async def test_event_requeues_the_refused_pods_with_extended_resources_that_it_may_help(case: Case) -> None:
    """TestCoreResourceEnqueue, DRAExtendedResource."""
    await assert_called(case)


@pytest.mark.parametrize("case", OF_FEATURES.values(), ids=OF_FEATURES.keys())
async def test_event_requeues_the_refused_pods_needing_a_feature_that_it_may_help(case: Case) -> None:
    """TestCoreResourceEnqueue. In memory only: behind its gates, a kube-apiserver takes no pod that needs such a
    feature.
    """
    await assert_called(case)


ALL = CASES | SPREADING | IN_SELECTED_NAMESPACES | MORE_THAN_ONE_TERM


@pytest.mark.anywhere
@pytest.mark.parametrize("case", ALL.values(), ids=ALL.keys())
async def test_event_requeues_the_refused_pods_that_it_may_help(case: Case) -> None:
    """TestCoreResourceEnqueue."""
    await assert_called(case)
