"""Which events of pods and nodes queue a pod that a plugin has refused."""

import pytest

from extender.engine.framework import ActionType, ClusterEvent, EventResource, Plugin
from extender.engine.framework.events import EVENT_ASSIGNED_POD_ADD, EVENT_ASSIGNED_POD_DELETE
from extender.engine.plugins.default_preemption import DefaultPreemption
from extender.engine.plugins.inter_pod_affinity.plugin import InterPodAffinity
from extender.engine.plugins.node_affinity import NodeAffinity
from extender.engine.plugins.node_declared_features import NodeDeclaredFeatures
from extender.engine.plugins.node_name import NodeName
from extender.engine.plugins.node_ports import NodePorts
from extender.engine.plugins.node_resources.fit import NodeResourcesFit
from extender.engine.plugins.pod_topology_spread.plugin import PodTopologySpread
from extender.engine.plugins.queueing import SchedulingGates
from extender.engine.plugins.taints import NodeUnschedulable, TaintToleration
from extender.testing import NodeBuilder, PodBuilder, label_term, make_node, make_pod
from extender.values.config.plugin_args import NodeAffinityArgs
from extender.values.objects.decoding import replaced
from extender.values.objects.label_selectors import SelectorError
from extender.values.objects.meta import NodeSelector
from extender.values.objects.pod import NodeAffinity as NodeAffinityStanza
from tests.extender.engine.plugins.hint_calls import is_worth_a_try, is_worth_a_try_after_change

NODE_ADD = ClusterEvent(EventResource.NODE, ActionType.ADD)
NODE_DELETE = ClusterEvent(EventResource.NODE, ActionType.DELETE)

POD, OTHER, RUNNING = make_pod("p"), make_pod("other"), make_pod("other").node("n")
BIG = make_node().capacity(cpu="8", memory="8Gi")
SMALL = make_node().capacity(cpu="1", memory="8Gi")
CORDON = "node.kubernetes.io/unschedulable"
SPREAD = make_pod("p").label(app="web").spread(1, "zone", app="web")
WEB, DB = make_pod("other").label(app="web").node("n"), make_pod("other").label(app="db").node("n")
NEAR_WEB, AWAY_FROM_WEB = POD.pod_affinity("zone", app="web"), POD.pod_anti_affinity("zone", app="web")
ZONE_A, ZONE_B, NO_ZONE = make_node().label(zone="a"), make_node().label(zone="b"), make_node()
TAINTED, MILDLY_TAINTED = make_node().taint("t"), make_node().taint("t", effect="PreferNoSchedule")
ONE_CPU, TWO_CPUS, PORT_80 = POD.req(cpu="1"), POD.req(cpu="2"), POD.host_port(80)
WANTS_GPU, WANTS_ZONE_A = POD.req({"example.com/gpu": 1}), POD.node_selector(zone="a")


