"""Victim policies: whom a preemption leaves alone, which victims cost least, and how long a preemptor waits."""

import asyncio
import random
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TypeVar, final

import numpy as np
import pytest
import yaml
from hypothesis import given, settings, strategies as st

from extender.engine import framework as fwk
from extender.engine.plugins import IN_TREE
from extender.engine.plugins.default_preemption import DefaultPreemption
from extender.engine.preemption import V1_36
from extender.engine.preemption.costs import fewest_pdb_violations, lowest_first_priority, pick_one_node_for_preemption
from extender.engine.preemption.evaluator import Evaluator
from extender.engine.preemption.victim_policy import Losses, policy_rules
from extender.engine.runtime.cycle import Cycle
from extender.engine.runtime.framework import Framework
from extender.engine.snapshot import Snapshot
from extender.testing import NodeBuilder, PodBuilder, make_framework, make_node, make_pod, make_snapshot, random_cluster
from extender.values.config.configuration import ConfigErrors
from extender.values.config.json_types import struct_of
from extender.values.config.loading import load
from extender.values.config.plugin_args import DefaultPreemptionArgs, EvictionCost, PreemptionDelay, Protection
from extender.values.golang.times import Duration
from extender.values.objects.decoding import convert, replaced
from extender.values.objects.grouping import PriorityClass
from extender.values.objects.label_selectors import selector_of
from extender.values.objects.meta import HasMetadata, LabelSelector
from extender.values.objects.pod import Pod
from extender.values.protocol.wire_types import MetaVictims
from extender.verbs.preempting import choose_victims
from tests.extender.engine.preemption.test_budgets import budget
from tests.extender.engine.preemption.test_lockstep_equals_one_by_one import Case, make_case
from tests.kit.examples import examples
from tests.kit.tables import cases

T = TypeVar("T")

NOW = datetime(2026, 1, 2, tzinfo=UTC)
HARD = Protection(never_violate_budgets=True)
HOURS_AGO = {hours: (NOW - timedelta(hours=hours)).isoformat().replace("+00:00", "Z") for hours in range(25)}


def node(name: str = "n", **capacity: int) -> NodeBuilder:
    return make_node(name).capacity({"cpu": 4, "example.com/gpu": 8} | capacity)


def victim(name: str, *, cpu: int = 1, gpus: int = 0, hours: int = 1, priority: int = 0, on: str = "n") -> PodBuilder:
    requests = {"cpu": cpu} | ({"example.com/gpu": gpus} if gpus else {})
    return make_pod(name).req(requests).priority(priority).start_time(HOURS_AGO[hours]).node(on)


def of_class(pod: PodBuilder, name: str) -> PodBuilder:
    built = pod.obj()
    return PodBuilder(replaced(built, spec=replaced(built.spec, priority_class_name=name)))


def rules_of(
    protect: Protection | None = None, cost: EvictionCost | None = None, now: datetime = NOW
) -> fwk.PreemptionRules:
    return policy_rules(V1_36, protect, cost, now=lambda: now)


def a_cycle(snapshot: Snapshot, preemptor: Pod) -> Cycle:
    state = Cycle(make_framework(*IN_TREE.values()), snapshot, preemptor)
    state.run_pre_filter_plugins()
    return state


def candidates_for(snapshot: Snapshot, preemptor: Pod, rules: fwk.PreemptionRules) -> fwk.Candidates:
    """What the Evaluator finds on all nodes."""
    state = a_cycle(snapshot, preemptor)
    fits_somewhere = state.run_pre_filter_plugins().status.is_success
    nodes = np.arange(len(snapshot.nodes)) if fits_somewhere else np.zeros(0, np.intp)
    evaluator = Evaluator(state.framework, lambda number: (0, number), rules)
    return evaluator.find_candidates(state, preemptor, nodes).candidates


def victims(
    pods: Sequence[PodBuilder], rules: fwk.PreemptionRules, *, cpu: int = 4, objects: Sequence[HasMetadata] = ()
) -> set[str]:
    """The victims on the node n, of a preemptor that needs `cpu` of its four cores; none if it cannot have them."""
    snapshot = make_snapshot(node(), pods=pods, objects=objects)
    candidates = candidates_for(snapshot, make_pod("preemptor").req(cpu=cpu).priority(100).obj(), rules)
    return {pod.name for candidate in candidates.listed() for pod in candidate.victims}


# Whom nobody may take.


def test_pods_with_certain_labels_stay() -> None:
    rules = rules_of(Protection(selector=LabelSelector(match_labels={"keep": "yes"})))
    protected, other = victim("kept", cpu=2).label(keep="yes"), victim("other", cpu=2)
    assert victims([protected, other], rules, cpu=2) == {"other"}
    assert victims([protected, other], rules) == set()


