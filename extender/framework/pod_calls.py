"""Writes about pods: binding, status, deletion.

Upstream: pkg/scheduler/framework/api_calls, pod_binding.go, pod_status_patch.go, api_calls.go; pkg/scheduler/util/utils.go, PatchPodStatus,
DeletePod; pkg/api/v1/pod/util.go, UpdatePodCondition (v1.36.2).
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

from extender.framework.api_calls import ApiCall
from extender.objects.decoding import replaced
from extender.objects.meta import Condition
from extender.objects.pod import Pod, PodStatus


@final
@dataclass(frozen=True, slots=True)
class BindPod(ApiCall[None]):
    """The pod runs on the node from now on. Done, too, if it does already; never if another pod has the name by now."""

    relevance: ClassVar[int] = 2
    is_urgent: ClassVar[bool] = True

    namespace: str
    name: str
    uid: str
    node: str

    @classmethod
    def of(cls, pod: Pod, node: str) -> "BindPod":
        """The binding of this pod."""
        return cls(pod.namespace, pod.name, pod.uid, node)

    @property
    def concerns(self) -> str:
        """The pod."""
        return self.uid


@final
@dataclass(frozen=True, slots=True)
class PodCondition:
    """A condition as it should be. When it came to be so, whoever writes it knows."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    """The pod's generation that it was concluded from; 0 leaves it out."""


@final
@dataclass(frozen=True, slots=True)
class PatchPodStatus(ApiCall[None]):
    """Conditions and the nomination of a pod become as said; of the rest of its status nothing is touched.

    If the pod has changed since it was seen, the API server refuses, and what is to be written is worked out anew: a patch whose answer was
    lost, and which is done after all when others have followed, is too late by then. What is said of a pod that waits for a node is not
    said of one that has got it.

    Upstream patches whatever is there.
    """

    relevance: ClassVar[int] = 1

    namespace: str
    name: str
    uid: str
    known: PodStatus
    """The status as it was last seen: what is in there already need not be written."""
    conditions: tuple[PodCondition, ...] = ()
    nominated_node_name: str | None = None
    """None leaves the nomination as it is, "" clears it, a name sets it."""
    resource_version: str = ""
    """The pod as it was last seen; "" patches whatever is there."""

    @classmethod
    def of(cls, pod: Pod, *conditions: PodCondition, nominated_node_name: str | None = None) -> "PatchPodStatus":
        """What should become of this pod's status."""
        version = pod.metadata.resource_version
        return cls(pod.namespace, pod.name, pod.uid, pod.status, conditions, nominated_node_name, version)

    @property
    def concerns(self) -> str:
        """The pod."""
        return self.uid

    @property
    def changed_conditions(self) -> list[tuple[PodCondition, bool]]:
        """The conditions that are not so already, each with whether its status changes, too. A new observed generation is no change."""
        known = {condition.type: condition for condition in self.known.conditions}
        changed: list[tuple[PodCondition, bool]] = []
        for wanted in self.conditions:
            old = known.get(wanted.type)
            if old is None or (old.status, old.reason, old.message) != (wanted.status, wanted.reason, wanted.message):
                changed.append((wanted, old is None or old.status != wanted.status))
        return changed

    @property
    def changes_nomination(self) -> bool:
        """Whether the nomination is another one so far."""
        return self.nominated_node_name is not None and self.nominated_node_name != self.known.nominated_node_name

    @property
    def is_no_op(self) -> bool:
        """True when the status is so already."""
        return not self.changes_nomination and not self.changed_conditions

    def about(self, pod: Pod) -> "PatchPodStatus | None":
        """What remains to be said of the pod as it is now; None if it is another one, or the patch is about its wait for a node and it has
        one.
        """
        is_about_waiting = self.nominated_node_name is not None or any(condition.type == "PodScheduled" for condition in self.conditions)
        if pod.uid != self.uid or (is_about_waiting and pod.spec.node_name):
            return None
        return replace(self, known=pod.status, resource_version=pod.metadata.resource_version)

    def merged_with(self, older: ApiCall[Any]) -> "PatchPodStatus":
        """Conditions of other types and a nomination are taken over from the older call, where this one is silent."""
        if not isinstance(older, PatchPodStatus):
            return self
        said = {condition.type for condition in self.conditions}
        taken_over = tuple(condition for condition in older.conditions if condition.type not in said)
        nomination = self.nominated_node_name if self.nominated_node_name is not None else older.nominated_node_name
        return replace(self, conditions=self.conditions + taken_over, nominated_node_name=nomination)

    def after(self, earlier: ApiCall[Any]) -> "PatchPodStatus":
        """The status is known as the earlier call left it."""
        if not isinstance(earlier, PatchPodStatus):
            return self
        written = {
            wanted.type: Condition(type=wanted.type, status=wanted.status, reason=wanted.reason, message=wanted.message)
            for wanted in earlier.conditions
        }
        kept = [condition for condition in self.known.conditions if condition.type not in written]
        nomination = earlier.nominated_node_name
        known = replaced(
            self.known,
            conditions=[*kept, *written.values()],
            nominated_node_name=self.known.nominated_node_name if nomination is None else nomination,
        )
        return replace(self, known=known)


@final
@dataclass(frozen=True, slots=True)
class DeletePod(ApiCall[None]):
    """The pod goes away, with the time it asked for to do so; never another pod that has its name by now.

    Upstream deletes by name alone.
    """

    namespace: str
    name: str
    uid: str
    grace_period_seconds: int | None = None
    """None for what the pod asked for."""

    @classmethod
    def of(cls, pod: Pod) -> "DeletePod":
        """The deletion of this pod."""
        return cls(pod.namespace, pod.name, pod.uid)

    @property
    def concerns(self) -> str:
        """The pod."""
        return self.uid
