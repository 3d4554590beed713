"""What answers show of pods; victims and candidates are written to the records file in this form."""

from collections.abc import Iterable
from typing import Literal, final

import msgspec

from extender.values.objects.pod import Pod
from extender.values.objects.quantity import QuantityError
from extender.values.objects.resource_amounts import pod_requests
from extender.values.workloads.templates import HASH_LABEL

Outcome = Literal["Scheduled", "Unschedulable", "Error", "Filter", "Prioritize", "Preempt"]
"""How an attempt ended. The last three are calls of the extender by another scheduler."""

PreemptionState = Literal["deciding", "told", "failed"]
"""Whether the victims of a preemption were evicted: `told` if they were. The word stays, since it is in files and
answers.
"""

Verdict = Literal["", "used", "wasted"]
"""What a preemption was good for: its preemptor got a node, or did not although the victims were gone. Empty while
nobody knows.
"""


class Value(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The base of all values in here. They form no cycles, so that the garbage collector does not track them."""


@final
class PodName(Value, frozen=True, gc=False):
    """A pod, with the value of its `priority`. Callers who may not list pods in its namespace are shown the priority
    alone: it is `hidden`, and `namespace`, `name` and `uid` are empty.
    """

    namespace: str
    name: str
    uid: str = ""
    priority: int = 0
    hidden: bool = False

    @staticmethod
    def of(pod: Pod) -> "PodName":
        """Returns the pod by its names. This is called at every decision, and so without the properties of `Pod`."""
        meta = pod.metadata
        return PodName(meta.namespace or "default", meta.name, meta.uid, pod.spec.priority or 0)

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


@final
class Victim(Value, frozen=True, gc=False):
    """A pod that is evicted for another one.

    Attributes:
        pod: which one; `pod.key` is namespace/name.
        started: status.startTime, as it was written.
        owner: Kind/name of its controller.
        violates: names of the PodDisruptionBudgets that its eviction violates; of many, those that allow the fewest.
        cpu: millicores that it holds, or held.
        memory: bytes that it holds, or held.
        gpu_hours: GPU time that its eviction loses: its GPUs times the hours since its last checkpoint, or its start.
    """

    pod: PodName
    started: str | None = None
    owner: str = ""
    violates: tuple[str, ...] = ()
    cpu: int = 0
    memory: int = 0
    gpu_hours: float = 0.0


def gpu_hours_of(victims: Iterable[Victim]) -> float:
    """Returns the GPU time that the evictions lose together, to three digits."""
    return round(sum(victim.gpu_hours for victim in victims), 3)


class CandidateNode(Value, frozen=True, gc=False):
    """A `node` on which the preemptor would fit once the `victims` have gone; evictions of `num_pdb_violations` of them
    violate a PodDisruptionBudget. `why_not` says why it lost against the chosen one; it is empty for that.
    """

    node: str
    victims: tuple[Victim, ...]
    num_pdb_violations: int
    why_not: str = ""


def requested(pod: Pod) -> dict[str, str]:
    """Returns the quantity of each resource that the pod requests in all; nothing if a request cannot be read."""
    try:
        return {name: str(amount) for name, amount in pod_requests(pod, use_status=False).items()}
    except QuantityError:
        return {}


def workload_of(pod: Pod) -> str:
    """Returns Kind/name of the pod's controller, but the Deployment of a ReplicaSet; empty if it has none."""
    for owner in pod.metadata.owner_references:
        if owner.controller:
            deployment = deployment_named_by(pod, owner.name) if owner.kind == "ReplicaSet" else None
            return f"{owner.kind}/{owner.name}" if deployment is None else f"Deployment/{deployment}"
    return ""


def deployment_named_by(pod: Pod, replica_set: str) -> str | None:
    """Returns the Deployment of the pod's ReplicaSet, which has its name before the template's hash; else None."""
    code = pod.labels.get(HASH_LABEL)
    return replica_set.removesuffix(f"-{code}") if code and replica_set.endswith(f"-{code}") else None