def test_pods_that_have_not_run_for_long_stay() -> None:
    rules = rules_of(Protection(min_run_time=Duration.of(2 * 3600)))
    assert victims([victim("young", hours=1, cpu=2), victim("old", hours=3, cpu=2)], rules, cpu=2) == {"old"}
    not_started = make_pod("not-started").req(cpu=4).node("n")
    assert victims([not_started], rules) == set()


@pytest.mark.parametrize(
    "prefix", ["preemption-toleration.scheduling.x-k8s.io/", "preemption-toleration.scheduling.sigs.k8s.io/"]
)
@cases(
    "annotations, is_protected",
    ("no annotations", {}, False),
    ("no time", {"minimum-preemptable-priority": "101"}, False),
    ("forever", {"minimum-preemptable-priority": "101", "toleration-seconds": "-1"}, True),
    ("the preemptor is important enough", {"minimum-preemptable-priority": "100", "toleration-seconds": "-1"}, False),
    ("within its time", {"minimum-preemptable-priority": "101", "toleration-seconds": "7200"}, True),
    ("after its time", {"minimum-preemptable-priority": "101", "toleration-seconds": "3600"}, False),
    ("from pods of its own priority only", {"toleration-seconds": "-1"}, False),
    ("no number", {"minimum-preemptable-priority": "many", "toleration-seconds": "-1"}, False),
)
def test_a_priority_class_may_tolerate_preemption(
    prefix: str, annotations: Mapping[str, str], is_protected: bool
) -> None:
    """As scheduler-plugins' PreemptionToleration."""
    metadata = {"name": "tolerant", "annotations": {prefix + name: value for name, value in annotations.items()}}
    tolerant = convert(PriorityClass, {"metadata": metadata, "value": 0})
    rules = rules_of(Protection(preemption_toleration=True))
    evicted = victims([of_class(victim("tolerates", cpu=4), "tolerant")], rules, objects=[tolerant])
    assert evicted == (set() if is_protected else {"tolerates"})


def test_budget_is_never_violated_when_the_policy_forbids_it() -> None:
    pods = [victim(f"p{number}").label(app="web") for number in range(4)]
    allows_two = budget(2)
    assert len(victims(pods, rules_of(), objects=[allows_two])) == 4
    assert victims(pods, rules_of(HARD), objects=[allows_two]) == set()
    assert len(victims(pods, rules_of(HARD), cpu=2, objects=[allows_two])) == 2


def test_the_least_important_pods_of_a_budget_may_go() -> None:
    pods = [victim("important", cpu=2, priority=5).label(app="web"), victim("unimportant", cpu=2).label(app="web")]
    assert victims(pods, rules_of(HARD), cpu=2, objects=[budget(1)]) == {"unimportant"}


def test_pods_that_are_leaving_use_up_a_budget() -> None:
    pods = [victim("leaving").label(app="web").terminating(), victim("p1", cpu=3).label(app="web")]
    assert victims(pods, rules_of(HARD), cpu=3, objects=[budget(1)]) == set()


def test_victims_that_were_just_chosen_use_up_a_budget() -> None:
    pods = [victim("chosen", cpu=2).label(app="web").uid("chosen"), victim("other", cpu=2).label(app="web")]
    nobody, chosen = (
        policy_rules(V1_36, HARD, now=lambda: NOW, is_going=partial(tuple[str, ...], uids))
        for uids in ((), ("chosen",))
    )
    assert victims(pods, nobody, cpu=2, objects=[budget(1)])
    assert victims(pods, chosen, cpu=2, objects=[budget(1)]) == {"chosen"}


def test_a_preemption_takes_no_more_pods_than_allowed() -> None:
    pods = [victim(f"p{number}") for number in range(4)]
    assert victims(pods, rules_of(Protection(max_victims=3))) == set()
    assert len(victims(pods, rules_of(Protection(max_victims=4)))) == 4


def test_a_preemption_loses_no_more_gpu_time_than_allowed() -> None:
    pods = [victim("a", cpu=2, gpus=2, hours=3), victim("b", cpu=2, gpus=1, hours=2)]
    assert victims(pods, rules_of(Protection(max_lost_gpu_time=Duration.of(7 * 3600)))) == set()
    assert victims(pods, rules_of(Protection(max_lost_gpu_time=Duration.of(8 * 3600)))) == {"a", "b"}


