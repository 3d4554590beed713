"""PlanSearch: finds the fewest moves, one after the other, after which the wanted pods fit.

A pod moves when it is evicted and another node takes it; it runs there before the next pod is evicted. First the nodes
are emptied that take fewest moves: pods leave a node that would take the wanted pod without them, and where one of them
finds no place, room is made for it first in the same way. Then, as long as the cluster is small enough, every
distribution of its pods that as many moves lead to is looked at; then the answer is exact.
"""

from collections.abc import Hashable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final, final

from extender.values.objects.pod import Pod
from reprieve.lab.plan.trial_moves import BoundReachedError, Domain, TrialMoves
from reprieve.lab.plan.wanted_pods import FoundPlan, Move, WantedPods


@final
class ExactSearch:
    """State: the visited distributions, and the frontier, from which no move was tried yet."""

    def __init__(self, trial: TrialMoves, goal: WantedPods, *, may_wait: bool) -> None:
        """Starts at the cluster as it is, where nothing fits. With `may_wait`, moves wait until budgets recover."""
        self._trial = trial
        self._goal = goal
        self._may_wait = may_wait
        self._seen: set[Hashable] = {frozenset()}
        self._frontier: list[tuple[Move, ...]] = [()]
        self._is_spread = False
        """Whether the frontier's moves are still to be made: only those that make room at once were looked at."""
        self.has_met_budget = False
        """Whether a pod was left on its node because earlier moves had used up its budget."""

    @property
    def is_exhausted(self) -> bool:
        """Whether all distributions were visited."""
        return not self._frontier

    def with_one_more_move(self) -> FoundPlan | None:
        """Looks for a plan with one move more than the last call. Raises BoundReachedError."""
        trial = self._trial
        trial.may_wait, trial.has_met_budget = self._may_wait, False
        try:
            if not self._goal.is_decided_by_nodes:
                return self._advanced()
            if self._is_spread:
                self._advanced()
            self._is_spread = True
            return self._opened()
        finally:
            self.has_met_budget = self.has_met_budget or trial.has_met_budget

    def _opened(self) -> FoundPlan | None:
        """Returns a plan whose last move leaves the wanted pod's node: the only help if each node decides by itself."""
        (pod,) = self._goal.pods
        for moves in self._made():
            for mover in self._trial.in_the_way(pod, self._trial.different_pods_everywhere()):
                for node in self._trial.nodes_for(mover.pod):
                    plan = self._found((*moves, (mover, node)))
                    if plan is not None:
                        return plan
        return None

    def _advanced(self) -> FoundPlan | None:
        """Makes every move from every distribution of the frontier; returns a plan if the pods fit after one.

        Where each node decides by itself, `_opened` has looked for plans already.
        """
        trial, frontier = self._trial, []
        pods, nodes = trial.different_pods_everywhere(), len(trial.trial.cluster.nodes)
        if max(len(self._frontier), nodes - 1) * len(pods) > trial.trials_left:
            raise BoundReachedError
        for moves in self._made():
            for mover in trial.different_pods_everywhere():
                for node in trial.nodes_for(mover.pod, best_first=False):
                    after = trial.state_after(mover, node)
                    if after in self._seen:
                        continue
                    self._seen.add(after)
                    longer = (*moves, (mover, node))
                    if not self._goal.is_decided_by_nodes and (plan := self._found(longer)) is not None:
                        return plan
                    frontier.append(longer)
        self._frontier = frontier
        return None

    def _made(self) -> Iterator[Sequence[Move]]:
        for moves in self._frontier:
            with ExitStack() as stack:
                if all(stack.enter_context(self._trial.moved(mover, node)) for mover, node in moves):
                    yield moves

    def _found(self, moves: tuple[Move, ...]) -> FoundPlan | None:
        """Makes the last move, and returns the plan if the wanted pods fit then."""
        mover, node = moves[-1]
        with self._trial.moved(mover, node) as has_moved:
            nodes = self._goal.nodes() if has_moved else None
        return None if nodes is None else FoundPlan(moves, nodes)


TRIALS: Final = 10_000
"""How often the Filters may be asked about a pod: while nodes are emptied, and then once more in the exact search."""
WIDTH: Final = 4
"""The number of nodes on which room is made for a pod, before the one that takes fewest moves is chosen."""
_DEPTH: Final = 3
"""How often room is made for a pod that makes room for another one, the wanted pod included."""


@final
@dataclass(frozen=True, slots=True)
class SearchResult:
    """The plan of a search, if any; the other fields are those of the answer."""

    plan: FoundPlan | None
    looked_through: int
    is_complete: bool


