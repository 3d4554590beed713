"""What kube-scheduler is answered: filter, prioritize and preempt as functions over a snapshot."""

import random
from collections.abc import Mapping, Sequence

import pytest

from extender.engine import framework as fwk
from extender.engine.plugins import IN_TREE
from extender.engine.plugins.default_preemption import DefaultPreemption
from extender.engine.plugins.node_resources.fit import NodeResourcesFit
from extender.engine.runtime.cycle import NO_NOMINATIONS, Cycle, Nominations
from extender.engine.runtime.framework import Framework
from extender.engine.runtime.plugin_calls import PluginError
from extender.engine.runtime.registry import Registry
from extender.engine.snapshot import Snapshot
from extender.testing import NodeBuilder, PodBuilder, make_cache, make_framework, make_node, make_pod, make_snapshot
from extender.values.config.configuration import Configuration
from extender.values.protocol.wire_types import MetaVictims
from extender.verbs.filtering import FilterResult, filter_nodes
from extender.verbs.preempting import choose_victims
from extender.verbs.verbs import prioritize_nodes
from tests.extender.engine.preemption.test_budgets import budget
from tests.extender.plugins_by_table import Answers, Holds, Looks, PreScores, Refuses, Scores, raising
from tests.kit.tables import cases

POD = make_pod("asked").obj()
NO, NEVER, LATER = fwk.unschedulable("no"), fwk.unresolvable("never"), fwk.Status(fwk.Code.PENDING, ("later",))
UNKNOWN = "node not known to the extender yet"


def nodes(*names: str) -> Snapshot:
    return make_snapshot(*map(make_node, names))


# Filter.


def filtered(
    framework: Framework, snapshot: Snapshot, *node_names: str, nominations: Nominations = NO_NOMINATIONS
) -> FilterResult:
    return filter_nodes(Cycle(framework, snapshot, POD, nominations), node_names)


def kept_names(result: FilterResult, node_names: Sequence[str]) -> list[str]:
    return [node_names[place] for place in result.kept]


def test_every_asked_node_is_in_exactly_one_place() -> None:
    """In the order asked; nodes that were not asked about are in none."""
    node_names = ["e", "unknown", "a", "c", "b", "d"]
    framework = make_framework(Refuses("Filter", {"b": NO, "c": NEVER, "d": LATER, "f": NO}))

    result = filtered(framework, nodes(*"abcdef"), *node_names)

    assert kept_names(result, node_names) == ["e", "a"]
    assert result.failed == {"unknown": UNKNOWN, "b": "no", "d": "later"}
    assert result.failed_and_unresolvable == {"c": "never"}


def test_a_node_says_all_reasons_of_the_plugin_that_refused_it() -> None:
    framework = make_framework(
        Refuses("A", {"a": fwk.unschedulable("Insufficient cpu", "Insufficient memory")}), Refuses("B", {"a": NO})
    )

    assert filtered(framework, nodes("a"), "a").failed == {"a": "Insufficient cpu, Insufficient memory"}


@cases(
    "says, failed, unresolvable",
    ("unschedulable", NO, {"unknown": UNKNOWN, "a": "no", "b": "no"}, {}),
    ("unresolvable", NEVER, {"unknown": UNKNOWN}, {"a": "never", "b": "never"}),
)
def test_a_pre_filter_refuses_all_nodes(says: fwk.Status, failed: dict[str, str], unresolvable: dict[str, str]) -> None:
    result = filtered(make_framework(Looks("A", says)), nodes("a", "b", "c"), "a", "unknown", "b")

    assert (result.kept, result.failed, result.failed_and_unresolvable) == ([], failed, unresolvable)


def test_nodes_that_pre_filter_left_out_cannot_be_helped() -> None:
    """Whatever else is wrong with them."""
    narrowing = [Looks("B", fwk.SUCCESS, "a", "b"), Looks("A", fwk.SUCCESS, "b", "c")]

    result = filtered(make_framework(*narrowing, Refuses("Filter", {"a": NO})), nodes("a", "b", "c"), "a", "b", "c")

    assert kept_names(result, ["a", "b", "c"]) == ["b"]
    assert result.failed == {}
    assert result.failed_and_unresolvable == dict.fromkeys("ac", "node(s) didn't satisfy plugin(s) [A B]")


def test_a_node_whose_allocatable_cannot_be_read_takes_no_pods() -> None:
    result = filtered(make_framework(), make_snapshot(make_node("a").capacity(cpu="four"), make_node("b")), "a", "b")

    assert kept_names(result, ["a", "b"]) == ["b"]
    assert result.failed["a"].startswith("node's allocatable cannot be read: status.allocatable[cpu]: ")