def test_nodes_that_break_one_of_two_limits_are_left_alone() -> None:
    many = [victim(name, cpu=2, on="many") for name in ("a", "b")]
    dear, cheap = victim("dear", cpu=4, gpus=8, hours=3, on="dear"), victim("cheap", cpu=4, on="cheap")
    snapshot = make_snapshot(*map(node, ("many", "dear", "cheap")), pods=[*many, dear, cheap])
    rules = rules_of(Protection(max_victims=1, max_lost_gpu_time=Duration.of(3600)))

    candidates = candidates_for(snapshot, make_pod("preemptor").req(cpu=4).priority(100).obj(), rules)

    assert [candidate.node for candidate in candidates.listed()] == ["cheap"]


# Whom to take first.


def test_the_victim_that_loses_least_is_taken() -> None:
    long_run, just_saved = victim("long", cpu=2, gpus=4, hours=20), victim("saved", cpu=2, gpus=4, hours=24)
    just_saved = just_saved.annotation({"volcano.sh/last-checkpoint-time": HOURS_AGO[1]})
    assert victims([long_run, just_saved], rules_of(), cpu=2) == {"long"}
    assert victims([long_run, just_saved], rules_of(cost=EvictionCost()), cpu=2) == {"saved"}


def test_a_pod_of_lower_priority_goes_first_whatever_it_loses() -> None:
    low, high = victim("low", cpu=2, gpus=8, hours=24, priority=1), victim("high", cpu=2, hours=1, priority=2)
    assert victims([low, high], rules_of(cost=EvictionCost()), cpu=2) == {"low"}


def test_one_dear_pod_is_taken_where_sparing_it_would_cost_more() -> None:
    """Sparing pods in the order of their losses would spare the dear one first, at the price of two others."""
    dear = victim("dear", cpu=2, hours=1).annotation(price="10")
    cheap = [victim(name, hours=20).annotation(price="9") for name in ("b", "c")]
    cost = EvictionCost(per_hour="0.0", fixed='double(annotations["price"])')
    assert victims([dear, *cheap], rules_of(cost=cost), cpu=2) == {"dear"}


def test_the_cost_is_an_expression_over_the_pod() -> None:
    cost = EvictionCost(
        per_hour="0.0", fixed='labels[?"tier"].orValue("") == "db" ? 10.0 : double(annotations[?"price"].orValue("0"))'
    )
    dear, cheap = victim("dear").annotation(price="11"), victim("cheap").annotation(price="2")
    database = victim("db").label(tier="db")
    assert victims([database, dear, cheap, victim("free")], rules_of(cost=cost), cpu=1) == {"free"}
    assert victims([database, dear, cheap], rules_of(cost=cost), cpu=3) == {"db", "cheap"}


def test_a_pod_whose_cost_cannot_be_computed_loses_its_gpus() -> None:
    """So that its author does not gain by it."""
    cost = EvictionCost(per_hour='double(annotations["price"])')
    losses = Losses(cost, lambda: NOW)
    snapshot = make_snapshot(node(), pods=[victim("p", gpus=2, hours=3).annotation(price="much")])
    assert losses.of(snapshot, np.array([0])).tolist() == [6.0]


# In an answer to a kube-scheduler.


def answer_to(
    named_pods: Sequence[PodBuilder], rules: fwk.PreemptionRules, other_pods: Sequence[PodBuilder] = (), *, cpu: int = 2
) -> set[str]:
    """The victims on the node n that the preempt verb answers to a caller who named some."""
    snapshot = make_snapshot(node(), pods=[*named_pods, *other_pods])
    candidates = {"n": MetaVictims.of(tuple(pod.obj().uid for pod in named_pods), 0)}
    preemptor = make_pod("preemptor").req(cpu=cpu).priority(100).obj()
    answer = choose_victims(Cycle(framework_with(rules), snapshot, preemptor), candidates)
    names = {pod.uid: pod.name for pod in snapshot.pods.objects if pod is not None}
    return {names[uid] for victims in answer.values() for uid in victims.uids}


def test_a_protected_victim_of_a_caller_is_replaced() -> None:
    protected, other = victim("kept", cpu=2).label(keep="yes"), victim("other", cpu=2)
    protects = rules_of(Protection(selector=LabelSelector(match_labels={"keep": "yes"})))
    assert answer_to([protected], rules_of(), [other]) == {"kept"}
    assert answer_to([protected], protects, [other]) == {"other"}


def test_a_dear_victim_of_a_caller_is_replaced_by_a_cheap_one() -> None:
    dear, cheap = victim("dear", cpu=2, gpus=4, hours=20), victim("cheap", cpu=2, hours=1)
    assert answer_to([dear], rules_of(), [cheap]) == {"dear"}
    assert answer_to([dear], rules_of(cost=EvictionCost()), [cheap]) == {"cheap"}