@pytest.mark.parametrize(
    ("plugin", "pod", "node", "worth_it"),
    [
        pytest.param(NodeName, POD, NO_ZONE, True, id="NodeName: any node"),
        pytest.param(NodePorts, POD, NO_ZONE, True, id="NodePorts: any node"),
        pytest.param(NodeUnschedulable, POD, NO_ZONE, True, id="NodeUnschedulable: an open node"),
        pytest.param(NodeUnschedulable, POD, NO_ZONE.unschedulable(), False, id="NodeUnschedulable: a cordoned node"),
        pytest.param(TaintToleration, POD, MILDLY_TAINTED, True, id="TaintToleration: nothing forbids it"),
        pytest.param(TaintToleration, POD, TAINTED, False, id="TaintToleration: a taint"),
        pytest.param(TaintToleration, POD.toleration("t"), TAINTED, True, id="TaintToleration: a tolerated taint"),
        pytest.param(NodeAffinity, WANTS_ZONE_A, ZONE_A, True, id="NodeAffinity: the right label"),
        pytest.param(NodeAffinity, WANTS_ZONE_A, ZONE_B, False, id="NodeAffinity: another label"),
        pytest.param(NodeResourcesFit, TWO_CPUS, BIG, True, id="Fit: big enough"),
        pytest.param(NodeResourcesFit, TWO_CPUS, SMALL, False, id="Fit: too small"),
        pytest.param(NodeResourcesFit, WANTS_GPU, BIG, False, id="Fit: lacks the resource"),
        pytest.param(NodeResourcesFit, WANTS_GPU, BIG.capacity({"example.com/gpu": 1}), True, id="Fit: has it"),
        pytest.param(NodeResourcesFit, POD, BIG.capacity(pods=0), False, id="Fit: takes no pods"),
        pytest.param(PodTopologySpread, SPREAD, ZONE_A, True, id="Spread: a node in a zone"),
        pytest.param(PodTopologySpread, SPREAD, NO_ZONE, False, id="Spread: a node in none"),
        pytest.param(InterPodAffinity, NEAR_WEB, ZONE_A, True, id="Affinity: a place that may be near"),
        pytest.param(InterPodAffinity, NEAR_WEB, NO_ZONE, False, id="Affinity: no place"),
        pytest.param(InterPodAffinity, AWAY_FROM_WEB, NO_ZONE, True, id="Anti-affinity: anywhere is away"),
        pytest.param(InterPodAffinity, POD, ZONE_A, False, id="Affinity of others: nodes do not help"),
        pytest.param(NodeDeclaredFeatures, POD, NO_ZONE, True, id="NodeDeclaredFeatures: any node"),
    ],
)
def test_a_node_comes(plugin: type[Plugin], pod: PodBuilder, node: NodeBuilder, worth_it: bool) -> None:
    assert is_worth_a_try(plugin, pod, NODE_ADD, None, node) is worth_it