def test_nominated_pods_count() -> None:
    cache, other = make_cache(make_node("a"), make_node("b")), make_pod("other").obj()
    nominations = Nominations({"a": ((cache.nominate(other), other),)})

    result = filtered(make_framework(Holds(1)), cache.update_snapshot(), "a", "b", nominations=nominations)

    assert (kept_names(result, ["a", "b"]), result.failed) == (["b"], {"a": "full"})


def test_a_node_asked_about_twice_has_one_answer() -> None:
    """The faces ask about each node once; who does not is told the same each time."""
    cache, other = make_cache(make_node("a"), make_node("b")), make_pod("other").obj()
    nominations = Nominations({"a": ((cache.nominate(other), other),)})

    result = filtered(make_framework(Holds(1)), cache.update_snapshot(), "a", "b", "a", "b", nominations=nominations)

    assert (result.kept, result.failed) == ([1, 3], {"a": "full"})


def test_filter_without_nodes_keeps_none() -> None:
    assert filtered(make_framework(Refuses("Filter")), nodes("a")) == FilterResult(range(0))


def test_a_plugin_that_fails_is_named() -> None:
    with pytest.raises(PluginError, match='running "Answers" filter plugin: boom'):
        filtered(make_framework(Answers("filter", raising(RuntimeError("boom")))), nodes("a"), "a")


# Prioritize.


def prioritized(framework: Framework, snapshot: Snapshot, *node_names: str) -> list[int]:
    return prioritize_nodes(Cycle(framework, snapshot, POD, NO_NOMINATIONS), node_names)


@cases(
    "by_node, scores",
    ("the whole scale", {"a": 100, "b": 50, "c": 0}, [10, 5, 0]),
    ("the best is not lifted", {"a": 60, "b": 52}, [6, 5, 0]),
    ("rounded half up", {"a": 100, "b": 95, "c": 94}, [10, 10, 9]),
    ("rounded near nothing", {"a": 4, "b": 5}, [0, 1, 0]),
    ("all nothing", {}, [0, 0, 0]),
    ("all equal", {"a": 70, "b": 70, "c": 70}, [7, 7, 7]),
)
def test_plugins_of_the_user_alone_give_a_tenth_of_their_score(by_node: dict[str, int], scores: list[int]) -> None:
    assert prioritized(make_framework(Scores("Score", by_node)), nodes("a", "b", "c"), "a", "b", "c") == scores


@cases(
    "by_node, scores",
    ("however close they are", {"a": 91, "b": 90, "c": 89}, [10, 5, 0]),
    ("from the worst to the best", {"a": 100, "c": 7}, [10, 0, 1]),
    ("rounded", {"a": 50, "b": 48, "c": 10}, [10, 10, 0]),
    ("all equal", {"a": 7, "b": 7, "c": 7}, [10, 10, 10]),
    ("all nothing", {}, [10, 10, 10]),
)
@pytest.mark.parametrize("also", [(), (Scores("Score", {"a": 30, "b": 30, "c": 30}),)], ids=["alone", "and a user's"])
def test_where_a_plugin_of_the_tree_scores_the_nodes_are_spread_over_the_scale(
    by_node: dict[str, int], scores: list[int], also: tuple[fwk.Plugin, ...]
) -> None:
    framework = make_framework(Scores("NodeAffinity", by_node), *also)

    assert prioritized(framework, nodes("a", "b", "c"), "a", "b", "c") == scores


def test_a_plugin_of_the_tree_that_skips_the_pod_spreads_nothing() -> None:
    framework = make_framework(PreScores("NodeAffinity", fwk.SKIP), Scores("Score", {"a": 30, "b": 20}))

    assert prioritized(framework, nodes("a", "b"), "a", "b") == [3, 2]


def test_nodes_of_the_default_profile_get_different_scores() -> None:
    """Their totals differ by some points of about 200."""
    framework = Registry(IN_TREE, []).make_frameworks(Configuration(), random.Random(0))["default-scheduler"]
    running = [make_pod(f"on-{node}").node(node).req(cpu=cpu) for node, cpu in (("a", "4"), ("b", "3"), ("c", "2"))]
    cache = make_cache(*(make_node(name).capacity(cpu="50", memory="64Gi") for name in "abc"), pods=running)

    assert prioritized(framework, cache.update_snapshot(), "a", "b", "c", "unknown") == [0, 5, 10, 0]


