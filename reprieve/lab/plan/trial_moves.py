"""TrialMoves: a copy of a cluster in which pods are evicted, placed elsewhere, and moved back.

Every verdict is one of the profile's Filters about the cluster as the moves before have left it, and every placement
runs Reserve.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, final

import numpy as np

from extender.answers.trial import Trial
from extender.engine.preemption.dry_run import reprieve
from extender.engine.runtime.cycle import Cycle
from extender.engine.runtime.plugin_calls import PluginError
from extender.engine.snapshot import PodChanges, Rows, Snapshot
from extender.engine.snapshot.axes import Index, Mask
from extender.values.objects.decoding import replaced
from extender.values.objects.pod import Pod
from reprieve.lab.plan.movable_pods import MovablePod, MovablePods

_ROWS_OF_A_TRIAL: Final = 500
"""A round over more hypothetical nodes than these counts as several trials."""

Domain = frozenset[str] | None
"""The names of the nodes that a pod may get; None for all of them."""


@final
class BoundReachedError(Exception):
    """A part of a search has used up its trials."""


@final
class TrialMoves:
    """State: the cluster, with what is reserved and what budgets have given; the node of each movable pod.

    Moves are context managers: at the end of the block everything is as before.
    """

    def __init__(self, trial: Trial, pods: MovablePods) -> None:
        """Nothing has moved yet."""
        self.trial: Final = trial
        self.pods: Final = pods
        self.may_wait = False
        """Whether a pod may move after its budget was used up by earlier moves, once these pods run again."""
        self.has_met_budget = False
        """Whether a pod was left on its node because earlier moves had used up its budget."""
        self.trials_left = 0
        """The number of further trials before BoundReachedError."""
        self._moved: Counter[tuple[Hashable, str]] = Counter()
        """(kind, node) -> number of pods now minus that at the beginning."""
        self._on: dict[str, dict[str, MovablePod]] = {}
        """Node -> its movable pods by UID."""
        self.node_of: dict[str, str] = {}
        """UID -> the node where a movable pod is now."""
        self._rank = {uid: rank for rank, uid in enumerate(pods.by_uid)}
        for uid, mover in pods.by_uid.items():
            self.node_of[uid] = mover.running.spec.node_name
            self._on.setdefault(self.node_of[uid], {})[uid] = mover

    def take(self, trials: int = 1) -> None:
        """Counts trials. Raises BoundReachedError if there are none left."""
        self.trials_left -= trials
        if self.trials_left < 0:
            raise BoundReachedError

    # What is where.

    def state_after(self, mover: MovablePod, node: str) -> Hashable:
        """Returns a key of the distribution after the move; pods of one kind count as one."""
        moved = Counter(self._moved)
        moved[mover.kind, self.node_of[mover.uid]] -= 1
        moved[mover.kind, node] += 1
        return frozenset((kind_and_node, count) for kind_and_node, count in moved.items() if count)

    def different_pods(self, node: str) -> list[MovablePod]:
        """Returns, of each kind on the node, the movable pod that loses least."""
        return list({mover.kind: mover for mover in self.movable_on(node)[::-1]}.values())[::-1]

    def different_pods_everywhere(self) -> list[MovablePod]:
        """Returns `different_pods` of all nodes; pods that lose least come first."""
        return sorted(
            (mover for node in self._on for mover in self.different_pods(node)), key=lambda mover: self._rank[mover.uid]
        )

    def movable_on(self, node: str) -> list[MovablePod]:
        """Returns the pods that may leave the node now; pods that lose least come first."""
        pods = self._on.get(node, {})
        return [pods[uid] for uid in sorted(pods, key=self._rank.__getitem__) if self._may_move(pods[uid])]

    def _may_move(self, mover: MovablePod) -> bool:
        if self.may_wait or not self.budgets_used_up(mover):
            return True
        self.has_met_budget = True
        return False

    def budgets_used_up(self, mover: MovablePod) -> tuple[str, ...]:
        """Returns the names of the pod's budgets that allow no eviction after the moves so far."""
        budgets = self.trial.cluster.cache.objects.pdbs
        return tuple(key[1] for key in mover.budgets if budgets[key].status.disruptions_allowed <= 0)

    # Questions.

    def nodes_for(self, pod: Pod, domain: Domain = None, *, best_first: bool = True) -> list[str]:
        """Returns the nodes that would take the pod now, other than its own; best first, if wanted."""
        own_node = self.node_of.get(pod.uid)
        with self._without(pod):
            in_order = sorted(self._scored(pod, with_scores=best_first), key=lambda scored: -scored[1])
        return [name for name, _ in in_order if name != own_node and (domain is None or name in domain)]

    def first_choices(self, pod: Pod) -> frozenset[str]:
        """Returns the nodes among which the scheduler would choose for the pod now, its own aside if it has one."""
        scores = self.scores(pod)
        scores.pop(self.node_of.get(pod.uid, ""), None)
        highest = max(scores.values(), default=0)
        return frozenset(name for name, score in scores.items() if score == highest)

    def scores(self, pod: Pod) -> dict[str, int]:
        """Returns the nodes that would take the pod if it was evicted now, with their total scores."""
        with self._without(pod):
            return dict(self._scored(pod))

    def may_take(self, pod: Pod) -> Mask:
        """Returns (N,) the nodes that might take the pod if all pods that may move had left them."""
        with self._without(pod):
            cycle = self._cycle(pod)
            if cycle is None:
                return np.zeros(len(self.trial.cluster.nodes), np.bool_)
            snapshot = cycle.snapshot
            slots = _slots(snapshot, [mover for uid, mover in self.pods.by_uid.items() if uid != pod.uid])
            changes = PodChanges(snapshot.pods.node[slots], slots, np.full(len(slots), -1))
            rows, takes = Rows.of(snapshot).changed(changes), np.ones(len(snapshot.nodes), np.bool_)
            if cycle.within is not None:
                takes[:] = np.isin(np.arange(len(takes)), cycle.within)
            try:
                for name, plugin in cycle.framework.plugins.filter:
                    if plugin.looks_only_at_node and name not in cycle.skip_filter_plugins:
                        takes &= cycle.run_filter_plugin(name, plugin, rows).ok
            except PluginError:
                return np.zeros(len(takes), np.bool_)
            return takes

    def why_nowhere(self, pod: Pod) -> str:
        """Returns why no node takes the pod now, in the scheduler's words."""
        with self._without(pod):
            return self.trial.schedule(pod).message

    def in_the_way(self, pod: Pod, leaving: Sequence[MovablePod]) -> list[MovablePod]:
        """Returns each pod whose leaving alone makes room on its node."""
        with self._without(pod):
            cycle = self._cycle(pod)
            if cycle is None:
                return []
            places = [_place(cycle, self.node_of[mover.uid]) for mover in leaving]
            leaving = [
                mover
                for mover, place in zip(leaving, places, strict=True)
                if place is not None and mover.uid != pod.uid
            ]
            if not leaving:
                return []
            # One row per pod: its node without it. One run of the Filters judges all; a node may have several rows.
            going = PodChanges(
                np.arange(len(leaving)),
                _slots(cycle.snapshot, leaving),
                np.full(len(leaving), -1),
                rows_are_distinct=True,
            )
            index = cycle.snapshot.nodes.index
            rows = Rows.of(
                cycle.snapshot, np.array([index[self.node_of[mover.uid]] for mover in leaving], np.intp)
            ).changed(going)
            try:
                ok = cycle.run_filters_with_nominated_pods(rows).ok
            except PluginError:
                return []
            return [mover for mover, opens in zip(leaving, ok.tolist(), strict=True) if opens]

    def nodes_to_clear(self, pod: Pod, domain: Domain = None) -> list[tuple[str, list[MovablePod]]]:
        """Returns nodes that would take the pod without their movable pods, each with the pods that have to leave, in
        order of their number. Pods are taken back one by one, those that lose most first: the sets may not be minimal.
        """
        with self._without(pod):
            cycle = self._cycle(pod)
            if cycle is None:
                return []
            index = cycle.snapshot.nodes.index
            in_play = None if cycle.within is None else set(cycle.within.tolist())
            leaving: dict[str, list[MovablePod]] = {}
            for name in self._on if domain is None else domain & self._on.keys():
                place = index.get(name)
                if place is not None and (in_play is None or place in in_play) and (pods := self.movable_on(name)):
                    leaving[name] = [mover for mover in pods[::-1] if mover.uid != pod.uid]
            try:
                return self._cleared(cycle, leaving) if leaving else []
            except PluginError:
                return []

    def _cleared(self, cycle: Cycle, leaving: Mapping[str, list[MovablePod]]) -> list[tuple[str, list[MovablePod]]]:
        """Returns `nodes_to_clear` among the keys of `leaving`, whose pods are taken back in their order."""
        snapshot, names = cycle.snapshot, list(leaving)
        # (V,) row of the node, and slot, of each leaving pod. -1 removes a pod.
        row = np.repeat(np.arange(len(names)), [len(pods) for pods in leaving.values()])
        slots = np.concatenate([_slots(snapshot, pods) for pods in leaving.values()])
        places = np.array([snapshot.nodes.index[name] for name in names], np.intp)
        emptied = Rows.of(snapshot, places).changed(PodChanges(row, slots, np.full(len(slots), -1)))
        fits = cycle.run_filters_with_nominated_pods(emptied).ok
        on_fitting = fits[row]
        # The new row of a fitting node is the number of fitting nodes before it.
        back = (np.cumsum(fits) - 1)[row[on_fitting]]
        # Pods are taken back on all nodes at a time: the node with most of them sets the number of runs.
        self.take(int(np.bincount(back, minlength=1).max()) * (1 + len(names) // _ROWS_OF_A_TRIAL))
        stays = reprieve(cycle, emptied.take(fits), slots[on_fitting], back)
        pods = np.array([mover for pods in leaving.values() for mover in pods], np.object_)[on_fitting][~stays].tolist()
        going: dict[int, list[MovablePod]] = {}
        for mover, place in zip(pods, row[on_fitting][~stays].tolist(), strict=True):
            going.setdefault(place, []).append(mover)
        cleared = [(names[place], going.get(place, [])) for place in np.flatnonzero(fits).tolist()]
        return sorted(cleared, key=lambda way: (len(way[1]), sum(mover.gpu_hours for mover in way[1])))

    def is_decided_by_nodes(self, pod: Pod) -> bool:
        """Returns whether no Filter looks beyond the node itself. Then more pods on a node never help."""
        cycle = self._cycle(pod, is_counted=False)
        return cycle is not None and all(
            plugin.looks_only_at_node
            for name, plugin in cycle.framework.plugins.filter
            if name not in cycle.skip_filter_plugins
        )

    # Moves.

    @contextmanager
    def cordoned(self, nodes: Iterable[str]) -> Iterator[None]:
        """Cordons the nodes for the block."""
        with self.trial.transaction():
            for name in nodes:
                node = self.trial.cluster.nodes[name]
                self.trial.changed(node, replaced(node, spec=replaced(node.spec, unschedulable=True)))
            yield

    @contextmanager
    def moved(self, mover: MovablePod, node: str) -> Iterator[bool]:
        """Moves the pod to another node for the block; yields False, with nothing moved, if the node refuses it."""
        before = self.node_of[mover.uid]
        with self._without(mover.pod):
            if not self._settle(mover.pod, node):
                yield False
                return
            self.trial.disrupt([self.trial.cluster.cache.pod(mover.uid) or mover.running])
            self._relocate(mover, before, node)
            try:
                yield True
            finally:
                self._relocate(mover, node, before)

    @contextmanager
    def placed(self, pod: Pod, node: str) -> Iterator[bool]:
        """Places a pending pod for the block. Yields False if the node does not take it."""
        with self.trial.transaction():
            yield self._settle(pod, node)

    @contextmanager
    def _without(self, pod: Pod) -> Iterator[None]:
        placed = self.trial.cluster.cache.pod(pod.uid)
        with self.trial.transaction():
            if placed is not None:
                self.trial.evict(placed)
            yield

    def _settle(self, pod: Pod, node: str) -> bool:
        cycle = self._passing(pod, node)
        return cycle is not None and bool(self.trial.place(cycle, node).node)

    def _relocate(self, mover: MovablePod, before: str, node: str) -> None:
        del self._on[before][mover.uid]
        self._on.setdefault(node, {})[mover.uid] = mover
        self.node_of[mover.uid] = node
        self._moved[mover.kind, before] -= 1
        self._moved[mover.kind, node] += 1

    # Cycles.

    def _cycle(self, pod: Pod, *, is_counted: bool = True) -> Cycle | None:
        if is_counted:
            self.take()
        cycle = self.trial.cycle(pod)
        try:
            return cycle if cycle.run_pre_filter_plugins().status.is_success else None
        except PluginError:
            return None

    def _scored(self, pod: Pod, *, with_scores: bool = True) -> list[tuple[str, int]]:
        """Returns the nodes that would take a pending pod, with their total scores; all 0 without scores."""
        cycle = self._cycle(pod)
        if cycle is None:
            return []
        try:
            rows = cycle.feasible_rows()
            if not with_scores or len(rows) < 2:
                return [(name, 0) for name in rows.names]
            cycle.run_pre_score_plugins(rows)
            return list(zip(rows.names, cycle.ranking(rows).total.tolist(), strict=True))
        except PluginError:
            return []

    def _passing(self, pod: Pod, node: str) -> Cycle | None:
        cycle = self._cycle(pod)
        place = None if cycle is None else _place(cycle, node)
        if cycle is None or place is None:
            return None
        try:
            verdicts = cycle.run_filters_with_nominated_pods(Rows.of(cycle.snapshot, np.array([place], np.intp)))
        except PluginError:
            return None
        return cycle if verdicts.all_ok else None


def _place(cycle: Cycle, node: str) -> int | None:
    place = cycle.snapshot.nodes.index.get(node)
    return place if place is not None and (cycle.within is None or bool(np.isin(place, cycle.within))) else None


def _slots(snapshot: Snapshot, pods: Sequence[MovablePod]) -> Index:
    return np.array([snapshot.pods.slots[mover.uid] for mover in pods], np.intp)
