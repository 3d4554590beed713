"""A trial decides as the scheduler does, and what is taken back leaves no trace."""

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Any, final

import pytest
from hypothesis import Phase, given, settings, strategies as st

from extender.answers.profiles import simulated_frameworks
from extender.answers.trial import Trial
from extender.engine import framework as fwk
from extender.engine.cache.cluster import Cluster
from extender.engine.queue.queued_pod_info import QueuedPodInfo
from extender.engine.reporter import Reporter
from extender.testing import RandomCluster, make_node, make_pod, random_cluster, virtual_time
from extender.values.config.configuration import Configuration
from extender.values.objects.cluster import ClusterObjects
from extender.values.objects.decoding import replaced
from extender.values.objects.meta import HasMetadata
from extender.values.objects.pod import Pod
from tests.extender.engine.cache.snapshot_contents import view
from tests.kit.examples import examples
from tests.kit.owners import make_budget, owned_by
from tests.kit.random_claims import with_claims
from tests.kit.random_storage import random_cluster_with_volumes
from tests.kit.told_scheduler import ToldScheduler

ZONE = "topology.kubernetes.io/zone"
NO_SHRINKING = [phase for phase in Phase if phase is not Phase.shrink]


def objects_of(drawn: RandomCluster, chance: random.Random) -> list[HasMetadata]:
    """Everything in the cluster, with budgets, owners of most pods, and nominations of some."""
    budgets = [make_budget(app, chance.randint(0, 2), app=app) for app in ("web", "db") if chance.random() < 0.7]
    pods = [with_owner(pod, chance) for pod in (*drawn.pods, drawn.pod, *drawn.arrivals)]
    return [*drawn.nodes, *drawn.objects, *budgets, *pods]


def with_owner(pod: Pod, chance: random.Random) -> Pod:
    owned = owned_by(pod, "ReplicaSet", "rs") if chance.random() < 0.8 else pod
    nominated = "n0" if not pod.spec.node_name and chance.random() < 0.2 else ""
    return replaced(owned, status=replaced(pod.status, nominated_node_name=nominated))


def trial_of(objects: Sequence[HasMetadata]) -> Trial:
    cluster = Cluster()
    for obj in objects:
        cluster.changed(None, obj)
    return Trial(cluster, simulated_frameworks(Configuration(), cluster))


def waiting(trial: Trial) -> list[Pod]:
    cluster = trial.cluster
    return [pod for uid, pod in sorted(cluster.pending.items()) if cluster.cache.pod(uid) is None]


def placed(trial: Trial) -> list[Pod]:
    return sorted(trial.cluster.cache.pods, key=lambda pod: pod.uid)


# What is taken back.


def schedules(trial: Trial, chance: random.Random) -> None:
    for pod in chance.sample(waiting(trial), len(waiting(trial))):
        attempt = trial.schedule(pod)
        if attempt.refusal is not None:
            candidate = asyncio.run(trial.preempt(attempt))[0].candidate
            if candidate is not None:
                trial.disrupt(candidate.victims)
                for victim in candidate.victims:
                    trial.evict(victim)
                trial.changed(pod, replaced(pod, status=replaced(pod.status, nominated_node_name=candidate.node)))


def evicts(trial: Trial, chance: random.Random) -> None:
    for pod in placed(trial):
        if chance.random() < 0.5:
            trial.disrupt([pod])
            trial.evict(pod)


def removes(trial: Trial, chance: random.Random) -> None:
    for pod in (*placed(trial), *waiting(trial)):
        if chance.random() < 0.3:
            trial.remove(pod)


def changes_nodes(trial: Trial, chance: random.Random) -> None:
    for name in sorted(trial.cluster.nodes):
        node = trial.cluster.nodes[name]
        kind = chance.random()
        if kind < 0.3:
            trial.changed(node, replaced(node, spec=replaced(node.spec, unschedulable=True)))
        elif kind < 0.6:
            trial.changed(node, None)
        elif kind < 0.8:
            trial.changed(None, make_node(f"{name}-new").capacity(cpu=4, pods=10).obj())


