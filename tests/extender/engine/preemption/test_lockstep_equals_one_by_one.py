"""The dry run looks at all nodes in step. Here it is held against one that looks at one node at a time and really moves
pods.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from hypothesis import given, settings, strategies as st

from extender.engine.cache import Cache
from extender.engine.framework import Status, unresolvable
from extender.engine.plugins import IN_TREE
from extender.engine.preemption import V1_36
from extender.engine.preemption.dry_run import dry_run
from extender.engine.runtime.cycle import Cycle, Nominations
from extender.engine.runtime.framework import Framework
from extender.engine.runtime.plugin_calls import PluginError
from extender.engine.snapshot import Rows
from extender.testing import PodBuilder, RandomCluster, make_cache, make_framework, make_pod, random_cluster
from extender.values.objects.decoding import replaced
from extender.values.objects.grouping import (
    NO_VICTIMS,
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
)
from extender.values.objects.label_selectors import selector_of
from extender.values.objects.meta import LabelSelector, ObjectMeta
from extender.values.objects.node import HOSTNAME_LABEL, ZONE_LABEL
from extender.values.objects.pod import Pod, start_time
from tests.kit.examples import examples
from tests.kit.random_storage import random_cluster_with_volumes

Outcome = tuple[str, tuple[str, ...], int] | Status
"""What became of a node: ("candidate" or "fits", the victims in order, how many violate a budget), or why it does not
work.
"""


@dataclass(frozen=True)
class Case:
    """A cluster, a pod that fits nowhere or somewhere, budgets, and pods nominated to nodes."""

    cluster: RandomCluster
    pod: Pod
    budgets: tuple[PodDisruptionBudget, ...]
    nominated: tuple[tuple[str, Pod], ...]

    def cache(self) -> Cache:
        return make_cache(*self.cluster.nodes, pods=self.cluster.pods, objects=(*self.budgets, *self.cluster.objects))


def make_case(drawn: RandomCluster, chance: random.Random) -> Case:
    more = (
        _neighbour(f"x{number}-{node.name}", chance).node(node.name).obj()
        for node in drawn.nodes
        for number in range(chance.randint(0, 4))
    )
    cluster = replace(drawn, pods=(*drawn.pods, *more))
    # Terminating pods do not come: upstream's topology spread counts them when they move, but not where they are.
    nominated = [(chance.choice(cluster.nodes).name, pod) for pod in cluster.arrivals if not pod.is_terminating]
    budgets = [_budget(f"b{number}", chance) for number in range(chance.randint(0, 2))]
    return Case(cluster, _demanding(cluster.pod, chance), tuple(budgets), tuple(nominated))


def _neighbour(name: str, chance: random.Random) -> PodBuilder:
    """A small pod that others may mind, and that may mind others."""
    pod = make_pod(name).label(app=chance.choice(("web", "db"))).priority(chance.randint(-1, 2))
    if chance.random() < 0.2:
        pod = pod.pod_anti_affinity(chance.choice((HOSTNAME_LABEL, ZONE_LABEL)), app=chance.choice(("web", "db")))
    return pod


def _demanding(pod: Pod, chance: random.Random) -> Pod:
    """The pod with a priority worth something and, often, with demands on the pods around it."""
    builder = PodBuilder(pod).priority(chance.randint(1, 3)).node("").label(app=chance.choice(("web", "db")))
    app, key = chance.choice(("web", "db")), chance.choice((HOSTNAME_LABEL, ZONE_LABEL))
    if chance.random() < 0.3:
        builder = builder.spread(chance.randint(1, 2), key, app=app)
    if chance.random() < 0.3:
        builder = builder.pod_anti_affinity(key, app=app)
    if chance.random() < 0.3:
        builder = builder.pod_affinity(key, app=app)
    return builder.obj()


def _budget(name: str, chance: random.Random) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=name),
        spec=PodDisruptionBudgetSpec(selector=LabelSelector(chance.choice(({"app": "web"}, {"app": "db"}, {})))),
        status=PodDisruptionBudgetStatus(disruptions_allowed=chance.randint(0, 1)),
    )


def may_go(pod: Pod) -> bool:
    """Terminating pods stay, for the same reason."""
    return not pod.is_terminating


def in_lockstep(case: Case) -> dict[str, Outcome]:
    """Node -> outcome, by the code under test."""
    cache, framework = case.cache(), make_framework(*IN_TREE.values())
    by_node: dict[str, list[tuple[int, Pod]]] = {}
    for node, pod in case.nominated:
        by_node.setdefault(node, []).append((cache.nominate(pod), pod))
    snapshot = cache.update_snapshot()
    state = Cycle(framework, snapshot, case.pod, Nominations({node: tuple(pods) for node, pods in by_node.items()}))
    if not state.run_pre_filter_plugins().status.is_success:
        return {}
    run = dry_run(state, case.pod, np.arange(len(snapshot.nodes)), replace(V1_36, may_go=may_go))
    outcomes: dict[str, Outcome] = {node: _plain(status) for node, status in run.statuses.explicit.items()}
    outcomes |= dict.fromkeys(run.fits_as_is, ("fits", (), 0))
    for choice in run.candidates.listed():
        outcomes[choice.node] = ("candidate", tuple(pod.key for pod in choice.victims), choice.num_pdb_violations)
    return outcomes


def one_by_one(case: Case) -> dict[str, Outcome]:
    """Node -> outcome, each node by itself in a cluster of its own, pods removed and added for real."""
    framework = make_framework(*IN_TREE.values())
    state = Cycle(framework, case.cache().update_snapshot(), case.pod)
    if not state.run_pre_filter_plugins().status.is_success:
        return {}
    return {
        node.name: _on_one_node(case, node.name, framework, state.skip_filter_plugins) for node in case.cluster.nodes
    }


def _on_one_node(case: Case, node: str, framework: Framework, skipped: frozenset[str]) -> Outcome:
    cache = case.cache()
    possible = sorted(
        (
            pod
            for pod in case.cluster.pods
            if pod.spec.node_name == node and pod.priority < case.pod.priority and may_go(pod)
        ),
        key=lambda pod: (-pod.priority, start_time(pod)),
    )
    if not possible:
        return _plain(unresolvable(NO_VICTIMS))
    for pod in possible:
        cache.remove_pod(pod)
    status = _filtered(case, cache, node, framework, skipped)
    if not status.is_success:
        return _plain(status)
    violating = _violating(possible, case.budgets)
    victims: list[Pod] = []
    for pod in [*violating, *(pod for pod in possible if pod not in violating)]:
        cache.add_pod(pod)
        if not _filtered(case, cache, node, framework, skipped).is_success:
            cache.remove_pod(pod)
            victims.append(pod)
    if not victims:
        return "fits", (), 0
    victims.sort(key=lambda pod: (-pod.priority, start_time(pod)))
    return "candidate", tuple(pod.key for pod in victims), sum(pod in violating for pod in victims)


def _violating(pods: Sequence[Pod], budgets: Sequence[PodDisruptionBudget]) -> list[Pod]:
    """Each pod takes one from every budget that selects it, and violates where nothing was left."""
    allowed = [budget.status.disruptions_allowed for budget in budgets]
    violating: list[Pod] = []
    for pod in pods:
        for place, budget in enumerate(budgets):
            if selector_of(budget.spec.selector).matches(pod.labels):
                allowed[place] -= 1
                if allowed[place] < 0 and pod not in violating:
                    violating.append(pod)
    return violating


def _filtered(case: Case, cache: Cache, node: str, framework: Framework, skipped: frozenset[str]) -> Status:
    """The Filters' answer for one node, with the pods nominated to it and without them."""
    coming = [
        replaced(pod, spec=replaced(pod.spec, node_name=node))
        for name, pod in case.nominated
        if name == node and pod.priority >= case.pod.priority
    ]
    for pod in coming:
        cache.add_pod(pod)
    status = _filter_status(case.pod, cache, node, framework, skipped)
    for pod in reversed(coming):
        cache.remove_pod(pod)
    return _filter_status(case.pod, cache, node, framework, skipped) if coming and status.is_success else status


