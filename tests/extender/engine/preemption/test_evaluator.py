"""From "fits nowhere" to the node and the pods that would have to leave it, and what is said when there is none."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import final

import numpy as np

from extender.engine import framework as fwk
from extender.engine.framework import Candidates, PreemptionOutcome
from extender.engine.plugins.default_preemption import DefaultPreemption
from extender.engine.plugins.node_resources.fit import NodeResourcesFit
from extender.engine.plugins.taints import NodeUnschedulable
from extender.engine.preemption import V1_36
from extender.engine.preemption.evaluator import Evaluator, nodes_where_preemption_might_help
from extender.engine.runtime.cycle import NO_NOMINATIONS, Cycle, Nominations
from extender.engine.runtime.findings import run_post_filter_plugins
from extender.engine.runtime.framework import Framework
from extender.engine.snapshot import Rows, Snapshot
from extender.engine.snapshot.axes import Int64s
from extender.testing import NodeBuilder, PodBuilder, make_cache, make_framework, make_node, make_pod, make_snapshot
from extender.values.objects.grouping import PodDisruptionBudget
from extender.values.objects.meta import LabelSelector, LabelSelectorRequirement
from tests.extender.engine.preemption.test_budgets import budget
from tests.kit.tables import cases

PREEMPTOR = make_pod("preemptor").req(cpu=2).priority(10)
EARLIER, LATER = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
NO_VICTIMS = "No preemption victims found for incoming pod"


def node(name: str) -> NodeBuilder:
    return make_node(name).capacity(cpu=2)


def pod(name: str, on: str, *, cpu: int = 1, priority: int = 0) -> PodBuilder:
    return make_pod(name).req(cpu=cpu).priority(priority).node(on)


def every(number: int) -> tuple[int, int]:
    """Try all nodes, the first one first."""
    return 0, number


def preempt(
    snapshot: Snapshot,
    preemptor: PodBuilder = PREEMPTOR,
    *,
    framework: Framework | None = None,
    nominations: Nominations = NO_NOMINATIONS,
    statuses: fwk.NodeStatuses | None = None,
    evaluator: Callable[[Framework], Evaluator] = lambda framework: Evaluator(framework, every),
) -> PreemptionOutcome:
    """Filter, and where that leaves no node, preempt."""
    framework = framework or make_framework(NodeUnschedulable, NodeResourcesFit)
    preempting = preemptor.obj()
    state = Cycle(framework, snapshot, preempting, nominations)
    state.run_pre_filter_plugins()
    rows = Rows.of(snapshot)
    verdicts = state.run_filters_with_nominated_pods(rows)
    refused = statuses or fwk.NodeStatuses.refused(verdicts, rows, fwk.unresolvable())
    return asyncio.run(evaluator(framework).preempt(state, preempting, refused))


def victims(outcome: PreemptionOutcome) -> dict[str, list[str]]:
    """Candidate node -> its victims, in order."""
    assert outcome.candidates is not None
    return {one.node: [pod.name for pod in one.victims] for one in outcome.candidates.listed()}


def num_violations(outcome: PreemptionOutcome) -> int:
    assert outcome.chosen is not None
    return outcome.chosen.num_pdb_violations


LOW_AND_HIGH = [pod("low", "n", priority=1), pod("high", "n", priority=5)]


# Which victims.


def test_room_is_made() -> None:
    outcome = preempt(make_snapshot(node("n"), pods=[pod("a", "n"), pod("b", "n")]))

    assert (outcome.status, outcome.nominated_node) == (fwk.SUCCESS, "n")
    assert outcome.chosen is not None
    assert [pod.name for pod in outcome.chosen.victims] == ["a", "b"]


@cases(
    "asks, pods, names",
    ("the more important one is reprieved", 1, LOW_AND_HIGH, ["low"]),
    (
        "the older one is reprieved",
        1,
        [pod("young", "n").start_time(LATER), pod("old", "n").start_time(EARLIER)],
        ["young"],
    ),
    ("a pod that has not started is youngest", 1, [pod("new", "n"), pod("old", "n").start_time(EARLIER)], ["new"]),
    (
        "a pod that is not in the way is reprieved",
        2,
        [pod("big", "n", cpu=2, priority=5), pod("empty", "n", cpu=0, priority=1)],
        ["big"],
    ),
    ("most important first", 2, LOW_AND_HIGH, ["high", "low"]),
    ("as important as the preemptor: not touched", 1, [pod("equal", "n", priority=10), pod("low", "n")], ["low"]),
    (
        "terminating ones count as any other",
        2,
        [pod("leaving", "n").terminating(), pod("low", "n")],
        ["leaving", "low"],
    ),
)
def test_fewest_and_least_important_pods_are_victims(asks: int, pods: list[PodBuilder], names: list[str]) -> None:
    outcome = preempt(make_snapshot(node("n"), pods=pods), make_pod("preemptor").req(cpu=asks).priority(10))

    assert victims(outcome) == {"n": names}


HIGH = pod("high", "n", priority=5)


def web(name: str, **options: int) -> PodBuilder:
    return pod(name, "n", **options).label(app="web")


@cases(
    "asks, pods, allowed, names, violations",
    ("a pod with a spent budget is reprieved first", 1, [web("web", priority=1), HIGH], 0, ["high"], 0),
    ("a pod with budget left is not", 1, [web("web", priority=1), HIGH], 1, ["web"], 0),
    ("broken twice", 2, [web("a"), web("b")], 0, ["a", "b"], 2),
    ("broken once: by the one after", 2, [web("a"), web("b")], 1, ["b", "a"], 1),
    ("most important first all the same", 2, [web("web", priority=1), HIGH], 0, ["high", "web"], 1),
)
def test_budgets_are_broken_only_when_there_is_no_other_way(
    asks: int, pods: list[PodBuilder], allowed: int, names: list[str], violations: int
) -> None:
    """Between equals the one that breaks the budget stands first, as in the order in which they were reprieved."""
    outcome = preempt(
        make_snapshot(node("n"), pods=pods, objects=[budget(allowed)]), make_pod("preemptor").req(cpu=asks).priority(10)
    )

    assert victims(outcome) == {"n": names}
    assert num_violations(outcome) == violations


def test_a_reprieved_pod_has_used_up_its_budget() -> None:
    """The count is taken once, before anybody is reprieved: `first` takes what is allowed, is reprieved, and `second`
    still violates.
    """
    pods = [pod("first", "n", cpu=0, priority=2).label(app="web"), web("second", priority=1), pod("third", "n")]

    outcome = preempt(make_snapshot(node("n"), pods=pods, objects=[budget(1)]))

    assert victims(outcome) == {"n": ["second", "third"]}
    assert num_violations(outcome) == 1


def test_nominated_pods_take_room_that_is_made() -> None:
    """The pod nominated before, as important as this one, gets its room first."""
    cache = make_cache(node("n"), pods=[pod("a", "n"), pod("b", "n")])
    earlier = make_pod("earlier").req(cpu=1).priority(10).obj()
    nominations = Nominations({"n": ((cache.nominate(earlier), earlier),)})

    full = preempt(cache.update_snapshot(), nominations=nominations)
    half = preempt(cache.update_snapshot(), make_pod("preemptor").req(cpu=1).priority(10), nominations=nominations)

    assert full.status == fwk.unschedulable("0/1 nodes are available: 1 Insufficient cpu.")
    assert victims(half) == {"n": ["a", "b"]}


def test_only_pods_that_the_plugin_allows_become_victims() -> None:
    """Upstream's IsEligiblePod."""
    snapshot = make_snapshot(node("n"), node("m"), pods=[pod("mine", "n", cpu=2), pod("yours", "m", cpu=2)])

    yours = replace(V1_36, may_go=lambda pod: pod.name == "yours")
    outcome = preempt(snapshot, evaluator=lambda framework: Evaluator(framework, every, yours))

    assert victims(outcome) == {"m": ["yours"]}
    assert outcome.statuses is not None and outcome.statuses.explicit == {"n": fwk.unresolvable(NO_VICTIMS)}


