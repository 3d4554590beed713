"""How many of a pod fit, one after the other, without evicting anybody."""

import asyncio
import random
from collections.abc import Sequence

import pytest

from extender.answers.profiles import simulated_frameworks
from extender.answers.trial import Trial
from extender.answers.types import Capacity, NodeRoom
from extender.answers.what_if.capacity import capacity
from extender.engine import framework as fwk
from extender.engine.cache.cluster import Cluster
from extender.engine.evaluation.evaluate import evaluate
from extender.engine.plugins.inter_pod_affinity.plugin import InterPodAffinity
from extender.engine.plugins.node_affinity import NodeAffinity
from extender.engine.plugins.node_declared_features import NodeDeclaredFeatures
from extender.engine.plugins.node_ports import NodePorts
from extender.engine.plugins.node_resources.fit import NodeResourcesFit
from extender.engine.plugins.pod_topology_spread.plugin import PodTopologySpread
from extender.engine.plugins.taints import NodeUnschedulable, TaintToleration
from extender.engine.runtime.cycle import NO_NOMINATIONS, Cycle
from extender.engine.snapshot import Rows
from extender.testing import NodeBuilder, PodBuilder, make_framework, make_node, make_pod, random_cluster
from extender.values.config.configuration import Configuration
from extender.values.objects.cluster import ClusterState
from extender.values.objects.decoding import replaced
from extender.values.objects.pod import Container, Pod, PodResourceClaim, ResourceRequirements
from tests.kit.devices import make_device_class, make_slice
from tests.kit.tables import cases

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def cluster_of(nodes: Sequence[NodeBuilder], pods: Sequence[PodBuilder] = ()) -> Cluster:
    return Cluster.of(ClusterState(nodes=[node.obj() for node in nodes], pods=[pod.obj() for pod in pods]))


def fitting(cluster: Cluster, pod: Pod, limit: int | None = 1000) -> Capacity:
    return capacity(Trial(cluster, simulated_frameworks(Configuration(), cluster)), pod, limit)


def node(name: str, cpu: int) -> NodeBuilder:
    return make_node(name).capacity(cpu=cpu, memory="64Gi").label({HOST: name, ZONE: f"z{name[-1]}"})


def rooms(count: Capacity) -> dict[str, int]:
    return {room.node: room.pods for room in count.by_node}


def test_every_node_is_filled_up() -> None:
    count = fitting(
        cluster_of([node("a", 4), node("b", 8)], [make_pod("p").req(cpu="2500m").node("b")]),
        make_pod().req(cpu=1).obj(),
    )

    assert count == Capacity(
        fits=9,
        by_node=(NodeRoom(node="b", pods=5), NodeRoom(node="a", pods=4)),
        stopped_by="0/2 nodes are available: 2 Insufficient cpu.",
    )


def test_capacity_counts_without_evicting_any_pod() -> None:
    cluster = cluster_of([node("a", 4)], [make_pod("p").req(cpu=3).node("a")])

    assert fitting(cluster, make_pod().req(cpu=1).priority(1000).obj()).fits == 1
    assert cluster.cache.pod("default/p") is not None


def test_counting_stops_at_the_limit_of_the_question() -> None:
    cluster = cluster_of([node("a", 4)])

    count = fitting(cluster, make_pod().req(cpu=1).obj(), limit=3)

    assert (count.fits, count.is_limit, count.stopped_by) == (3, True, "")


