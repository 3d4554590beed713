"""Taints that a node's spec and conditions imply, and the eviction of pods by NoExecute taints.

A node without a Ready condition is left alone, since no kubelet has reported on it yet. A pod's tolerationSeconds begin
when pod and taint are first seen together, as upstream.

Upstream: pkg/controller/nodelifecycle/node_lifecycle_controller.go, doNoScheduleTaintingPass, processTaintBaseEviction;
pkg/controller/tainteviction/taint_eviction.go.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, final

from extender.rules.api_resources import Object
from extender.values.objects import decoding
from extender.values.objects.meta import Int64
from extender.values.objects.node import Taint
from extender.values.objects.pod import Toleration
from extender.values.objects.tolerations import NO_EXECUTE, NO_SCHEDULE, tolerates
from reprieve.cluster.controllers.controller_loop import Controller, ControllerContext, Steps
from reprieve.cluster.controllers.controller_writes import Delete, RequeueAfter, Update, changed_status
from reprieve.cluster.controllers.observed_objects import Key, NodeTaint, Observed, ObservedNode, ObservedPod
from reprieve.cluster.registry.conditions import timestamp, with_condition

UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
_BY_CONDITION: Final[Mapping[str, Mapping[str, str]]] = {
    "Ready": {"False": NOT_READY, "Unknown": UNREACHABLE},
    "MemoryPressure": {"True": "node.kubernetes.io/memory-pressure"},
    "DiskPressure": {"True": "node.kubernetes.io/disk-pressure"},
    "NetworkUnavailable": {"True": "node.kubernetes.io/network-unavailable"},
    "PIDPressure": {"True": "node.kubernetes.io/pid-pressure"},
}
_OURS: Final = frozenset({UNSCHEDULABLE, *(key for statuses in _BY_CONDITION.values() for key in statuses.values())})
_EVICTING: Final = frozenset({NOT_READY, UNREACHABLE})


@final
class NodeTaints(Controller):
    """Controls the taints of nodes. Keys are those of nodes."""

    name = "node lifecycle"

    def observe(self, old: Observed | None, new: Observed | None) -> None:
        if isinstance(new, ObservedNode) and set(wanted_taints(new)) != present_taints(new):
            self.queue.add(new.key)

    def reconcile(self, key: Key) -> Steps:
        node = self.cluster.node(key[1])
        if node is not None and not node.deleted and set(wanted_taints(node)) != present_taints(node):
            content = node.content()
            content["spec"] = with_taints(content.get("spec") or {}, node, self.now())
            yield Update(node, content)


def wanted_taints(node: ObservedNode) -> Iterator[tuple[str, str]]:
    """Yields the (key, effect) of the taints that the node's spec and conditions imply."""
    if node.unschedulable:
        yield UNSCHEDULABLE, NO_SCHEDULE
    for condition, statuses in _BY_CONDITION.items():
        taint = statuses.get(node.conditions.get(condition, ""))
        if taint is not None:
            yield taint, NO_SCHEDULE
            if taint in _EVICTING:
                yield taint, NO_EXECUTE


def present_taints(node: ObservedNode) -> set[tuple[str, str]]:
    """Returns the (key, effect) of the node's taints of these kinds, without the evicting ones if it lacks Ready."""
    silent = _EVICTING if "Ready" not in node.conditions else frozenset()
    return {(taint.key, taint.effect) for taint in node.taints if _is_ours(taint) and taint.key not in silent}


def with_taints(spec: Object, node: ObservedNode, now: datetime) -> Object:
    """Returns the node's spec with exactly the implied taints; taints of other kinds stay."""
    implied, present = list(wanted_taints(node)), present_taints(node)
    surplus = present.difference(implied)
    taints = [taint for taint in spec.get("taints") or () if (taint.get("key"), taint.get("effect")) not in surplus]
    for key, effect in implied:
        if (key, effect) not in present:
            taints.append({"key": key, "effect": effect, "timeAdded": timestamp(now)})
    result = {name: value for name, value in spec.items() if name != "taints"}
    return result | {"taints": taints} if taints else result


def _is_ours(taint: NodeTaint) -> bool:
    return taint.key in _OURS and (
        taint.effect == NO_SCHEDULE or (taint.effect == NO_EXECUTE and taint.key in _EVICTING)
    )


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
    """Deletes pods from tainted nodes. Keys are those of pods."""

    name = "taint eviction"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._since: dict[Key, tuple[str, float]] = {}
        """The pods whose tolerationSeconds run: (uid, start by the loop's clock)."""

    def observe(self, old: Observed | None, new: Observed | None) -> None:
        if not isinstance(new, ObservedNode):
            return
        before = evicting_taints(old) if isinstance(old, ObservedNode) else []
        if evicting_taints(new) != before:
            for key in self.cluster.pods_on(new.name):
                self.queue.add(key)

    def observe_pod(self, old: ObservedPod | None, new: ObservedPod | None) -> None:
        if new is None and old is not None:
            self._since.pop(old.key, None)
        if new is None or not new.node or new.deleted or (old is not None and old.node == new.node):
            return
        node = self.cluster.node(new.node)
        if node is not None and evicting_taints(node):
            self.queue.add(new.key)

    def reconcile(self, key: Key) -> Steps:
        pod = self.cluster.pods.get(key)
        node = self.cluster.node(pod.node) if pod is not None and pod.node else None
        taints = evicting_taints(node) if node is not None else ()
        if pod is None or pod.deleted or not taints:
            self._since.pop(key, None)
            return
        content = pod.content()
        tolerations = [
            decoding.convert(PatientToleration, toleration) for toleration in content["spec"].get("tolerations") or ()
        ]
        seconds = patience(taints, tolerations)
        if seconds is None:
            self._since.pop(key, None)
            return
        time = asyncio.get_running_loop().time()
        uid, since = self._since.get(key, ("", time))
        since = since if uid == pod.uid else time
        self._since[key] = (pod.uid, since)
        if since + seconds > time:
            yield RequeueAfter(since + seconds - time)
            return
        if not pod.is_victim:
            status = content.get("status") or {}
            conditions = with_condition(status.get("conditions"), _TARGET, self.now())
            yield from changed_status(pod, content, {**status, "conditions": conditions})
        yield Delete(pod)


def evicting_taints(node: ObservedNode) -> Sequence[NodeTaint]:
    return [taint for taint in node.taints if taint.effect == NO_EXECUTE]


def patience(taints: Iterable[NodeTaint], tolerations: Sequence[PatientToleration]) -> int | None:
    """Returns the seconds for which a pod tolerates these NoExecute taints; None: forever (getMinTolerationTime)."""
    seconds = []
    for taint in taints:
        plain = Taint(key=taint.key, value=taint.value, effect=taint.effect)
        used = next((toleration for toleration in tolerations if tolerates(toleration, plain, compares=True)), None)
        if used is None:
            return 0
        if used.toleration_seconds is not None:
            seconds.append(max(used.toleration_seconds, 0))
    return min(seconds, default=None)
