"""A preemption with rules of a plugin's own.

Upstream: defaultpreemption, default_preemption.go, IsEligiblePod; preemption, preemption.go, OrderedScoreFuncs.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from extender.engine import framework as fwk
from extender.engine.framework.preemption import PreemptionRules
from extender.engine.plugins.default_preemption import DefaultPreemption
from extender.engine.preemption import V1_17, V1_36, Evaluator
from extender.values.config.plugin_args import DefaultPreemptionArgs, EvictionCost, PreemptionDelay, Protection
from extender.values.golang.times import Duration
from extender.values.objects.meta import LabelSelector
from extender.values.objects.pod import Pod
from tests.kit.extenders import InMemory, an_extender
from tests.kit.objects import node, pod
from tests.kit.scene import a_scene


class OwnRules(fwk.PostFilterPlugin):
    """Preempts by the rules of a subclass."""

    chooses_candidates = True
    preemption_rules: PreemptionRules

    async def post_filter(self, state: fwk.CycleState, pod: Pod, statuses: fwk.NodeStatuses) -> fwk.PostFilterResult:
        evaluator = Evaluator(self.handle, lambda num_nodes: (0, num_nodes), self.preemption_rules)
        outcome = await evaluator.preempt(state, pod, statuses)
        return fwk.PostFilterResult(outcome.status, outcome.nominated_node, outcome.chosen, outcome)


class KeepsCaches(OwnRules):
    """Pods labelled `keep` are never victims, and of the nodes the one with the most victims wins."""

    preemption_rules = replace(
        V1_36,
        may_go=lambda victim: "keep" not in victim.labels,
        criteria=[lambda candidates: np.diff(candidates.first).astype(np.int64)],
    )


@pytest.mark.parametrize(
    ("plugins", "disabled", "node_of_victims", "victims"),
    [
        pytest.param([], (), "one", {"lone"}, id="upstream's criteria prefer fewer victims"),
        pytest.param([KeepsCaches], ("DefaultPreemption",), "two", {"first", "second"}, id="the plugin prefers more"),
    ],
)
async def test_a_plugin_replaces_the_criteria(
    plugins: list[type[fwk.Plugin]], disabled: tuple[str, ...], node_of_victims: str, victims: set[str]
) -> None:
    async with a_scene(node("one"), node("two"), plugins=plugins, without=disabled) as scene:
        await scene.has(pod("lone", "2", "low", nodeName="one", stays=True))
        for name in ("first", "second"):
            await scene.has(pod(name, "1", "low", nodeName="two", stays=True))
        await scene.has(pod("high", "2", "high"))

        assert scene.leaving() == victims
        assert scene.nominated_node_of("high") == node_of_victims


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


@pytest.mark.parametrize("plugin", [KeepsCaches, KeepsLabelled], ids=["a plugin of one's own", "a policy"])
async def test_protected_pods_are_not_evicted_even_if_a_pod_stays_pending(plugin: type[fwk.Plugin]) -> None:
    async with a_scene(node("one"), plugins=[plugin], without=("DefaultPreemption",)) as scene:
        await scene.has(pod("kept", "1", "low", labels={"keep": "yes"}, stays=True))
        await scene.has(pod("other", "1", "low", stays=True))
        await scene.has(pod("large", "2", "high"), within=0.5)
        assert scene.leaving() == set()

        await scene.has(pod("small", "1", "high"))

        assert scene.leaving() == {"other"}


class PreemptsAsOf117(OwnRules):
    preemption_rules = V1_17


async def test_by_old_rules_a_pod_waits_for_a_node_that_only_an_extender_refuses() -> None:
    """It is nominated there, and nobody has to go; it is bound once the extender lets it."""
    refused = ["one"]
    memory = InMemory(
        busy_filter=lambda args: {"NodeNames": [], "FailedNodes": dict.fromkeys(refused, "busy")} if refused else args
    )
    extenders = [an_extender("busy", filter_verb="filter")]
    async with a_scene(
        node("one"),
        plugins=[PreemptsAsOf117],
        without=("DefaultPreemption",),
        extenders=extenders,
        transports=memory.transport,
    ) as scene:
        await scene.has(pod("running", "1", "low", stays=True, nodeName="one"))
        await scene.has(pod("high", "1", "high"), within=0.5)
        assert (scene.nominated_node_of("high"), scene.leaving(), scene.node_of("high")) == ("one", set(), "")

        refused.clear()
        await scene.has(node("two"))

        assert scene.node_of("high") != ""
        assert scene.leaving() == set()


# Victim policies, of which upstream has none.


class SparesLosses(Policed):
    args = DefaultPreemptionArgs(cost=EvictionCost(per_hour="0.0", fixed='double(labels[?"price"].orValue("0"))'))


class Waits(Policed):
    args = DefaultPreemptionArgs(
        delay=PreemptionDelay(default=Duration.of(3600), by_priority_class={"system-node-critical": Duration()})
    )


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
