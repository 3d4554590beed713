"""Kubelets without containers: bound pods run, deleted pods end, nodes say that they are ready.

Upstream's are real; this is what one sees of them through the API. A node whose Ready condition somebody set to Unknown has a dead kubelet,
so that its pods neither start nor end; one that is not ready starts nothing.
"""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from random import Random
from typing import Final, final

from extender.embedded.controllers.cluster import Cluster
from extender.embedded.controllers.controller import Controller, Steps
from extender.embedded.controllers.node_status import READY, registered
from extender.embedded.controllers.pod_status import node_address, running, succeeded
from extender.embedded.controllers.seen import RUNS_FOR, Key, Seen, SeenNode, SeenPod
from extender.embedded.controllers.writes import Delete, LookAgain, Report
from extender.golang.durations import Duration, DurationError

logger = logging.getLogger(__name__)

LONGEST_GOODBYE: Final = 1.0
"""Seconds that a deleted pod stays at most, whatever grace it was given: there is nothing in it to be stopped."""


@final
class Kubelet(Controller):
    """The kubelets of all nodes. Keys are (namespace, pod) and ("", node)."""

    name = "kubelet"
    author = "kubelet"

    def __init__(self, cluster: Cluster, now: Callable[[], datetime], rng: Random) -> None:
        super().__init__(cluster, now, rng)
        self._ends: dict[Key, tuple[str, float]] = {}
        """When a running pod is to succeed or a deleted one to go: (which of the two and of what uid, time of the loop)."""
        self._addresses: dict[str, str] = {}

    def observe(self, old: Seen | None, new: Seen | None) -> None:
        """Nodes, and with them their pods."""
        if not isinstance(new, SeenNode):
            return
        self._addresses.pop(new.name, None)
        if READY not in new.conditions:
            self.queue.add(new.key)
        if not isinstance(old, SeenNode) or old.conditions.get(READY) != new.conditions.get(READY):
            for key in self.cluster.pods_on(new.name):
                self.queue.add(key)

    def observe_pod(self, old: SeenPod | None, new: SeenPod | None) -> None:
        """Bound pods that have to start or end."""
        if new is None:
            if old is not None:
                self._ends.pop(old.key, None)
        elif new.node and (new.grace or new.phase in ("", "Pending") or (new.runs_for and new.phase == "Running")):
            self.queue.add(new.key)

    def reconcile(self, key: Key) -> Steps:
        """Start or end a pod, or register a node."""
        if not key[0]:
            yield from self._register(key[1])
            return
        pod = self.cluster.pods.get(key)
        node = self.cluster.node(pod.node) if pod is not None else None
        if pod is None or node is None or node.conditions.get(READY) == "Unknown":
            return
        if pod.deleted:
            if pod.grace:
                yield self._once_due(pod, f"goes {pod.uid}", min(pod.grace, LONGEST_GOODBYE)) or Delete(pod, grace=0)
        elif pod.phase in ("", "Pending"):
            if node.conditions.get(READY) != "False":
                content = pod.content()
                yield Report(pod, content | {"status": running(content, self._address(node), self.now())})
        elif pod.phase == "Running" and pod.runs_for:
            yield from self._let_succeed(pod)

    def _register(self, name: str) -> Steps:
        node = self.cluster.node(name)
        if node is not None and READY not in node.conditions:
            content = node.content()
            yield Report(node, content | {"status": registered(content, self.now())})

    def _let_succeed(self, pod: SeenPod) -> Steps:
        try:
            seconds = Duration.parse(pod.runs_for).nanoseconds / 1e9
        except DurationError as exc:
            logger.warning("pod %s/%s: annotation %s: %s", pod.namespace, pod.name, RUNS_FOR, exc)
            return
        content = pod.content()
        if content["spec"].get("restartPolicy") in ("Never", "OnFailure"):
            done = Report(pod, content | {"status": succeeded(content, self.now())})
            yield self._once_due(pod, f"succeeds {pod.uid}", seconds) or done

    def _once_due(self, pod: SeenPod, end: str, seconds: float) -> LookAgain | None:
        """None if the pod has been as it is for so long, else when to look again."""
        time = asyncio.get_running_loop().time()
        known = self._ends.get(pod.key)
        if known is None or known[0] != end:
            known = self._ends[pod.key] = (end, time + seconds)
        return LookAgain(known[1] - time) if known[1] > time else None

    def _address(self, node: SeenNode) -> str:
        address = self._addresses.get(node.name)
        if address is None:
            address = self._addresses[node.name] = node_address(node.content())
        return address
