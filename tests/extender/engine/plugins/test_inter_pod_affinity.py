"""Three nodes: n1 and n2 are in region r1, n3 is in region r2; each has a host name of its own."""

from collections.abc import Sequence

import pytest

from extender.engine.framework import SKIP, SUCCESS, CycleState, Rows, Status, unresolvable, unschedulable
from extender.engine.plugins.inter_pod_affinity.plugin import InterPodAffinity
from extender.testing import PodBuilder, filter_nodes, make_cache, make_node, make_pod, make_snapshot, refusals
from extender.values.objects.decoding import replaced
from extender.values.objects.grouping import Namespace
from extender.values.objects.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta
from extender.values.objects.node import HOSTNAME_LABEL, ZONE_LABEL
from extender.values.objects.pod import Affinity, PodAffinity, PodAffinityTerm
from tests.extender.moves import moves
from tests.kit.tables import cases

NODES = [
    make_node("n1").label(region="r1", host="n1"),
    make_node("n2").label(region="r1", host="n2"),
    make_node("n3").label(region="r2", host="n3"),
]
FAR = "node(s) didn't match pod affinity rules"
NEAR = "node(s) didn't match pod anti-affinity rules"
UNWELCOME = "node(s) didn't satisfy existing pods anti-affinity rules"


def selecting(*expressions: tuple[str, str, Sequence[str]], **labels: str) -> LabelSelector:
    """A selector of these labels and of (key, operator, values) expressions."""
    return LabelSelector(
        labels, [LabelSelectorRequirement(key, operator, [*values]) for key, operator, values in expressions]
    )


def term(
    key: str,
    selector: LabelSelector | None,
    namespaces: Sequence[str] = (),
    namespace_selector: LabelSelector | None = None,
) -> PodAffinityTerm:
    return PodAffinityTerm(selector, [*namespaces], key, namespace_selector)


def near(pod: PodBuilder, *terms: PodAffinityTerm) -> PodBuilder:
    """The pod with these required affinity terms."""
    return _with_affinity(pod, Affinity(pod_affinity=PodAffinity([*terms])))


def away(pod: PodBuilder, *terms: PodAffinityTerm) -> PodBuilder:
    """The pod with these required anti-affinity terms."""
    return _with_affinity(pod, Affinity(pod_anti_affinity=PodAffinity([*terms])))


def _with_affinity(pod: PodBuilder, affinity: Affinity) -> PodBuilder:
    built = pod.obj()
    return PodBuilder(replaced(built, spec=replaced(built.spec, affinity=affinity)))


def fitting(pod: PodBuilder, *running: PodBuilder, namespaces: Sequence[Namespace] = ()) -> set[str]:
    """The nodes that pass."""
    snapshot = make_snapshot(*NODES, pods=running, objects=namespaces)
    return set(snapshot.nodes.index) - set(refusals(InterPodAffinity(), snapshot, pod.obj()))


ALL = {"n1", "n2", "n3"}
WEB, DB = make_pod("web").label(app="web"), make_pod("db").label(app="db")
WEB_ON_N1, DB_ON_N1 = WEB.name("web-1").node("n1"), DB.node("n1")


