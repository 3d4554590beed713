"""The loop guard: preemptors whose preemptions help nobody are paused, and no others are."""

import asyncio
import random
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import final

import pytest

from extender.engine import framework as fwk
from extender.engine.cache import Cache
from extender.engine.plugins.default_preemption import DefaultPreemption
from extender.engine.plugins.node_resources.fit import NodeResourcesFit
from extender.engine.preemption.preemptions import STOPPED_AFTER
from extender.engine.runtime.cycle import Cycle
from extender.engine.runtime.findings import run_post_filter_plugins
from extender.testing import make_cache, make_framework, make_node, make_pod
from extender.values.config.plugin_args import DefaultPreemptionArgs
from extender.values.metrics import PluginMetrics
from extender.values.objects.decoding import replaced
from extender.values.objects.pod import Pod
from tests.extender.engine.preemption.test_victim_policies import NoDispatcher

PREEMPTOR = make_pod("preemptor").uid("preemptor").req(cpu=2).priority(10).obj()


@final
class Duel:
    """A node with room for one pod, which two schedulers fill: ours with an important pod, a rival with unimportant
    ones.
    """

    def __init__(self, *, loop_guard: bool | None = None) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.cache: Cache = make_cache(make_node("n").capacity(cpu=2))
        self.framework = make_framework(
            NodeResourcesFit,
            lambda _, handle: DefaultPreemption(DefaultPreemptionArgs(loop_guard=loop_guard), handle),
            dispatcher=NoDispatcher(),
            live=self.cache,
            now=lambda: self.now,
        )
        self.num_rivals = self.num_evicted = 0
        self.nominated: set[str] = set()
        """UIDs of the pods for which the node is kept."""
        self.rival_comes()

    def rival_comes(self) -> None:
        self.num_rivals += 1
        self.cache.add_pod(make_pod(f"rival-{self.num_rivals}").uid(f"r{self.num_rivals}").req(cpu=2).node("n").obj())

    def attempt(self, pod: Pod = PREEMPTOR) -> fwk.PostFilterResult:
        """An attempt of the pod; the victims go at once."""
        if pod.uid in self.nominated:
            pod = replaced(pod, status=replaced(pod.status, nominated_node_name="n"))
        state = Cycle(self.framework, self.cache.update_snapshot(), pod)
        state.run_pre_filter_plugins()
        result = asyncio.run(
            run_post_filter_plugins(state, fwk.NodeStatuses({"n": fwk.unschedulable("Insufficient cpu")}))
        )
        if result.candidate is not None:
            self.nominated.add(pod.uid)
        for victim in result.candidate.victims if result.candidate is not None else ():
            self.cache.remove_pod(victim)
            self.num_evicted += 1
        return result

    def metrics(self) -> tuple[int, int]:
        return self.framework.shared(fwk.PLUGIN_METRICS, PluginMetrics).preemption_loops()


def fight(duel: Duel, hours: int) -> list[float]:
    """The rival takes the room whenever it is free. Returns when the preemptor preempted, in seconds; it is tried as
    soon as it may be.
    """
    began, moments = duel.now, list[float]()
    while duel.now - began < timedelta(hours=hours) and len(moments) < 100:
        result = duel.attempt()
        if result.candidate is not None:
            moments.append((duel.now - began).total_seconds())
            duel.rival_comes()
        duel.now += timedelta(seconds=min(result.retry_after, 1 if result.candidate else 3600))
    return moments


def test_a_fight_over_room_ends() -> None:
    duel = Duel()
    assert len(fight(duel, hours=20)) == STOPPED_AFTER
    assert duel.num_evicted == STOPPED_AFTER


def test_without_the_guard_a_fight_does_not_end() -> None:
    assert len(fight(Duel(loop_guard=False), hours=20)) == 100


def test_the_pauses_grow() -> None:
    moments = fight(Duel(), hours=20)
    pauses = [later - earlier for earlier, later in pairwise(moments)]
    assert [round(pause) for pause in pauses] == [1, 11, 21, 41, 81, 161, 321]


def test_status_of_a_paused_preemptor_names_the_pod_that_took_its_room() -> None:
    duel = Duel()
    for _ in range(2):
        assert duel.attempt().candidate is not None
        duel.rival_comes()
    paused = duel.attempt()
    assert paused.candidate is None
    assert paused.retry_after == 10
    words = "after 2 wasted preemptions in a row; the room on node n was taken by default/rival-3"
    assert paused.status.message == f"preemption: paused for another 10s {words}"
    assert duel.metrics() == (2, 1)


def test_first_preemption_is_not_paused_by_that_of_another_pod() -> None:
    duel = Duel()
    for _ in range(3):
        duel.attempt()
        duel.rival_comes()
    other = replaced(PREEMPTOR, metadata=replaced(PREEMPTOR.metadata, name="other", uid="other"))
    assert duel.attempt(other).candidate is not None


def test_a_preemption_whose_victims_have_not_gone_is_not_wasted() -> None:
    duel = Duel()
    for _ in range(3):
        result = duel.attempt()
        assert result.candidate is not None
        for victim in result.candidate.victims:
            duel.cache.add_pod(victim)  # it takes its time
    assert duel.metrics() == (0, 0)


def test_a_preemption_that_the_scheduler_itself_gave_up_is_not_wasted() -> None:
    duel = Duel()
    for _ in range(3):
        assert duel.attempt().candidate is not None
        duel.nominated.clear()  # the node was cordoned for a moment
        duel.rival_comes()
    assert duel.metrics() == (0, 0)


@pytest.mark.parametrize("seed", range(20))
def test_ordinary_churn_raises_no_alarm(seed: int) -> None:
    """Pods come, preempt, get their room and go; now and then somebody more important takes it, once."""
    chance = random.Random(seed)
    duel = Duel()
    for number in range(50):
        pod = replaced(PREEMPTOR, metadata=replaced(PREEMPTOR.metadata, name=f"p{number}", uid=f"p{number}"))
        assert duel.attempt(pod).candidate is not None
        if chance.random() < 0.3:  # a race
            duel.rival_comes()
            duel.now += timedelta(seconds=chance.random() * 5)
            assert duel.attempt(pod).candidate is not None
        placed = replaced(pod, spec=replaced(pod.spec, node_name="n"))
        duel.cache.add_pod(placed)
        duel.cache.remove_pod(placed)
        duel.rival_comes()
    assert duel.metrics()[1] == 0
