"""The form of a story about who is called after an event, and who is not."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import final

from extender.rules.api_resources import Object
from tests.kit.scene import a_scene
from tests.stories.cluster_changes import Happens


@final
@dataclass(frozen=True)
class Case:
    """Pods are refused, one after the other; something happens; some of them are to be tried again.

    Attributes:
        plugins: the only ones that there are; empty for the default profile.
        objects: what the cluster has at first; its pods have nodes.
        wait: pods that are refused.
        called: names of those that are called, and of no others.
    """

    plugins: Sequence[str]
    objects: Sequence[Object]
    wait: Sequence[Object]
    happens: Happens
    called: set[str] = field(default_factory=set)


async def assert_called(case: Case) -> None:
    """Upstream: test/integration/scheduler/queueing/queue.go, RunTestCoreResourceEnqueue."""
    async with a_scene(*case.objects, only=case.plugins, kubelet=False, controllers=False, by_hand=True) as scene:
        queue = scene.alone.world.queue
        await scene.has(*case.wait, within=0.1)
        await scene.tries(len(case.wait))
        assert {info.pod.name for info in queue.unschedulable_pods()} == {obj["metadata"]["name"] for obj in case.wait}

        case.happens(scene)
        await scene.passes(0.1)

        called = {info.pod.name for info in (*queue.pods_in_active_q(), *queue.pods_in_backoff_q())}
        assert called == case.called