def test_a_high_limit_is_reached_without_placing_copies_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Then nodes are filled evenly: each has its share, and none more than it takes. What is a high limit is lowered here.
    """
    monkeypatch.setattr("extender.answers.what_if.capacity._FIRST_PLACED", 2)
    monkeypatch.setattr("extender.answers.trial.Trial.schedule", None)
    cluster = cluster_of([node("a", 4), node("b", 1), node("c", 4)])

    count = fitting(cluster, make_pod().req(cpu=1).obj(), limit=6)

    assert (count.fits, count.is_limit) == (6, True)
    assert {room.node: room.pods for room in count.by_node} == {"a": 3, "b": 1, "c": 2}
    assert count.notes == ("counting ends at 6; the nodes are filled evenly up to there, not in the scheduler's order",)


def test_without_a_limit_copies_are_placed_one_by_one_for_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("extender.answers.what_if.capacity._FIRST_PLACED", 2)
    together = make_pod().req(cpu=1).label(app="web").pod_affinity(HOST, app="web").obj()

    count = fitting(cluster_of([node("a", 4)]), together, limit=None)
    alone = fitting(cluster_of([node("a", 4)]), make_pod().req(cpu=1).obj(), limit=None)

    assert (count.fits, count.is_limit) == (2, True)
    assert count.notes == (
        "counting ends at 2, because they are placed one by one; a higher limit continues the count",
    )
    assert (alone.fits, alone.is_limit) == (4, False)


def test_copies_that_are_placed_one_by_one_end_earlier(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them takes memory, so that a caller's limit is not the only one; the bound is lowered here."""
    monkeypatch.setattr("extender.values.limits.COPIES_PLACED", 2)
    together = make_pod().req(cpu=1).label(app="web").pod_affinity(HOST, app="web").obj()

    count = fitting(cluster_of([node("a", 4)]), together, limit=3)
    alone = fitting(cluster_of([node("a", 4)]), make_pod().req(cpu=1).obj(), limit=9)

    assert (count.fits, count.is_limit) == (2, True)
    assert count.notes == ("counting ends at 2, the maximum of pods that are placed one by one",)
    assert (alone.fits, alone.notes) == (4, ())


@pytest.mark.parametrize(
    "pod", [make_pod().req(cpu=1), make_pod().req(cpu=1).label(app="web").pod_affinity(HOST, app="web")]
)
def test_the_limit_may_be_all_there_is_room_for(pod: PodBuilder) -> None:
    count = fitting(cluster_of([node("a", 4)]), pod.obj(), limit=4)

    assert (count.fits, count.is_limit, count.stopped_by) == (4, False, "0/1 nodes are available: 1 Insufficient cpu.")


def test_capacity_with_a_limit_of_zero_is_zero() -> None:
    assert fitting(cluster_of([node("a", 4)]), make_pod().req(cpu=1).obj(), limit=0) == Capacity(
        fits=0, by_node=(), stopped_by="", is_limit=True
    )


def test_copies_mind_each_other() -> None:
    """One a node, and nearly as many in each zone: what a copy takes counts for the next."""
    apart = make_pod().label(app="web").req(cpu=1).pod_anti_affinity(HOST, app="web").obj()
    spread = make_pod().label(app="web").req(cpu=1).spread(1, ZONE, app="web").obj()
    nodes = [node("a", 4), node("b", 2), node("c", 1)]

    assert rooms(fitting(cluster_of(nodes), apart)) == {"a": 1, "b": 1, "c": 1}
    assert rooms(fitting(cluster_of(nodes), spread)) == {"a": 2, "b": 2, "c": 1}


def test_a_host_port_is_taken_once_a_node() -> None:
    assert fitting(cluster_of([node("a", 4), node("b", 4)]), make_pod().host_port(80).obj()).fits == 2


def test_room_of_nominated_pods_is_not_given_away() -> None:
    promised = make_pod("first").req(cpu=3).priority(5).nominated_node("a")

    assert fitting(cluster_of([node("a", 4)], [promised]), make_pod().req(cpu=1).obj()).fits == 1


def test_a_pod_that_is_there_already_is_asked_about_as_if_it_were_new() -> None:
    """Its node, its gates and what it was promised are its own."""
    running = make_pod("web").req(cpu=1).node("a").phase("Running")
    gated = make_pod("web").req(cpu=1).gate("quota").nominated_node("b")

    assert rooms(fitting(cluster_of([node("a", 2), node("b", 2)], [running]), running.obj())) == {"a": 1, "b": 2}
    assert rooms(fitting(cluster_of([node("a", 2), node("b", 2)]), gated.obj())) == {"a": 2, "b": 2}


