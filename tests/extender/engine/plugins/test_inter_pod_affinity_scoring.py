"""Three nodes: n1 and n2 are in region r1, n3 is in region r2; each has a host name of its own."""

from typing import Any

import numpy as np

from extender.engine.framework import SKIP, SUCCESS, CycleState, Rows, error
from extender.engine.plugins.inter_pod_affinity.plugin import InterPodAffinity
from extender.testing import NodeBuilder, PodBuilder, make_node, make_pod, make_snapshot, score_nodes
from extender.values.config.plugin_args import InterPodAffinityArgs
from extender.values.objects.decoding import replaced
from extender.values.objects.grouping import Namespace
from extender.values.objects.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta
from extender.values.objects.pod import Affinity, PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm
from tests.kit.tables import cases

NODES = [
    make_node("n1").label(region="r1", host="n1"),
    make_node("n2").label(region="r1", host="n2"),
    make_node("n3").label(region="r2", host="n3"),
]
WEB, DB = make_pod("web").label(app="web"), make_pod("db").label(app="db")
DB_ON_N1 = DB.node("n1")
SKIPPED: dict[str, int] = {}
liking, disliking = WEB.preferred_pod_affinity, WEB.preferred_pod_anti_affinity


def scored(n1: int, n2: int, n3: int) -> dict[str, int]:
    return {"n1": n1, "n2": n2, "n3": n3}


def scores(pod: PodBuilder, running: list[PodBuilder], args: InterPodAffinityArgs | None = None) -> dict[str, int]:
    """Node -> score; nothing if the plugin has nothing to say."""
    numbered = [other.name(f"{number}") for number, other in enumerate(running)]
    return score_nodes(InterPodAffinity(args), make_snapshot(*NODES, pods=numbered), pod.obj())


@cases(
    "pod, running, expected",
    ("no wishes", WEB, [], SKIPPED),
    ("no pod prefers anything", WEB, [DB_ON_N1], SKIPPED),
    ("there is no such pod", liking(5, "region", app="db"), [], SKIPPED),
    ("no node has the key", liking(5, "rack", app="db"), [DB_ON_N1], SKIPPED),
    ("the region is liked", liking(5, "region", app="db"), [DB_ON_N1], scored(100, 100, 0)),
    ("the host is liked", liking(5, "host", app="db"), [DB_ON_N1], scored(100, 0, 0)),
    (
        "more of them are better: 10/10/5",
        liking(5, "region", app="db"),
        [DB_ON_N1, DB.node("n2"), DB.node("n3")],
        scored(100, 100, 0),
    ),
    (
        "two terms: 10/8/2",
        liking(8, "region", app="db").preferred_pod_affinity(2, "host", app="cache"),
        [DB_ON_N1, make_pod().label(app="cache").node("n1"), make_pod().label(app="cache").node("n3")],
        scored(100, 75, 0),
    ),
    ("it is disliked", disliking(5, "region", app="db"), [DB_ON_N1], scored(0, 0, 100)),
    (
        "near, but not too near: 3/8/0",
        liking(8, "region", app="db").preferred_pod_anti_affinity(5, "host", app="db"),
        [DB_ON_N1],
        scored(37, 100, 0),
    ),
    ("-21/-7/0", disliking(7, "host", app="db"), [DB_ON_N1, DB_ON_N1, DB_ON_N1, DB.node("n2")], scored(0, 66, 100)),
    (
        "wishes that cancel out are wishes still",
        liking(5, "host", app="db").preferred_pod_anti_affinity(5, "host", app="db"),
        [DB_ON_N1],
        scored(0, 0, 0),
    ),
    ("all are equally good", liking(5, "host", app="db"), [DB_ON_N1, DB.node("n2"), DB.node("n3")], scored(0, 0, 0)),
    ("strangers", WEB.namespace("other").preferred_pod_affinity(5, "host", app="db"), [DB_ON_N1], SKIPPED),
    ("a terminating pod is there still", liking(5, "host", app="db"), [DB_ON_N1.terminating()], scored(100, 0, 0)),
)
def test_preferred_terms_of_the_pod(pod: PodBuilder, running: list[PodBuilder], expected: dict[str, int]) -> None:
    """
    Every pod that a term means adds its weight to all nodes of its place, or takes it off if it is about anti-affinity.
    """
    assert scores(pod, running) == expected


