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

MISMATCH = unresolvable("node(s) didn't match Pod's node affinity/selector")
ENFORCED = "node(s) didn't match scheduler-enforced node affinity"
requiring, preferring = make_pod().node_affinity, make_pod().preferred_node_affinity


def both(*terms: NodeSelectorTerm) -> NodeSelectorTerm:
    """One term with the requirements of all of them."""
    return NodeSelectorTerm(
        match_expressions=[requirement for term in terms for requirement in term.match_expressions],
        match_fields=[requirement for term in terms for requirement in term.match_fields],
    )


@pytest.mark.parametrize(
    ("pod", "answer"),
    [
        pytest.param(make_pod(), SKIP, id="asks for nothing"),
        pytest.param(make_pod().node_selector(), SUCCESS, id="an empty selector is fulfilled"),
        pytest.param(make_pod().node_selector(disk="ssd"), SUCCESS, id="the label is there"),
        pytest.param(make_pod().node_selector(disk="ssd", gpu="yes"), MISMATCH, id="one of two labels is not"),
        pytest.param(requiring(label_term("disk", "In", "hdd", "ssd")), SUCCESS, id="In"),
        pytest.param(requiring(label_term("disk", "In", "hdd")), MISMATCH, id="not In"),
        pytest.param(requiring(label_term("disk", "NotIn", "hdd")), SUCCESS, id="NotIn"),
        pytest.param(requiring(label_term("gpu", "NotIn", "yes")), SUCCESS, id="NotIn holds without the label"),
        pytest.param(requiring(label_term("disk", "NotIn", "ssd")), MISMATCH, id="NotIn is broken"),
        pytest.param(requiring(label_term("disk", "Exists")), SUCCESS, id="Exists"),
        pytest.param(requiring(label_term("gpu", "Exists")), MISMATCH, id="Exists not"),
        pytest.param(requiring(label_term("gpu", "DoesNotExist")), SUCCESS, id="DoesNotExist"),
        pytest.param(requiring(label_term("disk", "DoesNotExist")), MISMATCH, id="but it does"),
        pytest.param(requiring(label_term("cores", "Gt", "15")), SUCCESS, id="Gt compares numbers"),
        pytest.param(requiring(label_term("cores", "Lt", "16")), MISMATCH, id="Lt is strict"),
        pytest.param(requiring(label_term("disk", "Gt", "0")), MISMATCH, id="Gt on something that is no number"),
        pytest.param(requiring(label_term("gpu", "Lt", "9")), MISMATCH, id="Lt without the label"),
        pytest.param(requiring(name_term("In", "n")), SUCCESS, id="by name"),
        pytest.param(requiring(name_term("NotIn", "n")), MISMATCH, id="not this one"),
        pytest.param(requiring(), MISMATCH, id="no terms match nothing"),
        pytest.param(requiring(NodeSelectorTerm()), MISMATCH, id="an empty term matches nothing"),
        pytest.param(
            requiring(label_term("gpu", "Exists"), label_term("disk", "Exists")), SUCCESS, id="any term will do"
        ),
        pytest.param(
            requiring(both(label_term("disk", "Exists"), label_term("gpu", "Exists"))), MISMATCH, id="but all of it"
        ),
        pytest.param(requiring(both(label_term("disk", "Exists"), name_term("In", "m"))), MISMATCH, id="fields, too"),
        pytest.param(
            make_pod().node_selector(disk="hdd").node_affinity(label_term("disk", "Exists")),
            MISMATCH,
            id="and the selector",
        ),
        pytest.param(requiring(label_term("disk", "Near", "ssd")), MISMATCH, id="a faulty term matches nothing"),
        pytest.param(
            requiring(label_term("disk", "In"), label_term("disk", "Exists")), SUCCESS, id="and spoils no other one"
        ),
    ],
)
def test_filter(pod: PodBuilder, answer: Status) -> None:
    """A node must have all labels of the selector and match any of the required terms."""
    snapshot = make_snapshot(make_node("n").label(disk="ssd", cores="16"))

    assert filter_nodes(NodeAffinity(), snapshot, pod.obj()) == {"n": answer}


@pytest.mark.parametrize(
    ("terms", "names"),
    [
        pytest.param([label_term("disk", "Exists")], None, id="no name asked for"),
        pytest.param([name_term("In", "n1")], {"n1"}, id="one name"),
        pytest.param([name_term("In", "n1"), name_term("In", "n9")], {"n1", "n9"}, id="any of two, existing or not"),
        pytest.param(
            [name_term("In", "n1"), label_term("disk", "Exists")], None, id="a term without a name leaves all in play"
        ),
        pytest.param([name_term("NotIn", "n1")], None, id="NotIn names no node"),
        pytest.param(
            [both(name_term("In", "n1"), name_term("In", "n2")), name_term("In", "n3")],
            {"n3"},
            id="contradictions drop out",
        ),
    ],
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


@pytest.mark.parametrize(
    ("pod", "scores"),
    [
        pytest.param(make_pod(), [], id="prefers nothing"),
        pytest.param(preferring(8, label_term("disk", "In", "ssd")), [100, 100, 0], id="one wish"),
        pytest.param(
            preferring(8, label_term("disk", "Exists")).preferred_node_affinity(4, label_term("zone", "In", "a")),
            [100, 66, 0],
            id="weights add up, shares are cut off",
        ),
        pytest.param(preferring(0, label_term("disk", "In")), [0, 0, 0], id="weight 0"),
        pytest.param(preferring(9, NodeSelectorTerm()), [0, 0, 0], id="an empty term"),
        pytest.param(preferring(1, name_term("In", "none")), [0, 0, 100], id="a name"),
    ],
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
