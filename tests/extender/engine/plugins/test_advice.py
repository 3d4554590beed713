"""What in-tree plugins advise: what a pod lacks on a node, and the pod with smaller demands."""

import pytest

from extender.engine.framework import Rows, Shortage
from extender.engine.plugins.dynamic_resources.advice import without_resource_claims
from extender.engine.plugins.inter_pod_affinity.plugin import without_terms
from extender.engine.plugins.node_affinity import without_node_affinity, without_node_selector
from extender.engine.plugins.node_ports import without_host_ports
from extender.engine.plugins.node_resources.fit import NodeResourcesFit, with_smaller_requests
from extender.engine.plugins.volume_advice import VolumeAdvice
from extender.engine.snapshot.pod_attributes import host_ports
from extender.testing import NodeBuilder, PodBuilder, label_term, make_node, make_pod, make_snapshot
from extender.values.config.plugin_args import NodeResourcesFitArgs
from extender.values.objects.decoding import replaced
from extender.values.objects.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from extender.values.objects.pod import Container, ContainerPort, Pod, ResourceClaimRef, ResourceRequirements
from extender.values.objects.resource_amounts import filter_requests
from tests.kit.storage import make_claim
from tests.kit.tables import cases


@cases(
    "pod, milli",
    ("one container", make_pod().req(cpu=4), 3000),
    ("two containers", make_pod().req(cpu=3).req(cpu=1), 3000),
    ("the widest phase", make_pod().req(cpu=1).req(memory="1Gi").init_req(cpu=4), 3000),
    ("a sidecar", make_pod().req(cpu=2).sidecar_req(cpu=2), 3000),
    ("a sidecar beside an init container", make_pod().req(cpu=2).sidecar_req(cpu=1).init_req(cpu=3), 3000),
    ("overhead stays", make_pod().req(cpu=3).overhead(cpu=1), 3000),
    ("less than that was asked for anyway", make_pod().req(cpu=2), 2000),
    ("never more, though shares are not whole", make_pod().req(cpu=1).req(cpu=1).req(cpu=4), 2999),
)
def test_requests_give_in_by_the_same_share(pod: PodBuilder, milli: int) -> None:
    relaxed = with_smaller_requests(pod.obj(), {"cpu": 3000})

    assert relaxed is not None
    assert filter_requests(relaxed).milli_cpu == pytest.approx(milli, abs=1)
    assert filter_requests(relaxed).milli_cpu <= 3000


def test_requests_of_the_whole_pod_give_in() -> None:
    pod = make_pod().req(cpu=1).obj()
    pod = replaced(pod, spec=replaced(pod.spec, resources=ResourceRequirements(requests={"cpu": "4", "memory": "1Gi"})))

    relaxed = with_smaller_requests(pod, {"cpu": 3000})

    assert relaxed is not None
    assert (filter_requests(relaxed).milli_cpu, filter_requests(relaxed).memory) == (3000, 2**30)


def test_overhead_may_be_too_much_by_itself() -> None:
    assert with_smaller_requests(make_pod().req(cpu=1).overhead(cpu=3).obj(), {"cpu": 3000}) is None


def test_smaller_request_of_one_resource_leaves_the_others_unchanged() -> None:
    pod = make_pod().req({"cpu": 4, "memory": "1Gi", "example.com/gpu": 3}).obj()

    relaxed = with_smaller_requests(pod, {"example.com/gpu": 2})

    assert relaxed is not None
    assert relaxed.spec.containers[0].resources.requests == {"cpu": 4, "memory": "1Gi", "example.com/gpu": 2}


def required(pod: Pod) -> NodeSelector | None:
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    return affinity.required if affinity else None


def test_a_requirement_goes_from_all_terms() -> None:
    """A term that is left with nothing would match no node: it goes, and the others stay."""
    ssd, zone = label_term("disk", "In", "ssd").match_expressions[0], label_term("zone", "Exists").match_expressions[0]
    both, alone = NodeSelectorTerm(match_expressions=[ssd, zone]), NodeSelectorTerm(match_expressions=[zone])
    pod = make_pod().node_affinity(both, alone).preferred_node_affinity(1, alone).obj()

    assert required(without_node_affinity(pod, ssd)) == NodeSelector(node_selector_terms=[alone, alone])
    assert required(without_node_affinity(pod, zone)) == NodeSelector(
        node_selector_terms=[NodeSelectorTerm(match_expressions=[ssd])]
    )
    assert required(without_node_affinity(pod, zone, ssd)) is None
    assert required(without_node_affinity(pod)) is None
    affinity = without_node_affinity(pod).spec.affinity
    assert affinity is not None and affinity.node_affinity is not None and affinity.node_affinity.preferred


