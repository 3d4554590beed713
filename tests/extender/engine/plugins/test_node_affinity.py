import pytest

from extender.engine.framework import SKIP, SUCCESS, CycleState, Rows, Status, unresolvable
from extender.engine.plugins.node_affinity import NodeAffinity
from extender.testing import (
    PodBuilder,
    filter_nodes,
    label_term,
    make_node,
    make_pod,
    make_snapshot,
    name_term,
    refusals,
    score_nodes,
)
from extender.values.config.plugin_args import NodeAffinityArgs
from extender.values.objects.decoding import replaced
from extender.values.objects.meta import NodeSelector, NodeSelectorTerm
from extender.values.objects.pod import Affinity, NodeAffinity as Stanza, PreferredSchedulingTerm
from tests.kit.tables import cases

MISMATCH = unresolvable("node(s) didn't match Pod's node affinity/selector")
ENFORCED = "node(s) didn't match scheduler-enforced node affinity"
requiring, preferring = make_pod().node_affinity, make_pod().preferred_node_affinity


def both(*terms: NodeSelectorTerm) -> NodeSelectorTerm:
    """One term with the requirements of all of them."""
    return NodeSelectorTerm(
        match_expressions=[requirement for term in terms for requirement in term.match_expressions],
        match_fields=[requirement for term in terms for requirement in term.match_fields],
    )


@cases(
    "pod, answer",
    ("asks for nothing", make_pod(), SKIP),
    ("an empty selector is fulfilled", make_pod().node_selector(), SUCCESS),
    ("the label is there", make_pod().node_selector(disk="ssd"), SUCCESS),
    ("one of two labels is not", make_pod().node_selector(disk="ssd", gpu="yes"), MISMATCH),
    ("In", requiring(label_term("disk", "In", "hdd", "ssd")), SUCCESS),
    ("not In", requiring(label_term("disk", "In", "hdd")), MISMATCH),
    ("NotIn", requiring(label_term("disk", "NotIn", "hdd")), SUCCESS),
    ("NotIn holds without the label", requiring(label_term("gpu", "NotIn", "yes")), SUCCESS),
    ("NotIn is broken", requiring(label_term("disk", "NotIn", "ssd")), MISMATCH),
    ("Exists", requiring(label_term("disk", "Exists")), SUCCESS),
    ("Exists not", requiring(label_term("gpu", "Exists")), MISMATCH),
    ("DoesNotExist", requiring(label_term("gpu", "DoesNotExist")), SUCCESS),
    ("but it does", requiring(label_term("disk", "DoesNotExist")), MISMATCH),
    ("Gt compares numbers", requiring(label_term("cores", "Gt", "15")), SUCCESS),
    ("Lt is strict", requiring(label_term("cores", "Lt", "16")), MISMATCH),
    ("Gt on something that is no number", requiring(label_term("disk", "Gt", "0")), MISMATCH),
    ("Lt without the label", requiring(label_term("gpu", "Lt", "9")), MISMATCH),
    ("by name", requiring(name_term("In", "n")), SUCCESS),
    ("not this one", requiring(name_term("NotIn", "n")), MISMATCH),
    ("no terms match nothing", requiring(), MISMATCH),
    ("an empty term matches nothing", requiring(NodeSelectorTerm()), MISMATCH),
    ("any term will do", requiring(label_term("gpu", "Exists"), label_term("disk", "Exists")), SUCCESS),
    ("but all of it", requiring(both(label_term("disk", "Exists"), label_term("gpu", "Exists"))), MISMATCH),
    ("fields, too", requiring(both(label_term("disk", "Exists"), name_term("In", "m"))), MISMATCH),
    ("and the selector", make_pod().node_selector(disk="hdd").node_affinity(label_term("disk", "Exists")), MISMATCH),
    ("a faulty term matches nothing", requiring(label_term("disk", "Near", "ssd")), MISMATCH),
    ("and spoils no other one", requiring(label_term("disk", "In"), label_term("disk", "Exists")), SUCCESS),
)
def test_filter(pod: PodBuilder, answer: Status) -> None:
    """A node must have all labels of the selector and match any of the required terms."""
    snapshot = make_snapshot(make_node("n").label(disk="ssd", cores="16"))

    assert filter_nodes(NodeAffinity(), snapshot, pod.obj()) == {"n": answer}


@cases(
    "terms, names",
    ("no name asked for", [label_term("disk", "Exists")], None),
    ("one name", [name_term("In", "n1")], {"n1"}),
    ("any of two, existing or not", [name_term("In", "n1"), name_term("In", "n9")], {"n1", "n9"}),
    ("a term without a name leaves all in play", [name_term("In", "n1"), label_term("disk", "Exists")], None),
    ("NotIn names no node", [name_term("NotIn", "n1")], None),
    ("contradictions drop out", [both(name_term("In", "n1"), name_term("In", "n2")), name_term("In", "n3")], {"n3"}),
)
def test_pre_filter_narrows_to_the_named_nodes(terms: list[NodeSelectorTerm], names: set[str] | None) -> None:
    """When every term names nodes, no other node needs to be looked at."""
    result = NodeAffinity().pre_filter(CycleState(), requiring(*terms).obj(), make_snapshot(make_node("n1")))

    assert result.status.is_success
    assert result.node_names == names


