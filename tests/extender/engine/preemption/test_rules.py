"""The rules of older releases: what each does differently, and each against a reference that looks at one node and one
pod at a time.
"""

import asyncio
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pytest
from hypothesis import given, settings, strategies as st

from extender.answers.explain.preemption import preemption_answer
from extender.engine import framework as fwk
from extender.engine.plugins.default_preemption import DefaultPreemption
from extender.engine.plugins.node_resources.fit import NodeResourcesFit
from extender.engine.plugins.pod_topology_spread.filtering import MISSING_LABEL
from extender.engine.plugins.volume_restrictions import REASON_READ_WRITE_ONCE_POD
from extender.engine.preemption import RULES, V1_12, V1_17, V1_25, V1_36, Evaluator, rules_of
from extender.engine.preemption.evaluator import nodes_where_preemption_might_help, why_not_eligible
from extender.engine.preemption.rules import CLAIM_IN_USE, NO_TOPOLOGY_LABEL
from extender.engine.runtime.cycle import Cycle
from extender.engine.snapshot import Snapshot
from extender.testing import PodBuilder, make_framework, make_node, make_pod, make_snapshot
from extender.values.config.plugin_args import PREEMPTION_RULES, DefaultPreemptionArgs
from extender.values.objects.grouping import NO_VICTIMS, PodDisruptionBudget
from extender.values.objects.meta import LabelSelector
from extender.values.objects.pod import Pod
from extender.values.protocol.wire_types import MetaVictims
from extender.verbs.preempting import choose_victims
from tests.extender.engine.preemption.test_budgets import budget
from tests.extender.engine.preemption.test_eligibility import NOMINATED, TERMINATING, condition, victim
from tests.extender.engine.preemption.test_evaluator import Extender, num_violations
from tests.kit.examples import examples
from tests.kit.tables import cases

REFUSED: Final = fwk.NodeStatuses(absent=fwk.unschedulable("refused"))
SIX, NOON, EIGHTEEN = "2026-01-01T06:00:00Z", "2026-01-01T12:00:00Z", "2026-01-01T18:00:00Z"
STRICT: Final = budget(0)
"""It protects `app: web`, and allows no eviction."""


def each_rules(*expected: object) -> pytest.MarkDecorator:
    """The four sets of rules, oldest first, each with what it does."""
    pairs = zip((V1_12, V1_17, V1_25, V1_36), expected, strict=True)
    return pytest.mark.parametrize(
        ("rules", "expected"), [pytest.param(rules, value, id=rules.name) for rules, value in pairs]
    )


def pod(name: str, *, cpu: int = 1, priority: int = 0, started: str = NOON, app: str = "") -> PodBuilder:
    builder = make_pod(name).uid(name).req(cpu=cpu).priority(priority).start_time(started)
    return builder.label(app=app) if app else builder


HIGH_AND_LOW = [pod("high", priority=9), pod("low", priority=1, app="web")]


def cluster(budgets: Sequence[PodDisruptionBudget] = (), **nodes: tuple[int, Sequence[PodBuilder]]) -> Snapshot:
    """Node name -> its CPUs and the pods on it."""
    pods = [builder.node(name).obj() for name, (_, on_node) in nodes.items() for builder in on_node]
    return make_snapshot(
        *(make_node(name).capacity(cpu=cpus) for name, (cpus, _) in nodes.items()), pods=pods, objects=budgets
    )


def preempt(
    snapshot: Snapshot, rules: fwk.PreemptionRules, *, cpu: int = 2, extenders: Iterable[Extender] = ()
) -> fwk.PreemptionOutcome:
    """All nodes are tried, the first one first, whether or not the pod fits there as it is."""
    framework = make_framework(NodeResourcesFit, extenders=tuple(extenders))
    preemptor = make_pod("preemptor").req(cpu=cpu).priority(100).obj()
    state = Cycle(framework, snapshot, preemptor)
    state.run_pre_filter_plugins()
    return asyncio.run(Evaluator(framework, lambda number: (0, number), rules).preempt(state, preemptor, REFUSED))


def victims(outcome: fwk.PreemptionOutcome) -> list[str]:
    assert outcome.chosen is not None
    return [victim.name for victim in outcome.chosen.victims]


