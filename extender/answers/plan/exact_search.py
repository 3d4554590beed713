"""ExactSearch: looks at every distribution of the pods that a number of moves leads to."""

from collections.abc import Hashable, Iterator, Sequence
from contextlib import ExitStack
from typing import final

from extender.answers.plan.trial_moves import BoundReachedError, TrialMoves
from extender.answers.plan.wanted_pods import FoundPlan, Move, WantedPods


@final
class ExactSearch:
    """State: the distributions seen so far, and those among them from which no further move was tried."""

    def __init__(self, trial: TrialMoves, wanted: WantedPods, *, may_wait: bool) -> None:
        """Only the cluster as it is was seen, and the wanted pods do not fit there.

        Arguments:
            may_wait: whether moves may wait until a budget has recovered from earlier ones.
        """
        self._trial = trial
        self._wanted = wanted
        self._may_wait = may_wait
        self._seen: set[Hashable] = {trial.state}
        self._frontier: list[tuple[Move, ...]] = [()]
        self._is_spread = False
        """Whether the moves from the frontier are still to be made, because only those that make room at once were
        looked at.
        """
        self.has_met_budget = False
        """Whether a pod was left where it is because earlier moves had used its budget up."""

    @property
    def is_exhausted(self) -> bool:
        """Whether there is no distribution left that has not been looked at."""
        return not self._frontier

    def with_one_more_move(self) -> FoundPlan | None:
        """Returns a plan with one move more than those that the last call has looked at.

        Raises:
            BoundReachedError: it takes too long; the search is over then.
        """
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
        """Returns a plan whose last move leaves the node on which the wanted pod fits then. No other last move can help
        where each node decides by itself.
        """
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
        pods, nodes = trial.different_pods_everywhere(), len(trial.cluster.nodes)
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
        """Yields the moves to each distribution of the frontier, while they are made."""
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