@pytest.mark.parametrize(
    ("plugin", "pod", "old", "new", "worth_it"),
    [
        pytest.param(NodeName, POD, NO_ZONE, ZONE_A, False, id="NodeName: names do not change"),
        pytest.param(
            NodeUnschedulable, POD, NO_ZONE.unschedulable(), NO_ZONE, True, id="NodeUnschedulable: a cordon is lifted"
        ),
        pytest.param(NodeUnschedulable, POD, NO_ZONE, TAINTED, False, id="NodeUnschedulable: it was open before"),
        pytest.param(TaintToleration, POD, TAINTED, NO_ZONE, True, id="TaintToleration: the taint is gone"),
        pytest.param(TaintToleration, POD, NO_ZONE, MILDLY_TAINTED, False, id="TaintToleration: as before"),
        pytest.param(
            TaintToleration,
            POD,
            NO_ZONE.taint("a").taint("b"),
            NO_ZONE.taint("b"),
            False,
            id="TaintToleration: one is left",
        ),
        pytest.param(NodeAffinity, WANTS_ZONE_A, ZONE_B, ZONE_A, True, id="NodeAffinity: the right label now"),
        pytest.param(NodeAffinity, WANTS_ZONE_A, ZONE_A, ZONE_A.label(x="y"), False, id="NodeAffinity: it was before"),
        pytest.param(NodeAffinity, WANTS_ZONE_A, ZONE_A, ZONE_B, False, id="NodeAffinity: no more"),
        pytest.param(NodeResourcesFit, TWO_CPUS, SMALL, BIG, True, id="Fit: grew"),
        pytest.param(NodeResourcesFit, TWO_CPUS, BIG.capacity(cpu="9"), BIG, False, id="Fit: shrank, would fit still"),
        pytest.param(
            NodeResourcesFit, TWO_CPUS, BIG, BIG.capacity(memory="9Gi"), False, id="Fit: grew by something else"
        ),
        pytest.param(NodeResourcesFit, POD, BIG, BIG.capacity(pods=111), True, id="Fit: takes more pods"),
        pytest.param(NodeResourcesFit, POD, BIG, BIG.capacity(cpu="9"), False, id="Fit: asks for nothing"),
        pytest.param(NodeResourcesFit, TWO_CPUS, SMALL, SMALL.capacity(cpu="1500m"), False, id="Fit: not enough yet"),
        pytest.param(PodTopologySpread, SPREAD, ZONE_A, ZONE_B, True, id="Spread: moved to another zone"),
        pytest.param(
            PodTopologySpread,
            SPREAD,
            ZONE_A,
            NO_ZONE,
            True,
            id="Spread: left its zone, which may be the fullest's rival",
        ),
        pytest.param(PodTopologySpread, SPREAD, ZONE_A, ZONE_A.label(x="y"), False, id="Spread: another label"),
        pytest.param(
            PodTopologySpread, SPREAD, ZONE_A, ZONE_A.taint("t"), True, id="Spread: taints of a node in a zone"
        ),
        pytest.param(PodTopologySpread, SPREAD, NO_ZONE, TAINTED, False, id="Spread: taints of a node in none"),
        pytest.param(InterPodAffinity, NEAR_WEB, NO_ZONE, ZONE_A, True, id="Affinity: a place appears"),
        pytest.param(InterPodAffinity, NEAR_WEB, ZONE_A, ZONE_B, True, id="Affinity: another place"),
        pytest.param(InterPodAffinity, NEAR_WEB, ZONE_A, NO_ZONE, False, id="Affinity: a place less"),
        pytest.param(InterPodAffinity, AWAY_FROM_WEB, ZONE_A, NO_ZONE, True, id="Anti-affinity: left the place"),
        pytest.param(InterPodAffinity, AWAY_FROM_WEB, NO_ZONE, ZONE_A, False, id="Anti-affinity: came into it"),
        pytest.param(
            NodeDeclaredFeatures,
            POD,
            NO_ZONE,
            NO_ZONE.declared_features("f"),
            True,
            id="NodeDeclaredFeatures: declares more",
        ),
    ],
)
def test_a_node_changes(
    plugin: type[Plugin], pod: PodBuilder, old: NodeBuilder, new: NodeBuilder, worth_it: bool
) -> None:
    assert is_worth_a_try_after_change(plugin, pod, old, new) is worth_it


@pytest.mark.parametrize(
    ("node", "worth_it"),
    [pytest.param(ZONE_A, True, id="a zone is gone"), pytest.param(NO_ZONE, False, id="it was in no zone")],
)
def test_a_node_goes(node: NodeBuilder, worth_it: bool) -> None:
    """Fewer domains to be spread over."""
    assert is_worth_a_try(PodTopologySpread, SPREAD, NODE_DELETE, node, None) is worth_it


@pytest.mark.parametrize(
    ("plugin", "pod", "came", "worth_it"),
    [
        pytest.param(PodTopologySpread, SPREAD, WEB, True, id="Spread: is counted"),
        pytest.param(PodTopologySpread, SPREAD, DB, False, id="Spread: is not counted"),
        pytest.param(PodTopologySpread, SPREAD, WEB.namespace("ns2"), False, id="Spread: in another namespace"),
        pytest.param(InterPodAffinity, NEAR_WEB, WEB, True, id="Affinity: to be near to"),
        pytest.param(InterPodAffinity, NEAR_WEB, DB, False, id="Affinity: not to be near to"),
        pytest.param(
            InterPodAffinity,
            NEAR_WEB.pod_affinity("zone", tier="front"),
            WEB,
            False,
            id="Affinity: only one term of two",
        ),
        pytest.param(InterPodAffinity, AWAY_FROM_WEB, WEB, False, id="Anti-affinity: does not help"),
    ],
)
def test_a_pod_comes_to_a_node(plugin: type[Plugin], pod: PodBuilder, came: PodBuilder, worth_it: bool) -> None:
    assert is_worth_a_try(plugin, pod, EVENT_ASSIGNED_POD_ADD, None, came) is worth_it


