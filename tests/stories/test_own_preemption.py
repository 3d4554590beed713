"""A preemption with rules of a plugin's own.

Upstream: defaultpreemption, default_preemption.go, IsEligiblePod; preemption, preemption.go, OrderedScoreFuncs
(v1.36.2).
"""

from dataclasses import replace

import numpy as np
import pytest

from extender.engine import framework as fwk
from extender.engine.preemption import V1_17, V1_36, Evaluator
from extender.values.objects.pod import Pod
from tests.kit.extenders import InMemory, an_extender
from tests.kit.objects import node, pod
from tests.stories.scene import a_scene


class KeepsCaches(fwk.PostFilterPlugin):
    """Pods labelled `keep` are never victims, and of the nodes the one with the most victims wins."""

    chooses_candidates = True
    preemption_rules = replace(
        V1_36,
        may_go=lambda victim: "keep" not in victim.labels,
        criteria=[lambda candidates: np.diff(candidates.first).astype(np.int64)],
    )

    async def post_filter(self, state: fwk.CycleState, pod: Pod, statuses: fwk.NodeStatuses) -> fwk.PostFilterResult:
        evaluator = Evaluator(self.handle, lambda num_nodes: (0, num_nodes), self.preemption_rules)
        outcome = await evaluator.preempt(state, pod, statuses)
        return fwk.PostFilterResult(outcome.status, outcome.nominated_node, outcome.chosen, outcome)


@pytest.mark.parametrize(
    ("plugins", "without", "node_of_victims", "victims"),
    [
        pytest.param([], (), "one", {"lone"}, id="upstream's criteria prefer fewer victims"),
        pytest.param([KeepsCaches], ("DefaultPreemption",), "two", {"first", "second"}, id="the plugin prefers more"),
    ],
)
async def test_a_plugin_replaces_the_criteria(
    plugins: list[type[fwk.Plugin]], without: tuple[str, ...], node_of_victims: str, victims: set[str]
) -> None:
    async with a_scene(node("one"), node("two"), plugins=plugins, without=without) as scene:
        await scene.has(pod("lone", "2", "low", nodeName="one", stays=True))
        for name in ("first", "second"):
            await scene.has(pod(name, "1", "low", nodeName="two", stays=True))
        await scene.has(pod("high", "2", "high"))

        assert scene.leaving() == victims
        assert scene.nominated_node_of("high") == node_of_victims


async def test_a_plugin_protects_pods() -> None:
    async with a_scene(node("one"), plugins=[KeepsCaches], without=("DefaultPreemption",)) as scene:
        await scene.has(pod("kept", "1", "low", labels={"keep": ""}, stays=True))
        await scene.has(pod("other", "1", "low", stays=True))
        await scene.has(pod("large", "2", "high"), within=0.5)
        assert scene.leaving() == set()

        await scene.has(pod("small", "1", "high"))

        assert scene.leaving() == {"other"}


class PreemptsAsOf117(fwk.PostFilterPlugin):
    """Follows the rules of kube-scheduler 1.17."""

    chooses_candidates = True
    preemption_rules = V1_17

    async def post_filter(self, state: fwk.CycleState, pod: Pod, statuses: fwk.NodeStatuses) -> fwk.PostFilterResult:
        outcome = await Evaluator(self.handle, lambda num_nodes: (0, num_nodes), self.preemption_rules).preempt(
            state, pod, statuses
        )
        return fwk.PostFilterResult(outcome.status, outcome.nominated_node, outcome.chosen, outcome)


async def test_by_old_rules_a_pod_waits_for_a_node_that_only_an_extender_refuses() -> None:
    """It is nominated there, and nobody has to go; it is bound once the extender lets it."""
    refused = ["one"]
    memory = InMemory(
        busy_filter=lambda asked: {"NodeNames": [], "FailedNodes": dict.fromkeys(refused, "busy")} if refused else asked
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