def changes_others(trial: Trial, chance: random.Random) -> None:
    trial.changed(None, make_pod("another").req(cpu="500m").label(app="web").obj())
    trial.changed(None, make_pod("pinned").req(cpu="500m").node("n0").obj())
    trial.changed(None, make_budget("web", 1, app="web"))


STEPS: tuple[Callable[[Trial, random.Random], None], ...] = (
    schedules,
    schedules,
    evicts,
    removes,
    changes_nodes,
    changes_others,
)


def goes_on(trial: Trial, chance: random.Random) -> list[Any]:
    """What is decided from here on."""
    log: list[Any] = []
    for pod in waiting(trial):
        attempt = trial.schedule(pod)
        log.append((pod.key, attempt.node, attempt.message))
        if attempt.refusal is not None:
            result, message = asyncio.run(trial.preempt(attempt))
            victims = () if result.candidate is None else result.candidate.victims
            log.append((result.nominated_node, [victim.key for victim in victims], message, trial.disrupt(victims)))
    return log


def everything(trial: Trial) -> dict[str, Any]:
    cluster = trial.cluster
    nominees, columns = cluster.nominees(trial.frameworks), view(cluster.cache.update_snapshot())
    for on_node in columns.values():
        on_node["pods"].sort(key=lambda entry: entry["pod"].uid)  # their order decides nothing
    tables = {name: dict(getattr(cluster.cache.objects, name)) for name in ClusterObjects.__dataclass_fields__}
    return {
        "nodes": list(cluster.nodes.items()),
        "columns": list(columns.items()),
        "pending": dict(cluster.pending),
        "assumed": cluster.cache.assumed_pods,
        "unreadable": dict(cluster.unreadable),
        "nominees": {node: {pod.uid for _, pod in pods} for node, pods in nominees.items()},
        "objects": tables,
    }


@pytest.mark.slow
@settings(deadline=None, max_examples=examples(150), phases=NO_SHRINKING)
@given(st.integers(0, 2**32))
def test_what_is_taken_back_leaves_no_trace(seed: int) -> None:
    """Whatever is done in a transaction, in one within it, and after that: the cluster is the same, and what is decided from then on is what would have been decided anyway."""
    chance = random.Random(seed)
    objects = objects_of(chance.choice((random_cluster, random_cluster_with_volumes))(chance), chance)
    if chance.random() < 0.4:
        objects = with_claims(objects, chance)
    changed_trial, untouched = trial_of(objects), trial_of(objects)
    for trial in (changed_trial, untouched):
        schedules(trial, random.Random(seed))
    before = everything(changed_trial)

    with changed_trial.transaction():
        for step in chance.choices(STEPS, k=3):
            step(changed_trial, chance)
        between = everything(changed_trial)
        with changed_trial.transaction():
            for step in chance.choices(STEPS, k=2):
                step(changed_trial, chance)
        assert everything(changed_trial) == between
        for step in chance.choices(STEPS, k=2):
            step(changed_trial, chance)

    assert everything(changed_trial) == before == everything(untouched)
    assert goes_on(changed_trial, chance) == goes_on(untouched, chance)


def test_chance_begins_again_where_it_was() -> None:
    trial = trial_of([make_node(name).capacity(cpu=100, pods=100).obj() for name in "abcdef"])
    pods = [make_pod(str(number)).obj() for number in range(20)]
    chosen: list[list[str]] = []

    for _ in range(2):
        with trial.transaction():
            for pod in pods:
                trial.changed(None, pod)
            chosen.append([trial.schedule(pod).node for pod in pods])

    assert chosen[0] == chosen[1]
    assert len(set(chosen[0])) > 1


