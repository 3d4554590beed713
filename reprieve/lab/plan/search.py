"""PlanSearch: finds the fewest moves, one after the other, after which the wanted pods fit.

A pod moves when it is evicted and another node takes it; it runs there before the next pod is evicted. Plans are looked
for by the number of their moves. As long as the cluster is small enough, every distribution of its pods that so many
moves lead to is looked at; then the answer is exact. Beyond that, room is made node by node: pods leave a node that
would take the wanted pod without them, and where one of them finds no place, room is made for it first in the same way.
"""

from collections.abc import Generator, Hashable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import islice
from typing import Final, final

from extender.values.objects.pod import Pod
from reprieve.lab.plan.movable_pods import MovablePod
from reprieve.lab.plan.trial_moves import BoundReachedError, Domain, TrialMoves
from reprieve.lab.plan.wanted_pods import FoundPlan, Move, WantedPods


@final
class ExactSearch:
    """State: the distributions seen so far, and those among them from which no further move was tried."""

    def __init__(self, trial: TrialMoves, wanted: WantedPods, *, may_wait: bool) -> None:
        """Only the cluster as it is was seen, and nothing fits. With `may_wait`, moves wait until budgets recover."""
        self._trial = trial
        self._wanted = wanted
        self._may_wait = may_wait
        self._seen: set[Hashable] = {frozenset()}
        self._frontier: list[tuple[Move, ...]] = [()]
        self._is_spread = False
        """Whether the frontier's moves are still to be made: only those that make room at once were looked at."""
        self.has_met_budget = False
        """Whether a pod was left where it is because earlier moves had used its budget up."""

    @property
    def is_exhausted(self) -> bool:
        """Whether there is no distribution left that has not been looked at."""
        return not self._frontier

    def with_one_more_move(self) -> FoundPlan | None:
        """Returns a plan with one move more than the last call looked at; raises BoundReachedError when time is up."""
        trial = self._trial
        trial.may_wait, trial.has_met_budget = self._may_wait, False
        try:
            if not self._wanted.is_decided_by_nodes:
                return self._advanced()
            if self._is_spread:
                self._advanced()
            self._is_spread = True
            return self._opened()
        finally:
            self.has_met_budget = self.has_met_budget or trial.has_met_budget

    def _opened(self) -> FoundPlan | None:
        """Returns a plan whose last move leaves the wanted pod's node: the only help if each node decides by itself."""
        (pod,) = self._wanted.pods
        for moves in self._made():
            for each in self._trial.in_the_way(pod, self._trial.different_pods_everywhere()):
                for node in self._trial.nodes_for(each.pod):
                    found = self._found((*moves, (each, node)))
                    if found is not None:
                        return found
        return None

    def _advanced(self) -> FoundPlan | None:
        """Makes every move from every distribution of the frontier; returns a plan if that lets the pods fit.

        Where each node decides by itself, what lets the pod fit was looked at before.
        """
        trial, frontier = self._trial, []
        pods, nodes = trial.different_pods_everywhere(), len(trial.trial.cluster.nodes)
        if max(len(self._frontier), nodes - 1) * len(pods) > trial.trials_left:
            raise BoundReachedError
        for moves in self._made():
            for each in trial.different_pods_everywhere():
                for node in trial.nodes_for(each.pod, best_first=False):
                    after = trial.state_after(each, node)
                    if after in self._seen:
                        continue
                    self._seen.add(after)
                    further = (*moves, (each, node))
                    if not self._wanted.is_decided_by_nodes and (found := self._found(further)) is not None:
                        return found
                    frontier.append(further)
        self._frontier = frontier
        return None

    def _made(self) -> Iterator[Sequence[Move]]:
        for moves in self._frontier:
            with ExitStack() as stack:
                if all(stack.enter_context(self._trial.moved(each, node)) for each, node in moves):
                    yield moves

    def _found(self, moves: tuple[Move, ...]) -> FoundPlan | None:
        """Returns the plan if the last of the moves, which is not made yet, lets the wanted pods fit."""
        each, node = moves[-1]
        with self._trial.moved(each, node) as has_moved:
            nodes = self._wanted.nodes() if has_moved else None
        return None if nodes is None else FoundPlan(moves, nodes)


TRIALS: Final = 10_000
"""How often the Filters may be asked about a pod: in the exact search, and then once more in the other one."""
WIDTH: Final = 4
"""The number of nodes that are tried for each pod that leaves, outside the exact search."""
_TRIES_TO_HOLD: Final = 20
"""The number of plans that are tried from the beginning for each number of moves."""