@cases(
    "pod, fits",
    ("the whole region is near", DB.pod_affinity("region", app="web"), {"n1", "n2"}),
    ("only the host is near", DB.pod_affinity("host", app="web"), {"n1"}),
    ("there is no such pod", DB.pod_affinity("host", app="cache"), set()),
    ("there is no such pod, and it is no such pod", WEB.pod_affinity("host", app="cache"), set()),
    ("no node has the key", DB.pod_affinity("rack", app="web"), set()),
    ("only pods of its own namespace", DB.namespace("other").pod_affinity("region", app="web"), set()),
    ("In", near(DB, term("region", selecting(("app", "In", ["web", "cache"])))), {"n1", "n2"}),
    ("NotIn", near(DB, term("region", selecting(("app", "NotIn", ["db"])))), {"n1", "n2"}),
    ("Exists", near(DB, term("region", selecting(("app", "Exists", [])))), {"n1", "n2"}),
    ("DoesNotExist", near(DB, term("region", selecting(("gpu", "DoesNotExist", [])))), {"n1", "n2"}),
    ("a contradiction", near(DB, term("region", selecting(("app", "NotIn", ["web"]), app="web"))), set()),
    ("an empty selector means every pod", near(DB, term("region", LabelSelector())), {"n1", "n2"}),
    ("no selector means none", near(DB, term("region", None)), set()),
    ("every term's place must be near", DB.pod_affinity("region", app="web").pod_affinity("host", app="web"), {"n1"}),
    (
        "one pod must meet all terms",
        near(DB, term("region", selecting(app="web")), term("region", selecting(gpu="yes"))),
        set(),
    ),
)
def test_affinity(pod: PodBuilder, fits: set[str]) -> None:
    """A node is near a pod if it has the same value of the topology key as the pod's node. A web pod runs on n1."""
    assert fitting(pod, WEB_ON_N1) == fits


def test_missing_affinity_is_unresolvable() -> None:
    snapshot = make_snapshot(*NODES, pods=[WEB_ON_N1])

    answers = filter_nodes(InterPodAffinity(), snapshot, DB.pod_affinity("host", app="web").obj())

    assert answers == {"n1": SUCCESS, "n2": unresolvable(FAR), "n3": unresolvable(FAR)}


def test_no_single_pod_meets_all_terms() -> None:
    """A web pod here and one with gpu there do not make one that is both."""
    gpu = make_pod("gpu").label(gpu="yes").node("n1")

    both = near(DB, term("region", selecting(app="web")), term("region", selecting(gpu="yes")))
    assert fitting(both, WEB_ON_N1, gpu) == set()


@cases(
    "pod, running, fits",
    ("the first of its kind may go anywhere", WEB.pod_affinity("region", app="web"), [], ALL),
    ("the second goes to the first", WEB.pod_affinity("region", app="web"), [WEB_ON_N1], {"n1", "n2"}),
    ("the first, too, needs the key", WEB.pod_affinity("rack", app="web"), [], set()),
    ("not among strangers", WEB.pod_affinity("region", app="web"), [WEB.namespace("other").node("n3")], ALL),
    ("all terms mean itself", WEB.pod_affinity("host", app="web").pod_affinity("region", app="web"), [], ALL),
    ("one term does not mean itself", WEB.pod_affinity("host", app="web").pod_affinity("region", app="db"), [], set()),
    ("a pod on a node that is gone is nowhere", WEB.pod_affinity("region", app="web"), [WEB.node("gone")], ALL),
    ("a terminating pod is there still", WEB.pod_affinity("host", app="web"), [WEB.node("n1").terminating()], {"n1"}),
)
def test_the_first_pod_with_its_own_affinity(pod: PodBuilder, running: list[PodBuilder], fits: set[str]) -> None:
    """Where no pod at all meets the terms, a pod that meets them itself may go to any node with all the keys."""
    assert fitting(pod, *running) == fits


def test_a_pod_on_a_node_without_the_key_does_not_count_as_the_first() -> None:
    """A web pod runs on a node without a region; that is near to nothing."""
    snapshot = make_snapshot(*NODES, make_node("n4"), pods=[WEB.node("n4")])
    first = WEB.name("new").pod_affinity("region", app="web").obj()

    assert set(refusals(InterPodAffinity(), snapshot, first)) == {"n4"}


