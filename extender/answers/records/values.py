"""Recorded attempts and preemptions: plain values that refer to no cluster, in the form of the records file."""

from typing import final

from extender.answers.parts import CandidateNode, Outcome, PodName, PreemptionState, Value, Verdict, Victim


@final
class CandidateRecord(CandidateNode, frozen=True, gc=False, omit_defaults=True):
    """A candidate with its cost, so that it can be said later why it lost. Its most important victims are kept."""

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
    """Which scheduler asked: an authenticated name or an address. Nothing else in such a record is certain."""


@final
class PreemptionRecord(Value, frozen=True, gc=False, omit_defaults=True, tag="preemption"):
    """A preemption that was decided, under the id of its attempt."""

    id: int
    time: float
    by: PodName
    node: str
    """The chosen node; empty while another scheduler has not made its choice known, and for a pod group."""
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