def test_a_candidate_that_costs_too_much_is_vetoed() -> None:
    pods = [victim(f"p{number}") for number in range(4)]
    assert len(answer_to(pods, rules_of(), cpu=3)) == 3
    assert answer_to(pods, rules_of(Protection(max_victims=2)), cpu=3) == set()


def test_a_preemptor_that_has_to_wait_has_no_victims() -> None:
    delay = PreemptionDelay(default=Duration.of(60))
    assert answer_to([victim("v", cpu=4)], policy_rules(V1_36, delay=delay, now=lambda: NOW)) == set()


# What always holds.


@settings(deadline=None, max_examples=examples(150))
@given(st.randoms(use_true_random=False))
def test_no_victim_is_protected_and_no_budget_is_violated(chance: random.Random) -> None:
    """Neither when the scheduler preempts, nor in an answer to a kube-scheduler that asks."""
    case = make_case(random_cluster(chance), chance)
    protect = Protection(
        selector=chance.choice((None, LabelSelector(match_labels={"app": "db"}))),
        min_run_time=chance.choice((Duration(), Duration.of(3600))),
        never_violate_budgets=chance.random() < 0.7,
        max_victims=chance.choice((0, 1, 2)),
    )
    rules = rules_of(protect, chance.choice((None, EvictionCost(), EvictionCost(fixed="double(priority)"))))
    snapshot = case.cache().update_snapshot()
    live = {candidate.node: list(candidate.victims) for candidate in candidates_for(snapshot, case.pod, rules).listed()}
    for chosen in (live, _verb_answer(case, snapshot, rules)):
        for pods in chosen.values():
            _check_protection(case, protect, pods)


def _verb_answer(case: Case, snapshot: Snapshot, rules: fwk.PreemptionRules) -> dict[str, list[Pod]]:
    """The answer to a caller who names all pods of lower priority."""
    lower = [pod for pod in case.cluster.pods if pod.priority < case.pod.priority]
    candidates = {
        node.name: MetaVictims.of(tuple(pod.uid for pod in lower if pod.spec.node_name == node.name), 0)
        for node in case.cluster.nodes
    }
    answer = choose_victims(Cycle(framework_with(rules), snapshot, case.pod), candidates)
    pods = {pod.uid: pod for pod in case.cluster.pods}
    return {name: [pods[uid] for uid in chosen.uids] for name, chosen in answer.items()}


def _check_protection(case: Case, protect: Protection, chosen: Sequence[Pod]) -> None:
    assert not protect.max_victims or len(chosen) <= protect.max_victims
    for pod in chosen:
        assert protect.selector is None or not selector_of(protect.selector).matches(pod.labels)
        assert not protect.min_run_time.nanoseconds, "these pods have not started"
    if protect.never_violate_budgets:
        for pdb in case.budgets:
            selector = selector_of(pdb.spec.selector)
            charged = [pod for pod in chosen if pod.namespace == "default" and selector.matches(pod.labels)]
            assert sum(not pod.is_terminating for pod in charged) <= pdb.status.disruptions_allowed


def framework_with(rules: fwk.PreemptionRules) -> Framework:
    """The in-tree plugins, of which the one that preempts follows these rules."""

    @final
    class Preempts(fwk.PostFilterPlugin):
        preemption_rules = rules

        async def post_filter(
            self, state: fwk.CycleState, pod: Pod, statuses: fwk.NodeStatuses
        ) -> fwk.PostFilterResult:
            raise NotImplementedError

    return make_framework(Preempts, *(plugin for name, plugin in IN_TREE.items() if name != "DefaultPreemption"))


@settings(deadline=None, max_examples=examples(150))
@given(st.randoms(use_true_random=False))
def test_no_preemption_loses_more_than_upstreams_unless_it_spares_budgets_or_priorities(chance: random.Random) -> None:
    case = make_case(random_cluster(chance), chance)
    price_of_pod = f"double(size(labels)) * {chance.random()} + requests[?'cpu'].orValue(0.0)"
    cost = EvictionCost(per_hour="0.0", fixed=price_of_pod)
    snapshot = case.cache().update_snapshot()
    plain, cheap = candidates_for(snapshot, case.pod, V1_36), candidates_for(snapshot, case.pod, rules_of(cost=cost))
    if not len(plain):
        assert not len(cheap)
        return
    losses = Losses(cost, lambda: NOW)

    def price(candidates: fwk.Candidates) -> tuple[int, int, float]:
        best = candidates.take(pick_one_node_for_preemption(candidates)[:1])
        loss = float(losses.of(snapshot, best.slots).sum())
        return -int(fewest_pdb_violations(best)[0]), -int(lowest_first_priority(best)[0]), round(loss, 5)

    assert price(cheap) <= price(plain)