# Who has to go.


@each_rules(["old"], ["new"], ["new"], ["new"])
def test_latest_of_pods_of_equal_priority_is_the_victim_since_v1_15(
    rules: fwk.PreemptionRules, expected: list[str]
) -> None:
    """Before, it was the one that comes later in the list of the node's pods."""
    snapshot = cluster(n=(3, [pod("new", cpu=2, started=EIGHTEEN), pod("old", cpu=2, started=SIX)]))

    # One of the two makes room for one more CPU.
    assert victims(preempt(snapshot, rules, cpu=1)) == expected


@each_rules(0, 0, 1, 1)
def test_evictions_are_taken_off_a_budget_by_later_releases(rules: fwk.PreemptionRules, expected: int) -> None:
    snapshot = cluster([budget(1)], n=(2, [pod("one", app="web"), pod("two", app="web")]))

    assert num_violations(preempt(snapshot, rules)) == expected


@each_rules(1, 1, 0, 0)
def test_pods_that_are_evicted_already_violated_a_budget_in_older_releases(
    rules: fwk.PreemptionRules, expected: int
) -> None:
    snapshot = cluster([budget(0, disrupted=("gone",))], n=(2, [pod("gone", cpu=2, app="web")]))

    assert num_violations(preempt(snapshot, rules)) == expected


@each_rules(["low", "high"], ["low", "high"], ["low", "high"], ["high", "low"])
def test_victims_that_violate_a_budget_were_listed_first_before_v1_32(
    rules: fwk.PreemptionRules, expected: list[str]
) -> None:
    snapshot = cluster([STRICT], n=(2, HIGH_AND_LOW))

    assert victims(preempt(snapshot, rules)) == expected


# Which node.


@each_rules("a", "a", "a", "b")
def test_first_victim_was_taken_for_the_most_important_one_in_older_releases(
    rules: fwk.PreemptionRules, expected: str
) -> None:
    """The example of upstream's change 128307."""
    snapshot = cluster([STRICT], a=(2, HIGH_AND_LOW), b=(2, [pod("mid", cpu=2, priority=5, app="web")]))

    assert preempt(snapshot, rules).nominated_node == expected


@each_rules(["a", "b"], ["b"], ["b"], ["b"])
def test_the_start_time_is_a_criterion_since_v1_15(rules: fwk.PreemptionRules, expected: list[str]) -> None:
    """Before, nodes that tie in the four others are equally good."""
    snapshot = cluster(a=(2, [pod("old", cpu=2, started=SIX)]), b=(2, [pod("new", cpu=2, started=EIGHTEEN)]))

    outcome = preempt(snapshot, rules)

    assert outcome.candidates is not None
    assert outcome.best is not None
    assert [outcome.candidates.at(place).node for place in outcome.best.tolist()] == expected


@each_rules(("free", []), ("free", []), ("full", ["low"]), ("full", ["low"]))
def test_a_node_that_needs_no_victims_won_at_once(rules: fwk.PreemptionRules, expected: tuple[str, list[str]]) -> None:
    """An extender had refused it. Later releases never choose such a node."""
    outcome = preempt(cluster(full=(2, [pod("low", cpu=2)]), free=(2, [])), rules)

    assert (outcome.nominated_node, victims(outcome)) == expected


def test_an_extender_sees_nodes_without_victims_and_may_say_that_a_node_needs_none() -> None:
    full, free = (2, [pod("low", cpu=2)]), (2, [pod("tiny", cpu=0)])
    refuses = Extender("refuses", lambda offered: [one for one in offered if one.victims])
    spares = Extender("spares", lambda offered: [fwk.Candidate(one.node, (), 0) for one in offered])

    reduced = preempt(cluster(full=full, free=free), V1_17, extenders=[refuses])
    spared = preempt(cluster(full=full), V1_17, extenders=[spares])

    assert refuses.asked == [["free", "full"]]
    assert (reduced.nominated_node, victims(reduced)) == ("full", ["low"])
    assert (spared.nominated_node, victims(spared)) == ("full", [])