# Which nodes.


def test_only_nodes_that_were_refused_but_not_for_good_are_tried() -> None:
    snapshot = make_snapshot(
        node("full"), node("cordoned").unschedulable(), node("small").capacity(cpu=1), node("busy"),
        pods=[pod(f"on-{name}", name, cpu=2) for name in ("full", "cordoned", "busy")],
    )  # fmt: skip

    outcome = preempt(snapshot)

    assert list(outcome.potential_nodes) == list(victims(outcome)) == ["full", "busy"]


U, UAU, PENDING = fwk.unschedulable("no"), fwk.unresolvable("never"), fwk.Status(fwk.Code.PENDING, ("later",))


@cases(
    "statuses, names",
    ("unschedulable alone", fwk.NodeStatuses({"a": U, "b": UAU, "c": PENDING}), ["a"]),
    ("refused by a PreFilter: all", fwk.NodeStatuses(absent=U), ["a", "b", "c"]),
    ("all but those that are hopeless", fwk.NodeStatuses({"b": UAU}, U), ["a", "c"]),
    ("none", fwk.NodeStatuses(absent=UAU), []),
    ("nodes that are no more", fwk.NodeStatuses({"gone": U}), []),
)
def test_only_unschedulable_nodes_are_tried_for_preemption(statuses: fwk.NodeStatuses, names: list[str]) -> None:
    snapshot = make_snapshot(*map(make_node, "abc"))

    places = nodes_where_preemption_might_help(snapshot, statuses, V1_36)

    assert [snapshot.nodes.objects[place].name for place in places] == names


