"""Candidates of preemption, which are nodes with their victims; the outcome of a search; and the rules of the search,
whose values for several releases are in `extender.engine.preemption.rules`.

Upstream: pkg/scheduler/framework/preemption, candidate.go, preemption.go; framework/extender.go, Extender;
extenderv1.Victims.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, final

import msgspec
import numpy as np

from extender.engine.framework.status import Code, NodeStatuses, Status
from extender.engine.snapshot import Rows, Snapshot
from extender.engine.snapshot.axes import Index, Int64s, Mask
from extender.values.objects.grouping import PodDisruptionBudget
from extender.values.objects.pod import Pod


@final
class Candidate(msgspec.Struct, frozen=True):
    """A node on which the preemptor would fit once the victims have gone. Upstream: preemption.Candidate."""

    node: str
    victims: tuple[Pod, ...]
    """In the order of the rules: the most important one comes first."""
    num_pdb_violations: int
    """The number of victims whose eviction violates a PodDisruptionBudget."""


@final
class Candidates(msgspec.Struct, frozen=True):
    """M candidates as arrays: the victims of candidate m are `slots[first[m]:first[m + 1]]`."""

    snapshot: Snapshot
    node: Index
    """(M,) place on axis N."""
    slots: Index
    """(V,) pod slots of the victims, candidate by candidate, most important first."""
    first: Index
    """(M + 1,) where each candidate's victims begin; every candidate has at least one."""
    num_pdb_violations: Int64s
    """(M,)"""
    rules: "PreemptionRules"
    """The rules that found them and choose among them."""

    def __len__(self) -> int:
        return len(self.node)

    def at(self, candidate: int) -> Candidate:
        slots = self.slots[self.first[candidate] : self.first[candidate + 1]].tolist()
        return Candidate(
            node=self.snapshot.nodes.objects[int(self.node[candidate])].name,
            victims=tuple(self.snapshot.pod_at(slot) for slot in slots),
            num_pdb_violations=int(self.num_pdb_violations[candidate]),
        )

    def listed(self) -> list[Candidate]:
        return [self.at(candidate) for candidate in range(len(self))]

    def take(self, chosen: Index) -> "Candidates":
        """Returns only these candidates, in this order."""
        counts = self.first[chosen + 1] - self.first[chosen]
        first = np.zeros(len(counts) + 1, np.intp)
        np.cumsum(counts, out=first[1:])
        # Each victim's place is its position in the result, moved by how far its candidate's victims have moved.
        places = np.repeat(self.first[chosen] - first[:-1], counts) + np.arange(first[-1])
        return Candidates(
            self.snapshot, self.node[chosen], self.slots[places], first, self.num_pdb_violations[chosen], self.rules
        )

    def joined(self, other: "Candidates") -> "Candidates":
        """Returns these candidates and then the other ones, of the same snapshot."""
        return Candidates(
            self.snapshot,
            np.r_[self.node, other.node],
            np.r_[self.slots, other.slots],
            np.r_[self.first, self.first[-1] + other.first[1:]],
            np.r_[self.num_pdb_violations, other.num_pdb_violations],
            self.rules,
        )

    @staticmethod
    def of(snapshot: Snapshot, listed: Sequence[Candidate], rules: "PreemptionRules") -> "Candidates":
        """Returns candidates as arrays; KeyError if the snapshot does not have one of the nodes or victims."""
        counts = [len(candidate.victims) for candidate in listed]
        return Candidates(
            snapshot,
            np.array([snapshot.nodes.index[candidate.node] for candidate in listed], np.intp),
            np.array([snapshot.pods.slots[pod.uid] for candidate in listed for pod in candidate.victims], np.intp),
            np.r_[0, np.cumsum(counts)].astype(np.intp),
            np.array([candidate.num_pdb_violations for candidate in listed], np.int64),
            rules,
        )


ScoreFunction = Callable[[Candidates], Int64s]
"""Returns (M,) a number per candidate, the higher the better."""


@final
class PodsByBudget(msgspec.Struct, frozen=True):
    """Some PodDisruptionBudgets, with the pods that they select or forbid to evict."""

    budgets: Sequence[PodDisruptionBudget]
    pods: Index
    """(S,) the places, ascending, of the pods that any of the budgets selects."""
    marked: Mask
    """(S, number of budgets) the pods that a budget selects, or those that violate it."""