@pytest.mark.parametrize(
    ("plugin", "pod", "gone", "worth_it"),
    [
        pytest.param(NodeResourcesFit, POD, RUNNING, True, id="Fit: leaves room"),
        pytest.param(NodeResourcesFit, POD, OTHER.nominated_node("n"), True, id="Fit: leaves room that was promised"),
        pytest.param(NodeResourcesFit, POD, OTHER, False, id="Fit: had no room"),
        pytest.param(NodePorts, PORT_80, RUNNING.host_port(80), True, id="Ports: had the port"),
        pytest.param(NodePorts, PORT_80, RUNNING.host_port(81), False, id="Ports: had another"),
        pytest.param(NodePorts, PORT_80, OTHER.host_port(80).nominated_node("n"), True, id="Ports: would have had it"),
        pytest.param(NodePorts, PORT_80, OTHER.host_port(80), False, id="Ports: had no node"),
        pytest.param(PodTopologySpread, SPREAD, WEB, True, id="Spread: was counted"),
        pytest.param(PodTopologySpread, SPREAD, DB, False, id="Spread: was not counted"),
        pytest.param(InterPodAffinity, AWAY_FROM_WEB, WEB, True, id="Anti-affinity: was in the way"),
        pytest.param(InterPodAffinity, AWAY_FROM_WEB, DB, False, id="Anti-affinity: was not in the way"),
        pytest.param(
            InterPodAffinity,
            AWAY_FROM_WEB.pod_anti_affinity("zone", tier="x"),
            WEB,
            True,
            id="Anti-affinity: one term of two",
        ),
        pytest.param(
            InterPodAffinity,
            POD.label(app="db"),
            WEB.pod_anti_affinity("zone", app="db"),
            True,
            id="Anti-affinity: its own",
        ),
        pytest.param(InterPodAffinity, AWAY_FROM_WEB, OTHER.label(app="web"), False, id="Anti-affinity: had no node"),
        pytest.param(InterPodAffinity, NEAR_WEB, WEB, False, id="Affinity: one less to be near to"),
        pytest.param(InterPodAffinity, NEAR_WEB.label(app="web"), WEB, True, id="Affinity: it may be the first now"),
        pytest.param(DefaultPreemption, POD, RUNNING, False, id="Preemption: others know what a victim is worth"),
    ],
)
def test_a_pod_is_gone(plugin: type[Plugin], pod: PodBuilder, gone: PodBuilder, worth_it: bool) -> None:
    assert is_worth_a_try(plugin, pod, EVENT_ASSIGNED_POD_DELETE, gone, None) is worth_it


HUNGRY = RUNNING.req(cpu="2", memory="2Gi")


@pytest.mark.parametrize(
    ("plugin", "pod", "old", "new", "worth_it"),
    [
        pytest.param(
            NodeResourcesFit, ONE_CPU, HUNGRY, RUNNING.req(cpu="1", memory="2Gi"), True, id="Fit: leaves what is wanted"
        ),
        pytest.param(
            NodeResourcesFit, ONE_CPU, HUNGRY, RUNNING.req(cpu="2", memory="1Gi"), False, id="Fit: leaves others"
        ),
        pytest.param(
            NodeResourcesFit, POD.req(cpu="0"), HUNGRY, RUNNING.req(cpu="1"), False, id="Fit: 0 is not wanted"
        ),
        pytest.param(NodeResourcesFit, ONE_CPU, OTHER.req(cpu="2"), OTHER.req(cpu="1"), False, id="Fit: has no node"),
        pytest.param(PodTopologySpread, SPREAD, WEB, DB, True, id="Spread: is counted no more"),
        pytest.param(PodTopologySpread, SPREAD, DB, DB.label(x="y"), False, id="Spread: is not counted, as before"),
        pytest.param(InterPodAffinity, NEAR_WEB, DB, WEB, True, id="Affinity: one to be near to now"),
        pytest.param(InterPodAffinity, NEAR_WEB, WEB, WEB.label(x="y"), False, id="Affinity: as before"),
        pytest.param(InterPodAffinity, AWAY_FROM_WEB, WEB, DB, True, id="Anti-affinity: no more in the way"),
        pytest.param(InterPodAffinity, AWAY_FROM_WEB, DB, WEB, False, id="Anti-affinity: in the way now"),
        pytest.param(SchedulingGates, POD.gate("g"), OTHER.gate("g"), OTHER, False, id="Gates: of another"),
        pytest.param(TaintToleration, POD, OTHER, OTHER.toleration("t"), False, id="TaintToleration: of another"),
        pytest.param(
            NodeUnschedulable, POD, OTHER, OTHER.toleration(CORDON), False, id="NodeUnschedulable: of another"
        ),
    ],
)
def test_another_pod_changes(
    plugin: type[Plugin], pod: PodBuilder, old: PodBuilder, new: PodBuilder, worth_it: bool
) -> None:
    assert is_worth_a_try_after_change(plugin, pod, old, new) is worth_it