def four_nodes(*with_budget: int) -> Snapshot:
    """n0 to n3, each with one pod to evict; where a number is given, its pod breaks a budget."""
    labels = [{"app": "web"} if number in with_budget else {} for number in range(4)]
    pods = [pod(f"p{number}", f"n{number}", cpu=2).label(of_pod) for number, of_pod in enumerate(labels)]
    return make_snapshot(*(node(f"n{number}") for number in range(4)), pods=pods, objects=[budget(0)])


@cases(
    "offset, enough, with_budget, node_names",
    ("as many as are enough", 0, 2, (), ["n0", "n1"]),
    ("from the offset on, and round", 3, 2, (), ["n3", "n0"]),
    ("all", 0, 4, (), ["n0", "n1", "n2", "n3"]),
    ("on, until one breaks no budget; those that break none stand first", 0, 2, (0, 1), ["n2", "n3", "n0", "n1"]),
    ("all are tried where all break one; no more than are enough are kept", 0, 1, (0, 1, 2, 3), ["n0"]),
    ("one of two breaks none: enough", 0, 2, (0,), ["n1", "n0"]),
)
def test_the_dry_run_stops_when_there_are_enough(
    offset: int, enough: int, with_budget: tuple[int, ...], node_names: list[str]
) -> None:
    outcome = preempt(
        four_nodes(*with_budget), evaluator=lambda framework: Evaluator(framework, lambda _: (offset, enough))
    )

    assert list(victims(outcome)) == node_names


# What is said.


def test_why_preemption_does_not_help() -> None:
    """Nodes that were tried say why; of the others it is not even worth trying."""
    framework = make_framework(NodeUnschedulable, NodeResourcesFit, DefaultPreemption)
    snapshot = make_snapshot(
        node("vital"), node("mixed"), node("cordoned").unschedulable(), node("small").capacity(cpu=1),
        pods=[pod("v", "vital", priority=10), pod("m", "mixed", priority=10), pod("low", "mixed")],
    )  # fmt: skip

    outcome = preempt(snapshot, framework=framework)

    why = f"1 Insufficient cpu, 1 {NO_VICTIMS}, 2 Preemption is not helpful for scheduling."
    assert outcome.status == fwk.unschedulable(f"0/4 nodes are available: {why}")
    assert outcome.nominated_node == ""
    assert outcome.statuses is not None
    assert outcome.statuses.explicit == {
        "vital": fwk.unresolvable(NO_VICTIMS),
        "mixed": fwk.unschedulable("Insufficient cpu").by("NodeResourcesFit"),
    }