@each_rules(NO_VICTIMS, NO_VICTIMS, NO_VICTIMS, NO_VICTIMS)
def test_a_node_without_pods_of_lower_priority_is_of_no_help(rules: fwk.PreemptionRules, expected: str) -> None:
    outcome = preempt(cluster(n=(2, [pod("equal", cpu=2, priority=100)])), replace(rules, takes_free_nodes=False))

    assert outcome.statuses is not None
    assert outcome.statuses.of("n").message == expected


# Where preemption may help, and who may try.

TOO_LARGE = fwk.unresolvable("Insufficient cpu", "Insufficient memory")


@cases(
    "refusal, helps",
    ("a shortage", fwk.unschedulable("Insufficient cpu"), "v1.12 v1.17 v1.25 v1.36"),
    ("a shortage that no eviction ends was not told from others", TOO_LARGE, "v1.12 v1.17 v1.25"),
    ("no topology label", fwk.unresolvable(MISSING_LABEL), "v1.12 v1.17"),
    ("a claim in use, which v1.25 gave up on", fwk.unschedulable(REASON_READ_WRITE_ONCE_POD), "v1.12 v1.17 v1.36"),
    ("cordoned", fwk.unresolvable("node(s) were unschedulable"), ""),
    ("cordoned and full", fwk.unresolvable("node(s) were unschedulable", "Insufficient cpu"), ""),
    ("for no reason", fwk.unresolvable(), ""),
    ("pending", fwk.Status(fwk.Code.PENDING, ("later",)), ""),
)
def test_which_refusals_an_eviction_may_resolve(refusal: fwk.Status, helps: str) -> None:
    snapshot, statuses = make_snapshot(make_node("n")), fwk.NodeStatuses({"n": refusal})

    helped = [name for name in RULES if len(nodes_where_preemption_might_help(snapshot, statuses, RULES[name]))]

    assert helped == helps.split()


def test_the_table_of_reasons_has_the_words_of_the_plugins() -> None:
    assert NO_TOPOLOGY_LABEL == MISSING_LABEL
    assert CLAIM_IN_USE == REASON_READ_WRITE_ONCE_POD


@each_rules(None, None, None, None)
def test_no_filter_runs_when_pre_filter_refused_all_nodes_for_good(rules: fwk.PreemptionRules, expected: None) -> None:
    snapshot = make_snapshot(make_node("n"))

    assert not len(nodes_where_preemption_might_help(snapshot, fwk.NodeStatuses(absent=TOO_LARGE), rules))


@each_rules(TERMINATING, TERMINATING, TERMINATING, None)
def test_a_preemptor_waited_for_any_pod_that_leaves(rules: fwk.PreemptionRules, expected: str | None) -> None:
    """Also for one that somebody deleted; later it waits only for those that were preempted."""
    snapshot = make_snapshot(make_node("n"), pods=[victim()])

    assert why_not_eligible(NOMINATED.obj(), snapshot, REFUSED, rules) == expected


@each_rules(TERMINATING, TERMINATING, None, None)
def test_older_preemptors_waited_also_where_their_node_had_become_hopeless(
    rules: fwk.PreemptionRules, expected: str | None
) -> None:
    snapshot = make_snapshot(make_node("n"), pods=[victim(condition())])
    statuses = fwk.NodeStatuses({"n": fwk.unresolvable("cordoned")})

    assert why_not_eligible(NOMINATED.obj(), snapshot, statuses, rules) == expected


# How the rules are chosen, and who follows them.


def test_every_name_of_the_configuration_has_rules() -> None:
    assert tuple(RULES) == PREEMPTION_RULES


@pytest.mark.parametrize(("name", "rules"), [(None, V1_36), *RULES.items()])
def test_the_arguments_of_default_preemption_choose_the_rules(name: str | None, rules: fwk.PreemptionRules) -> None:
    plugin = DefaultPreemption(DefaultPreemptionArgs(preemption_rules=name), make_framework())

    assert rules_of([plugin]) is rules