def test_dropping_an_absent_demand_leaves_the_pod_unchanged() -> None:
    pod = make_pod().obj()

    assert without_node_affinity(pod, NodeSelectorRequirement(key="a", operator="Exists")) == pod
    assert without_terms(pod, "pod_affinity") == pod
    assert without_terms(pod, "pod_anti_affinity", 0) == pod
    assert without_node_selector(pod, "disk") == pod


def test_wishes_about_other_pods_stay_when_demands_go() -> None:
    demanding = make_pod().pod_affinity("zone", app="a").pod_affinity("host", app="b")
    pod = demanding.preferred_pod_affinity(5, "zone", app="c").obj()

    relaxed = without_terms(pod, "pod_affinity", 0).spec.affinity

    assert relaxed is not None and relaxed.pod_affinity is not None
    assert [term.topology_key for term in relaxed.pod_affinity.required] == ["host"]
    assert len(relaxed.pod_affinity.preferred) == 1


def test_a_host_port_is_given_up_by_its_address_protocol_and_number() -> None:
    pod = make_pod().host_port(80).host_port(80, "UDP").host_port(80, ip="10.0.0.1").obj()
    inner = Container(name="i", restart_policy="Always", ports=[ContainerPort(container_port=9, host_port=80)])
    pod = replaced(pod, spec=replaced(pod.spec, init_containers=[inner]))

    assert host_ports(without_host_ports(pod, [("0.0.0.0", "TCP", 80)])) == (
        ("0.0.0.0", "UDP", 80),
        ("10.0.0.1", "TCP", 80),
    )


def test_a_resource_claim_goes_with_its_uses() -> None:
    pod = make_pod().obj()
    uses = ResourceRequirements(claims=[ResourceClaimRef(name="gpu"), ResourceClaimRef(name="nic")])
    pod = replaced(pod, spec=replaced(pod.spec, containers=[Container(name="c", resources=uses)]))

    relaxed = without_resource_claims(pod, "gpu")

    assert relaxed.spec.containers[0].resources.claims == [ResourceClaimRef(name="nic")]


def shortages(
    node: NodeBuilder, pods: list[PodBuilder], pod: PodBuilder, *, ignored: tuple[str, ...] = ()
) -> dict[str, tuple[int, int]]:
    """Resource -> what the pod requests, and what the node has left."""
    plugin = NodeResourcesFit(NodeResourcesFitArgs(ignored_resources=ignored))
    shortfalls: list[Shortage] = list(plugin.shortages(pod.obj(), Rows.of(make_snapshot(node, pods=pods))))
    return {shortage.resource: (shortage.requested, *shortage.free.tolist()) for shortage in shortfalls}


def test_a_resource_is_short_if_less_is_left_than_the_pod_requests() -> None:
    node = make_node("a").capacity(cpu=4, memory="4Gi")

    assert shortages(node, [make_pod("p").req(cpu="2500m").node("a")], make_pod().req(cpu=2, memory="1Gi")) == {
        "cpu": (2000, 1500)
    }


def test_a_resource_that_no_node_has_is_short_by_all_of_it() -> None:
    shortage_of = shortages(make_node("a").capacity(cpu=4), [], make_pod().req({"example.com/gpu": 2}))

    assert shortage_of == {"example.com/gpu": (2, 0)}


def test_a_resource_that_the_profile_ignores_is_not_short() -> None:
    node, pod = make_node("a").capacity(cpu=4), make_pod().req({"example.com/gpu": 2})

    assert shortages(node, [], pod, ignored=("example.com/gpu",)) == {}


def test_the_number_of_pods_is_a_resource_of_its_own() -> None:
    assert shortages(make_node("a").capacity(cpu=4, pods=1), [make_pod("p").node("a")], make_pod()) == {"pods": (1, 0)}


@cases(
    "claims, advice",
    ("one", ["data"], ["drop the volume v0 (claim data)"]),
    (
        "two",
        ["data", "logs"],
        [
            "drop the volume v0 (claim data)",
            "drop the volume v1 (claim logs)",
            "drop the volumes v0 (claim data) and v1 (claim logs)",
        ],
    ),
)
def test_volumes_are_dropped_one_by_one_and_then_all(claims: list[str], advice: list[str]) -> None:
    pod = make_pod()
    for claim in claims:
        pod = pod.claim(claim)
    snapshot = make_snapshot(make_node("n"), objects=[make_claim(claim) for claim in claims])

    suggestions = VolumeAdvice().suggest(pod.obj(), Rows.of(snapshot))

    assert [suggestion.text for suggestion in suggestions] == advice