@pytest.mark.parametrize(
    ("plugin", "old", "new", "worth_it"),
    [
        pytest.param(SchedulingGates, POD.gate("g"), POD, True, id="Gates: the last is gone"),
        pytest.param(SchedulingGates, POD.gate("a").gate("b"), POD.gate("a"), False, id="Gates: one is left"),
        pytest.param(TaintToleration, POD, POD.toleration("t"), True, id="TaintToleration: tolerates more"),
        pytest.param(
            NodeUnschedulable,
            POD,
            POD.toleration(CORDON, operator="Exists"),
            True,
            id="NodeUnschedulable: tolerates cordons",
        ),
        pytest.param(
            NodeUnschedulable, POD, POD.toleration("t"), False, id="NodeUnschedulable: tolerates something else"
        ),
        pytest.param(NodeResourcesFit, TWO_CPUS, ONE_CPU, True, id="Fit: asks for less"),
        pytest.param(NodeResourcesFit, ONE_CPU, TWO_CPUS, False, id="Fit: asks for more"),
        pytest.param(PodTopologySpread, SPREAD, SPREAD.label(app="db"), True, id="Spread: no longer counts itself"),
        pytest.param(PodTopologySpread, SPREAD, SPREAD.toleration("t"), False, id="Spread: taints do not matter to it"),
        pytest.param(InterPodAffinity, POD, POD.label(app="web"), True, id="Affinity: whatever its labels are"),
        pytest.param(NodeDeclaredFeatures, POD, POD.label(app="web"), False, id="NodeDeclaredFeatures: needs the same"),
    ],
)
def test_the_pod_itself_changes(plugin: type[Plugin], old: PodBuilder, new: PodBuilder, worth_it: bool) -> None:
    assert is_worth_a_try_after_change(plugin, new, old, new) is worth_it


PLACES = {
    "on a node": lambda pod: pod.node("n"),
    "nominated to a node": lambda pod: pod.nominated_node("n"),
    "nowhere": lambda pod: pod,
}
HAPPENINGS = {
    "added": (EVENT_ASSIGNED_POD_ADD, False, True),
    "deleted": (EVENT_ASSIGNED_POD_DELETE, True, False),
    "relabelled": (ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_LABEL), True, True),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("happening", HAPPENINGS)