def test_scores_come_in_the_order_asked_and_unknown_nodes_get_none() -> None:
    framework = make_framework(Scores("Score", {"a": 100, "b": 40}))

    assert prioritized(framework, nodes("a", "b", "c"), "b", "unknown", "a") == [4, 0, 10]
    assert prioritized(framework, nodes("a"), "unknown") == [0]
    assert prioritized(framework, nodes("a")) == []


def test_the_weights_of_the_profile_count() -> None:
    framework = make_framework(Scores("A", {"a": 100}), Scores("B", {"b": 100}), weights={"A": 1, "B": 4})

    assert prioritized(framework, nodes("a", "b"), "a", "b") == [2, 8]


@pytest.mark.parametrize("name", ["A", "NodeAffinity"])
def test_the_largest_weight_does_not_overflow(name: str) -> None:
    """A weight is an int32."""
    framework = make_framework(
        *(Scores(name, {"a": 100, "b": 50}) for name in (name, "B", "C")),
        weights=dict.fromkeys((name, "B", "C"), 2**31 - 1),
    )

    assert prioritized(framework, nodes("a", "b", "c"), "a", "b", "c") == [10, 5, 0]


def test_a_negative_weight_makes_no_negative_score() -> None:
    framework = make_framework(Scores("A", {"a": 100}), Scores("B", {"b": 100}), weights={"A": 1, "B": -1})

    assert prioritized(framework, nodes("a", "b", "c"), "a", "b", "c") == [5, 0, 0]


@cases("framework", ("no Score plugin", make_framework()), ("all skip", make_framework(PreScores("A", fwk.SKIP))))
def test_nodes_score_zero_without_score_plugins(framework: Framework) -> None:
    assert prioritized(framework, nodes("a", "b"), "a", "b") == [0, 0]


def test_whether_the_pod_fits_is_not_asked_again() -> None:
    """The caller has filtered; its other extenders may have had their say since."""
    framework = make_framework(Looks("A", NEVER), Refuses("Filter", {"a": NO}), Scores("Score", {"a": 100}))

    assert prioritized(framework, nodes("a"), "a") == [10]


def test_a_score_off_the_scale_is_named() -> None:
    with pytest.raises(PluginError, match='plugin "Score" returns an invalid score 101'):
        prioritized(make_framework(Scores("Score", {"a": 101})), nodes("a"), "a")


# Preempt.

PREEMPTOR = make_pod("preemptor").req(cpu=2).priority(10)


def node(name: str, cpu: int = 2) -> NodeBuilder:
    return make_node(name).capacity(cpu=cpu)


def pod(name: str, on: str = "n", *, cpu: int = 1, priority: int = 0) -> PodBuilder:
    return make_pod(name).uid(name).req(cpu=cpu).priority(priority).node(on)


def chosen(
    snapshot: Snapshot,
    candidates: Mapping[str, Sequence[str]],
    preemptor: PodBuilder = PREEMPTOR,
    *,
    framework: Framework | None = None,
    nominations: Nominations = NO_NOMINATIONS,
) -> dict[str, MetaVictims]:
    """The victims that have to go of those that the caller named, by UID."""
    meta_victims = {node: MetaVictims.of(tuple(uids), 7) for node, uids in candidates.items()}
    return choose_victims(
        Cycle(framework or make_framework(NodeResourcesFit, DefaultPreemption), snapshot, preemptor.obj(), nominations),
        meta_victims,
    )


def uids(result: Mapping[str, MetaVictims]) -> dict[str, list[str]]:
    return {node: list(victims.uids) for node, victims in result.items()}


FULL = make_snapshot(node("n"), pods=[pod("a"), pod("b")])


def test_the_callers_victims_are_kept_when_they_suffice() -> None:
    assert uids(chosen(FULL, {"n": ["a", "b"]})) == {"n": ["a", "b"]}


@pytest.mark.parametrize("victim", ["a", "b"])
def test_named_victims_are_kept_when_others_would_do_as_well(victim: str) -> None:
    """The caller may know why it has to be these."""
    assert uids(
        chosen(FULL, {"n": [victim]}, PREEMPTOR.uid("x").name("small"), framework=make_framework(Holds(2)))
    ) == {"n": [victim]}


def test_victims_that_need_not_go_may_stay() -> None:
    """The most important of them."""
    snapshot = make_snapshot(
        node("n", cpu=4), pods=[pod("low", priority=1), pod("high", priority=5), pod("mid", priority=3), pod("other")]
    )

    assert uids(chosen(snapshot, {"n": ["high", "mid", "low"]})) == {"n": ["mid", "low"]}