@each_rules(5000, 5000, 500, 500)
def test_older_releases_tried_all_nodes(rules: fwk.PreemptionRules, expected: int) -> None:
    """Whatever share is set."""
    plugin = DefaultPreemption(DefaultPreemptionArgs(10, preemption_rules=rules.name), make_framework())

    assert plugin.offset_and_num_candidates(5000)[1] == expected


@each_rules(["low", "high"], ["low", "high"], ["low", "high"], ["high", "low"])
def test_the_preempt_verb_follows_the_rules(rules: fwk.PreemptionRules, expected: list[str]) -> None:
    snapshot = cluster([STRICT], n=(2, HIGH_AND_LOW))
    arguments = DefaultPreemptionArgs(preemption_rules=rules.name)
    framework = make_framework(NodeResourcesFit, lambda _, handle: DefaultPreemption(arguments, handle))
    preemptor = make_pod("preemptor").req(cpu=2).priority(100).obj()

    chosen = choose_victims(Cycle(framework, snapshot, preemptor), {"n": MetaVictims.of((), 0)})

    assert chosen == {"n": MetaVictims.of(tuple(expected), 1)}


RUNS_LONGER = f"its most important victims have run since {SIX}, those on b have run since {EIGHTEEN}"


@each_rules("ties with a on every criterion", RUNS_LONGER, RUNS_LONGER, RUNS_LONGER)
def test_answers_give_the_reasons_of_the_rules(rules: fwk.PreemptionRules, expected: str) -> None:
    snapshot = cluster(a=(2, [pod("old", cpu=2, started=SIX)]), b=(2, [pod("new", cpu=2, started=EIGHTEEN)]))

    answer = preemption_answer(preempt(snapshot, rules), snapshot, make_pod().priority(100).obj(), 0.0)

    assert answer.candidates[1].why_not == expected


@each_rules("first", "first", "first", "most important")
def test_answers_do_not_call_a_victim_the_most_important_one_that_is_not(
    rules: fwk.PreemptionRules, expected: str
) -> None:
    snapshot = cluster([STRICT], a=(2, HIGH_AND_LOW), b=(2, [pod("mid", cpu=2, priority=5, app="web")]))

    answer = preemption_answer(preempt(snapshot, rules), snapshot, make_pod().priority(100).obj(), 0.0)

    assert answer.candidates[1].why_not.startswith(f"its {expected} victim has priority")


def test_answers_list_a_node_that_needs_no_victims() -> None:
    snapshot = cluster(full=(2, [pod("low", cpu=2)]), free=(2, []))

    answer = preemption_answer(preempt(snapshot, V1_12), snapshot, make_pod().priority(100).obj(), 0.0)
    alone = preemption_answer(preempt(cluster(free=(2, [])), V1_12), snapshot, make_pod().priority(100).obj(), 0.0)

    assert (answer.node, answer.victims, answer.num_candidates) == ("free", (), 2)
    assert [(one.node, one.why_not) for one in answer.candidates] == [
        ("free", ""),
        ("full", "some of its pods would have to go, none of those on free"),
    ]
    assert [one.node for one in alone.candidates] == ["free"]


# All of them against a reference.


@dataclass(frozen=True)
class Choice:
    """What a release makes of a node: the victims in order, and how many violate a budget."""

    node: str
    victims: tuple[Pod, ...]
    violations: int


def reference(
    nodes: dict[str, tuple[int, list[Pod]]], budgets: Sequence[PodDisruptionBudget], cpu: int, release: str
) -> list[Choice]:
    """The choices among which the release does not decide, by its own words, node by node and pod by pod."""
    choices = [
        choice
        for name, (cpus, pods) in nodes.items()
        if (choice := _on_node(name, cpus, pods, budgets, cpu, release)) is not None
        and (choice.victims or release in ("v1.12", "v1.17"))
    ]
    free = [choice for choice in choices if not choice.victims]
    if free:
        return free
    criteria: list[Callable[[Choice], float]] = [
        lambda choice: choice.violations,
        lambda choice: choice.victims[0].priority,
        lambda choice: sum(victim.priority + 2**31 for victim in choice.victims),
        lambda choice: len(choice.victims),
        lambda choice: -_since(choice.victims),
    ]
    for criterion in criteria[: 4 if release == "v1.12" else 5]:
        if choices:
            lowest = min(map(criterion, choices))
            choices = [choice for choice in choices if criterion(choice) == lowest]
    return choices


