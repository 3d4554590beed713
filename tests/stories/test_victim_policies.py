"""Preemptions under victim policies, on a cluster. Upstream has none of these policies."""

from typing import Any

from extender.engine import framework as fwk
from extender.engine.plugins.default_preemption import DefaultPreemption
from extender.values.config import DefaultPreemptionArgs, Duration, EvictionCost, PreemptionDelay, Protection
from extender.values.objects.meta import LabelSelector
from extender.values.objects.pod import Pod
from tests.kit.objects import node, pod
from tests.stories.scene import a_scene


class Policed(fwk.PostFilterPlugin):
    """DefaultPreemption with the arguments of a subclass."""

    chooses_candidates = True
    args: DefaultPreemptionArgs

    def __init__(self, arguments: Any = None, handle: fwk.Handle | None = None) -> None:
        super().__init__(arguments, handle)
        self._preempts = DefaultPreemption(self.args, handle)
        self.preemption_rules = self._preempts.preemption_rules

    async def post_filter(self, state: fwk.CycleState, pod: Pod, statuses: fwk.NodeStatuses) -> fwk.PostFilterResult:
        return await self._preempts.post_filter(state, pod, statuses)


class KeepsLabelled(Policed):
    args = DefaultPreemptionArgs(protect=Protection(selector=LabelSelector(match_labels={"keep": "yes"})))


class SparesLosses(Policed):
    args = DefaultPreemptionArgs(cost=EvictionCost(per_hour="0.0", fixed='double(labels[?"price"].orValue("0"))'))


class Waits(Policed):
    args = DefaultPreemptionArgs(
        delay=PreemptionDelay(default=Duration.of(3600), by_priority_class={"system-node-critical": Duration()})
    )


async def test_protected_pods_are_not_evicted_even_if_a_pod_stays_pending() -> None:
    async with a_scene(node("one"), plugins=[KeepsLabelled], without=("DefaultPreemption",)) as scene:
        await scene.has(pod("kept", "1", "low", labels={"keep": "yes"}, stays=True))
        await scene.has(pod("other", "1", "low", stays=True))
        await scene.has(pod("large", "2", "high"), within=0.5)
        assert scene.leaving() == set()

        await scene.has(pod("small", "1", "high"))
        assert scene.leaving() == {"other"}


async def test_the_pod_that_loses_least_is_evicted() -> None:
    async with a_scene(node("one"), plugins=[SparesLosses], without=("DefaultPreemption",)) as scene:
        await scene.has(pod("cheap", "1", "low", labels={"price": "1"}, stays=True))
        await scene.has(pod("dear", "1", "low", labels={"price": "9"}, stays=True))
        await scene.has(pod("high", "1", "high"))
        assert scene.leaving() == {"cheap"}


async def test_preemptor_waits_for_its_delay_and_its_condition_says_how_long() -> None:
    async with a_scene(node("one"), plugins=[Waits], without=("DefaultPreemption",)) as scene:
        await scene.has(pod("low", "2", "low", stays=True))
        await scene.has(pod("patient", "2", "high"), within=0.5)
        assert scene.leaving() == set()
        assert "not eligible for another 3600s, by the delay of preemption" in str(scene.condition("patient"))
