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
from tests.kit.tables import cases

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


@cases(
    "plugin, pod, node, worth_it",
    ("NodeName: any node", NodeName, POD, NO_ZONE, True),
    ("NodePorts: any node", NodePorts, POD, NO_ZONE, True),
    ("NodeUnschedulable: an open node", NodeUnschedulable, POD, NO_ZONE, True),
    ("NodeUnschedulable: a cordoned node", NodeUnschedulable, POD, NO_ZONE.unschedulable(), False),
    ("TaintToleration: nothing forbids it", TaintToleration, POD, MILDLY_TAINTED, True),
    ("TaintToleration: a taint", TaintToleration, POD, TAINTED, False),
    ("TaintToleration: a tolerated taint", TaintToleration, POD.toleration("t"), TAINTED, True),
    ("NodeAffinity: the right label", NodeAffinity, WANTS_ZONE_A, ZONE_A, True),
    ("NodeAffinity: another label", NodeAffinity, WANTS_ZONE_A, ZONE_B, False),
    ("Fit: big enough", NodeResourcesFit, TWO_CPUS, BIG, True),
    ("Fit: too small", NodeResourcesFit, TWO_CPUS, SMALL, False),
    ("Fit: lacks the resource", NodeResourcesFit, WANTS_GPU, BIG, False),
    ("Fit: has it", NodeResourcesFit, WANTS_GPU, BIG.capacity({"example.com/gpu": 1}), True),
    ("Fit: takes no pods", NodeResourcesFit, POD, BIG.capacity(pods=0), False),
    ("Spread: a node in a zone", PodTopologySpread, SPREAD, ZONE_A, True),
    ("Spread: a node in none", PodTopologySpread, SPREAD, NO_ZONE, False),
    ("Affinity: a place that may be near", InterPodAffinity, NEAR_WEB, ZONE_A, True),
    ("Affinity: no place", InterPodAffinity, NEAR_WEB, NO_ZONE, False),
    ("Anti-affinity: anywhere is away", InterPodAffinity, AWAY_FROM_WEB, NO_ZONE, True),
    ("Affinity of others: nodes do not help", InterPodAffinity, POD, ZONE_A, False),
    ("NodeDeclaredFeatures: any node", NodeDeclaredFeatures, POD, NO_ZONE, True),
)
def test_a_node_comes(plugin: type[Plugin], pod: PodBuilder, node: NodeBuilder, worth_it: bool) -> None:
    assert is_worth_a_try(plugin, pod, NODE_ADD, None, node) is worth_it


