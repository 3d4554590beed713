"""The masks over nodes agree with the scalar selectors about every node."""

from hypothesis import given, settings, strategies as st

from extender.engine.snapshot.matching import node_selector_mask, required_node_affinity_mask, weights_of_terms
from extender.testing import make_node, make_pod, make_snapshot
from extender.values.objects.label_selectors import SelectorError
from extender.values.objects.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from extender.values.objects.node_selectors import (
    PreferredTerm,
    PreferredTerms,
    node_selector_of,
    preferred_terms,
    required_node_affinity,
)
from extender.values.objects.pod import Pod, PreferredSchedulingTerm

KEYS = st.sampled_from(["disk", "cores"])
VALUES = st.sampled_from(["ssd", "hdd", "", "4", "16", "-1"])
NAMES = st.sampled_from(["", "a", "b", "c"])

label_requirements = st.builds(
    NodeSelectorRequirement,
    key=st.one_of(KEYS, st.just("no label key!")),
    operator=st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Near"]),
    values=st.lists(VALUES, max_size=2),
)
field_requirements = st.builds(
    NodeSelectorRequirement,
    key=st.sampled_from(["metadata.name", "metadata.namespace"]),
    operator=st.sampled_from(["In", "NotIn", "Exists"]),
    values=st.lists(NAMES, max_size=2),
)
terms = st.builds(
    NodeSelectorTerm,
    match_expressions=st.lists(label_requirements, max_size=3),
    match_fields=st.lists(field_requirements, max_size=1),
)
selectors = st.builds(
    NodeSelector, node_selector_terms=st.one_of(st.lists(terms, max_size=3), st.lists(terms, min_size=20, max_size=90))
)
preferences = st.lists(
    st.builds(
        PreferredSchedulingTerm,
        weight=st.integers(-3, 100),
        preference=st.one_of(
            terms, st.builds(NodeSelectorTerm, match_expressions=st.lists(label_requirements, min_size=1, max_size=1))
        ),
    ),
    max_size=80,
)
nodes = st.lists(st.tuples(NAMES, st.dictionaries(KEYS, VALUES)), unique_by=lambda node: node[0], max_size=4).map(
    lambda drawn: [make_node(name).label(labels).obj() for name, labels in drawn]
)
pods = st.builds(
    lambda labels, selector: make_pod().node_selector(labels).node_affinity(*selector.node_selector_terms).obj(),
    st.dictionaries(KEYS, VALUES, max_size=1),
    selectors,
)


@settings(deadline=None)
@given(nodes, selectors)
def test_node_selectors(cluster: list, selector: NodeSelector) -> None:
    """A node selector selects the same nodes one by one and all at once, faulty terms and nameless nodes included."""
    snapshot, parsed = make_snapshot(*cluster), node_selector_of(selector)

    mask = node_selector_mask(snapshot, parsed)

    assert mask.tolist() == [parsed.matches(node) for node in snapshot.nodes.objects]


@settings(deadline=None)
@given(nodes, pods)
def test_required_node_affinity(cluster: list, pod: Pod) -> None:
    """So do spec.nodeSelector and the required node affinity of a pod together."""
    snapshot, required = make_snapshot(*cluster), required_node_affinity(pod)

    mask = required_node_affinity_mask(snapshot, pod)

    assert mask.tolist() == [required.matches(node) for node in snapshot.nodes.objects]


@settings(deadline=None)
@given(nodes, preferences)
def test_preferred_node_affinity(cluster: list, terms: list[PreferredSchedulingTerm]) -> None:
    """The preferred terms weigh the same one by one and all at once, however many are about one label."""
    snapshot = make_snapshot(*cluster)
    parsed = PreferredTerms(tuple(term for preference in terms for term in parsed_or_none(preference)))

    weights = weights_of_terms(snapshot, parsed)

    assert weights.tolist() == [parsed.score(node) for node in snapshot.nodes.objects]


def parsed_or_none(preference: PreferredSchedulingTerm) -> tuple[PreferredTerm, ...]:
    """Returns the term; none if it is faulty."""
    try:
        return preferred_terms([preference]).terms
    except SelectorError:
        return ()


def test_a_label_that_changes_is_read_again() -> None:
    """Masks follow the cluster: what is kept per label is brought up to date with the node."""
    pod = make_pod().node_selector(disk="ssd").obj()

    before = required_node_affinity_mask(make_snapshot(make_node("n").label(disk="hdd")), pod)
    after = required_node_affinity_mask(make_snapshot(make_node("n").label(disk="ssd")), pod)

    assert (before.tolist(), after.tolist()) == ([False], [True])
