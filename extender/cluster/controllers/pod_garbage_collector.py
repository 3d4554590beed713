"""The deletion of pods that no kubelet takes care of: on nodes that are gone, or deleted before they had a node.

Upstream: pkg/controller/podgc/gc_controller.go (v1.36.2).
"""

import asyncio
from collections.abc import Sequence
from typing import Final, final

from extender.cluster.controllers.controller_loop import BURST, Controller, ControllerContext, Steps
from extender.cluster.controllers.controller_writes import Delete, RequeueAfter, Update
from extender.cluster.controllers.observed_objects import Key, Observed, ObservedNode, ObservedPod
from extender.cluster.registry.conditions import with_condition

QUARANTINE: Final = 40.0
"""The seconds for which a node has to be missing before its pods are deleted: it may register again. Upstream:
quarantineTime.
"""


@final
class PodGarbage(Controller):
    """Deletes lost pods. Keys are ("", node) for nodes that are missing, and those of pods."""

    name = "pod garbage collector"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._missing: dict[str, float] = {}
        """When (time of the loop) nodes with pods were first missing."""

    def observe(self, old: Observed | None, new: Observed | None) -> None:
        if isinstance(new, ObservedNode):
            self._missing.pop(new.name, None)
        elif new is None and isinstance(old, ObservedNode):
            self._miss(old.name)

    def observe_pod(self, old: ObservedPod | None, new: ObservedPod | None) -> None:
        if new is None:
            return
        if not new.node:
            if new.deleted and new.grace:
                self.queue.add(new.key)
        elif new.node not in self._missing and self.cluster.node(new.node) is None:
            self._miss(new.node)

    def _miss(self, node: str) -> None:
        if self.cluster.pods_on(node):
            self._missing.setdefault(node, asyncio.get_running_loop().time())
            self.queue.add_after(("", node), QUARANTINE)

    def reconcile(self, key: Key) -> Steps:
        if key[0]:
            pod = self.cluster.pods.get(key)
            if pod is not None and pod.deleted and pod.grace and not pod.node:
                yield Delete(pod, grace=0)
            return
        since = self._missing.get(key[1])
        if since is None or self.cluster.node(key[1]) is not None:
            return
        left = since + QUARANTINE - asyncio.get_running_loop().time()
        if left > 0:
            yield RequeueAfter(left)
            return
        pods = [pod for pod in self.cluster.pods_on(key[1]).values() if not (pod.deleted and pod.grace == 0)]
        if not pods:
            del self._missing[key[1]]
            return
        yield from self._delete(pods[:BURST])
        yield RequeueAfter(0)

    def _delete(self, pods: Sequence[ObservedPod]) -> Steps:
        for pod in pods:
            if pod.is_finished or pod.is_victim:
                yield Delete(pod, grace=0)
                continue
            content = pod.content()
            status = dict(content.get("status") or {})
            target = {
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "DeletionByPodGC",
                "message": "PodGC: node no longer exists",
            }
            conditions = with_condition(status.get("conditions"), target, self.now())
            yield Update(pod, content | {"status": {**status, "phase": "Failed", "conditions": conditions}}, "status")
            yield Delete(pod, grace=0)
