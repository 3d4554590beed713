"""Node selectors: terms are alternatives, a faulty one only spoils itself, and a node may be asked for by name."""

import pytest

from extender.testing import PodBuilder, label_term, make_node, make_pod, name_term
from extender.values.objects.label_selectors import Operator, Requirement, SelectorError
from extender.values.objects.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from extender.values.objects.node import Node
from extender.values.objects.node_selectors import (
    FieldRequirement,
    ParsedTerm,
    node_selector_of,
    preferred_terms,
    required_node_affinity,
    strict_node_selector_of,
)
from extender.values.objects.pod import NodeAffinity, PreferredSchedulingTerm
from tests.kit.tables import cases

FAULTY = label_term("zone", "Near", "a")
FAULT = 'operator: Unsupported value: "Near": supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'


@cases(
    "pod, fits",
    ("nothing demanded", make_pod(), True),
    ("an empty nodeSelector demands nothing", make_pod().node_selector(), True),
    ("the label is there", make_pod().node_selector(zone="a"), True),
    ("it has another value", make_pod().node_selector(zone="b"), False),
    ("no term, no node", make_pod().node_affinity(), False),
    ("an empty term matches nothing", make_pod().node_affinity(NodeSelectorTerm()), False),
    ("any term will do", make_pod().node_affinity(label_term("zone", "In", "b"), label_term("zone", "In", "a")), True),
    ("more than", make_pod().node_affinity(label_term("cpus", "Gt", "7")), True),
    ("less than", make_pod().node_affinity(label_term("cpus", "Lt", "8")), False),
    ("no number to compare", make_pod().node_affinity(label_term("zone", "Gt", "7")), False),
    ("by name", make_pod().node_affinity(name_term("In", "n")), True),
    ("not by that name", make_pod().node_affinity(name_term("NotIn", "n")), False),
    ("a faulty term matches nothing", make_pod().node_affinity(FAULTY), False),
    ("and spoils no other", make_pod().node_affinity(FAULTY, name_term("In", "n")), True),
    ("both demands count", make_pod().node_selector(zone="b").node_affinity(name_term("In", "n")), False),
)
def test_required_affinity(pod: PodBuilder, fits: bool) -> None:
    """A node is good enough when it has all labels of the nodeSelector and matches a term of the required affinity."""
    node = make_node("n").label(zone="a", cpus="8").obj()

    assert required_node_affinity(pod.obj()).matches(node) is fits


def test_faults_are_reported_only_when_they_matter() -> None:
    """The faults of terms are an error for nodes that nothing else kept from matching."""
    required = required_node_affinity(
        make_pod().node_selector(zone="a").node_affinity(FAULTY, name_term("In", "n")).obj()
    )

    assert required.error(make_node("n").label(zone="a").obj()) is None
    assert required.error(make_node("n").label(zone="b").obj()) is None
    assert required.error(make_node("m").label(zone="a").obj()) == f"nodeSelectorTerms[0].matchExpressions[0].{FAULT}"


def test_read_strictly_any_fault_is_refused() -> None:
    """Where a selector must be right, as in the configuration, all its faults are told with their paths."""
    selector = NodeSelector(
        node_selector_terms=[NodeSelectorTerm(), FAULTY, name_term("In", "a", "b"), name_term("Exists")]
    )

    with pytest.raises(SelectorError) as refusal:
        strict_node_selector_of(selector, path="args.addedAffinity")

    path = "args.addedAffinity.nodeSelectorTerms"
    assert str(refusal.value) == (
        f"[{path}[1].matchExpressions[0].{FAULT}, "
        f'{path}[2].matchFields[0].values: Invalid value: ["a","b"]: must have one element, '
        f'{path}[3].matchFields[0].operator: Unsupported value: "Exists": supported values: "In", "NotIn"]'
    )


def test_terms_can_be_taken_apart() -> None:
    """Each requirement of a term is a value that can be asked about one label value, so that many nodes are judged at
    once.
    """
    selector = NodeSelector(
        node_selector_terms=[
            NodeSelectorTerm(
                match_expressions=[NodeSelectorRequirement(key="zone", operator="NotIn", values=["a", "b"])],
                match_fields=[NodeSelectorRequirement(key="metadata.name", operator="NotIn", values=["n"])],
            ),
            FAULTY,
        ]
    )

    good, faulty = node_selector_of(selector).terms

    assert good == ParsedTerm(
        (Requirement("zone", Operator.NOT_IN, ("a", "b")),), (FieldRequirement("metadata.name", "n", negated=True),)
    )
    assert (faulty.expressions, faulty.fields) == ((), ())
    assert [str(error) for error in faulty.errors] == [f"nodeSelectorTerms[1].matchExpressions[0].{FAULT}"]
    assert [good.expressions[0].matches_value(value) for value in (None, "a", "c")] == [True, False, True]
    assert [good.fields[0].matches_name(name) for name in ("n", "m")] == [False, True]


def test_field_requirements_of_odd_nodes_and_fields() -> None:
    """A node without a name fulfils every field requirement; a field other than the name reads as empty."""
    other_field = NodeSelectorTerm(match_fields=[NodeSelectorRequirement(key="spec.x", operator="In", values=[""])])

    assert node_selector_of(NodeSelector(node_selector_terms=[name_term("In", "n")])).matches(Node())
    assert node_selector_of(NodeSelector(node_selector_terms=[other_field])).matches(make_node("n").obj())


def test_preferred_terms_add_up() -> None:
    terms = [
        PreferredSchedulingTerm(weight=5, preference=label_term("zone", "In", "a")),
        PreferredSchedulingTerm(weight=20, preference=label_term("zone", "Exists")),
        PreferredSchedulingTerm(weight=100, preference=name_term("In", "m")),
        PreferredSchedulingTerm(weight=7, preference=NodeSelectorTerm()),
        PreferredSchedulingTerm(weight=0, preference=FAULTY),
    ]

    preferred = preferred_terms(terms)

    assert [
        preferred.score(make_node(name).label(zone=zone).obj()) for name, zone in (("n", "a"), ("n", "b"), ("m", "b"))
    ] == [25, 20, 120]
    assert preferred.score(make_node("n").obj()) == 0
    assert preferred_terms(NodeAffinity().preferred or []).terms == ()


def test_a_faulty_preferred_term_is_refused() -> None:
    """Preferences have no lazy form: one faulty term is an error."""
    with pytest.raises(SelectorError) as refusal:
        preferred_terms([PreferredSchedulingTerm(), PreferredSchedulingTerm(weight=1, preference=FAULTY)])

    assert str(refusal.value) == f"[1].matchExpressions[0].{FAULT}"
