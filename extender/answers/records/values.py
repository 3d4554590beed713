"""What is recorded of attempts and preemptions, as plain values that do not refer to a cluster.

Pods, victims and candidates are written in the same form to the records file and into answers.
"""

from collections.abc import Iterable
from typing import Final, Literal, final

import msgspec

from extender.values.objects.pod import Pod

_DIGITS: Final = 3
"""GPU-hours are rounded to as many digits."""

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
    """A pod. Callers who may not see its namespace are shown its priority alone."""

    namespace: str
    name: str
    uid: str = ""
    priority: int = 0
    hidden: bool = False
    """The caller may not list pods in its namespace; the names are empty then."""

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
    """A pod that is evicted for another one."""

    pod: PodName
    started: str | None = None
    """status.startTime, as it was written."""
    owner: str = ""
    """Kind/name of its controller."""
    violates: tuple[str, ...] = ()
    """Names of the PodDisruptionBudgets that its eviction violates; of many, those that allow the fewest evictions."""
    cpu: int = 0
    """Millicores that it holds, or held."""
    memory: int = 0
    """Bytes that it holds, or held."""
    gpu_hours: float = 0.0
    """The GPU time that its eviction loses: its GPUs times the hours since its last checkpoint, or else since its
    start.
    """

    @staticmethod
    def of(pod: Pod, violates: tuple[str, ...], cpu: int, memory: int, gpu_hours: float) -> "Victim":
        """Returns the pod as a victim."""
        owner = ""
        for each in pod.metadata.owner_references:
            if each.controller:
                owner = f"{each.kind}/{each.name}"
                break
        return Victim(PodName.of(pod), pod.status.start_time, owner, violates, cpu, memory, gpu_hours)


def gpu_hours_of(victims: Iterable[Victim]) -> float:
    """Returns the GPU time that the evictions lose together."""
    return round(sum(victim.gpu_hours for victim in victims), _DIGITS)


class CandidateNode(Value, frozen=True, gc=False):
    """A node on which the preemptor would fit once the victims have gone."""

    node: str
    victims: tuple[Victim, ...]
    num_pdb_violations: int
    """The number of victims whose eviction violates a PodDisruptionBudget."""
    why_not: str = ""
    """Why it lost against the chosen one; empty for the chosen one."""


@final
class CandidateRecord(CandidateNode, frozen=True, gc=False, omit_defaults=True):
    """A candidate with what choosing it would cost, so that it can be said later why it lost. Its most important
    victims are kept.
    """

    costs: tuple[int, ...] = ()
    """A `preemption.costs.Costs`; empty if it is not known."""


@final
class AttemptRecord(Value, frozen=True, gc=False, omit_defaults=True, tag="attempt"):
    """One attempt to schedule a pod, without its arrays."""

    id: int
    time: float
    """Seconds since 1970."""
    pod: PodName
    profile: str
    outcome: Outcome
    number: int = 0
    """The number of the attempt among those of the pod, from 1; 0 if another scheduler asked."""
    node: str = ""
    message: str = ""
    evaluated: int = 0
    feasible: int = 0
    seconds: float = 0.0
    woken_by: str = ""
    no_preemption: str = ""
    """Why no pod was evicted for it; empty if pods were, or if preemption was not tried."""
    may_preempt: bool = True
    """False if the pod was not eligible to preempt others."""
    caller: str = ""
    """Who asked, if another scheduler did: a name that was authenticated, or an address. Nothing else in such a record
    is certain.
    """


@final
class PreemptionRecord(Value, frozen=True, gc=False, omit_defaults=True, tag="preemption"):
    """A preemption that was decided, under the id of its attempt."""

    id: int
    time: float
    by: PodName
    node: str
    """The chosen node; empty while another scheduler has not made known which one it took, and for a pod group, whose
    victims may be on several.
    """
    victims: tuple[Victim, ...]
    num_pdb_violations: int = 0
    candidates: tuple[CandidateRecord, ...] = ()
    """The chosen one first, then the others as far as they are kept, best first."""
    num_candidates: int = 0
    outcome: PreemptionState = "deciding"
    caller: str = ""
    """As that of the attempt."""
    without_policies: CandidateRecord | None = None
    """What kube-scheduler would have chosen, if the profile has victim policies."""
    verdict: Verdict = ""
    room_taken_by: tuple[PodName, ...] = ()
    """The pods that took the room of a wasted one."""


ATTEMPT_OVERHEAD: Final = 600
"""Bytes of an attempt without its texts: values, and its places in the indexes."""
VICTIM_SIZE: Final = 450
"""Bytes of a victim with texts of ordinary length."""


def size_of_attempt(record: AttemptRecord) -> int:
    """Returns the approximate number of bytes."""
    pod = record.pod
    texts = len(record.message) + len(record.no_preemption) + len(record.profile) + len(record.caller)
    return ATTEMPT_OVERHEAD + len(pod.namespace) + 2 * len(pod.name) + len(pod.uid) + texts


def size_of_preemption(record: PreemptionRecord) -> int:
    """Returns the approximate number of bytes."""
    num_victims = sum(len(candidate.victims) for candidate in record.candidates)
    if record.without_policies is not None:
        num_victims += len(record.without_policies.victims)
    if not record.candidates or record.victims is not record.candidates[0].victims:
        num_victims += len(record.victims)
    return 600 + 250 * len(record.candidates) + VICTIM_SIZE * num_victims