@cases(
    "pod, why",
    ("too large", make_pod().req(cpu=9).obj(), "0/1 nodes are available: 1 Insufficient cpu."),
    (
        "a claim is missing",
        make_pod().claim("data").obj(),
        '0/1 nodes are available: persistentvolumeclaim "data" not found.',
    ),
    ("not ours", make_pod().scheduler_name("other").obj(), 'no profile here for schedulerName "other"'),
    (
        "not to be read",
        make_pod().container(Container(name="c", resources=ResourceRequirements(requests={"cpu": "x"}))).obj(),
        "spec.containers[0].resources.requests[cpu]: quantities must match the regular expression "
        "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    ),
)
def test_capacity_says_why_no_pod_fits(pod: Pod, why: str) -> None:
    assert fitting(cluster_of([node("a", 4)]), pod) == Capacity(fits=0, by_node=(), stopped_by=why)


def test_cluster_without_nodes_has_no_capacity() -> None:
    assert fitting(cluster_of([]), make_pod().obj()).stopped_by == "no nodes available to schedule pods"


def test_a_claim_that_is_made_for_each_pod_is_not_there_for_a_copy() -> None:
    pod = make_pod().obj()
    pod = replaced(
        pod,
        spec=replaced(pod.spec, resource_claims=[PodResourceClaim(name="gpu", resource_claim_template_name="gpus")]),
    )

    count = fitting(cluster_of([node("a", 4)]), pod)

    assert count.fits == 0
    assert count.stopped_by.startswith("0/1 nodes are available: ")


def test_devices_for_extended_resources_are_counted_node_by_node() -> None:
    """Two on one node, none on the next, and a device plugin with one on the third."""
    nodes = node("a", 4), node("b", 4), node("c", 4).capacity({"example.com/gpu": 1})
    state = ClusterState(
        nodes=[node.obj() for node in nodes],
        device_classes=[make_device_class("gpu", backs="example.com/gpu")],
        resource_slices=[make_slice("gpu-1", "gpu-2", nodeName="a")],
    )

    count = fitting(Cluster.of(state), make_pod().req({"example.com/gpu": 1}).obj())

    assert rooms(count) == {"a": 2, "c": 1}
    assert count.stopped_by is not None
    assert "2 cannot allocate all claims" in count.stopped_by
    assert "1 Insufficient example.com/gpu" in count.stopped_by


class Elsewhere(fwk.FilterPlugin):
    """Minds nothing, but does not promise to look only at one node: copies have to be placed one by one for it."""

    def filter(self, state: fwk.CycleState, pod: Pod, rows: Rows) -> fwk.Verdicts:
        return fwk.accept(len(rows))


PLUGINS = (
    NodeUnschedulable, TaintToleration, NodeAffinity, NodePorts, NodeResourcesFit,
    PodTopologySpread, InterPodAffinity, NodeDeclaredFeatures,
)  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_the_count_is_exact(seed: int) -> None:
    """Whatever the cluster: in step it is what it is one by one, and there is no room for one more."""
    drawn = random_cluster(random.Random(seed))
    pod = replaced(drawn.pod, metadata=replaced(drawn.pod.metadata, deletion_timestamp=None))
    state = ClusterState(nodes=drawn.nodes, pods=drawn.pods)
    one_by_one, in_step = Cluster.of(state), Cluster.of(state)

    placed = capacity(Trial(one_by_one, {"default-scheduler": make_framework(*PLUGINS, Elsewhere)}), pod, 60)
    capacity_in_step = capacity(Trial(in_step, {"default-scheduler": make_framework(*PLUGINS)}), pod, 60)
    after = asyncio.run(
        evaluate(Cycle(make_framework(*PLUGINS), one_by_one.cache.update_snapshot(), pod, NO_NOMINATIONS))
    )

    assert placed.fits == sum(room.pods for room in placed.by_node)
    assert placed.is_limit or (after.feasible == () and after.fit_error == placed.stopped_by)
    if drawn.pod.spec.affinity is None and not drawn.pod.spec.topology_spread_constraints:
        assert capacity_in_step == placed
    else:
        # Who minds other nodes is placed by chance among equals, so that the count may depend on it.
        assert capacity_in_step.is_limit == placed.is_limit


def test_capacity_counts_hundreds_of_pods() -> None:
    """More than are held as hypotheses of hypotheses."""
    nodes = [make_node("a").capacity(cpu=4, pods=100), make_node("b").capacity(cpu=4, pods=33)]
    promised = make_pod("first").priority(5).nominated_node("a")

    count = fitting(cluster_of(nodes, [make_pod("p").node("b"), promised]), make_pod().req(cpu="1m").obj())

    assert rooms(count) == {"a": 99, "b": 32}
    assert count.stopped_by == "0/2 nodes are available: 2 Too many pods."