@cases(
    "pod, fits",
    ("the whole region is too near", DB.pod_anti_affinity("region", app="web"), {"n3"}),
    ("only the host is too near", DB.pod_anti_affinity("host", app="web"), {"n2", "n3"}),
    ("there is no such pod", DB.pod_anti_affinity("host", app="cache"), ALL),
    ("without the key nothing is near", DB.pod_anti_affinity("rack", app="web"), ALL),
    ("only pods of its own namespace", DB.namespace("other").pod_anti_affinity("region", app="web"), ALL),
    ("any term will do", DB.pod_anti_affinity("host", app="web").pod_anti_affinity("region", app="db"), {"n2", "n3"}),
    ("an empty selector means every pod", away(DB, term("host", LabelSelector())), {"n2", "n3"}),
    ("no selector means none", away(DB, term("host", None)), ALL),
    (
        "in the region, but not on the host",
        DB.pod_affinity("region", app="web").pod_anti_affinity("host", app="web"),
        {"n2"},
    ),
)
def test_anti_affinity(pod: PodBuilder, fits: set[str]) -> None:
    """A node is refused if a pod that any term means is near. A web pod runs on n1."""
    assert fitting(pod, WEB_ON_N1) == fits


@cases(
    "running, fits",
    ("it wants the region for itself", DB_ON_N1.pod_anti_affinity("region", app="web"), {"n3"}),
    ("it wants the host for itself", DB_ON_N1.pod_anti_affinity("host", app="web"), {"n2", "n3"}),
    ("it refuses other pods", DB_ON_N1.pod_anti_affinity("region", app="cache"), ALL),
    ("its node has no such key", DB_ON_N1.pod_anti_affinity("rack", app="web"), ALL),
    ("it refuses pods of its own namespace", DB_ON_N1.namespace("other").pod_anti_affinity("region", app="web"), ALL),
    ("it refuses all pods", away(DB_ON_N1, term("region", LabelSelector())), {"n3"}),
    ("it refuses no pod", away(DB_ON_N1, term("region", None)), ALL),
    (
        "one of its terms means the pod",
        away(DB_ON_N1, term("host", selecting(("app", "NotIn", ["db"]))), term("region", selecting(app="cache"))),
        {"n2", "n3"},
    ),
    ("an unreadable stanza says nothing", away(DB_ON_N1, term("host", selecting(("app", "Near", [])))), ALL),
    ("terminating, it still refuses", DB_ON_N1.terminating().pod_anti_affinity("host", app="web"), {"n2", "n3"}),
)
def test_anti_affinity_of_existing_pods(running: PodBuilder, fits: set[str]) -> None:
    """A pod that runs may refuse others, too. Here a web pod is to be placed."""
    assert fitting(WEB, running) == fits


def test_conflicts_are_resolvable_and_have_reasons_of_their_own() -> None:
    """Affinity is asked before anti-affinity, and that before what other pods say."""
    db = DB_ON_N1.pod_anti_affinity("host", app="web")
    snapshot = make_snapshot(*NODES, pods=[db, WEB.name("other").node("n2")])
    wants_db = WEB.pod_affinity("region", app="db")

    minded, minds, far_and_minds = (
        filter_nodes(InterPodAffinity(), snapshot, pod.obj())
        for pod in (WEB, WEB.pod_anti_affinity("host", app="db"), wants_db.pod_anti_affinity("host", app="db"))
    )

    assert (minded["n1"], minds["n1"]) == (unschedulable(UNWELCOME), unschedulable(NEAR))
    assert far_and_minds["n3"] == unresolvable(FAR)


TEAMS = [
    Namespace(ObjectMeta(name="red-1", labels={"team": "red"})),
    Namespace(ObjectMeta(name="red-2", labels={"team": "red"})),
    Namespace(ObjectMeta(name="blue", labels={"team": "blue"})),
    Namespace(ObjectMeta(name="none")),
]
NAMES = ("red-1", "red-2", "blue", "none", "unlisted")
RED, NOT_RED = selecting(team="red"), selecting(("team", "NotIn", ["red"]))
NO_TEAM = selecting(("team", "DoesNotExist", []))
WEBS = selecting(app="web")
NAMESPACES = [
    pytest.param(term("host", WEBS), {"red-1"}, id="nothing said: its own"),
    pytest.param(term("host", WEBS, ["blue", "none"]), {"blue", "none"}, id="named"),
    pytest.param(term("host", WEBS, [], RED), {"red-1", "red-2"}, id="selected"),
    pytest.param(term("host", WEBS, ["blue"], RED), {"red-1", "red-2", "blue"}, id="named and selected"),
    pytest.param(term("host", WEBS, [], selecting(team="green")), set(), id="none is selected"),
    pytest.param(term("host", WEBS, [], LabelSelector()), set(NAMES), id="all"),
]