@cases(
    "plugin, pod, old, new, worth_it",
    ("NodeName: names do not change", NodeName, POD, NO_ZONE, ZONE_A, False),
    ("NodeUnschedulable: a cordon is lifted", NodeUnschedulable, POD, NO_ZONE.unschedulable(), NO_ZONE, True),
    ("NodeUnschedulable: it was open before", NodeUnschedulable, POD, NO_ZONE, TAINTED, False),
    ("TaintToleration: the taint is gone", TaintToleration, POD, TAINTED, NO_ZONE, True),
    ("TaintToleration: as before", TaintToleration, POD, NO_ZONE, MILDLY_TAINTED, False),
    ("TaintToleration: one is left", TaintToleration, POD, NO_ZONE.taint("a").taint("b"), NO_ZONE.taint("b"), False),
    ("NodeAffinity: the right label now", NodeAffinity, WANTS_ZONE_A, ZONE_B, ZONE_A, True),
    ("NodeAffinity: it was before", NodeAffinity, WANTS_ZONE_A, ZONE_A, ZONE_A.label(x="y"), False),
    ("NodeAffinity: no more", NodeAffinity, WANTS_ZONE_A, ZONE_A, ZONE_B, False),
    ("Fit: grew", NodeResourcesFit, TWO_CPUS, SMALL, BIG, True),
    ("Fit: shrank, would fit still", NodeResourcesFit, TWO_CPUS, BIG.capacity(cpu="9"), BIG, False),
    ("Fit: grew by something else", NodeResourcesFit, TWO_CPUS, BIG, BIG.capacity(memory="9Gi"), False),
    ("Fit: takes more pods", NodeResourcesFit, POD, BIG, BIG.capacity(pods=111), True),
    ("Fit: asks for nothing", NodeResourcesFit, POD, BIG, BIG.capacity(cpu="9"), False),
    ("Fit: not enough yet", NodeResourcesFit, TWO_CPUS, SMALL, SMALL.capacity(cpu="1500m"), False),
    ("Spread: moved to another zone", PodTopologySpread, SPREAD, ZONE_A, ZONE_B, True),
    ("Spread: left its zone, which may be the fullest's rival", PodTopologySpread, SPREAD, ZONE_A, NO_ZONE, True),
    ("Spread: another label", PodTopologySpread, SPREAD, ZONE_A, ZONE_A.label(x="y"), False),
    ("Spread: taints of a node in a zone", PodTopologySpread, SPREAD, ZONE_A, ZONE_A.taint("t"), True),
    ("Spread: taints of a node in none", PodTopologySpread, SPREAD, NO_ZONE, TAINTED, False),
    ("Affinity: a place appears", InterPodAffinity, NEAR_WEB, NO_ZONE, ZONE_A, True),
    ("Affinity: another place", InterPodAffinity, NEAR_WEB, ZONE_A, ZONE_B, True),
    ("Affinity: a place less", InterPodAffinity, NEAR_WEB, ZONE_A, NO_ZONE, False),
    ("Anti-affinity: left the place", InterPodAffinity, AWAY_FROM_WEB, ZONE_A, NO_ZONE, True),
    ("Anti-affinity: came into it", InterPodAffinity, AWAY_FROM_WEB, NO_ZONE, ZONE_A, False),
    ("NodeDeclaredFeatures: declares more", NodeDeclaredFeatures, POD, NO_ZONE, NO_ZONE.declared_features("f"), True),
)
def test_a_node_changes(
    plugin: type[Plugin], pod: PodBuilder, old: NodeBuilder, new: NodeBuilder, worth_it: bool
) -> None:
    assert is_worth_a_try_after_change(plugin, pod, old, new) is worth_it


@cases("node, worth_it", ("a zone is gone", ZONE_A, True), ("it was in no zone", NO_ZONE, False))
def test_a_node_goes(node: NodeBuilder, worth_it: bool) -> None:
    """Fewer domains to be spread over."""
    assert is_worth_a_try(PodTopologySpread, SPREAD, NODE_DELETE, node, None) is worth_it


@cases(
    "plugin, pod, came, worth_it",
    ("Spread: is counted", PodTopologySpread, SPREAD, WEB, True),
    ("Spread: is not counted", PodTopologySpread, SPREAD, DB, False),
    ("Spread: in another namespace", PodTopologySpread, SPREAD, WEB.namespace("ns2"), False),
    ("Affinity: to be near to", InterPodAffinity, NEAR_WEB, WEB, True),
    ("Affinity: not to be near to", InterPodAffinity, NEAR_WEB, DB, False),
    ("Affinity: only one term of two", InterPodAffinity, NEAR_WEB.pod_affinity("zone", tier="front"), WEB, False),
    ("Anti-affinity: does not help", InterPodAffinity, AWAY_FROM_WEB, WEB, False),
)
def test_a_pod_comes_to_a_node(plugin: type[Plugin], pod: PodBuilder, came: PodBuilder, worth_it: bool) -> None:
    assert is_worth_a_try(plugin, pod, EVENT_ASSIGNED_POD_ADD, None, came) is worth_it