@final
@dataclass(frozen=True, slots=True)
class PreemptionRules:
    """How a preemption chooses a node and its victims.

    In the functions over arrays, `slots` are (C,) pods and `row` (C,) the number of the node that each runs on,
    ascending.
    """

    name: str
    """The release that has these rules, such as v1.36."""
    by_importance: Callable[[Snapshot, Index, Index], Index]
    """(snapshot, slots, row) -> the order that sorts the pods by row, and in a row the most important first."""
    violated: Callable[[Snapshot, Index, Index, Mask], Iterable[PodsByBudget]]
    """(snapshot, slots, row, undecided) -> the budgets that evicting pods may violate, some at a time, with the pods
    whose eviction violates each.

    The pods are all possible victims of their nodes, by importance. `undecided` are (C,) the pods that the caller asks
    about; it clears the others meanwhile, and budgets that concern only these may be left out.
    """
    as_listed: Callable[[Snapshot, Index, Index, Mask], Index]
    """(snapshot, slots, row, violates) -> the order of a candidate's victims, row by row, from that of reprieve."""
    criteria: Sequence[ScoreFunction]
    """They choose the candidate; each only decides between those that tie in the ones before it."""
    code_of: Callable[[Status], Code]
    """Returns the code of a refusal under the rules: preemption is tried on nodes whose code is Unschedulable."""
    waits_for: Callable[[Pod], bool]
    """Returns whether a pod of lower priority on its nominated node keeps a preemptor from preempting again."""
    may_go: Callable[[Pod], bool] | None = None
    """Returns whether a pod of lower priority may be a victim; None: all may."""
    protects: Callable[[Snapshot, Pod, Index], Mask] | None = None
    """(snapshot, preemptor, slots) -> (C,) the pods that must not be victims of this preemptor now."""
    budgets_are_hard: bool = False
    """A pod whose eviction would violate a budget may not be a victim."""
    is_going: Callable[[], Collection[str]] = tuple
    """Returns the UIDs of pods about to be evicted, which hard budgets count before the snapshot shows it."""
    too_costly: Callable[[Candidates], Iterable[tuple[str, Mask]]] | None = None
    """candidates -> reasons, each with (M,) the candidates that are not allowed because of it."""
    also_by: Sequence["PreemptionRules"] = ()
    """Further rules that choose victims: on each node the victims that are better by `criteria` count."""
    without_policies: "PreemptionRules | None" = None
    """The rules without victim policies, to tell what these change; None if there are none."""
    delay_of: Callable[[Pod], float] | None = None
    """Returns the seconds that the preemptor still has to wait; 0 if none."""
    gives_up_unresolvable: bool = True
    """A preemptor whose nominated node is unresolvable need not wait for the pods there."""
    tries_all_nodes: bool = False
    """The search does not end when there are enough candidates."""
    takes_free_nodes: bool = False
    """A node on which the pod fits as it is wins, without evictions, where an extender refused it."""


@final
class PreemptionOutcome(msgspec.Struct, frozen=True):
    """The result of a whole search for candidates, with everything found on the way to it."""

    status: Status
    nominated_node: str | None
    """The node to nominate, "" to clear a nomination, None to leave it alone."""
    why_not_eligible: str | None = None
    potential: Index | None = None
    """(B,) places of the nodes where evicting pods might help; None if the search did not come so far."""
    candidates: Candidates | None = None
    statuses: NodeStatuses | None = None
    """The reasons why the dry run failed on these nodes."""
    best: Index | None = None
    """(B,) places in `candidates` that no criterion tells apart."""
    chosen: Candidate | None = None
    last_room_taken_by: tuple[Pod, ...] | None = None
    """The pods that took the room of the preemptor's last preemption; None unless it was wasted."""
    without_policies: Candidate | None = None
    """The candidates without the victim policies of the rules; None if there are no policies."""

    @property
    def num_potential(self) -> int:
        """The number of nodes where evicting pods might help."""
        return 0 if self.potential is None else len(self.potential)

    @property
    def potential_nodes(self) -> tuple[str, ...]:
        """The names of these nodes."""
        if self.potential is None or self.candidates is None:
            return ()
        return tuple(Rows.of(self.candidates.snapshot, self.potential).names)


class PreemptionExtender(Protocol):
    """An HTTP extender that takes part in preemption."""

    @property
    def name(self) -> str:
        """The address of the extender."""

    @property
    def is_ignorable(self) -> bool:
        """Whether scheduling goes on when the extender fails."""

    def is_interested(self, pod: Pod) -> bool:
        """Returns whether the pod requests a resource that the extender manages."""

    async def process_preemption(
        self, pod: Pod, candidates: Sequence[Candidate], snapshot: Snapshot
    ) -> Sequence[Candidate]:
        """Returns the candidates that the extender accepts, with the victims it chose, as the snapshot has them.

        Raises ExtenderError if it failed, or names nodes or pods that the snapshot does not have.
        """


STILL_TERMINATING: Final = "not eligible due to a terminating pod on the nominated node."
"""Upstream: framework/plugins/defaultpreemption/default_preemption.go."""