@cases(
    "running, expected",
    ("liked", [DB_ON_N1.preferred_pod_affinity(5, "region", app="web")], scored(100, 100, 0)),
    ("disliked", [DB_ON_N1.preferred_pod_anti_affinity(5, "host", app="web")], scored(0, 100, 100)),
    ("another one is liked", [DB_ON_N1.preferred_pod_affinity(5, "region", app="cache")], SKIPPED),
    ("on a node without the key", [DB_ON_N1.preferred_pod_affinity(5, "rack", app="web")], SKIPPED),
    ("required anti-affinity is not a matter of scores", [DB_ON_N1.pod_anti_affinity("host", app="web")], SKIPPED),
    ("it is needed", [DB_ON_N1.pod_affinity("host", app="web")], scored(100, 0, 0)),
    (
        "needed 1, liked 4",
        [DB_ON_N1.pod_affinity("host", app="web"), DB.node("n3").preferred_pod_affinity(4, "host", app="web")],
        scored(25, 0, 100),
    ),
    (
        "wishes that cancel out are wishes still",
        [
            DB_ON_N1.preferred_pod_affinity(5, "host", app="web"),
            DB_ON_N1.preferred_pod_anti_affinity(5, "host", app="web"),
        ],
        scored(0, 0, 0),
    ),
    (
        "by strangers it is not meant",
        [DB.namespace("other").node("n1").preferred_pod_affinity(5, "host", app="web")],
        SKIPPED,
    ),
)
def test_preferred_terms_of_existing_pods(running: list[PodBuilder], expected: dict[str, int]) -> None:
    """
    They count just so. A required affinity term weighs 1 if nothing else is configured. Here a web pod is to be placed.
    """
    assert scores(WEB, running) == expected


def test_preferred_terms_of_both_sides_add_up() -> None:
    """n1: 5 of the pod's and 3 of the other's; n3: 4 of another one's. 8/0/4."""
    pod = liking(5, "host", app="db")
    running = [
        DB_ON_N1.preferred_pod_affinity(3, "host", app="web"),
        make_pod().node("n3").preferred_pod_affinity(4, "host", app="web"),
    ]

    assert scores(pod, running) == scored(100, 0, 50)


@cases(
    "weight, expected",
    ("weighs nothing", 0, scored(0, 0, 100)),
    ("1/0/4", 1, scored(25, 0, 100)),
    ("16/0/4", 16, scored(100, 0, 25)),
)
def test_hard_pod_affinity_weight(weight: int, expected: dict[str, int]) -> None:
    """What the required affinity of a pod that runs is worth."""
    running = [DB_ON_N1.pod_affinity("host", app="web"), DB.node("n3").preferred_pod_affinity(4, "host", app="web")]

    assert scores(WEB, running, InterPodAffinityArgs(hard_pod_affinity_weight=weight)) == expected


def test_required_affinity_of_weight_zero_does_not_count() -> None:
    weightless = InterPodAffinityArgs(hard_pod_affinity_weight=0)

    assert scores(WEB, [DB_ON_N1.pod_affinity("host", app="web")], weightless) == SKIPPED


@cases(
    "pod, expected",
    ("a pod without wishes", WEB, SKIPPED),
    ("a pod with wishes: -3/5/0", liking(5, "host", app="db"), scored(0, 100, 37)),
    ("demands are no wishes", WEB.pod_affinity("host", app="db"), SKIPPED),
)
def test_ignore_preferred_terms_of_existing_pods(pod: PodBuilder, expected: dict[str, int]) -> None:
    """Spares pods without wishes the look at those of others; for other pods nothing changes."""
    running = [make_pod().node("n1").preferred_pod_anti_affinity(3, "host", app="web"), DB.node("n2")]

    assert scores(pod, running, InterPodAffinityArgs(ignore_preferred_terms_of_existing_pods=True)) == expected


def test_only_feasible_nodes_set_the_scale() -> None:
    """Pods on other nodes count, but what those nodes would score does not. 10/10/5, n2 and n3 being candidates."""
    pod = liking(5, "region", app="db").obj()
    snapshot = make_snapshot(*NODES, pods=[DB.name(f"db-{node}").node(node) for node in ("n1", "n2", "n3")])
    rows, state, plugin = Rows.of(snapshot, np.array([1, 2])), CycleState(), InterPodAffinity()
    plugin.pre_score(state, pod, rows)
    raw = plugin.score(state, pod, rows)

    assert (raw.tolist(), plugin.normalize_score(state, pod, raw).tolist()) == ([10, 5], [100, 0])