def web_in(namespace: str) -> PodBuilder:
    return WEB.namespace(namespace).node("n1")


@pytest.mark.parametrize(("web_term", "namespaces"), NAMESPACES)
def test_namespaces_of_a_pod_to_be_placed(web_term: PodAffinityTerm, namespaces: set[str]) -> None:
    """A term of a pod in red-1 means pods in these namespaces. The namespace `unlisted` has pods, but no object."""
    pod = away(DB.namespace("red-1"), web_term)

    assert {name for name in NAMES if "n1" not in fitting(pod, web_in(name), namespaces=TEAMS)} == namespaces


@pytest.mark.parametrize(("web_term", "namespaces"), NAMESPACES)
def test_namespaces_of_existing_pods(web_term: PodAffinityTerm, namespaces: set[str]) -> None:
    """The same terms mean the same when the pod with the term runs and the other is to be placed."""
    running = away(DB.namespace("red-1").node("n1"), web_term)

    assert {name for name in NAMES if "n1" not in fitting(WEB.namespace(name), running, namespaces=TEAMS)} == namespaces


@cases(
    "selector, names, expected",
    ("NotIn", NOT_RED, [], {"blue", "none"}),
    ("NotIn, of two values", selecting(("team", "NotIn", ["red", "blue"])), [], {"none"}),
    ("DoesNotExist", NO_TEAM, [], {"none"}),
    ("two of them", selecting(("team", "NotIn", ["red"]), ("team", "NotIn", ["blue"])), [], {"none"}),
    ("NotIn and Exists", selecting(("team", "NotIn", ["red"]), ("team", "Exists", [])), [], {"blue"}),
    ("excluded, but named", NOT_RED, ["red-1"], {"red-1", "blue", "none"}),
)
def test_selectors_that_exclude_namespaces(selector: LabelSelector, names: list[str], expected: set[str]) -> None:
    """Only pods in these namespaces keep a pod in red-1 away, and attract it. Existing pods mean the same; for them a
    namespace without an object is one without labels.
    """
    web_term, pod = term("host", WEBS, names, selector), DB.namespace("red-1")
    existing = away(pod.node("n1"), web_term)

    away_from = {name for name in NAMES if "n1" not in fitting(away(pod, web_term), web_in(name), namespaces=TEAMS)}
    near_to = {name for name in NAMES if "n1" in fitting(near(pod, web_term), web_in(name), namespaces=TEAMS)}
    kept_away = {name for name in NAMES if "n1" not in fitting(WEB.namespace(name), existing, namespaces=TEAMS)}

    assert (away_from, near_to) == (expected, expected)
    assert kept_away - {"unlisted"} == expected


@pytest.mark.parametrize(("namespace", "fits"), [("red-1", set()), ("blue", ALL)])
def test_a_pod_whose_own_namespace_is_excluded_is_not_the_first_of_its_group(namespace: str, fits: set[str]) -> None:
    assert fitting(near(WEB.namespace(namespace), term("region", WEBS, [], NOT_RED)), namespaces=TEAMS) == fits


def test_namespaces_may_change() -> None:
    """What is remembered about namespaces does not outlive them."""
    plugin, pod = InterPodAffinity(), away(DB, term("host", WEBS, [], RED)).obj()

    def refused(team: str) -> set[str]:
        namespace = Namespace(ObjectMeta(name="blue", labels={"team": team}))
        return set(refusals(plugin, make_snapshot(*NODES, pods=[web_in("blue")], objects=[namespace]), pod))

    assert [refused("blue"), refused("red"), refused("blue")] == [set(), {"n1"}, set()]


