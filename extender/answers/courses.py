"""What becomes of pods while a cluster is played through: where each is, what it was told, how it lost its place."""

from dataclasses import dataclass, field
from typing import Literal, final

from extender.answers.requested import requested
from extender.answers.types import Eviction, Placement, PodName, PreemptionAnswer, Victim
from extender.answers.waiting import pod_name
from extender.objects.pod import Pod

Cause = Literal["created", "pending", "evicted"]
Why = Literal["preempted", "drained", "node removed", "scaled down", "replaced"]


@final
@dataclass(slots=True)
class LostPlace:
    """A pod that lost its place; where it goes is filled in when that is known."""

    victim: Victim
    node: str
    why: Why
    by: PodName | None
    returns: bool
    depth: int
    waits_for: tuple[str, ...] = ()
    lands_on: str = ""
    message: str = ""

    def as_answer(self) -> Eviction:
        """For people."""
        return Eviction(
            victim=self.victim,
            node=self.node,
            why=self.why,
            by=self.by,
            returns=self.returns,
            lands_on=self.lands_on,
            message=self.message,
            depth=self.depth,
            waits_for=self.waits_for,
        )


@final
@dataclass(slots=True)
class Course:
    """What becomes of one pod."""

    pod: Pod
    cause: Cause
    turn: int
    """Of equals in the queue, who comes first."""
    depth: int = 0
    """How many evictions led to its being here."""
    node: str = ""
    message: str = ""
    evicts: list[Victim] = field(default_factory=list)
    preemption: PreemptionAnswer | None = None
    lost: LostPlace | None = None
    """Its last eviction."""
    waits_for: tuple[str, ...] = ()
    """The budgets without whose leave it is still where it was."""
    failed_at: int | None = None
    """How much had happened when it found no room; None while it waits or has some."""
    is_final: bool = False
    """It is not tried again, whatever happens."""

    def as_answer(self) -> Placement:
        """For people."""
        return Placement(
            pod=pod_name(self.pod),
            cause=self.cause,
            requests=requested(self.pod),
            node=self.node,
            message=self.message,
            evicts=tuple(self.evicts),
            preemption=self.preemption,
            waits_for=self.waits_for,
        )
