"""The request for a plan, and its answer."""

from typing import Annotated, Any, Final, final

import msgspec

from extender.answers.overviews import PlannedMove
from extender.answers.parts import PodName
from extender.answers.types import Answer, Eviction, Placement

MOST_MOVES: Final = 1000
"""The highest limit of moves that a plan may be asked for with."""
MOVES: Final = 20
"""The limit of moves where none is given."""


class PlanRequest(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The body of POST /v1/plan: the pods that need room, or how many nodes are to be free."""

    create: list[dict[str, Any]] = []
    """Kubernetes objects: the pods or workloads that are to fit, and what they refer to (pod groups, priority classes,
    claims).
    """
    max_moves: Annotated[int, msgspec.Meta(ge=1, le=MOST_MOVES)] = MOVES
    free_nodes: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = 0
    """How many nodes are to be free, those counted that are free already: without pods but those of the node itself."""
    of: Annotated[str, msgspec.Meta(max_length=317)] = ""
    """A resource: only nodes that offer it are meant, and only pods that request it keep them from being free."""
    same: Annotated[str, msgspec.Meta(max_length=317)] = ""
    """The key of a label, of which all these nodes have the same value."""


@final
class StayingPods(Answer, frozen=True, kw_only=True):
    """Running pods that a plan leaves where they are."""

    reason: str
    pods: int


@final
class FreeNode(Answer, frozen=True, kw_only=True):
    """A node that is free after the moves."""

    node: str
    leaving: int
    """How many pods leave it; 0 if it is free already."""


@final
class KeptNode(Answer, frozen=True, kw_only=True):
    """A node that cannot be free."""

    node: str
    pod: PodName | None = None
    """The pod that keeps it, the first of several."""
    why: str
    """Half a sentence about the pod, or the node; or why no other node takes the pod, in the scheduler's words."""


@final
class NodeUse(Answer, frozen=True, kw_only=True):
    """What is requested of a node before and after the moves: base units, millicores for cpu."""

    node: str
    allocatable: int
    before: int
    after: int
    is_free: bool = False
    """Whether it is one of the nodes that are to be free."""


@final
class PlanAnswer(Answer, frozen=True, kw_only=True):
    """The answer of POST /v1/plan: the moves after which the pods fit, or so many nodes are free, in the order in which
    they have to be made.
    """

    summary: str
    fits: bool
    """Whether the pods fit after these moves, or so many nodes are free; without any moves, whether as things are."""
    moves: tuple[PlannedMove, ...] = ()
    placements: tuple[Placement, ...] = ()
    """The pods that were asked about, each with its node after the moves; without one if there is no plan."""
    are_pinned: bool = False
    """Whether each of these pods has to be given just this node, since not all of them fit on those that the scheduler
    would prefer.
    """
    gpu_hours: float = 0.0
    """The GPU time that all moves together lose."""
    hours: float = 0.0
    """The time that the pods which move have run together, in hours."""
    free: tuple[FreeNode, ...] = ()
    """The nodes that are free then, as many as were asked for if the plan does it."""
    kept: tuple[KeptNode, ...] = ()
    """The nodes that cannot be free: always, or if fewer are free than were asked for, beside those that are."""
    resource: str = ""
    """The resource of which `nodes` tells."""
    nodes: tuple[NodeUse, ...] = ()
    """The nodes that change, or are free; the first of many."""
    instead: tuple[Eviction, ...] = ()
    """What would happen without the plan: the pods that preemption would evict."""
    staying: tuple[StayingPods, ...] = ()
    """Why other pods may not move."""
    looked_through: int = 0
    """Every plan with at most so many moves was looked at; -1 if not even the cluster as it is."""
    is_complete: bool = False
    """Whether the search was exact: no plan has fewer moves, or without a plan, there is none within the limit of
    moves. If too few nodes are free: no plan within it frees more.
    """
    notes: tuple[str, ...] = ()
    """What was taken for granted, and what is not known: sentences for people."""
