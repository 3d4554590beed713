"""A pod that asks for a little less than it does."""

import pytest

from extender.answers.explain import relaxed_pods
from extender.objects.decoding import replaced
from extender.objects.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from extender.objects.pod import Container, ContainerPort, Pod, ResourceClaimRef, ResourceRequirements
from extender.objects.resource_amounts import filter_requests
from extender.snapshot.pod_attributes import host_ports
from extender.testing import PodBuilder, label_term, make_pod


@pytest.mark.parametrize(
    ("pod", "milli"),
    [
        pytest.param(make_pod().req(cpu=4), 3000, id="one container"),
        pytest.param(make_pod().req(cpu=3).req(cpu=1), 3000, id="two containers"),
        pytest.param(make_pod().req(cpu=1).req(memory="1Gi").init_req(cpu=4), 3000, id="the widest phase"),
        pytest.param(make_pod().req(cpu=2).sidecar_req(cpu=2), 3000, id="a sidecar"),
        pytest.param(make_pod().req(cpu=2).sidecar_req(cpu=1).init_req(cpu=3), 3000, id="a sidecar beside an init container"),
        pytest.param(make_pod().req(cpu=3).overhead(cpu=1), 3000, id="overhead stays"),
        pytest.param(make_pod().req(cpu=2), 2000, id="less than that was asked for anyway"),
        pytest.param(make_pod().req(cpu=1).req(cpu=1).req(cpu=4), 2999, id="never more, though shares are not whole"),
    ],
)
def test_requests_give_in_by_the_same_share(pod: PodBuilder, milli: int) -> None:
    relaxed = relaxed_pods.asking_at_most(pod.obj(), {"cpu": 3000})

    assert relaxed is not None
    assert filter_requests(relaxed).milli_cpu == pytest.approx(milli, abs=1)
    assert filter_requests(relaxed).milli_cpu <= 3000


def test_requests_of_the_whole_pod_give_in() -> None:
    pod = make_pod().req(cpu=1).obj()
    pod = replaced(pod, spec=replaced(pod.spec, resources=ResourceRequirements(requests={"cpu": "4", "memory": "1Gi"})))

    relaxed = relaxed_pods.asking_at_most(pod, {"cpu": 3000})

    assert relaxed is not None
    assert (filter_requests(relaxed).milli_cpu, filter_requests(relaxed).memory) == (3000, 2**30)


def test_overhead_may_be_too_much_by_itself() -> None:
    assert relaxed_pods.asking_at_most(make_pod().req(cpu=1).overhead(cpu=3).obj(), {"cpu": 3000}) is None


def test_other_resources_stay_as_they_are() -> None:
    pod = make_pod().req({"cpu": 4, "memory": "1Gi", "example.com/gpu": 3}).obj()

    relaxed = relaxed_pods.asking_at_most(pod, {"example.com/gpu": 2})

    assert relaxed is not None
    assert relaxed.spec.containers[0].resources.requests == {"cpu": 4, "memory": "1Gi", "example.com/gpu": 2}


def required(pod: Pod) -> NodeSelector | None:
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    return affinity.required if affinity else None


def test_a_requirement_goes_from_all_terms() -> None:
    """
    A term that is left with nothing would match no node; what is meant is that nothing is asked for any more.
    """
    ssd, zone = label_term("disk", "In", "ssd").match_expressions[0], label_term("zone", "Exists").match_expressions[0]
    both, alone = NodeSelectorTerm(match_expressions=[ssd, zone]), NodeSelectorTerm(match_expressions=[zone])
    pod = make_pod().node_affinity(both, alone).preferred_node_affinity(1, alone).obj()

    assert required(relaxed_pods.without_node_affinity(pod, ssd)) == NodeSelector(node_selector_terms=[alone, alone])
    assert required(relaxed_pods.without_node_affinity(pod, zone)) is None
    assert required(relaxed_pods.without_node_affinity(pod)) is None
    kept = relaxed_pods.without_node_affinity(pod).spec.affinity
    assert kept is not None and kept.node_affinity is not None and kept.node_affinity.preferred


def test_what_was_not_asked_for_cannot_be_dropped() -> None:
    pod = make_pod().obj()

    assert relaxed_pods.without_node_affinity(pod, NodeSelectorRequirement(key="a", operator="Exists")) == pod
    assert relaxed_pods.without_pod_affinity(pod) == pod
    assert relaxed_pods.without_pod_anti_affinity(pod, 0) == pod
    assert relaxed_pods.without_node_selector(pod, "disk") == pod


def test_wishes_about_other_pods_stay_when_demands_go() -> None:
    pod = make_pod().pod_affinity("zone", app="a").pod_affinity("host", app="b").preferred_pod_affinity(5, "zone", app="c").obj()

    relaxed = relaxed_pods.without_pod_affinity(pod, 0).spec.affinity

    assert relaxed is not None and relaxed.pod_affinity is not None
    assert [term.topology_key for term in relaxed.pod_affinity.required] == ["host"]
    assert len(relaxed.pod_affinity.preferred) == 1


def test_a_host_port_is_given_up_by_its_address_protocol_and_number() -> None:
    pod = make_pod().host_port(80).host_port(80, "UDP").host_port(80, ip="10.0.0.1").obj()
    inner = Container(name="i", restart_policy="Always", ports=[ContainerPort(container_port=9, host_port=80)])
    pod = replaced(pod, spec=replaced(pod.spec, init_containers=[inner]))

    assert host_ports(relaxed_pods.without_host_ports(pod, [("0.0.0.0", "TCP", 80)])) == (("0.0.0.0", "UDP", 80), ("10.0.0.1", "TCP", 80))


def test_a_resource_claim_goes_with_its_uses() -> None:
    pod = make_pod().obj()
    uses = ResourceRequirements(claims=[ResourceClaimRef(name="gpu"), ResourceClaimRef(name="nic")])
    pod = replaced(pod, spec=replaced(pod.spec, containers=[Container(name="c", resources=uses)]))

    relaxed = relaxed_pods.without_resource_claims(pod, "gpu")

    assert relaxed.spec.containers[0].resources.claims == [ResourceClaimRef(name="nic")]
