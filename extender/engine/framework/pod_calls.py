"""Writes about pods: binding, status, deletion.

Upstream: pkg/scheduler/framework/api_calls, pod_binding.go, pod_status_patch.go, api_calls.go;
pkg/scheduler/util/utils.go, PatchPodStatus, DeletePod; pkg/api/v1/pod/util.go, UpdatePodCondition.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, final

import msgspec

from extender.engine.framework.api_calls import ApiCall
from extender.values.objects.decoding import replaced
from extender.values.objects.meta import Condition
from extender.values.objects.pod import Pod, PodExtendedResourceClaimStatus, PodStatus


@dataclass(frozen=True, slots=True)
class _AboutPod(ApiCall[None]):
    namespace: str
    name: str
    uid: str

    @property
    def object_key(self) -> str:
        return self.uid


@final
@dataclass(frozen=True, slots=True)
class BindPod(_AboutPod):
    """Binds the pod to the node, unless it is bound there already; never another pod that has the name by now."""

    relevance: ClassVar[int] = 2
    is_urgent: ClassVar[bool] = True

    node: str
    annotations: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Added to the pod's annotations."""

    @classmethod
    def of(cls, pod: Pod, node: str, annotations: Mapping[str, str] | None = None) -> "BindPod":
        return cls(pod.namespace, pod.name, pod.uid, node, annotations or {})


@final
class PodCondition(msgspec.Struct, frozen=True):
    """The desired condition. Writing it sets its times."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    """The generation of the object that was judged; 0 leaves the field out."""

    def is_said_by(self, observed: Condition | None) -> bool:
        """True if the observed condition, which is of this type, differs in no more than the observed generation."""
        return observed is not None and (observed.status, observed.reason, observed.message) == (
            self.status,
            self.reason,
            self.message,
        )


@final
@dataclass(frozen=True, slots=True)
class PatchPodStatus(_AboutPod):
    """Sets conditions, the nomination and the special claim of a pod; the rest of its status is not touched.

    If the pod has changed since it was last seen, the API server refuses the patch and it is worked out again: a patch
    whose answer was lost, and which is performed after later ones, does no harm then. A patch about the wait for a node
    is not written to a pod that has a node.

    Upstream patches whatever is there.
    """

    relevance: ClassVar[int] = 1

    known: PodStatus
    """The last observed status. Fields that it already contains are not written."""
    conditions: tuple[PodCondition, ...] = ()
    nominated_node_name: str | None = None
    """None leaves the nomination as it is, "" clears it, a name sets it."""
    resource_version: str = ""
    """The version of the pod that was last seen; "" patches whatever is there."""
    extended_resource_claim: PodExtendedResourceClaimStatus | None = None
    """The claim for extended resources that device classes back; None leaves it as it is."""

    @classmethod
    def of(
        cls,
        pod: Pod,
        *conditions: PodCondition,
        nominated_node_name: str | None = None,
        extended_resource_claim: PodExtendedResourceClaimStatus | None = None,
    ) -> "PatchPodStatus":
        version = pod.metadata.resource_version
        of_pod = pod.namespace, pod.name, pod.uid, pod.status
        return cls(*of_pod, conditions, nominated_node_name, version, extended_resource_claim)

    @property
    def changed_conditions(self) -> list[tuple[PodCondition, bool]]:
        """The conditions that differ in more than the observed generation, each with whether its status differs."""
        old_conditions = {condition.type: condition for condition in self.known.conditions}
        return [
            (condition, old is None or old.status != condition.status)
            for condition in self.conditions
            if not condition.is_said_by(old := old_conditions.get(condition.type))
        ]

    @property
    def changes_nomination(self) -> bool:
        return self.nominated_node_name is not None and self.nominated_node_name != self.known.nominated_node_name

    @property
    def changes_extended_resource_claim(self) -> bool:
        return (
            self.extended_resource_claim is not None
            and self.extended_resource_claim != self.known.extended_resource_claim_status
        )

    @property
    def is_no_op(self) -> bool:
        return not self.changes_nomination and not self.changed_conditions and not self.changes_extended_resource_claim

    def rebased_on(self, pod: Pod) -> "PatchPodStatus | None":
        """Returns the patch for the pod as it is now; None for another pod, or about a wait that has ended."""
        is_about_waiting = (
            self.nominated_node_name is not None
            or self.extended_resource_claim is not None
            or any(condition.type == "PodScheduled" for condition in self.conditions)
        )
        if pod.uid != self.uid or (is_about_waiting and pod.spec.node_name):
            return None
        return replace(self, known=pod.status, resource_version=pod.metadata.resource_version)

    def merged_with(self, older: ApiCall[Any]) -> "PatchPodStatus":
        """Returns this patch with what it lacks of the older one: conditions, the nomination, the special claim."""
        if not isinstance(older, PatchPodStatus):
            return self
        types = {condition.type for condition in self.conditions}
        taken_over = tuple(condition for condition in older.conditions if condition.type not in types)
        nomination = self.nominated_node_name if self.nominated_node_name is not None else older.nominated_node_name
        special = self.extended_resource_claim or older.extended_resource_claim
        return replace(
            self,
            conditions=self.conditions + taken_over,
            nominated_node_name=nomination,
            extended_resource_claim=special,
        )

    def after(self, earlier: ApiCall[Any]) -> "PatchPodStatus":
        if not isinstance(earlier, PatchPodStatus):
            return self
        earlier_conditions = {
            condition.type: Condition(
                type=condition.type, status=condition.status, reason=condition.reason, message=condition.message
            )
            for condition in earlier.conditions
        }
        other_conditions = [
            condition for condition in self.known.conditions if condition.type not in earlier_conditions
        ]
        nomination = earlier.nominated_node_name
        status = replaced(
            self.known,
            conditions=[*other_conditions, *earlier_conditions.values()],
            nominated_node_name=self.known.nominated_node_name if nomination is None else nomination,
            extended_resource_claim_status=earlier.extended_resource_claim or self.known.extended_resource_claim_status,
        )
        return replace(self, known=status)


@final
@dataclass(frozen=True, slots=True)
class DeletePod(_AboutPod):
    """Deletes the pod with its own grace period. Upstream deletes whichever pod has its name by now."""

    grace_period_seconds: int | None = None
    """None for the pod's own."""

    @classmethod
    def of(cls, pod: Pod) -> "DeletePod":
        return cls(pod.namespace, pod.name, pod.uid)