UNREADABLE = term("host", selecting(("app", "Near", [])))


@cases(
    "pod, running, answer",
    ("no pod demands anything", WEB, [], SKIP),
    ("no pod refuses this pod", WEB, [DB_ON_N1.pod_anti_affinity("host", app="cache")], SKIP),
    ("the refusing pod is on a node without the key", WEB, [DB_ON_N1.pod_anti_affinity("rack", app="web")], SKIP),
    ("affinity of pods that run demands nothing of it", WEB, [DB_ON_N1.pod_affinity("host", app="web")], SKIP),
    ("wishes are no demands", WEB.preferred_pod_affinity(1, "host", app="db"), [], SKIP),
    ("a pod refuses this pod", WEB, [DB_ON_N1.pod_anti_affinity("host", app="web")], SUCCESS),
    ("affinity", WEB.pod_affinity("host", app="web"), [], SUCCESS),
    ("anti-affinity", WEB.pod_anti_affinity("host", app="web"), [], SUCCESS),
    (
        "affinity that cannot be read",
        near(WEB, UNREADABLE),
        [],
        unresolvable('parsing pod: requiredAffinityTerms: "Near" is not a valid label selector operator'),
    ),
    (
        "namespaces that cannot be read",
        away(WEB, term("host", WEBS, [], selecting(("app", "Near", [])))),
        [],
        unresolvable('parsing pod: requiredAntiAffinityTerms: "Near" is not a valid label selector operator'),
    ),
    (
        "neither can be read",
        _with_affinity(
            WEB, Affinity(pod_affinity=PodAffinity([UNREADABLE]), pod_anti_affinity=PodAffinity([UNREADABLE]))
        ),
        [],
        unresolvable(
            'parsing pod: [requiredAffinityTerms: "Near" is not a valid label selector operator, '
            'requiredAntiAffinityTerms: "Near" is not a valid label selector operator]'
        ),
    ),
)
def test_pre_filter(pod: PodBuilder, running: list[PodBuilder], answer: Status) -> None:
    result = InterPodAffinity().pre_filter(CycleState(), pod.obj(), make_snapshot(*NODES, pods=running))

    assert result.status == answer


@cases(
    "pod, running, leave, come, fits",
    ("what it needs leaves", WEB.pod_affinity("region", app="db"), [DB_ON_N1], ["n1"], [], {"n2"}),
    ("what it needs comes", WEB.pod_affinity("region", app="db"), [], [], [("n3", DB)], {"n3"}),
    (
        "the only one leaves: it would be the first",
        WEB.pod_affinity("region", app="web"),
        [WEB_ON_N1],
        ["n1"],
        [],
        {"n1", "n2"},
    ),
    (
        "one of two leaves the region",
        WEB.pod_affinity("region", app="web"),
        [WEB_ON_N1, WEB.name("web-2").node("n2")],
        ["n1"],
        [],
        {"n1", "n2"},
    ),
    ("the first comes, on one row only", WEB.pod_affinity("host", app="web"), [], [], [("n3", WEB.name("first"))], ALL),
    ("what is in the way leaves", WEB.pod_anti_affinity("host", app="db"), [DB_ON_N1], ["n1"], [], ALL),
    ("but not for its neighbours", WEB.pod_anti_affinity("region", app="db"), [DB_ON_N1], ["n1"], [], {"n1", "n3"}),
    (
        "something gets in the way",
        WEB.pod_anti_affinity("host", app="db"),
        [],
        [],
        [("n1", DB), ("n3", DB.name("db-2"))],
        {"n2"},
    ),
    (
        "the refusing pod leaves",
        WEB.pod_anti_affinity("rack", app="web"),
        [DB_ON_N1.pod_anti_affinity("host", app="web")],
        ["n1"],
        [],
        ALL,
    ),
    (
        "a refusing pod comes",
        WEB.pod_anti_affinity("rack", app="web"),
        [],
        [],
        [("n2", DB.pod_anti_affinity("host", app="web"))],
        {"n1", "n3"},
    ),
)
def test_hypotheses(
    pod: PodBuilder, running: list[PodBuilder], leave: list[str], come: list[tuple[str, PodBuilder]], fits: set[str]
) -> None:
    """Each row is judged with its own pods come and gone; the other rows know nothing of it."""
    cache = make_cache(*NODES, pods=running)
    arrivals = [(name, cache.nominate(arrival.obj())) for name, arrival in come]
    snapshot = cache.update_snapshot()
    places = snapshot.nodes.index
    departures = [(places[name], slot, -1) for name in leave for slot in snapshot.pods.on_node[places[name]]]
    came = [(places[name], slot, +1) for name, slot in arrivals]
    rows = Rows.of(snapshot).changed(moves(*departures, *came))
    plugin, state = InterPodAffinity(), CycleState()
    plugin.pre_filter(state, pod.obj(), snapshot)

    verdicts = plugin.filter(state, pod.obj(), rows)

    assert {name for name, ok in zip(rows.names, verdicts.ok, strict=True) if ok} == fits


