"""The request for a plan, and its answer."""

from typing import Annotated, Any, Final, final

import msgspec

from extender.answers.overviews import PlannedMove
from extender.answers.types import Answer, Eviction, Placement

MOST_MOVES: Final = 20
"""The highest limit of moves that a plan may be asked for with."""


class PlanRequest(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The body of POST /v1/plan: the pods that need room."""

    create: list[dict[str, Any]]
    """Kubernetes objects: the pods or workloads that are to fit, and what they refer to (pod groups, priority classes,
    claims).
    """
    max_moves: Annotated[int, msgspec.Meta(ge=1, le=MOST_MOVES)] = 8


@final
class StayingPods(Answer, frozen=True, kw_only=True):
    """Running pods that a plan leaves where they are."""

    reason: str
    pods: int


@final
class PlanAnswer(Answer, frozen=True, kw_only=True):
    """The answer of POST /v1/plan: the moves after which the pods fit, in the order in which they have to be made."""

    summary: str
    fits: bool
    """Whether the pods fit after these moves; without any moves, whether they fit as things are."""
    moves: tuple[PlannedMove, ...] = ()
    placements: tuple[Placement, ...] = ()
    """The pods that were asked about, each with its node after the moves; without one if there is no plan."""
    are_pinned: bool = False
    """Whether each of these pods has to be given just this node, since not all of them fit on those that the scheduler
    would prefer.
    """
    gpu_hours: float = 0.0
    """The GPU time that all moves together lose."""
    instead: tuple[Eviction, ...] = ()
    """What would happen without the plan: the pods that preemption would evict."""
    staying: tuple[StayingPods, ...] = ()
    """Why other pods may not move."""
    looked_through: int = 0
    """Every plan with at most so many moves was looked at; -1 if not even the cluster as it is."""
    is_complete: bool = False
    """Whether the search was exact: no plan has fewer moves, or without a plan, there is none within the limit of
    moves.
    """
    notes: tuple[str, ...] = ()
    """What was taken for granted, and what is not known: sentences for people."""