@pytest.mark.parametrize(
    ("plugin", "pod", "invalid"),
    [
        pytest.param(PodTopologySpread, SPREAD, POD.spread(1, "zone", app="not a value!"), id="spread"),
        pytest.param(
            PodTopologySpread,
            SPREAD.spread(1, "host", tier="x"),
            SPREAD.spread(1, "host", app="not a value!"),
            id="two constraints",
        ),
        pytest.param(InterPodAffinity, NEAR_WEB, POD.pod_affinity("zone", app="not a value!"), id="affinity"),
        pytest.param(
            InterPodAffinity, AWAY_FROM_WEB, POD.pod_anti_affinity("zone", app="not a value!"), id="anti-affinity"
        ),
    ],
)
def test_pods_that_are_nominated_to_a_node_concern_others_as_those_on_a_node_do(
    plugin: type[Plugin], pod: PodBuilder, invalid: PodBuilder, happening: str, place: str
) -> None:
    """And an invalid selector is an error for them, too, which the queue takes for a yes. Pods that are nowhere concern
    nobody.
    """
    event, is_before, is_after = HAPPENINGS[happening]
    put = PLACES[place]
    is_db_first = pod is not AWAY_FROM_WEB
    before = put(OTHER.label(app="db" if is_db_first and is_after else "web")) if is_before else None
    after = put(OTHER.label(app="web" if is_db_first or not is_before else "db")) if is_after else None
    helps = {"added": pod is not AWAY_FROM_WEB, "deleted": pod is not NEAR_WEB, "relabelled": True}[happening]

    assert is_worth_a_try(plugin, pod, event, before, after) is (helps and place != "nowhere")

    if place == "nowhere":
        assert not is_worth_a_try(plugin, invalid, event, before, after)
    else:
        with pytest.raises(SelectorError):
            is_worth_a_try(plugin, invalid, event, before, after)


def test_a_constraint_with_match_label_keys_counts_pods_with_the_same_labels() -> None:
    """Keys that the pod lacks narrow nothing."""
    tiered = SPREAD.spread(1, "host", app="web").obj()
    given = tiered.spec.topology_spread_constraints
    with_keys = [replaced(each, match_label_keys=["tier", "unknown"]) for each in given]
    pod = PodBuilder(replaced(tiered, spec=replaced(tiered.spec, topology_spread_constraints=with_keys)))
    others = {tier: OTHER.label(app="web", tier=tier).nominated_node("n") for tier in ("x", "y")}

    for event, old_and_new in (
        (EVENT_ASSIGNED_POD_ADD, lambda other: (None, other)),
        (EVENT_ASSIGNED_POD_DELETE, lambda other: (other, None)),
    ):
        assert is_worth_a_try(PodTopologySpread, pod, event, *old_and_new(others["x"]))
        assert is_worth_a_try(PodTopologySpread, pod.label(tier="x"), event, *old_and_new(others["x"]))
        assert not is_worth_a_try(PodTopologySpread, pod.label(tier="x"), event, *old_and_new(others["y"]))


def test_a_node_that_the_profile_excludes_does_not_queue_the_pod() -> None:
    added = NodeAffinityArgs(added_affinity=NodeAffinityStanza(required=NodeSelector([label_term("zone", "In", "b")])))
    pod, in_a, in_b = POD.node_selector(disk="ssd"), ZONE_A.label(disk="ssd"), ZONE_B.label(disk="ssd")

    assert not is_worth_a_try(NodeAffinity, pod, NODE_ADD, None, in_a, args=added)
    assert is_worth_a_try(NodeAffinity, pod, NODE_ADD, None, in_b, args=added)


@pytest.mark.parametrize(
    ("plugin", "pod"),
    [
        pytest.param(NodeAffinity, POD.node_affinity(label_term("zone", "Near", "a")), id="NodeAffinity"),
        pytest.param(InterPodAffinity, POD.pod_affinity("zone", app="not a label value!"), id="InterPodAffinity"),
        pytest.param(PodTopologySpread, POD.spread(1, "zone", app="not a label value!"), id="PodTopologySpread"),
    ],
)
def test_an_invalid_selector_is_an_error_of_the_hint(plugin: type[Plugin], pod: PodBuilder) -> None:
    """Which takes an error for a yes."""
    with pytest.raises(SelectorError):
        is_worth_a_try(plugin, pod, NODE_ADD, None, ZONE_A)
