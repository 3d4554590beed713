"""FreeNodes: which pods move where, so that whole nodes are free.

By numbers the cheapest nodes are emptied first, then the search tries to save moves or free more nodes. Its result is
played: the scheduler places each pod while the nodes to free are cordoned. Only for a pod that would get no node that
way, the plan names its node.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from extender.answers.parts import PodName
from extender.answers.phrases import plural
from extender.answers.trial import belongs_to_node
from extender.answers.types import QuestionError
from extender.engine.snapshot import Rows
from extender.values.near_names import did_you_mean
from extender.values.objects.pod import Pod
from reprieve.lab.plan.exact_packing import ExactPacking
from reprieve.lab.plan.movable_pods import MovablePod
from reprieve.lab.plan.packing import STEPS, Packed, Packing, StepsUsedUpError
from reprieve.lab.plan.plan_answer import KeptNode
from reprieve.lab.plan.trial_moves import BoundReachedError, TrialMoves
from reprieve.lab.plan.wanted_pods import Move

_STEPS_OF_DOMAIN: Final = 20_000
"""The least steps of a packing in one of many domains."""
_TRIALS: Final = 20_000
"""How often the Filters may be asked about a pod while plans are played."""


@final
@dataclass(frozen=True, slots=True)
class FreeNodesResult:
    """The nodes that are free after the moves."""

    nodes: tuple[str, ...] = ()
    moves: tuple[Move, ...] = ()
    is_complete: bool = False
    """Whether no plan within the limit of moves has more nodes, or as many after fewer moves."""

    @property
    def worth(self) -> tuple[int, int, float]:
        """The higher, the better."""
        return len(self.nodes), -len(self.moves), -sum(mover.gpu_hours for mover, _ in self.moves)


@final
class FreeNodes:
    """State: the cluster in which moves are tried, and what is known by numbers."""

    def __init__(self, moving: TrialMoves, resource: str, same: str) -> None:
        """Raises QuestionError if no node has the resource, or the label `same`; empty for none.

        With a resource, only nodes that offer it count, and pods that request it.
        """
        self._moving, self._pods = moving, [*moving.pods.by_uid.values()]
        moving.trials_left, moving.may_wait = _TRIALS + len(self._pods), True
        snapshot = moving.trial.cluster.cache.update_snapshot()
        rows, nodes = Rows.of(snapshot), snapshot.nodes.objects
        self._names = [node.name for node in nodes]
        offered = rows.allocatable_of(resource) if resource else np.ones(len(nodes), np.int64)
        if not offered.any():
            resources = {name for node in nodes for name in node.status.allocatable}
            raise QuestionError(
                f"no node offers {resource}{did_you_mean(resource, resources)}" if resource else "there are no nodes"
            )
        labels = {key for node in nodes for key in node.labels}
        if same and same not in labels:
            raise QuestionError(f'no node has the label "{same}"{did_you_mean(same, labels)}')
        self._of, self._requests = (
            resource,
            (snapshot.pods.requests[:, snapshot.resources.code_of(resource)] if resource else None),
        )
        self._slots = dict(snapshot.pods.slots)
        self.kept: dict[str, KeptNode] = {}
        """Node -> why it cannot be free whatever moves, for nodes with the resource."""
        self._domains: dict[str, list[int]] = {}
        for place in np.flatnonzero(offered).tolist():
            node = nodes[place]
            self._domains.setdefault(node.labels.get(same, "") if same else "", []).append(place)
            if node.spec.unschedulable or (same and same not in node.labels):
                why = "it is cordoned" if node.spec.unschedulable else f"it has no label {same}"
                self.kept[node.name] = KeptNode(node=node.name, why=why)
        self._offering = [self._names[place] for places in self._domains.values() for place in places]
        if same:
            self._domains.pop("", None)
        for pod in moving.trial.cluster.cache.pods:
            name = pod.spec.node_name
            if offered[snapshot.nodes.index[name]] and pod.uid in moving.pods.why_it_stays and self._keeps(pod):
                self.kept.setdefault(name, KeptNode(node=name, pod=PodName.of(pod), why=moving.pods.why_stays(pod.uid)))
        self._packing = self._counted(rows)
        self._weight = dict(zip(moving.pods.by_uid, self._packing.weight_of.tolist(), strict=True))

    def _keeps(self, pod: Pod) -> bool:
        """Returns whether a node with this pod is not free."""
        return not belongs_to_node(pod) if self._requests is None else bool(self._requests[self._slots[pod.uid]])

    def _counted(self, rows: Rows) -> Packing:
        slots = np.array([self._slots[mover.uid] for mover in self._pods], np.intp)
        requests = np.c_[rows.snapshot.pods.requests[slots], np.ones(len(slots), np.int64)]
        free = np.c_[rows.allocatable - rows.requested, rows.allowed_pods - rows.pod_count]
        used, leaves = requests.any(0), np.array([self._keeps(mover.running) for mover in self._pods], np.bool_)
        where, kinds = rows.snapshot.pods.node[slots].tolist(), [mover.kind for mover in self._pods]
        packing = Packing(free[:, used], requests[:, used], where, kinds, leaves)
        for pod in dict(zip(kinds, range(len(kinds)), strict=True)).values():
            packing.refuse(pod, ~self._moving.may_take(self._pods[pod].pod))
        return packing

    # The search.

    def run(self, number: int, max_moves: int) -> FreeNodesResult:
        """Returns the moves that free so many nodes, or as many as possible. Raises QuestionError if fewer exist."""
        if number > (largest := max(map(len, self._domains.values()))):
            offering = f" that offer {self._of}" if self._of else ""
            in_domain = " of one domain" if len(self._domains) > 1 else ""
            raise QuestionError(f"{plural(number, 'node')} cannot be free: there are {largest}{offering}{in_domain}")
        best = FreeNodesResult(is_complete=True)
        domains = [[node for node in nodes if self._names[node] not in self.kept] for nodes in self._domains.values()]
        for candidates in sorted(domains, key=lambda nodes: self._fewest(nodes, number)):
            if len(best.nodes) == number and len(best.moves) <= self._fewest(candidates, number)[1]:
                break
            result = self._of_domain(candidates, number, max_moves)
            is_complete = best.is_complete and result.is_complete
            best = max(best, result, key=lambda option: option.worth)
            best = FreeNodesResult(best.nodes, best.moves, is_complete)
        return best

    def _fewest(self, candidates: Sequence[int], number: int) -> tuple[bool, int]:
        """Returns whether there are too few candidates, and a lower bound of the moves that free so many."""
        leaving = sorted(len(self._packing.leaving(node)) for node in candidates)
        return len(candidates) < number, sum(leaving[:number])

    def _of_domain(self, candidates: Sequence[int], number: int, max_moves: int) -> FreeNodesResult:
        """Searches one domain; a place that the scheduler refuses is not packed again."""
        packing, best, was_refused = self._packing, FreeNodesResult(), False
        packing.steps = max(STEPS // len(self._domains), _STEPS_OF_DOMAIN)
        goal = min(number, packing.most_free(candidates, max_moves))
        try:
            while packing.steps > 0:
                packed, is_complete = self._packed(candidates, goal, max_moves)
                moves, refused = self._played(packed)
                if refused is None:
                    names = tuple(self._names[node] for node in packed.nodes)
                    is_complete = is_complete and not was_refused
                    if len(names) == goal:
                        is_complete |= goal < number or len(moves) == self._fewest(candidates, number)[1]
                    best = FreeNodesResult(names, moves, is_complete)
                    break
                was_refused = True
            if not best.is_complete and len(best.nodes) < number:
                best = max(best, self._by_scheduler(candidates, number, max_moves), key=lambda option: option.worth)
        except BoundReachedError:
            pass
        return best

    def _packed(self, candidates: Sequence[int], number: int, max_moves: int) -> tuple[Packed, bool]:
        """Returns the best packing, and whether there is no better one."""
        packing = self._packing
        pods = {node: packing.leaving(node) for node in candidates}
        lost = {node: sum(self._pods[pod].gpu_hours for pod in pods[node]) for node in candidates}
        weight = {node: packing.weight(node) for node in candidates}
        orders: list[Callable[[int], tuple[float, ...]]] = [
            lambda node: (len(pods[node]), lost[node], weight[node]),
            lambda node: (len(pods[node]), weight[node]),
            lambda node: (weight[node],),
        ]
        attempts = [packing.cheapest_first(sorted(candidates, key=order), number, max_moves) for order in orders]
        best = max(attempts, key=lambda packed: (len(packed.nodes), -len(packed.moves), -self._lost(packed)))
        is_fewest = False
        try:
            while len(best.nodes) < number:
                better = ExactPacking(packing, candidates, len(best.nodes) + 1).fewest_moves(max_moves)
                if better is None:
                    break
                best, is_fewest = better, True
            if not is_fewest:
                best = ExactPacking(packing, candidates, len(best.nodes)).fewest_moves(len(best.moves) - 1) or best
        except StepsUsedUpError:
            return best, False
        return best, True

    def _lost(self, packed: Packed) -> float:
        return sum(self._pods[pod].gpu_hours for pod, _ in packed.moves)

    # Played by the scheduler.

    def _played(self, packed: Packed) -> tuple[tuple[Move, ...], tuple[int, int] | None]:
        """Returns the moves as the scheduler makes them, or the pod and node that it refuses."""
        names = [self._names[node] for node in packed.nodes]
        for is_free in (True, False):
            moves: list[Move] = []
            refused = None
            with self._moving.cordoned(names), ExitStack() as stack:
                for pod, target in packed.moves:
                    mover, node = self._pods[pod], self._names[target]
                    if is_free and self._moving.node_of[mover.uid] in names:
                        node = self._choice(mover, node)
                    if not node or not stack.enter_context(self._moving.moved(mover, node)):
                        refused = pod, target
                        if not is_free:
                            self._refuse(pod, target)
                        break
                    moves.append((mover, node))
            if refused is None:
                return tuple(moves), None
        return (), refused

    def _refuse(self, pod: int, target: int) -> None:
        """Notes a refused place; if a pod of the same kind is the reason, such pods are kept apart everywhere."""
        mover, residents = self._pods[pod], self._moving.movable_on(self._names[target])
        if any(other.kind == mover.kind for other in self._moving.in_the_way(mover.pod, residents)):
            self._packing.keep_apart(pod)
        else:
            self._packing.refuse(pod, target)

    def _choice(self, mover: MovablePod, preferred: str) -> str:
        """Returns the node that the scheduler would choose, among equals the preferred one; empty for none."""
        choices = self._moving.first_choices(mover.pod)
        return preferred if preferred in choices else min(choices, default="")

    def _by_scheduler(self, candidates: Sequence[int], number: int, max_moves: int) -> FreeNodesResult:
        """Empties nodes by the scheduler's choices alone; nodes whose pods need least room come first."""
        moving, nodes, moves = self._moving, list[str](), dict[str, Move]()
        with ExitStack() as stack:
            for place in sorted(candidates, key=self._packing.weight):
                node, emptying = self._names[place], list[Move]()
                with ExitStack() as attempt:
                    attempt.enter_context(moving.cordoned([node]))
                    for mover in self._leaving(node):
                        target = self._choice(mover, "")
                        if not target or not attempt.enter_context(moving.moved(mover, target)):
                            break
                        emptying.append((mover, target))
                    else:
                        # A pod that moves again goes where it ends, as late as it does.
                        after = {
                            uid: move for uid, move in moves.items() if uid not in {mover.uid for mover, _ in emptying}
                        }
                        after |= {mover.uid: (mover, target) for mover, target in emptying}
                        if len(after) <= max_moves:
                            nodes.append(node)
                            moves = after
                            stack.push(attempt.pop_all())
                if len(nodes) == number:
                    break
        return FreeNodesResult(tuple(nodes), tuple(moves.values()))

    def _leaving(self, node: str) -> list[MovablePod]:
        """Returns the pods that keep the node from being free now, the largest first."""
        pods = [mover for mover in self._moving.movable_on(node) if self._keeps(mover.running)]
        return sorted(pods, key=lambda mover: -self._weight[mover.uid])

    # Nodes that stay in use.

    def kept_in(self, result: FreeNodesResult, *, is_enough: bool) -> Iterator[KeptNode]:
        """Yields nodes that cannot be free beside those of the result, which is played, with the reason; if these are
        enough, only nodes that never can.
        """
        moving = self._moving
        yield from (self.kept[name] for name in sorted(self.kept))
        for name in () if is_enough else self._offering:
            if name in self.kept or name in result.nodes:
                continue
            leaving = self._leaving(name)
            with moving.cordoned([name]), ExitStack() as stack:
                for mover in leaving:
                    target = self._choice(mover, "")
                    if not target or not stack.enter_context(moving.moved(mover, target)):
                        yield KeptNode(node=name, pod=PodName.of(mover.running), why=moving.why_nowhere(mover.pod))
                        break
                else:
                    yield KeptNode(node=name, why=f"{plural(len(leaving), 'more move')} would free it")
