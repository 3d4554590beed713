"""Clusters are drawn as upstream's tests draw them: `2/1/0/3` are the matching pods on node-a, node-b, node-x and
node-y; the first two are in zone1, the others in zone2.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pytest

from extender.engine.framework import (
    SKIP,
    SUCCESS,
    CycleState,
    Rows,
    Snapshot,
    Status,
    error,
    unresolvable,
    unschedulable,
)
from extender.engine.plugins.pod_topology_spread.filtering import MISSING_LABEL
from extender.engine.plugins.pod_topology_spread.plugin import PodTopologySpread
from extender.testing import (
    NodeBuilder,
    PodBuilder,
    filter_nodes,
    label_term,
    make_cache,
    make_framework,
    make_node,
    make_pod,
    make_snapshot,
    refusals,
)
from extender.values.objects.decoding import replaced
from extender.values.objects.meta import LabelSelector, LabelSelectorRequirement
from extender.values.objects.node import HOSTNAME_LABEL, ZONE_LABEL
from extender.values.objects.pod import TopologySpreadConstraint
from tests.extender.moves import moves
from tests.kit.tables import cases

ZONE, HOST = "zone", HOSTNAME_LABEL
ANYWAY = "ScheduleAnyway"
TOO_UNEVEN = "node(s) didn't match pod topology spread constraints"
NO_LABEL = "node(s) didn't match pod topology spread constraints (missing required label)"
NODES = ("node-a", "node-b", "node-x", "node-y")
FOO = make_pod().label(foo="")
UNUSABLE = LabelSelector(match_expressions=[LabelSelectorRequirement("foo", "Near")])


def node(name: str) -> NodeBuilder:
    zone = "zone1" if name in ("node-a", "node-b") else "zone2"
    return make_node(name).label({ZONE: zone, HOST: name})


def matching(spread: str, names: Iterable[str] = NODES) -> list[PodBuilder]:
    """So many pods with the label foo on each of the nodes."""
    counts = dict(zip(names, map(int, spread.split("/")), strict=True))
    return [FOO.name(f"{name}-{number}").node(name) for name, count in counts.items() for number in range(count)]


def cluster(spread: str, missing_labels: Mapping[str, str] | None = None) -> Snapshot:
    """Nodes and pods as drawn; `missing_labels` names a label that a node lacks."""
    nodes = [node(name).obj() for name in NODES]
    for name, key in (missing_labels or {}).items():
        place = NODES.index(name)
        labels = {other: value for other, value in nodes[place].labels.items() if other != key}
        nodes[place] = replaced(nodes[place], metadata=replaced(nodes[place].metadata, labels=labels))
    return make_snapshot(*nodes, pods=matching(spread))


def constrained(pod: PodBuilder, max_skew: int, key: str, when: str = "DoNotSchedule", **fields: Any) -> PodBuilder:
    """One more constraint over pods with the label foo, with further fields as given."""
    defaults = {"label_selector": LabelSelector(match_expressions=[LabelSelectorRequirement("foo", "Exists")])}
    constraint = TopologySpreadConstraint(max_skew, key, when, **{**defaults, **fields})
    spec = pod.obj().spec
    constraints = [*spec.topology_spread_constraints, constraint]
    return PodBuilder(replaced(pod.obj(), spec=replaced(spec, topology_spread_constraints=constraints)))


def fitting(snapshot: Snapshot, pod: PodBuilder, plugin: PodTopologySpread | None = None) -> set[str]:
    """The nodes that pass."""
    return set(snapshot.nodes.index) - set(refusals(plugin or PodTopologySpread(), snapshot, pod.obj()))


def names(letters: str) -> set[str]:
    """`abx` -> node-a, node-b, node-x."""
    return {f"node-{letter}" for letter in letters}


@cases(
    "pod, spread, fits",
    ("no existing pods", constrained(FOO, 1, ZONE), "0/0/0/0", "abxy"),
    ("no existing pods, and it does not match itself", constrained(make_pod(), 1, ZONE), "0/0/0/0", "abxy"),
    ("pods of another namespace do not count", constrained(FOO.namespace("other"), 1, ZONE), "2/0/0/0", "abxy"),
    ("zones 3/3", constrained(FOO, 1, ZONE), "2/1/0/3", "abxy"),
    ("zones 2/3", constrained(FOO, 1, ZONE), "1/1/0/3", "ab"),
    ("zones 2/3, a skew of 2 is allowed", constrained(FOO, 2, ZONE), "1/1/0/3", "abxy"),
    ("nodes 2/1/0/3", constrained(FOO, 1, HOST), "2/1/0/3", "x"),
    ("nodes 2/1/0/3, a skew of 2 is allowed", constrained(FOO, 2, HOST), "2/1/0/3", "bx"),
    ("nodes 2/1/0/3, it does not match itself", constrained(make_pod(), 1, HOST), "2/1/0/3", "bx"),
    ("no node has the key", constrained(FOO, 1, "rack"), "2/1/0/3", ""),
    ("[3/3, 2/1/0/3]", constrained(constrained(FOO, 1, ZONE), 1, HOST), "2/1/0/3", "x"),
    ("[2/1/0/3, 3/3]", constrained(constrained(FOO, 1, HOST), 1, ZONE), "2/1/0/3", "x"),
    ("[3/4, 2/1/0/4]", constrained(constrained(FOO, 1, ZONE), 1, HOST), "2/1/0/4", ""),
    ("[1/0, 1/0/0/0]", constrained(constrained(FOO, 1, ZONE), 1, HOST), "1/0/0/0", "xy"),
    ("[1/1, 1/0/0/1]", constrained(constrained(FOO, 1, ZONE), 1, HOST), "1/0/0/1", "bx"),
    ("no selector counts no pod", constrained(FOO, 1, ZONE, label_selector=None), "9/0/0/0", "abxy"),
    ("an empty one counts all pods", constrained(FOO, 1, ZONE, label_selector=LabelSelector()), "9/0/0/0", "xy"),
    (
        "an empty one counts a pod without labels",
        constrained(make_pod(), 1, HOST, label_selector=LabelSelector()),
        "2/1/0/3",
        "x",
    ),
    (
        "an empty one counts no pod of another namespace",
        constrained(FOO.namespace("other"), 1, ZONE, label_selector=LabelSelector()),
        "9/0/0/0",
        "abxy",
    ),
    ("but the pod matches an empty one", constrained(FOO, 0, ZONE, label_selector=LabelSelector()), "0/0/0/0", ""),
)
def test_filter(pod: PodBuilder, spread: str, fits: str) -> None:
    """With the pod, a domain may be ahead of the emptiest one by maxSkew, for every constraint."""
    assert fitting(cluster(spread), pod) == names(fits)


def test_pods_that_terminate_do_not_count() -> None:
    pods = [FOO.name("leaving").node("node-a").terminating(), FOO.name("staying").node("node-b")]
    snapshot = make_snapshot(*map(node, NODES), pods=pods)

    assert fitting(snapshot, constrained(FOO, 1, HOST)) == names("axy")


def test_a_node_without_the_label_is_unresolvable_and_its_pods_do_not_count() -> None:
    snapshot = cluster("2/9/0/3", missing_labels={"node-b": ZONE})

    answers = filter_nodes(PodTopologySpread(), snapshot, constrained(FOO, 1, ZONE).obj())

    assert answers == {
        "node-a": SUCCESS,
        "node-b": unresolvable(NO_LABEL),
        "node-x": unschedulable(TOO_UNEVEN),
        "node-y": unschedulable(TOO_UNEVEN),
    }


def test_a_node_counts_only_with_all_keys() -> None:
    """node-a has no host name: its nine pods count for no constraint, so that zone1 holds one pod."""
    snapshot = cluster("9/1/1/1", missing_labels={"node-a": HOST})

    assert fitting(snapshot, constrained(constrained(FOO, 1, ZONE), 1, HOST)) == names("b")


def test_constraints_are_checked_in_order() -> None:
    """The first that fails gives the reason; only the second is about a label that is missing."""
    snapshot = cluster("9/0/0/0", missing_labels={"node-a": HOST})
    zone_first = constrained(constrained(FOO, 0, ZONE), 1, HOST).obj()
    host_first = constrained(constrained(FOO, 1, HOST), 0, ZONE).obj()

    answers = [filter_nodes(PodTopologySpread(), snapshot, pod)["node-a"] for pod in (zone_first, host_first)]

    assert answers == [unschedulable(TOO_UNEVEN), unresolvable(NO_LABEL)]


@cases(
    "pod, spread, fits",
    ("as many zones as asked for", constrained(FOO, 1, ZONE, min_domains=2), "1/0/1/1", "ab"),
    ("too few zones: the emptiest counts as empty", constrained(FOO, 1, ZONE, min_domains=3), "1/0/1/1", ""),
    ("too few zones, a skew of 2 is allowed", constrained(FOO, 2, ZONE, min_domains=3), "1/0/1/1", "ab"),
    ("as many nodes as asked for", constrained(FOO, 1, HOST, min_domains=4), "1/1/1/2", "abx"),
    ("too few nodes", constrained(FOO, 1, HOST, min_domains=5), "1/1/1/2", ""),
    ("too few nodes, but some are empty anyway", constrained(FOO, 1, HOST, min_domains=5), "0/0/1/2", "ab"),
)
def test_min_domains(pod: PodBuilder, spread: str, fits: str) -> None:
    """With fewer domains than minDomains every domain may hold maxSkew pods at most."""
    assert fitting(cluster(spread), pod) == names(fits)


A_OR_Y = FOO.node_affinity(label_term(HOST, "In", "node-a", "node-y"))


@cases(
    "pod, spread, fits",
    ("Honor is the default", constrained(A_OR_Y, 1, HOST), "2/1/0/3", "abx"),
    ("Honor", constrained(A_OR_Y, 1, HOST, node_affinity_policy="Honor"), "2/1/0/3", "abx"),
    ("Ignore", constrained(A_OR_Y, 1, HOST, node_affinity_policy="Ignore"), "2/1/0/3", "x"),
    ("a node selector as well", constrained(FOO.node_selector({HOST: "node-a"}), 1, HOST), "2/1/0/3", "abxy"),
    ("zones 0/1 without node-b and node-x", constrained(A_OR_Y, 1, ZONE), "0/5/5/1", "ab"),
)
def test_node_affinity_policy(pod: PodBuilder, spread: str, fits: str) -> None:
    """Nodes that the pod's node affinity rules out are no domains and their pods do not count; that they are out is for
    NodeAffinity to say.
    """
    assert fitting(cluster(spread), pod) == names(fits)


@cases(
    "pod, fits",
    ("Ignore is the default", constrained(FOO, 1, HOST), "x"),
    ("Ignore", constrained(FOO, 1, HOST, node_taints_policy="Ignore"), "x"),
    ("Honor: node-x is no domain", constrained(FOO, 1, HOST, node_taints_policy="Honor"), "bx"),
    ("tolerated", constrained(FOO.toleration("busy", "", "", "Exists"), 1, HOST, node_taints_policy="Honor"), "x"),
)
def test_node_taints_policy(pod: PodBuilder, fits: str) -> None:
    """Nodes whose taints the pod does not tolerate are no domains if the policy is Honor. Pods: 2/1/0/3, node-x is
    tainted.
    """
    nodes = [node(name).taint("busy") if name == "node-x" else node(name) for name in NODES]
    snapshot = make_snapshot(*nodes, pods=matching("2/1/0/3"))

    assert fitting(snapshot, pod) == names(fits)


def two_versions() -> Snapshot:
    """Version 2 has one pod, on node-a; version 1 is spread 1/1/0/3."""
    old = [pod.label(version="1") for pod in matching("1/1/0/3")]
    return make_snapshot(*map(node, NODES), pods=[*old, make_pod("new").label(foo="", version="2").node("node-a")])


def while_gate_is(gate: str, is_on: bool) -> PodTopologySpread:
    [plugin] = make_framework(PodTopologySpread, features={gate: is_on}).plugins.pre_filter
    assert isinstance(plugin, PodTopologySpread)
    return plugin


@cases(
    "keys, fits",
    ("none", [], "x"),
    ("only pods of the same version count", ["version"], "bxy"),
    ("a key that the pod lacks is left out", ["absent"], "x"),
)
def test_match_label_keys(keys: list[str], fits: str) -> None:
    """Pods count that agree with the pod in these labels."""

    assert fitting(two_versions(), constrained(FOO.label(version="2"), 1, HOST, match_label_keys=keys)) == names(fits)


def test_match_label_keys_do_not_count_while_their_gate_is_off() -> None:
    off = while_gate_is("MatchLabelKeysInPodTopologySpread", False)
    pod = constrained(FOO.label(version="2"), 1, HOST, match_label_keys=["version"])

    assert fitting(two_versions(), pod, off) == names("x")


@pytest.mark.parametrize(("compares", "fits"), [(True, "x"), (False, "bx")])
def test_a_taint_whose_number_is_tolerated_makes_a_domain_while_comparisons_are_on(compares: bool, fits: str) -> None:
    """TaintTolerationComparisonOperators, with a policy of Honor. Pods: 2/1/0/3, node-x is tainted."""
    snapshot = make_snapshot(
        *(node(name).taint("sla", "950") if name == "node-x" else node(name) for name in NODES),
        pods=matching("2/1/0/3"),
    )
    plugin = while_gate_is("TaintTolerationComparisonOperators", compares)
    pod = constrained(FOO.toleration("sla", "900", "", "Gt"), 1, HOST, node_taints_policy="Honor")

    assert fitting(snapshot, pod, plugin) == names(fits)


def test_match_label_keys_do_not_turn_no_selector_into_one() -> None:
    pod = constrained(FOO.label(version="2"), 1, HOST, label_selector=None, match_label_keys=["version"])

    assert fitting(cluster("2/1/0/3"), pod) == names("abxy")


@cases(
    "pod, spread, leave, come, fits",
    ("as it is", constrained(FOO, 1, ZONE), "1/1/0/3", {}, {}, "ab"),
    ("zone2 gets level", constrained(FOO, 1, ZONE), "1/1/0/3", {"node-y": 1}, {}, "aby"),
    ("zone2 becomes the emptiest", constrained(FOO, 1, ZONE), "1/1/0/3", {"node-y": 3}, {}, "aby"),
    ("zone1 runs ahead", constrained(FOO, 1, ZONE), "0/1/0/1", {}, {"node-a": 1}, "bxy"),
    ("node-a gets level with the emptiest", constrained(FOO, 1, HOST), "2/1/0/3", {"node-a": 2}, {}, "ax"),
    ("the emptiest is filled, and none is emptier", constrained(FOO, 1, HOST), "1/1/0/1", {}, {"node-x": 1}, "x"),
    ("filled up to the others", constrained(FOO, 1, HOST), "2/2/0/2", {}, {"node-x": 2}, "x"),
    ("filled beyond the others", constrained(FOO, 1, HOST), "2/2/0/2", {}, {"node-x": 3}, ""),
    ("two constraints at a time", constrained(constrained(FOO, 1, ZONE), 1, HOST), "2/0/1/0", {"node-a": 2}, {}, "ay"),
    ("too few domains stay too few", constrained(FOO, 1, HOST, min_domains=5), "2/1/0/3", {"node-y": 3}, {}, "xy"),
    (
        "a node that does not count cannot change that",
        constrained(A_OR_Y, 1, HOST),
        "2/1/0/3",
        {},
        {"node-x": 9},
        "abx",
    ),
)
def test_hypotheses(pod: PodBuilder, spread: str, leave: dict[str, int], come: dict[str, int], fits: str) -> None:
    """Each row is judged with its own pods come and gone, which may move the emptiest domain; the other rows know
    nothing of it.
    """
    cache = make_cache(*map(node, NODES), pods=matching(spread))
    coming = [(name, FOO.name(f"new-{name}-{number}").obj()) for name, count in come.items() for number in range(count)]
    arrivals = [(name, cache.nominate(pod)) for name, pod in coming]
    snapshot = cache.update_snapshot()
    places = snapshot.nodes.index
    departures = [
        (places[name], slot, -1)
        for name, count in leave.items()
        for slot in snapshot.pods.on_node[places[name]][:count]
    ]
    came = [(places[name], slot, +1) for name, slot in arrivals]
    rows = Rows.of(snapshot).changed(moves(*departures, *came))
    plugin, state = PodTopologySpread(), CycleState()
    plugin.pre_filter(state, pod.obj(), snapshot)

    verdicts = plugin.filter(state, pod.obj(), rows)

    assert {name for name, ok in zip(rows.names, verdicts.ok, strict=True) if ok} == names(fits)


def test_a_terminating_pod_counts_when_it_leaves() -> None:
    """
    It was not counted where it is, and still is subtracted: upstream does so, and preemption finds what upstream finds.
    """
    snapshot = make_snapshot(
        *map(node, NODES), pods=[*matching("1/0/1/1"), FOO.name("leaving").node("node-a").terminating()]
    )
    rows = Rows.of(snapshot, np.array([snapshot.nodes.index["node-a"]]))
    slot = next(slot for slot in snapshot.pods.on_node[int(rows.node[0])] if snapshot.pod_at(slot).is_terminating)
    pod, plugin, state = constrained(FOO, 1, HOST).obj(), PodTopologySpread(), CycleState()
    plugin.pre_filter(state, pod, snapshot)

    before = plugin.filter(state, pod, rows)
    after = plugin.filter(state, pod, rows.changed(moves((0, slot, -1))))

    assert (before.all_ok, after.all_ok) == (False, True)


@cases(
    "pod, answer",
    ("no constraint", make_pod(), SKIP),
    ("nothing that has to be", constrained(FOO, 1, ZONE, ANYWAY), SKIP),
    ("something that has to be", constrained(FOO, 1, ZONE), SUCCESS),
    (
        "a selector that cannot be used",
        constrained(FOO, 1, ZONE, label_selector=UNUSABLE),
        error(
            'get constraints from pod: obtaining pod\'s hard topology spread constraints: "Near" is not a valid '
            "label selector operator"
        ),
    ),
)
def test_pre_filter(pod: PodBuilder, answer: Status) -> None:
    result = PodTopologySpread().pre_filter(CycleState(), pod.obj(), cluster("0/0/0/0"))

    assert result.status == answer


# Scores.


def scores(snapshot: Snapshot, pod: PodBuilder, letters: str = "") -> dict[str, int] | Status:
    """Letter -> score of the candidates among the nodes (none named: all are), or why there are no scores."""
    places = [snapshot.nodes.index[f"node-{letter}"] for letter in letters] or [*snapshot.nodes.index.values()]
    rows, state, plugin = Rows.of(snapshot, np.array(places, np.intp)), CycleState(), PodTopologySpread()
    status = plugin.pre_score(state, pod.obj(), rows)
    if not status.is_success:
        return status
    normalized = plugin.normalize_score(state, pod.obj(), plugin.score(state, pod.obj(), rows))
    return {name[-1]: score for name, score in zip(rows.names, normalized.tolist(), strict=True)}


def wish(max_skew: int, key: str, pod: PodBuilder = FOO, **fields: Any) -> PodBuilder:
    return constrained(pod, max_skew, key, ANYWAY, **fields)


@cases(
    "pod, spread, candidates, expected",
    ("no existing pods", wish(1, HOST), "0/0/0/0", "ab", {"a": 100, "b": 100}),
    ("a single candidate", wish(1, HOST), "2/1/0/0", "a", {"a": 100}),
    ("no difference", wish(1, HOST), "1/1/0/0", "ab", {"a": 100, "b": 100}),
    ("nodes 2/1/0/3", wish(1, HOST), "2/1/0/3", "abxy", {"a": 20, "b": 60, "x": 100, "y": 0}),
    ("a larger skew matters less", wish(2, HOST), "2/1/0/3", "abxy", {"a": 33, "b": 66, "x": 100, "y": 16}),
    ("a skew of 3", wish(3, HOST), "4/3/2/1", "abxy", {"a": 44, "b": 66, "x": 77, "y": 100}),
    ("no selector", wish(1, HOST, label_selector=None), "2/1/0/3", "ab", {"a": 100, "b": 100}),
    ("an empty selector", wish(1, HOST, label_selector=LabelSelector()), "2/1/0/3", "ab", {"a": 33, "b": 100}),
    ("nodes 4/2/1, node-y is no candidate", wish(1, HOST), "4/2/1/3", "abx", {"a": 33, "b": 83, "x": 100}),
    ("zones 6/4: all nodes count", wish(1, ZONE), "4/2/1/3", "abx", {"a": 75, "b": 75, "x": 100}),
    ("zones 3/6 and nodes 2/2", wish(1, ZONE, wish(1, HOST)), "2/1/2/4", "ax", {"a": 100, "x": 63}),
    ("it need not match itself", wish(1, HOST, make_pod()), "2/1/0/3", "abxy", {"a": 20, "b": 60, "x": 100, "y": 0}),
    ("zones 1/4: node affinity is honoured", wish(1, ZONE, A_OR_Y), "1/9/9/4", "ay", {"a": 100, "y": 16}),
    ("of another namespace", wish(1, ZONE, FOO.namespace("other")), "2/1/0/3", "ax", {"a": 100, "x": 100}),
)
def test_score(pod: PodBuilder, spread: str, candidates: str, expected: dict[str, int]) -> None:
    """
    The fewer matching pods in a node's domains, the better; constraints with more domains to choose from weigh more.
    """
    assert scores(cluster(spread), pod, candidates) == expected


def test_nodes_without_a_key_get_nothing() -> None:
    """Neither a score nor a say in how many domains there are."""
    snapshot = cluster("4/2/1/3", missing_labels={"node-b": HOST})

    assert scores(snapshot, wish(1, HOST), "abx") == {"a": 16, "b": 0, "x": 100}


@cases("pod, answer", ("no constraint", make_pod(), SKIP), ("nothing to wish for", constrained(FOO, 1, ZONE), SKIP))
def test_pre_score_skips(pod: PodBuilder, answer: Status) -> None:
    assert scores(cluster("1/0/0/0"), pod) == answer


def test_pre_score_of_an_invalid_selector() -> None:
    answer = scores(cluster("1/0/0/0"), wish(1, ZONE, label_selector=UNUSABLE))

    assert answer == error(
        'calculating preScoreState: obtaining pod\'s soft topology spread constraints: "Near" is not a valid label '
        "selector operator"
    )


def test_a_selector_is_evaluated_again_when_pods_move() -> None:
    """What is kept between cycles follows the pods."""
    cache = make_cache(*map(node, NODES), pods=matching("0/0/0/0"))
    pod = constrained(FOO, 1, HOST)
    before = fitting(cache.update_snapshot(), pod)
    cache.add_pod(FOO.name("p1").node("node-a").obj())
    after_one = fitting(cache.update_snapshot(), pod)
    for name in ("node-b", "node-x", "node-y"):
        cache.add_pod(FOO.name(f"on-{name}").node(name).obj())
    after_all: set[str] = fitting(cache.update_snapshot(), pod)

    assert (before, after_one, after_all) == (names("abxy"), names("bxy"), names("abxy"))


def test_one_plugin_serves_many_clusters() -> None:
    """Nothing about one cluster is carried into another."""
    plugin, pod = PodTopologySpread(), constrained(FOO, 1, HOST).obj()

    answers = [set(refusals(plugin, cluster(spread), pod)) for spread in ("1/0/0/0", "0/0/0/1", "0/0/0/0")]

    assert answers == [names("a"), names("y"), set()]


def test_a_topology_key_that_no_node_has_decides_without_the_others() -> None:
    """Every node lacks it, and no node counts for the other constraints, which are not measured."""
    pod = make_pod("p").label(app="web").spread(1, "zone", app="web")
    for number in range(100):
        pod = pod.spread(1, f"nowhere-{number}", app="web").spread(1, f"nowhere-{number}", "ScheduleAnyway", app="web")
    running = [make_pod(name).label(app="web").node("a") for name in ("one", "two")]
    snapshot = make_snapshot(make_node("a").label(zone="z1"), make_node("b").label(zone="z2"), pods=running)

    assert refusals(PodTopologySpread(), snapshot, pod.obj()) == dict.fromkeys("ab", MISSING_LABEL)
    assert snapshot.nodes.label_columns.keys() == {HOSTNAME_LABEL, ZONE_LABEL}