def wishing(**fields: Any) -> PodBuilder:
    """A pod in the namespace red that wishes to be on the host of a db pod, its term with further fields as given."""
    term = PodAffinityTerm(label_selector=LabelSelector({"app": "db"}), topology_key="host", **fields)
    pod = WEB.namespace("red").obj()
    affinity = Affinity(pod_affinity=PodAffinity(preferred=[WeightedPodAffinityTerm(5, term)]))
    return PodBuilder(replaced(pod, spec=replaced(pod.spec, affinity=affinity)))


def requiring(key: str, operator: str, *values: str) -> LabelSelector:
    return LabelSelector(match_expressions=[LabelSelectorRequirement(key, operator, [*values])])


ON_N1, NOWHERE = scored(100, 0, 0), SKIPPED


@cases(
    "pod, expected",
    ("its own namespace", wishing(), NOWHERE),
    ("named", wishing(namespaces=["blue"]), ON_N1),
    ("selected", wishing(namespace_selector=LabelSelector({"team": "blue"})), ON_N1),
    ("another one is selected", wishing(namespace_selector=LabelSelector({"team": "red"})), NOWHERE),
    ("all", wishing(namespace_selector=LabelSelector()), ON_N1),
    ("another is excluded", wishing(namespace_selector=requiring("team", "NotIn", "red")), ON_N1),
    ("excluded by value", wishing(namespace_selector=requiring("team", "NotIn", "blue")), NOWHERE),
    ("excluded by key", wishing(namespace_selector=requiring("team", "DoesNotExist")), NOWHERE),
    ("excluded, but named", wishing(namespaces=["blue"], namespace_selector=requiring("team", "DoesNotExist")), ON_N1),
)
def test_namespaces(pod: PodBuilder, expected: dict[str, int]) -> None:
    """A db pod runs on n1, in the namespace blue of the team blue."""
    team = Namespace(ObjectMeta(name="blue", labels={"team": "blue"}))
    snapshot = make_snapshot(*NODES, pods=[DB.namespace("blue").node("n1")], objects=[team])

    assert score_nodes(InterPodAffinity(), snapshot, pod.obj()) == expected


@cases(
    "labels, expected",
    ("selected", {"team": "blue"}, ON_N1),
    ("not selected", {"team": "green"}, NOWHERE),
    ("without labels", {}, NOWHERE),
)
def test_labels_of_the_namespace_of_the_pod(labels: dict[str, str], expected: dict[str, int]) -> None:
    """A pod on n1 wishes for db pods of the namespaces of team blue."""
    wisher = wishing(namespace_selector=LabelSelector({"team": "blue"})).node("n1")
    snapshot = make_snapshot(*NODES, pods=[wisher], objects=[Namespace(ObjectMeta(name="new", labels=labels))])

    assert score_nodes(InterPodAffinity(), snapshot, DB.namespace("new").obj()) == expected


@cases(
    "node, is_a_place",
    ("without the label", make_node("n"), False),
    ("an empty label is a label", make_node("n").label(host=""), True),
)
def test_a_node_without_the_label_is_in_no_domain(node: NodeBuilder, is_a_place: bool) -> None:
    snapshot = make_snapshot(node, pods=[DB.node("n")])

    status = InterPodAffinity().pre_score(CycleState(), liking(1, "host", app="db").obj(), Rows.of(snapshot))

    assert status == (SUCCESS if is_a_place else SKIP)


def test_invalid_terms() -> None:
    """PreFilter would have said so before."""
    near = PodAffinityTerm(requiring("app", "Near"), topology_key="host")
    pod = replaced(WEB.obj(), spec=replaced(WEB.obj().spec, affinity=Affinity(pod_affinity=PodAffinity([near]))))

    status = InterPodAffinity().pre_score(CycleState(), pod, Rows.of(make_snapshot(*NODES)))

    assert status == error('failed to parse pod: requiredAffinityTerms: "Near" is not a valid label selector operator')