def test_nomination_is_cleared_when_no_node_is_worth_preempting_on() -> None:
    outcome = preempt(make_snapshot(node("n").unschedulable()))

    assert outcome.status == fwk.unschedulable("0/1 nodes are available: 1 Preemption is not helpful for scheduling.")
    assert (outcome.nominated_node, outcome.potential_nodes) == ("", ())


def test_pod_with_policy_never_does_not_preempt_and_keeps_its_nomination() -> None:
    outcome = preempt(make_snapshot(node("n"), pods=[pod("a", "n")]), PREEMPTOR.preemption_policy("Never"))

    assert outcome.status == fwk.unschedulable("not eligible due to preemptionPolicy=Never.")
    assert (outcome.nominated_node, outcome.candidates) == (None, None)


REFUSED_BY_EXTENDER = fwk.NodeStatuses({"n": fwk.unschedulable("the extender says no")})


def test_nobody_is_evicted_where_only_an_extender_refused_the_pod() -> None:
    """The Filters are content, and nobody asks for victims."""
    outcome = preempt(make_snapshot(node("n"), pods=[pod("a", "n", cpu=0)]), statuses=REFUSED_BY_EXTENDER)

    assert outcome.status == fwk.unschedulable(f"0/1 nodes are available: 1 {NO_VICTIMS}.")
    assert outcome.nominated_node == ""


def test_but_another_node_may_do() -> None:
    refused = fwk.NodeStatuses({name: fwk.unschedulable("the extender says no") for name in ("n", "m")})

    outcome = preempt(make_snapshot(node("n"), node("m"), pods=[pod("a", "n", cpu=0), pod("b", "m")]), statuses=refused)

    assert victims(outcome) == {"m": ["b"]}


@cases(
    "preemptor, status",
    ("success says nothing", PREEMPTOR, fwk.SUCCESS),
    (
        "not eligible",
        PREEMPTOR.preemption_policy("Never"),
        fwk.unschedulable("preemption: not eligible due to preemptionPolicy=Never.").by("DefaultPreemption"),
    ),
    (
        "no candidate",
        PREEMPTOR.priority(0),
        fwk.unschedulable(f"preemption: 0/1 nodes are available: 1 {NO_VICTIMS}.").by("DefaultPreemption"),
    ),
)
def test_the_plugin_signs_what_the_evaluator_says(preemptor: PodBuilder, status: fwk.Status) -> None:
    snapshot = make_snapshot(node("n"), pods=[pod("a", "n")])
    framework = make_framework(NodeResourcesFit, DefaultPreemption)
    state = Cycle(framework, snapshot, preemptor.obj())
    state.run_pre_filter_plugins()

    result = asyncio.run(run_post_filter_plugins(state, fwk.NodeStatuses({"n": fwk.unschedulable("full")})))

    assert result.status == status


# Where a plugin or an extender may differ.


def test_own_criteria_choose_the_node() -> None:
    def by_name(candidates: Candidates) -> Int64s:
        return np.array([int(one.node[1:]) for one in candidates.listed()])

    outcome = preempt(
        four_nodes(), evaluator=lambda framework: Evaluator(framework, every, replace(V1_36, criteria=[by_name]))
    )

    assert outcome.nominated_node == "n3"


Answer = Callable[[Sequence[fwk.Candidate]], Iterable[fwk.Candidate]]


def passing(candidates: Sequence[fwk.Candidate]) -> Iterable[fwk.Candidate]:
    return candidates


def dropping(candidates: Sequence[fwk.Candidate]) -> Iterable[fwk.Candidate]:
    return []