def _filter_status(pod: Pod, cache: Cache, node: str, framework: Framework, skipped: frozenset[str]) -> Status:
    snapshot = cache.update_snapshot()
    state = Cycle(framework, snapshot, pod)
    outcome = state.run_pre_filter_plugins()
    if not outcome.status.is_success:
        return outcome.status
    # A plugin that had nothing to say about the cluster as it is has nothing to say about a hypothesis.
    state.skip_filter_plugins |= skipped
    return state.run_filter_plugins(Rows.of(snapshot, np.array([snapshot.nodes.index[node]]))).status_of(0)


def _plain(status: Status) -> Status:
    return Status(status.code, tuple(sorted(status.reasons)), status.plugin)


@settings(deadline=None, max_examples=examples(150))
@given(chance=st.randoms(use_true_random=False))
def test_lockstep_equals_one_by_one(chance: random.Random) -> None:
    """Victims, budget violations and refusals are those of looking at each node by itself."""
    case = make_case(random_cluster(chance), chance)

    assert in_lockstep(case) == one_by_one(case)


@settings(deadline=None, max_examples=examples(150))
@given(seed=st.integers(0, 2**32))
def test_lockstep_equals_one_by_one_where_pods_share_volumes(seed: int) -> None:
    """Victims free disks and claims, and volumes that nobody else has. Volumes that cannot be counted are an error
    either way.
    """
    chance = random.Random(seed)
    case = make_case(random_cluster_with_volumes(chance), chance)

    assert _or_error(in_lockstep, case) == _or_error(one_by_one, case)


def _or_error(run: Callable[[Case], dict[str, Outcome]], case: Case) -> dict[str, Outcome] | None:
    try:
        return run(case)
    except PluginError:
        return None