@final
@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search has found, if anything; the other fields are those of the answer."""

    plan: FoundPlan | None
    looked_through: int
    is_complete: bool


@final
class PlanSearch:
    """State: the moves of the plan that is being tried, and how many trials each part of the search has left."""

    def __init__(self, trial: TrialMoves, wanted: WantedPods, trials: int = TRIALS) -> None:
        self._trial = trial
        self._wanted = wanted
        self._moves: list[Move] = []
        self._placed: list[tuple[Pod, str]] = []
        self._busy: frozenset[str] = frozenset()
        """UIDs of the pods for which room is being made."""
        self._trials = trials
        self._guided_trials = trials
        self._looked_through = -1

    def run(self, max_moves: int) -> SearchResult:
        """Returns a plan with as few moves as the search can find."""
        trial = self._trial
        trial.trials_left = self._trials
        try:
            nodes = self._wanted.nodes()
            if nodes is not None:
                return SearchResult(FoundPlan((), nodes), 0, is_complete=True)
            self._looked_through = 0
            if self._wanted.is_decided_by_nodes and not trial.nodes_to_clear(self._wanted.pods[0]):
                return SearchResult(None, max_moves, is_complete=True)  # no node takes it, whatever moves away
        except BoundReachedError:
            return SearchResult(None, self._looked_through, is_complete=False)
        self._trials = trial.trials_left
        exact: list[ExactSearch] | None = [ExactSearch(trial, self._wanted, may_wait=False)]
        for limit in range(1, max_moves + 1):
            plan: FoundPlan | None = None
            if exact is not None:
                trial.trials_left = self._trials
                try:
                    plan = self._exactly(exact, limit)
                    self._looked_through = limit - (plan is not None)
                    if plan is None and all(each.is_exhausted for each in exact):
                        return SearchResult(None, max_moves, is_complete=True)  # no move leads to anything new
                except BoundReachedError:
                    exact = None
                self._trials = max(trial.trials_left, 0)
            if exact is None:
                plan = self._guided(limit)
            if plan is not None:
                return SearchResult(plan, self._looked_through, is_complete=self._looked_through >= len(plan.moves) - 1)
            if exact is None and not self._guided_trials:
                break
        return SearchResult(None, self._looked_through, is_complete=self._looked_through >= max_moves)

    def _exactly(self, searches: list[ExactSearch], limit: int) -> FoundPlan | None:
        """Returns a plan of just so many moves; first without, then with moves that wait for a budget."""
        plan = searches[0].with_one_more_move()
        if plan is not None or not searches[0].has_met_budget:
            return plan
        if len(searches) == 1:
            searches.append(ExactSearch(self._trial, self._wanted, may_wait=True))
            for _ in range(limit - 1):
                searches[1].with_one_more_move()
        return searches[1].with_one_more_move()

    # The guided search.

    def _guided(self, limit: int) -> FoundPlan | None:
        """Returns a plan of at most so many moves; first without, then with moves that wait for a budget."""
        trial = self._trial
        trial.trials_left = self._guided_trials
        try:
            for trial.may_wait in (False, True):
                trial.has_met_budget = False
                plan = self._plan_with(limit)
                if plan is not None or not trial.has_met_budget:
                    return plan
        except BoundReachedError:
            return None
        finally:
            self._guided_trials = max(trial.trials_left, 0)
        return None

    def _plan_with(self, limit: int) -> FoundPlan | None:
        for domain in self._wanted.domains():
            with closing(self._room_for(0, limit, domain)) as ways:
                tried = [(tuple(self._moves), tuple(self._placed)) for _ in islice(ways, _TRIES_TO_HOLD)]
            for moves, placed in tried:
                held = self._held(moves, placed)
                if held is not None:
                    return held
        return None

    def _held(self, moves: Sequence[Move], placed: Sequence[tuple[Pod, str]]) -> FoundPlan | None:
        trial = self._trial
        with ExitStack() as stack:
            if not all(stack.enter_context(trial.moved(each, node)) for each, node in moves):
                return None
            nodes = self._wanted.nodes()
            if nodes is not None:
                return FoundPlan(tuple(moves), nodes)
            if self._wanted.groups or not all(stack.enter_context(trial.placed(pod, node)) for pod, node in placed):
                return None
            return FoundPlan(tuple(moves), {pod.uid: node for pod, node in placed}, is_pinned=True)

    def _room_for(self, turn: int, left: int, domain: Domain) -> Generator[None]:
        """Places the wanted pods from this one on, after moves that make room for each; yields once all are placed."""
        if turn == len(self._wanted.pods):
            yield
            return
        pod, trial = self._wanted.pods[turn], self._trial
        nodes = trial.nodes_for(pod, domain)
        if nodes:
            yield from self._placed_on(pod, nodes[0], turn, left, domain)
            return
        for node, going in trial.nodes_to_clear(pod, domain):
            if going > left:
                return
            before = len(self._moves)
            for _ in self._made_room(pod, node, left):
                yield from self._placed_on(pod, node, turn, left - (len(self._moves) - before), domain)

    def _placed_on(self, pod: Pod, node: str, turn: int, left: int, domain: Domain) -> Generator[None]:
        with self._trial.placed(pod, node) as is_placed:
            if is_placed:
                self._placed.append((pod, node))
                try:
                    yield from self._room_for(turn + 1, left, domain)
                finally:
                    self._placed.pop()

    def _made_room(self, pod: Pod, node: str, left: int) -> Generator[None]:
        """Moves pods away, at most so many, and yields whenever the pod fits on the node."""
        trial = self._trial
        if trial.fits(pod, node):
            yield
            return
        if not left:
            return
        leaving = trial.different_pods(node)
        if left == 1:
            leaving = trial.in_the_way(pod, leaving)
        busy, self._busy = self._busy, self._busy | {pod.uid}
        try:
            for each in leaving:
                if each.uid not in self._busy:
                    for target in self._targets(each, left - 1):
                        yield from self._moved_away(each, target, pod, node, left)
        finally:
            self._busy = busy

    def _moved_away(self, each: MovablePod, target: str, pod: Pod, node: str, left: int) -> Generator[None]:
        """Moves a pod to the target, after moves that make room there, and goes on making room for the other pod."""
        before = len(self._moves)
        for _ in self._made_room(each.pod, target, left - 1):
            with self._trial.moved(each, target) as has_moved:
                if has_moved:
                    self._moves.append((each, target))
                    try:
                        yield from self._made_room(pod, node, left - (len(self._moves) - before))
                    finally:
                        self._moves.pop()

    def _targets(self, each: MovablePod, left: int) -> list[str]:
        """Returns nodes to try for a pod that leaves its own: those that take it at once, or after more moves."""
        free = self._trial.nodes_for(each.pod)[:WIDTH]
        if free or not left:
            return free
        own = self._trial.node_of[each.uid]
        return [name for name, going in self._trial.nodes_to_clear(each.pod) if going <= left and name != own][:WIDTH]