def test_pod_is_put_back_though_its_node_would_not_take_it_now() -> None:
    """One that came after it has made its zone the fuller one."""
    nodes = [make_node(name).capacity(cpu=8, pods=10).label({ZONE: name}).obj() for name in "ab"]
    spread, later = (
        make_pod("spread").label(app="web").spread(1, ZONE, app="web").obj(),
        make_pod("later").label(app="web"),
    )
    trial = trial_of([*nodes, spread])
    node = trial.schedule(spread).node
    trial.changed(None, later.node(node).obj())
    before = everything(trial)

    with trial.transaction():
        (running,) = (pod for pod in trial.cluster.cache.pods if pod.uid == spread.uid)
        trial.remove(running)

    assert everything(trial) == before


# What the scheduler does.


@final
class Decisions(Reporter):
    """State: what became of each pod that was tried, in order."""

    def __init__(self) -> None:
        self.made: list[tuple[str, str, str, list[str]]] = []
        self._victims: list[str] = []

    def preemption_tried(self, pod: Pod, outcome: fwk.PreemptionOutcome) -> None:
        self._victims = [] if outcome.chosen is None else [victim.key for victim in outcome.chosen.victims]

    def decided(
        self, info: QueuedPodInfo, profile: str, node: str, evaluated: int, feasible: int, seconds: float
    ) -> None:
        self.made.append((info.pod.key, node, "", []))

    def failed(self, info: QueuedPodInfo, profile: str, status: fwk.Status, seconds: float) -> None:
        self.made.append((info.pod.key, "", status.message, self._victims))
        self._victims = []


async def both(objects: Sequence[HasMetadata]) -> tuple[list[Any], list[Any]]:
    """
    What the scheduler decides and what the trial says, one pod after the other. What the scheduler decides happens in
    both: pods are bound or nominated, victims leave, and their controllers make them again.
    """
    decisions = Decisions()
    scheduling, trial = ToldScheduler(decisions), trial_of(objects)
    for framework in trial.frameworks.values():
        framework.random.seed(1)  # that of `ToldScheduler`
    for obj in objects:
        scheduling.alone.handlers.changed(None, obj)
    answers: list[Any] = []
    for _ in range(12):
        await scheduling.decides(1)
        if len(decisions.made) == len(answers):
            break
        key, node, _, _ = decisions.made[-1]
        pod = scheduling.cluster.find(key)
        assert pod is not None
        if node:
            attempt = trial.schedule(pod)
            answers.append((key, attempt.node, attempt.message, []))
            scheduling.alone.handlers.changed(pod, replaced(pod, spec=replaced(pod.spec, node_name=node)))
        else:
            answers.append(await refused(trial, scheduling, pod))
    return decisions.made, answers


async def refused(trial: Trial, scheduling: ToldScheduler, pod: Pod) -> tuple[str, str, str, list[str]]:
    changed = scheduling.alone.handlers.changed
    attempt = trial.schedule(pod)
    if attempt.refusal is None:
        return pod.key, attempt.node, attempt.message, []
    result, message = await trial.preempt(attempt)
    victims = () if result.candidate is None else result.candidate.victims
    budgets = dict(trial.cluster.cache.objects.pdbs)
    trial.disrupt(victims)
    for key, new in trial.cluster.cache.objects.pdbs.items():
        if new is not budgets[key]:
            changed(budgets[key], new)
    for victim in victims:
        replacement = trial.evict(victim)
        changed(victim, None)
        if replacement is not None:
            changed(None, replacement)
    if result.nominated_node is not None:
        nominated = replaced(pod, status=replaced(pod.status, nominated_node_name=result.nominated_node))
        trial.changed(pod, nominated)
        changed(pod, nominated)
    return pod.key, "", message, [victim.key for victim in victims]


@pytest.mark.slow
@settings(deadline=None, max_examples=examples(150), phases=NO_SHRINKING)
@given(st.integers(0, 2**32))
def test_trial_says_what_the_scheduler_does(seed: int) -> None:
    """To the node, the message and the victims."""
    chance = random.Random(seed)

    does, says = virtual_time.run(both(objects_of(random_cluster(chance), chance)))

    assert says == does
