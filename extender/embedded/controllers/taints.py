"""Eviction by taints: pods leave a node with a NoExecute taint that they do not tolerate, at once or when their patience ends.

Patience begins when the pod and the taint are first seen together, as upstream.

Upstream: pkg/controller/tainteviction/taint_eviction.go (v1.36.2).
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from random import Random
from typing import Final, final

from extender.embedded.controllers.cluster import Cluster
from extender.embedded.controllers.conditions import with_condition
from extender.embedded.controllers.controller import Controller, Steps
from extender.embedded.controllers.seen import Key, NodeTaint, Seen, SeenNode, SeenPod
from extender.embedded.controllers.writes import Delete, LookAgain, Update
from extender.embedded.resources import Object
from extender.objects import decoding
from extender.objects.meta import Int64
from extender.objects.node import Taint
from extender.objects.pod import Toleration
from extender.objects.tolerations import NO_EXECUTE, tolerates

_TARGET: Final[Object] = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "DeletionByTaintManager",
    "message": "Taint manager: deleting due to NoExecute taint",
}


class PatientToleration(Toleration, frozen=True, gc=False, rename="camel"):
    """v1.Toleration with its tolerationSeconds."""

    toleration_seconds: Int64 | None = None


@final
class TaintEviction(Controller):
    """Keys are those of pods."""

    name = "taint eviction"

    def __init__(self, cluster: Cluster, now: Callable[[], datetime], rng: Random) -> None:
        super().__init__(cluster, now, rng)
        self._since: dict[Key, tuple[str, float]] = {}
        """Pods that are being patient: (uid, since when by the loop)."""

    def observe(self, old: Seen | None, new: Seen | None) -> None:
        """Nodes whose NoExecute taints have changed."""
        if not isinstance(new, SeenNode):
            return
        before = evicting_taints(old) if isinstance(old, SeenNode) else []
        if evicting_taints(new) != before:
            for key in self.cluster.pods_on(new.name):
                self.queue.add(key)

    def observe_pod(self, old: SeenPod | None, new: SeenPod | None) -> None:
        """Pods that come to a tainted node."""
        if new is None and old is not None:
            self._since.pop(old.key, None)
        if new is None or not new.node or new.deleted or (old is not None and old.node == new.node):
            return
        node = self.cluster.node(new.node)
        if node is not None and evicting_taints(node):
            self.queue.add(new.key)

    def reconcile(self, key: Key) -> Steps:
        """Delete the pod once its time has come."""
        pod = self.cluster.pods.get(key)
        node = self.cluster.node(pod.node) if pod is not None and pod.node else None
        taints = evicting_taints(node) if node is not None else ()
        if pod is None or pod.deleted or not taints:
            self._since.pop(key, None)
            return
        content = pod.content()
        tolerations = [decoding.convert(PatientToleration, each) for each in content["spec"].get("tolerations") or ()]
        seconds = patience(taints, tolerations)
        if seconds is None:
            self._since.pop(key, None)
            return
        time = asyncio.get_running_loop().time()
        uid, since = self._since.get(key, ("", time))
        since = since if uid == pod.uid else time
        self._since[key] = (pod.uid, since)
        if since + seconds > time:
            yield LookAgain(since + seconds - time)
            return
        if not pod.is_victim:
            status = content.get("status") or {}
            conditions = with_condition(status.get("conditions"), _TARGET, self.now())
            yield Update(pod, content | {"status": {**status, "conditions": conditions}}, "status")
        yield Delete(pod)


def evicting_taints(node: SeenNode) -> Sequence[NodeTaint]:
    """The node's NoExecute taints."""
    return [taint for taint in node.taints if taint.effect == NO_EXECUTE]


def patience(taints: Iterable[NodeTaint], tolerations: Sequence[PatientToleration]) -> int | None:
    """For how many seconds a pod puts up with these NoExecute taints; None: for ever.

    Of the tolerations that cover a taint the first counts. Upstream: GetMatchingTolerations, getMinTolerationTime.
    """
    seconds = []
    for taint in taints:
        plain = Taint(key=taint.key, value=taint.value, effect=taint.effect)
        used = next((each for each in tolerations if tolerates(each, plain)), None)
        if used is None:
            return 0
        if used.toleration_seconds is not None:
            seconds.append(max(used.toleration_seconds, 0))
    return min(seconds, default=None)