# How long to wait.


def post_filter(plugin: DefaultPreemption, snapshot: Snapshot, preemptor: Pod) -> fwk.PostFilterResult:
    state = a_cycle(snapshot, preemptor)
    full = fwk.NodeStatuses({"n": fwk.unschedulable("Insufficient cpu")})
    return asyncio.run(plugin.post_filter(state, preemptor, full))


@final
class NoDispatcher(fwk.Dispatcher):
    """Takes no writes: choosing victims makes none."""

    def submit(self, call: fwk.ApiCall[T]) -> asyncio.Future[T | None]:
        raise NotImplementedError

    async def perform(self, call: fwk.ApiCall[T]) -> T:
        raise NotImplementedError


def test_a_preemptor_waits_for_room_before_it_may_preempt() -> None:
    now = NOW
    handle = make_framework(dispatcher=NoDispatcher(), now=lambda: now)
    delay = PreemptionDelay(default=Duration.of(180), by_priority_class={"urgent": Duration()})
    plugin = DefaultPreemption(DefaultPreemptionArgs(delay=delay), handle)
    snapshot = make_snapshot(node(), pods=[victim("v", cpu=4)])
    preemptor = make_pod("preemptor").req(cpu=4).priority(100).obj()

    first = post_filter(plugin, snapshot, preemptor)
    assert first.status.message == "preemption: not eligible for another 180s, by the delay of preemption"
    assert (first.nominated_node, first.retry_after) == (None, 180)
    now += timedelta(seconds=100)
    assert post_filter(plugin, snapshot, preemptor).retry_after == 80
    now += timedelta(seconds=80)
    assert post_filter(plugin, snapshot, preemptor).nominated_node == "n"

    urgent = of_class(PodBuilder(preemptor).uid("urgent"), "urgent").obj()
    assert post_filter(plugin, snapshot, urgent).nominated_node == "n"


def test_a_question_does_not_wait() -> None:
    plugin = DefaultPreemption(DefaultPreemptionArgs(delay=PreemptionDelay(default=Duration.of(180))), make_framework())
    snapshot = make_snapshot(node(), pods=[victim("v", cpu=4)])
    assert post_filter(plugin, snapshot, make_pod("preemptor").req(cpu=4).priority(100).obj()).nominated_node == "n"


# Wrong arguments.


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (
            DefaultPreemptionArgs(cost=EvictionCost(per_hour="'a'")),
            "cost.perHour: Invalid value: \"'a'\": must be a number",
        ),
        (DefaultPreemptionArgs(cost=EvictionCost(fixed="gpu")), 'cost.fixed: Invalid value: "gpu": '),
        (
            DefaultPreemptionArgs(protect=Protection(max_victims=-1)),
            "protect.maxVictims: Invalid value: -1: must be zero or positive",
        ),
        (
            DefaultPreemptionArgs(protect=Protection(min_run_time=Duration.of(-1))),
            'protect.minRunTime: Invalid value: "-1s"',
        ),
        (
            DefaultPreemptionArgs(delay=PreemptionDelay(by_priority_class={"a": Duration.of(-1)})),
            "delay.byPriorityClass[a]: Invalid value",
        ),
    ],
    ids=["no number", "unknown variable", "negative number", "negative time", "negative delay"],
)
def test_wrong_arguments_are_refused_by_name(args: DefaultPreemptionArgs, message: str) -> None:
    with pytest.raises(ConfigErrors) as refused:
        DefaultPreemption(args, make_framework())
    assert message in str(refused.value)


def test_the_example_of_the_docs_is_valid_and_is_printed_as_it_was_read() -> None:
    text = Path("docs/victim-policies.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    (example,) = (block for block in blocks if "kind: KubeSchedulerConfiguration" in block)
    example_args = yaml.safe_load(example)["profiles"][0]["pluginConfig"][0]["args"]
    loaded = load(example.encode())
    args = loaded.profiles[0].plugin_config["DefaultPreemption"]
    assert isinstance(args, DefaultPreemptionArgs)
    DefaultPreemption(args, make_framework())
    printed = struct_of(DefaultPreemptionArgs).write(args)
    assert {name: printed[name] for name in example_args}["cost"] == {"perHour": "gpus", "fixed": "0.0"}
    assert set(example_args) <= set(printed)