@cases(
    "plugin, pod, deleted, worth_it",
    ("Fit: leaves room", NodeResourcesFit, POD, RUNNING, True),
    ("Fit: leaves room that was promised", NodeResourcesFit, POD, OTHER.nominated_node("n"), True),
    ("Fit: had no room", NodeResourcesFit, POD, OTHER, False),
    ("Ports: had the port", NodePorts, PORT_80, RUNNING.host_port(80), True),
    ("Ports: had another", NodePorts, PORT_80, RUNNING.host_port(81), False),
    ("Ports: would have had it", NodePorts, PORT_80, OTHER.host_port(80).nominated_node("n"), True),
    ("Ports: had no node", NodePorts, PORT_80, OTHER.host_port(80), False),
    ("Spread: was counted", PodTopologySpread, SPREAD, WEB, True),
    ("Spread: was not counted", PodTopologySpread, SPREAD, DB, False),
    ("Anti-affinity: was in the way", InterPodAffinity, AWAY_FROM_WEB, WEB, True),
    ("Anti-affinity: was not in the way", InterPodAffinity, AWAY_FROM_WEB, DB, False),
    ("Anti-affinity: one term of two", InterPodAffinity, AWAY_FROM_WEB.pod_anti_affinity("zone", tier="x"), WEB, True),
    ("Anti-affinity: its own", InterPodAffinity, POD.label(app="db"), WEB.pod_anti_affinity("zone", app="db"), True),
    ("Anti-affinity: had no node", InterPodAffinity, AWAY_FROM_WEB, OTHER.label(app="web"), False),
    ("Affinity: one less to be near to", InterPodAffinity, NEAR_WEB, WEB, False),
    ("Affinity: it may be the first now", InterPodAffinity, NEAR_WEB.label(app="web"), WEB, True),
    ("Preemption: others know what a victim is worth", DefaultPreemption, POD, RUNNING, False),
)
def test_a_pod_is_gone(plugin: type[Plugin], pod: PodBuilder, deleted: PodBuilder, worth_it: bool) -> None:
    assert is_worth_a_try(plugin, pod, EVENT_ASSIGNED_POD_DELETE, deleted, None) is worth_it


HUNGRY = RUNNING.req(cpu="2", memory="2Gi")


@cases(
    "plugin, pod, old, new, worth_it",
    ("Fit: leaves what is wanted", NodeResourcesFit, ONE_CPU, HUNGRY, RUNNING.req(cpu="1", memory="2Gi"), True),
    ("Fit: leaves others", NodeResourcesFit, ONE_CPU, HUNGRY, RUNNING.req(cpu="2", memory="1Gi"), False),
    ("Fit: 0 is not wanted", NodeResourcesFit, POD.req(cpu="0"), HUNGRY, RUNNING.req(cpu="1"), False),
    ("Fit: has no node", NodeResourcesFit, ONE_CPU, OTHER.req(cpu="2"), OTHER.req(cpu="1"), False),
    ("Spread: is counted no more", PodTopologySpread, SPREAD, WEB, DB, True),
    ("Spread: is not counted, as before", PodTopologySpread, SPREAD, DB, DB.label(x="y"), False),
    ("Affinity: one to be near to now", InterPodAffinity, NEAR_WEB, DB, WEB, True),
    ("Affinity: as before", InterPodAffinity, NEAR_WEB, WEB, WEB.label(x="y"), False),
    ("Anti-affinity: no more in the way", InterPodAffinity, AWAY_FROM_WEB, WEB, DB, True),
    ("Anti-affinity: in the way now", InterPodAffinity, AWAY_FROM_WEB, DB, WEB, False),
    ("Gates: of another", SchedulingGates, POD.gate("g"), OTHER.gate("g"), OTHER, False),
    ("TaintToleration: of another", TaintToleration, POD, OTHER, OTHER.toleration("t"), False),
    ("NodeUnschedulable: of another", NodeUnschedulable, POD, OTHER, OTHER.toleration(CORDON), False),
)
def test_another_pod_changes(
    plugin: type[Plugin], pod: PodBuilder, old: PodBuilder, new: PodBuilder, worth_it: bool
) -> None:
    assert is_worth_a_try_after_change(plugin, pod, old, new) is worth_it