@final
class Extender:
    """An extender that wants certain victims, and notes what it was asked."""

    def __init__(self, name: str, answer: Answer, *, is_interested: bool = True, is_ignorable: bool = False) -> None:
        self.name = name
        self.is_ignorable = is_ignorable
        self._answer = answer
        self._is_interested = is_interested
        self.asked: list[list[str]] = []

    def is_interested(self, pod: fwk.Pod) -> bool:
        return self._is_interested

    async def process_preemption(
        self, pod: fwk.Pod, victims: Sequence[fwk.Candidate], snapshot: Snapshot
    ) -> Sequence[fwk.Candidate]:
        self.asked.append([one.node for one in victims])
        return list(self._answer(victims))


def with_extenders(*extenders: Extender) -> Framework:
    return make_framework(NodeUnschedulable, NodeResourcesFit, extenders=extenders)


def test_extenders_are_asked_one_after_the_other() -> None:
    """Each sees what those before it left."""
    first = Extender("first", lambda victims: victims[1:])
    bored = Extender("bored", dropping, is_interested=False)
    second = Extender("second", lambda victims: victims[:1])

    outcome = preempt(four_nodes(), framework=with_extenders(first, bored, second))

    assert (first.asked, bored.asked, second.asked) == ([["n0", "n1", "n2", "n3"]], [], [["n1", "n2", "n3"]])
    assert outcome.nominated_node == "n1"


def test_an_extender_may_want_other_victims() -> None:
    """Its counts of violations are taken at their word: they decide before all else."""
    extender = Extender(
        "e", lambda victims: [fwk.Candidate(one.node, one.victims, int(one.node != "n2")) for one in victims]
    )

    outcome = preempt(four_nodes(), framework=with_extenders(extender))

    assert outcome.nominated_node == "n2"


def test_extenders_may_object_to_all() -> None:
    silent = Extender("silent", passing)

    outcome = preempt(four_nodes(), framework=with_extenders(Extender("no", dropping), silent))

    assert outcome.status == fwk.unschedulable("no candidate node for preemption")
    assert outcome.nominated_node is None
    assert silent.asked == []


def adding(*names: str) -> Answer:
    """Adds these pods where nobody is to go yet."""
    added = tuple(pod(name, "n", cpu=0).obj() for name in names)
    return lambda candidates: [fwk.Candidate(one.node, one.victims or added, 0) for one in candidates]


def preempt_where_filters_are_content(*extenders: Extender) -> fwk.PreemptionOutcome:
    pods = [pod(name, "n", cpu=0) for name in ("a", "b")]
    return preempt(
        make_snapshot(node("n"), pods=pods), statuses=REFUSED_BY_EXTENDER, framework=with_extenders(*extenders)
    )


@cases(
    "answers, names",
    ("one adds a victim", [adding("a")], ["a"]),
    ("one adds two, in its order", [adding("b", "a")], ["b", "a"]),
    ("the first passes it on", [passing, adding("a")], ["a"]),
    ("the second agrees", [adding("a"), passing], ["a"]),
    ("nobody needs victims", [passing], None),
    ("neither needs victims", [passing, passing], None),
    ("the first refuses the node", [dropping, adding("a")], None),
    ("the second refuses the node", [adding("a"), dropping], None),
)
def test_extenders_say_whom_to_evict_where_filters_need_nobody_to_go(
    answers: list[Answer], names: list[str] | None
) -> None:
    outcome = preempt_where_filters_are_content(*(Extender(f"e{place}", says) for place, says in enumerate(answers)))

    if names is None:
        assert (outcome.status, outcome.chosen) == (fwk.unschedulable("no candidate node for preemption"), None)
    else:
        assert outcome.chosen is not None
        assert [victim.name for victim in outcome.chosen.victims] == names
        assert outcome.nominated_node == "n"