@final
class PlanSearch:
    """State: the nodes that are kept for wanted pods, and how far the search has come."""

    def __init__(self, trial: TrialMoves, goal: WantedPods, trials: int = TRIALS) -> None:
        self._trial = trial
        self._goal = goal
        self._trials = trials
        self._spared: frozenset[str] = frozenset()
        """Nodes that are cheap to empty: pods that move go elsewhere, if they can."""
        self._looked_through = -1

    def run(self, max_moves: int) -> SearchResult:
        """Returns a plan with as few moves as the search can find."""
        trial = self._trial
        trial.trials_left = self._trials
        plan: FoundPlan | None = None
        try:
            nodes = self._goal.nodes()
            if nodes is not None:
                return SearchResult(FoundPlan((), nodes), 0, is_complete=True)
            self._looked_through = 0
            if self._goal.is_decided_by_nodes and not trial.nodes_to_clear(self._goal.pods[0]):
                return SearchResult(None, max_moves, is_complete=True)  # no node takes it, whatever moves away
            plan = self._cheapest_first(max_moves)
        except BoundReachedError:
            if self._looked_through < 0:
                return SearchResult(None, -1, is_complete=False)
        exact, trial.trials_left = [ExactSearch(trial, self._goal, may_wait=False)], self._trials
        bound = max_moves if plan is None else len(plan.moves)
        try:
            for limit in range(1, bound + 1):
                exact_plan = self._exactly(exact, limit)
                self._looked_through = limit - (exact_plan is not None)
                if exact_plan is not None:
                    return SearchResult(exact_plan, self._looked_through, is_complete=True)
                if all(search.is_exhausted for search in exact):
                    self._looked_through = bound  # no move leads to anything new
                    break
        except BoundReachedError:
            pass
        return SearchResult(plan, self._looked_through, is_complete=self._looked_through >= bound)

    def _exactly(self, searches: list[ExactSearch], limit: int) -> FoundPlan | None:
        """Returns a plan of just so many moves; first without, then with moves that wait for a budget."""
        plan = searches[0].with_one_more_move()
        if plan is not None or not searches[0].has_met_budget:
            return plan
        if len(searches) == 1:
            searches.append(ExactSearch(self._trial, self._goal, may_wait=True))
            for _ in range(limit - 1):
                searches[1].with_one_more_move()
        return searches[1].with_one_more_move()

    # The cheapest nodes first.

    def _cheapest_first(self, max_moves: int) -> FoundPlan | None:
        """Returns a plan of at most so many moves; first without, then with moves that wait for a budget."""
        for self._trial.may_wait in (False, True):
            self._trial.has_met_budget = False
            for domain in self._goal.domains():
                if (plan := self._emptied(max_moves, domain)) is not None:
                    return plan
            if not self._trial.has_met_budget:
                break
        return None

    def _emptied(self, max_moves: int, domain: Domain) -> FoundPlan | None:
        """Returns a plan that makes room for one wanted pod after the other."""
        trial, moves, placed = self._trial, list[Move](), dict[str, str]()
        with ExitStack() as stack:
            for pod in self._goal.pods:
                cheap = trial.nodes_to_clear(pod, domain)[: len(self._goal.pods)]
                self._spared = frozenset(node for node, _ in cheap)
                room = self._room_for(stack, pod, max_moves - len(moves), _DEPTH, frozenset(), domain)
                if room is None or not stack.enter_context(trial.placed(pod, room[0])):
                    return None
                placed[pod.uid] = room[0]
                moves += room[1]
        with ExitStack() as stack:
            if not all(stack.enter_context(trial.moved(mover, node)) for mover, node in moves):
                return None
            if (nodes := self._goal.nodes()) is not None:
                return FoundPlan(tuple(moves), nodes)
            pinned = (trial.placed(pod, placed[pod.uid]) for pod in self._goal.pods)
            if self._goal.groups or not all(map(stack.enter_context, pinned)):
                return None
        return FoundPlan(tuple(moves), placed, is_pinned=True)

    def _room_for(
        self, stack: ExitStack, pod: Pod, max_moves: int, depth: int, busy: frozenset[str], domain: Domain = None
    ) -> tuple[str, list[Move]] | None:
        """Makes moves for the life of the stack, after which a node that is not busy takes the pod."""
        trial = self._trial
        free = [name for name in trial.nodes_for(pod, domain) if name not in busy]
        if free:
            return min(free, key=self._spared.__contains__), []
        best: tuple[str, list[Move]] | None = None
        ways = trial.nodes_to_clear(pod, domain) if depth else []
        for node, leaving in [way for way in ways if way[0] not in busy and len(way[1]) <= max_moves][:WIDTH]:
            moves: list[Move] = []
            with ExitStack() as attempt:
                for mover in leaving:
                    moves_left = max_moves - len(moves) - 1
                    room = self._room_for(attempt, mover.pod, moves_left, depth - 1, busy | {node})
                    if moves_left < 0 or room is None or not attempt.enter_context(trial.moved(mover, room[0])):
                        break
                    moves += [*room[1], (mover, room[0])]
                else:
                    if best is None or len(moves) < len(best[1]):
                        best = node, moves
            if best is not None and len(best[1]) == len(leaving):
                break
        if best is not None and not all(stack.enter_context(trial.moved(*move)) for move in best[1]):
            return None
        return best