def test_terms_that_contradict_themselves_leave_no_node() -> None:
    pod = requiring(both(name_term("In", "n1"), name_term("In", "n2"))).obj()

    result = NodeAffinity().pre_filter(CycleState(), pod, make_snapshot(make_node("n1")))

    assert result.status == unresolvable("pod affinity terms conflict")


def test_filter_works_without_pre_filter() -> None:
    """A profile may enable the plugin at Filter alone."""
    snapshot = make_snapshot(make_node("n1").label(disk="ssd"), make_node("n2"))

    verdicts = NodeAffinity().filter(CycleState(), make_pod().node_selector(disk="ssd").obj(), Rows.of(snapshot))

    assert verdicts.ok.tolist() == [True, False]


def test_the_profile_adds_required_terms() -> None:
    """addedAffinity holds for every pod of the profile; its refusal comes first."""
    added = Stanza(required=NodeSelector(node_selector_terms=[label_term("team", "In", "a")]))
    plugin = NodeAffinity(NodeAffinityArgs(added_affinity=added))
    snapshot = make_snapshot(make_node("ours").label(team="a"), make_node("theirs").label(team="b"))

    assert refusals(plugin, snapshot, make_pod().obj()) == {"theirs": ENFORCED}
    assert refusals(plugin, snapshot, make_pod().node_selector(x="y").obj()) == {
        "ours": MISMATCH.message,
        "theirs": ENFORCED,
    }


@cases(
    "pod, scores",
    ("prefers nothing", make_pod(), []),
    ("one wish", preferring(8, label_term("disk", "In", "ssd")), [100, 100, 0]),
    (
        "weights add up, shares are cut off",
        preferring(8, label_term("disk", "Exists")).preferred_node_affinity(4, label_term("zone", "In", "a")),
        [100, 66, 0],
    ),
    ("weight 0", preferring(0, label_term("disk", "In")), [0, 0, 0]),
    ("an empty term", preferring(9, NodeSelectorTerm()), [0, 0, 0]),
    ("a name", preferring(1, name_term("In", "none")), [0, 0, 100]),
)
def test_score(pod: PodBuilder, scores: list[int]) -> None:
    """The weights of the preferred terms that match, as a share of the best node's: ssd-a, ssd-b and none."""
    with_ssd = (make_node(f"ssd-{zone}").label(disk="ssd", zone=zone) for zone in "ab")
    snapshot = make_snapshot(*with_ssd, make_node("none"))

    assert [*score_nodes(NodeAffinity(), snapshot, pod.obj()).values()] == scores


def test_the_profile_adds_preferred_terms() -> None:
    added = Stanza(preferred=[PreferredSchedulingTerm(weight=1, preference=label_term("team", "In", "a"))])
    plugin = NodeAffinity(NodeAffinityArgs(added_affinity=added))
    snapshot = make_snapshot(make_node("ours").label(team="a"), make_node("fast").label(disk="ssd"))
    pod = preferring(3, label_term("disk", "In", "ssd")).obj()

    assert score_nodes(plugin, snapshot, pod) == {"ours": 33, "fast": 100}


def test_an_empty_list_of_preferred_terms_is_not_none() -> None:
    """Skip is for pods without the list; who has an empty one is scored, all alike."""
    pod = make_pod().obj()
    empty = replaced(pod, spec=replaced(pod.spec, affinity=Affinity(node_affinity=Stanza(preferred=[]))))

    assert score_nodes(NodeAffinity(), make_snapshot(make_node("n")), pod) == {}
    assert score_nodes(NodeAffinity(), make_snapshot(make_node("n")), empty) == {"n": 0}


def test_an_invalid_preferred_term_fails_the_cycle() -> None:
    pod = preferring(1, label_term("disk", "Near", "ssd")).obj()

    status = NodeAffinity().pre_score(CycleState(), pod, Rows.of(make_snapshot(make_node("n"))))

    assert status.message.startswith(
        '[0].matchExpressions[0].operator: Unsupported value: "Near": supported values: "In", "NotIn"'
    )


def test_a_faulty_added_affinity_is_refused_at_start() -> None:
    added = Stanza(
        required=NodeSelector(node_selector_terms=[label_term("disk", "Near")]),
        preferred=[PreferredSchedulingTerm(weight=1, preference=label_term("disk", "In"))],
    )

    with pytest.raises(
        ValueError, match=r"addedAffinity\.required.*Near.*addedAffinity\.preferred.*values set can't be empty"
    ):
        NodeAffinity(NodeAffinityArgs(added_affinity=added))