@cases(
    "plugin, old, new, worth_it",
    ("Gates: the last is gone", SchedulingGates, POD.gate("g"), POD, True),
    ("Gates: one is left", SchedulingGates, POD.gate("a").gate("b"), POD.gate("a"), False),
    ("TaintToleration: tolerates more", TaintToleration, POD, POD.toleration("t"), True),
    ("NodeUnschedulable: tolerates cordons", NodeUnschedulable, POD, POD.toleration(CORDON, operator="Exists"), True),
    ("NodeUnschedulable: tolerates something else", NodeUnschedulable, POD, POD.toleration("t"), False),
    ("Fit: asks for less", NodeResourcesFit, TWO_CPUS, ONE_CPU, True),
    ("Fit: asks for more", NodeResourcesFit, ONE_CPU, TWO_CPUS, False),
    ("Spread: no longer counts itself", PodTopologySpread, SPREAD, SPREAD.label(app="db"), True),
    ("Spread: taints do not matter to it", PodTopologySpread, SPREAD, SPREAD.toleration("t"), False),
    ("Affinity: whatever its labels are", InterPodAffinity, POD, POD.label(app="web"), True),
    ("NodeDeclaredFeatures: needs the same", NodeDeclaredFeatures, POD, POD.label(app="web"), False),
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
@cases(
    "plugin, pod, invalid",
    ("spread", PodTopologySpread, SPREAD, POD.spread(1, "zone", app="not a value!")),
    (
        "two constraints",
        PodTopologySpread,
        SPREAD.spread(1, "host", tier="x"),
        SPREAD.spread(1, "host", app="not a value!"),
    ),
    ("affinity", InterPodAffinity, NEAR_WEB, POD.pod_affinity("zone", app="not a value!")),
    ("anti-affinity", InterPodAffinity, AWAY_FROM_WEB, POD.pod_anti_affinity("zone", app="not a value!")),
)
def test_pods_that_are_nominated_to_a_node_concern_others_as_those_on_a_node_do(
    plugin: type[Plugin], pod: PodBuilder, invalid: PodBuilder, happening: str, place: str
) -> None:
    """And an invalid selector is an error for them, too, which the queue takes for a yes. Pods that are nowhere concern
    nobody.
    """
    event, is_before, is_after = HAPPENINGS[happening]
    placed = PLACES[place]
    is_db_first = pod is not AWAY_FROM_WEB
    before = placed(OTHER.label(app="db" if is_db_first and is_after else "web")) if is_before else None
    after = placed(OTHER.label(app="web" if is_db_first or not is_before else "db")) if is_after else None
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
    constraints = tiered.spec.topology_spread_constraints
    with_keys = [replaced(constraint, match_label_keys=["tier", "unknown"]) for constraint in constraints]
    pod = PodBuilder(replaced(tiered, spec=replaced(tiered.spec, topology_spread_constraints=with_keys)))
    pods_by_tier = {tier: OTHER.label(app="web", tier=tier).nominated_node("n") for tier in ("x", "y")}

    for event, old_and_new in (
        (EVENT_ASSIGNED_POD_ADD, lambda other: (None, other)),
        (EVENT_ASSIGNED_POD_DELETE, lambda other: (other, None)),
    ):
        assert is_worth_a_try(PodTopologySpread, pod, event, *old_and_new(pods_by_tier["x"]))
        assert is_worth_a_try(PodTopologySpread, pod.label(tier="x"), event, *old_and_new(pods_by_tier["x"]))
        assert not is_worth_a_try(PodTopologySpread, pod.label(tier="x"), event, *old_and_new(pods_by_tier["y"]))


def test_a_node_that_the_profile_excludes_does_not_queue_the_pod() -> None:
    added = NodeAffinityArgs(added_affinity=NodeAffinityStanza(required=NodeSelector([label_term("zone", "In", "b")])))
    pod, in_a, in_b = POD.node_selector(disk="ssd"), ZONE_A.label(disk="ssd"), ZONE_B.label(disk="ssd")

    assert not is_worth_a_try(NodeAffinity, pod, NODE_ADD, None, in_a, args=added)
    assert is_worth_a_try(NodeAffinity, pod, NODE_ADD, None, in_b, args=added)


@cases(
    "plugin, pod",
    ("NodeAffinity", NodeAffinity, POD.node_affinity(label_term("zone", "Near", "a"))),
    ("InterPodAffinity", InterPodAffinity, POD.pod_affinity("zone", app="not a label value!")),
    ("PodTopologySpread", PodTopologySpread, POD.spread(1, "zone", app="not a label value!")),
)
def test_an_invalid_selector_is_an_error_of_the_hint(plugin: type[Plugin], pod: PodBuilder) -> None:
    """Which takes an error for a yes."""
    with pytest.raises(SelectorError):
        is_worth_a_try(plugin, pod, NODE_ADD, None, ZONE_A)