ROOMY = make_snapshot(node("n", cpu=9), pods=[pod("a", priority=2), pod("b", priority=1), pod("equal", priority=10)])


@pytest.mark.parametrize("victim_uids", [["a"], ["b"], ["a", "b"]])
def test_victims_on_a_node_where_the_pod_fits_as_it_is_stay(victim_uids: list[str]) -> None:
    """An extender before us has named them, for a resource that we cannot know."""
    assert uids(chosen(ROOMY, {"n": victim_uids})) == {"n": victim_uids}


def test_violations_on_a_node_where_the_pod_fits_as_it_is_are_counted() -> None:
    snapshot = make_snapshot(node("n", cpu=9), pods=[pod("a").label(app="web")], objects=[budget(0)])

    assert chosen(snapshot, {"n": ["a"]}) == {"n": MetaVictims.of(("a",), 1)}


def test_a_node_that_fits_and_came_without_victims_is_passed_on_empty() -> None:
    """So that extenders behind us are asked whom they need to go."""
    assert chosen(ROOMY, {"n": []}) == {"n": MetaVictims.of((), 0)}


def test_a_node_without_victims_is_passed_on_beside_others() -> None:
    """Nodes that fit, that need victims, and that nothing helps, in any order."""
    snapshot = make_snapshot(
        node("full"), node("roomy"), node("vital"), pods=[pod("a", "full", cpu=2), pod("c", "vital", priority=10)]
    )

    assert uids(chosen(snapshot, {"vital": [], "roomy": [], "full": ["a"]})) == {"roomy": [], "full": ["a"]}
    assert uids(chosen(snapshot, {"full": [], "unknown": [], "roomy": []})) == {"full": ["a"], "roomy": []}


def test_a_node_where_only_a_nominated_pod_takes_the_room_gets_victims() -> None:
    cache = make_cache(node("n", cpu=3), pods=[pod("a")])
    earlier = make_pod("earlier").req(cpu=1).priority(10).obj()
    nominations = Nominations({"n": ((cache.nominate(earlier), earlier),)})

    assert uids(chosen(cache.update_snapshot(), {"n": []}, nominations=nominations)) == {"n": ["a"]}
    assert uids(chosen(cache.update_snapshot(), {"n": []})) == {"n": []}


def test_a_profile_without_preemption_passes_a_node_without_victims_on_where_its_filters_are_content() -> None:
    assert uids(chosen(ROOMY, {"n": []}, framework=make_framework(Holds(9)))) == {"n": []}
    assert uids(chosen(ROOMY, {"n": []}, framework=make_framework(Refuses("A", {"n": NO})))) == {}


def test_profile_without_preemption_spares_no_victim() -> None:
    """Its plugins are one's own, beside those of kube-scheduler: they cannot tell whether the pod fits, and drop nodes
    or add victims only.
    """
    snapshot = make_snapshot(node("n", cpu=9), node("m", cpu=9), pods=[pod("a"), pod("b"), pod("c", "m")])

    assert uids(chosen(snapshot, {"n": ["a"], "m": ["c"]}, framework=make_framework(Holds(9)))) == {
        "n": ["a"],
        "m": ["c"],
    }
    assert uids(chosen(snapshot, {"n": ["a"], "m": ["c"]}, framework=make_framework(Refuses("A", {"m": NO})))) == {
        "n": ["a"]
    }
    assert uids(chosen(snapshot, {"n": ["a"]}, PREEMPTOR.uid("x").name("y"), framework=make_framework(Holds(1)))) == {
        "n": ["a", "b"]
    }


def test_victims_are_added_when_those_named_are_too_few() -> None:
    """As few as will do; the caller's are those that have to go before ours."""
    snapshot = make_snapshot(node("n", cpu=3), pods=[pod("named", priority=5), pod("low"), pod("lower", priority=-1)])

    assert uids(chosen(snapshot, {"n": ["named"]})) == {"n": ["named", "lower"]}


def test_victims_are_found_where_none_were_named() -> None:
    """kube-scheduler names none on nodes that only an extender refused; here a later state is known."""
    assert uids(chosen(FULL, {"n": []})) == {"n": ["a", "b"]}
    assert uids(chosen(FULL, {"n": []}, make_pod("small").req(cpu=1).priority(10))) == {"n": ["b"]}