def test_an_extender_that_is_not_interested_is_not_asked_about_a_node_where_filters_are_content() -> None:
    bored = Extender("bored", adding("a"), is_interested=False)

    outcome = preempt_where_filters_are_content(bored)

    assert bored.asked == []
    assert outcome.status == fwk.unschedulable(f"0/1 nodes are available: 1 {NO_VICTIMS}.")


def test_ignorable_extender_that_fails_leaves_a_node_without_victims_to_the_next() -> None:
    outcome = preempt_where_filters_are_content(
        Extender("down", failing, is_ignorable=True), Extender("last", adding("a"))
    )

    assert outcome.nominated_node == "n"


def test_victims_that_one_extender_added_may_not_be_taken_back_by_the_next() -> None:
    outcome = preempt_where_filters_are_content(
        Extender("first", adding("a")), Extender("second", naming_nobody_on_the_first)
    )

    assert outcome.status == fwk.error('expected at least one victim pod on node "n"')


def test_nodes_without_victims_count_as_candidates_where_few_are_enough() -> None:
    nodes = [f"n{number}" for number in range(6)]
    extender = Extender("e", dropping)

    preempt(
        make_snapshot(*map(node, nodes), pods=[pod(f"p{name}", name, cpu=0) for name in nodes]),
        statuses=fwk.NodeStatuses({name: fwk.unschedulable("no") for name in nodes}),
        framework=with_extenders(extender),
        evaluator=lambda framework: Evaluator(framework, lambda number: (1, 2)),
    )

    assert extender.asked == [["n1", "n2"]]


def failing(victims: Sequence[fwk.Candidate]) -> Iterable[fwk.Candidate]:
    raise fwk.ExtenderError("it is down")


def naming_nobody_on_the_first(victims: Sequence[fwk.Candidate]) -> Iterable[fwk.Candidate]:
    return [fwk.Candidate(victims[0].node, (), 0), *victims[1:]]


@cases(
    "answer, error",
    ("fails", failing, "it is down"),
    ("names no victim", naming_nobody_on_the_first, 'expected at least one victim pod on node "n0"'),
)
def test_an_extender_that_fails_ends_the_search(answer: Answer, error: str) -> None:
    outcome = preempt(four_nodes(), framework=with_extenders(Extender("e", answer)))

    assert outcome.status == fwk.error(error)
    assert (outcome.nominated_node, outcome.chosen) == (None, None)


@cases(
    "answer, nodes_left",
    ("fails", failing, ["n0", "n1", "n2", "n3"]),
    ("names no victim", naming_nobody_on_the_first, ["n1", "n2", "n3"]),
)
def test_failing_ignorable_extender_does_not_end_the_search(answer: Answer, nodes_left: list[str]) -> None:
    last = Extender("last", passing)

    outcome = preempt(four_nodes(), framework=with_extenders(Extender("e", answer, is_ignorable=True), last))

    assert last.asked == [nodes_left]
    assert outcome.status.is_success


def test_a_pod_named_twice_goes_once() -> None:
    extender = Extender("e", lambda victims: [fwk.Candidate(one.node, one.victims * 2, 0) for one in victims[:1]])

    outcome = preempt(four_nodes(), framework=with_extenders(extender))

    assert outcome.chosen is not None
    assert len(outcome.chosen.victims) == 1


def test_preemption_leaves_the_cache_unchanged() -> None:
    cache = make_cache(node("n"), pods=[web("a"), web("b")], objects=[budget(0)])
    before = cache.dump()

    preempt(cache.update_snapshot())

    assert cache.dump() == before
    assert all(isinstance(one, PodDisruptionBudget) for one in cache.objects.pdbs.values())


# Long budgets.


def test_long_selectors_of_budgets_count() -> None:
    requirements = [LabelSelectorRequirement(f"key-{place}", "NotIn", ["x"]) for place in range(2000)]
    long = budget(0, LabelSelector(match_expressions=requirements))

    outcome = preempt(make_snapshot(node("n"), pods=[web("a")], objects=[long]))

    assert num_violations(outcome) == 1
