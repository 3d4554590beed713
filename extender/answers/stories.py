"""Preemptions that were decided, and the stories of pods, as values."""

from typing import Literal, final

import msgspec

from extender.answers.parts import CandidateNode, PodName, PreemptionState, Verdict, Victim


@final
class Preemption(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A preemption that was decided."""

    id: int
    """The id of the attempt that decided it."""
    time: str
    by: PodName
    node: str
    victims: tuple[Victim, ...]
    num_pdb_violations: int
    candidates: tuple[CandidateNode, ...] = ()
    num_candidates: int = 0
    gpu_hours: float = 0.0
    """The GPU time that the victims lost together."""
    without_policies: CandidateNode | None = None
    """What kube-scheduler alone would have chosen, if the profile has victim policies."""
    gpu_hours_without_policies: float = 0.0
    """The GPU time that would have been lost then; `gpu_hours` where there are no policies."""
    verdict: Verdict = ""
    """What it was good for: `used` if its preemptor got a node, `wasted` if it did not although the victims had gone.
    """
    room_taken_by: tuple[PodName, ...] = ()
    """The pods that took the room of a wasted one."""
    outcome: PreemptionState = "deciding"
    """Whether the victims were evicted: `told` if they were. See `parts.PreemptionState`."""
    caller: str = ""
    """As that of the attempt."""


What = Literal["created", "asked", "refused", "failed", "placed", "preempted", "evicted", "took", "replaced", "ended"]
"""What happened to a pod. `asked`: another scheduler called the extender about it. `preempted`: others were evicted for
it. `evicted`: it was, for another one. `took`: the room that was freed for another one. `replaced`: its controller made
another pod. `ended`: it is being deleted.
"""


@final
class StoryStep(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Something that happened to a pod, or several things that are alike."""

    what: What
    first: str | None = None
    time: str | None = None
    """The time of the last of them; None if it is not known."""
    count: int = 1
    """0 if nobody knows how often."""
    text: str
    """Half a sentence for people."""
    pods: tuple[PodName, ...] = ()
    """The other pods that the text names."""
    decision: int = 0
    """The id of the last attempt; 0 where none is recorded."""
    preemption: Preemption | None = None
    """With the nodes that were spared, and why."""


@final
class Story(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What happened to a pod."""

    steps: tuple[StoryStep, ...]
    """By the time of the first of those alike."""
    text: str
    """How long it waited, how often it was refused and what became of it: sentences for people."""
    refusals: int | None = 0
    """How often it was refused; None if it was, and nobody knows how often."""
    notes: tuple[str, ...] = ()
    """Where this is known from, and what is not known."""