def _on_node(
    name: str, cpus: int, pods: list[Pod], budgets: Sequence[PodDisruptionBudget], cpu: int, release: str
) -> Choice | None:
    possible = [pod for pod in pods if pod.priority < 100]
    if not possible and release in ("v1.25", "v1.36"):
        return None
    used = sum(_cpu(pod) for pod in pods if pod not in possible)
    if used + cpu > cpus:
        return None
    possible.sort(
        key=(lambda pod: -pod.priority) if release == "v1.12" else (lambda pod: (-pod.priority, pod.status.start_time))
    )
    violating = _violating(possible, budgets, counts=release in ("v1.25", "v1.36"))
    evicted = []
    for pod in [*violating, *(pod for pod in possible if pod not in violating)]:
        if used + _cpu(pod) + cpu <= cpus:
            used += _cpu(pod)
        else:
            evicted.append(pod)
    if release == "v1.36":
        evicted.sort(key=lambda pod: (-pod.priority, pod.status.start_time))
    return Choice(name, tuple(evicted), sum(pod in violating for pod in evicted))


def _violating(pods: Sequence[Pod], budgets: Sequence[PodDisruptionBudget], *, counts: bool) -> list[Pod]:
    allowed = {one.metadata.name: one.status.disruptions_allowed for one in budgets}
    violating: list[Pod] = []
    for pod in pods:
        for one in budgets:
            assert one.spec.selector is not None
            if pod.labels.items() >= (one.spec.selector.match_labels or {}).items():
                allowed[one.metadata.name] -= counts
                if allowed[one.metadata.name] < (0 if counts else 1) and pod not in violating:
                    violating.append(pod)
    return violating


def _cpu(pod: Pod) -> int:
    return int(pod.metadata.annotations["cpus"])


def _since(pods: Sequence[Pod]) -> float:
    highest = max(pod.priority for pod in pods)
    times = (pod.status.start_time or "" for pod in pods if pod.priority == highest)
    return float(min(times)[11:13])


@settings(deadline=None, max_examples=examples(300))
@given(chance=st.randoms(use_true_random=False), rules=st.sampled_from(list(RULES.values())))
def test_each_release_chooses_as_a_reference_that_looks_at_one_pod_at_a_time(
    chance: random.Random, rules: fwk.PreemptionRules
) -> None:
    """Clusters in which only CPUs are short, with budgets that several pods share."""
    nodes: dict[str, tuple[int, list[Pod]]] = {}
    for number in range(chance.randint(1, 5)):
        pods = []
        for place in range(chance.randint(0, 5)):
            cpus = chance.randint(0, 2)
            app, priority = chance.choice(("web", "db", "none")), chance.choice((-5, 0, 7, 9, 100))
            started = chance.choice((SIX, NOON, EIGHTEEN))
            builder = pod(f"p{number}-{place}", cpu=cpus, priority=priority, started=started, app=app)
            pods.append(builder.annotation(cpus=str(cpus)).node(f"n{number}").obj())
        nodes[f"n{number}"] = (chance.randint(1, 5), pods)
    budgets = [
        budget(
            chance.randint(0, 2), LabelSelector(match_labels={"app": chance.choice(("web", "db"))}), name=f"b{number}"
        )
        for number in range(chance.randint(0, 2))
    ]
    cpu = chance.randint(1, 3)
    everyone = [pod for _, pods in nodes.values() for pod in pods]
    snapshot = make_snapshot(
        *(make_node(name).capacity(cpu=cpus) for name, (cpus, _) in nodes.items()), pods=everyone, objects=budgets
    )

    outcome = preempt(snapshot, rules, cpu=cpu)

    expected = reference(nodes, budgets, cpu, rules.name)
    if outcome.chosen is None:
        assert not expected
    else:
        candidate = outcome.chosen
        names = tuple(victim.name for victim in candidate.victims)
        assert (candidate.node, names, candidate.num_pdb_violations) in [
            (choice.node, tuple(victim.name for victim in choice.victims), choice.violations) for choice in expected
        ]