def test_results_follow_the_pods() -> None:
    """What is kept between cycles knows of pods, labels and terms that are new."""
    cache, plugin = make_cache(*NODES), InterPodAffinity()
    loner, web = DB.name("new").pod_anti_affinity("host", app="db").obj(), WEB.obj()

    def refused() -> tuple[set[str], set[str]]:
        snapshot = cache.update_snapshot()
        return set(refusals(plugin, snapshot, loner)), set(refusals(plugin, snapshot, web))

    before = refused()
    first = DB.name("db-1").node("n1").obj()
    cache.add_pod(first)
    after_db = refused()
    cache.add_pod(DB.name("db-2").node("n2").pod_anti_affinity("region", app="web").obj())
    after_hostile_db = refused()
    cache.remove_pod(first)
    at_last = refused()

    assert before == (set(), set())
    assert after_db == ({"n1"}, set())
    assert after_hostile_db == ({"n1", "n2"}, {"n1", "n2"})
    assert at_last == ({"n2"}, {"n1", "n2"})


NO_NODE_HAS = [term(f"nowhere-{number}", selecting(app="web")) for number in range(1000)]


@cases(
    "pod, running, refused",
    ("anti-affinity", away(DB, *NO_NODE_HAS), WEB_ON_N1, {}),
    ("and one that has", away(DB, *NO_NODE_HAS, term("host", selecting(app="web"))), WEB_ON_N1, {"n1": NEAR}),
    ("anti-affinity of a pod that is there", WEB, away(DB, *NO_NODE_HAS).node("n1"), {}),
    ("affinity", near(DB, *NO_NODE_HAS), WEB_ON_N1, dict.fromkeys(ALL, FAR)),
)
def test_topology_keys_that_no_node_has_cost_nothing(
    pod: PodBuilder, running: PodBuilder, refused: dict[str, str]
) -> None:
    """Nodes are not searched for each of them, and the pods are not counted for each: at most once, for affinity."""
    snapshot = make_snapshot(*NODES, pods=[running])

    assert refusals(InterPodAffinity(), snapshot, pod.obj()) == refused
    assert snapshot.nodes.label_columns.keys() <= {"host", HOSTNAME_LABEL, ZONE_LABEL}
    assert all(len(questions) <= 1 for questions in snapshot.tallies._kept)


def test_a_topology_key_that_a_node_gets_later_counts_from_then_on() -> None:
    cache = make_cache(*NODES, pods=[WEB_ON_N1])
    plugin, pod = InterPodAffinity(), DB.pod_anti_affinity("rack", app="web").obj()
    before = refusals(plugin, cache.update_snapshot(), pod)
    cache.update_node(NODES[0].obj(), NODES[0].label(rack="1").obj())

    assert (before, refusals(plugin, cache.update_snapshot(), pod)) == ({}, {"n1": NEAR})