@cases(
    "candidates, why",
    ("unknown node", {"gone": ["a"]}, "the node is not known"),
    ("victim without a UID", {"n": ["a", ""]}, "a victim names no pod"),
    ("victim of another node", {"n": ["elsewhere"]}, "it is on another node"),
    ("victim as important as the preemptor", {"o": ["equal"]}, "it is as important"),
    ("a more important one among them", {"n": ["a", "above"]}, "one of them is more important"),
)
def test_a_node_is_dropped_when_its_victims_cannot_be_judged(candidates: dict[str, list[str]], why: str) -> None:
    """Although it would help if they went."""
    pods = [pod("a"), pod("above", priority=11), pod("equal", "o", cpu=2, priority=10), pod("elsewhere", "m", cpu=2)]
    snapshot = make_snapshot(node("n"), node("o"), node("m"), pods=pods)

    assert uids(chosen(snapshot, {**candidates, "m": ["elsewhere"]})) == {"m": ["elsewhere"]}


def test_a_node_is_dropped_where_nothing_helps() -> None:
    pods = [pod("a", "small"), pod("b", "vital", priority=10), pod("c", "vital")]
    snapshot = make_snapshot(node("small", cpu=1), node("vital"), pods=pods)

    assert chosen(snapshot, {"small": ["a"], "vital": ["c"]}) == {}


def test_pod_that_never_preempts_gets_no_victims() -> None:
    assert chosen(FULL, {"n": ["a", "b"]}, PREEMPTOR.preemption_policy("Never")) == {}


@cases(
    "says, answer",
    ("refused for good", Looks("A", NEVER), {}),
    ("refused, but victims may help", Looks("A", NO), {"n": ["a", "b"]}),
    ("the node is left", Looks("A", fwk.SUCCESS, "n"), {"n": ["a", "b"]}),
    ("the node is left out", Looks("A", fwk.SUCCESS, "m"), {}),
)
def test_pre_filters_have_their_say(says: Looks, answer: dict[str, list[str]]) -> None:
    assert uids(chosen(FULL, {"n": ["a", "b"]}, framework=make_framework(says, NodeResourcesFit))) == answer


def test_nodes_are_judged_apart() -> None:
    snapshot = make_snapshot(
        node("n"),
        node("m"),
        node("o"),
        pods=[pod("a", "n"), pod("b", "n"), pod("c", "m", cpu=2), pod("d", "o", priority=10)],
    )

    assert uids(chosen(snapshot, {"m": ["c"], "o": [], "n": ["b", "a"]})) == {"m": ["c"], "n": ["a", "b"]}


def test_victims_are_listed_most_important_first() -> None:
    """kube-scheduler ranks nodes by the first of them."""
    pods = [pod("low", priority=1), pod("high", priority=5)]

    assert uids(chosen(make_snapshot(node("n"), pods=pods), {"n": ["low", "high"]})) == {"n": ["high", "low"]}


@cases("allowed, violations", ("none allowed", 0, 2), ("one allowed", 1, 1), ("two allowed", 2, 0))
def test_violations_of_budgets_are_counted_by_us(allowed: int, violations: int) -> None:
    """Whatever number the caller sent."""
    pods = [pod("a").label(app="web"), pod("b").label(app="web")]

    result = chosen(make_snapshot(node("n"), pods=pods, objects=[budget(allowed)]), {"n": ["a", "b"]})

    assert result["n"].num_pdb_violations == violations


def test_victim_with_a_budget_is_reprieved_first() -> None:
    pods = [pod("web", priority=1).label(app="web"), pod("high", priority=5)]
    snapshot = make_snapshot(node("n"), pods=pods, objects=[budget(0)])

    result = chosen(snapshot, {"n": ["high", "web"]}, make_pod("small").req(cpu=1).priority(10))

    assert result == {"n": MetaVictims.of(("high",), 0)}


def test_nominated_pods_get_their_room_first() -> None:
    cache = make_cache(node("n", cpu=3), pods=[pod("a"), pod("b"), pod("c")])
    earlier = make_pod("earlier").req(cpu=1).priority(10).obj()
    nominations = Nominations({"n": ((cache.nominate(earlier), earlier),)})

    assert uids(chosen(cache.update_snapshot(), {"n": ["a", "b"]}, nominations=nominations)) == {"n": ["a", "b", "c"]}


def test_a_victim_named_twice_is_one_victim() -> None:
    snapshot = make_snapshot(node("n", cpu=3), pods=[pod("a", priority=5), pod("b", priority=5), pod("c")])

    assert uids(chosen(snapshot, {"n": ["a", "a"]})) == {"n": ["a", "c"]}


def test_preempt_without_candidates_chooses_none() -> None:
    assert chosen(FULL, {}) == {}
