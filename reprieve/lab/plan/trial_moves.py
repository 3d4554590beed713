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
    """As many trials were made as a part of a search may make."""


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
        """Whether a pod was left where it is for the sake of a budget that earlier moves have used up."""
        self.trials_left = 0
        """How many trials may be made from now on before BoundReachedError."""
        self._moved: Counter[tuple[Hashable, str]] = Counter()
        """How many pods of a kind a node has more than at the beginning."""
        self._on: dict[str, dict[str, MovablePod]] = {}
        """Node -> its movable pods by UID."""
        self.node_of: dict[str, str] = {}
        """UID -> the node where a movable pod is now."""
        self._rank = {uid: rank for rank, uid in enumerate(pods.by_uid)}
        for uid, each in pods.by_uid.items():
            self.node_of[uid] = each.running.spec.node_name
            self._on.setdefault(self.node_of[uid], {})[uid] = each

    def take(self, trials: int = 1) -> None:
        """Counts trials. Raises BoundReachedError if there are none left."""
        self.trials_left -= trials
        if self.trials_left < 0:
            raise BoundReachedError

    # What is where.

    def state_after(self, each: MovablePod, node: str) -> Hashable:
        """Returns what is equal for equal distributions of pods once the pod has moved; alike pods count as equal."""
        moved = Counter(self._moved)
        moved[each.kind, self.node_of[each.uid]] -= 1
        moved[each.kind, node] += 1
        return frozenset((at, count) for at, count in moved.items() if count)

    def different_pods(self, node: str) -> list[MovablePod]:
        """Returns one pod of each kind on the node that may move now, the one that loses least."""
        return list({each.kind: each for each in self.movable_on(node)[::-1]}.values())[::-1]

    def different_pods_everywhere(self) -> list[MovablePod]:
        """Returns one pod of each kind on each node that may move now, those that lose least first."""
        return sorted(
            (each for node in self._on for each in self.different_pods(node)), key=lambda each: self._rank[each.uid]
        )

    def movable_on(self, node: str) -> list[MovablePod]:
        """Returns the pods on the node that may move now, those that lose least first."""
        pods = self._on.get(node, {})
        return [pods[uid] for uid in sorted(pods, key=self._rank.__getitem__) if self._may_move(pods[uid])]

    def _may_move(self, each: MovablePod) -> bool:
        if self.may_wait or not self.budgets_used_up(each):
            return True
        self.has_met_budget = True
        return False

    def budgets_used_up(self, each: MovablePod) -> tuple[str, ...]:
        """Returns the names of the pod's budgets from which the moves so far have taken all that they allowed."""
        budgets = self.trial.cluster.cache.objects.pdbs
        return tuple(key[1] for key in each.budgets if budgets[key].status.disruptions_allowed <= 0)

    # Questions.

    def nodes_for(self, pod: Pod, domain: Domain = None, *, best_first: bool = True) -> list[str]:
        """Returns the nodes that would take the pod now, other than its own; best first, if wanted."""
        own = self.node_of.get(pod.uid)
        with self._without(pod):
            in_order = sorted(self._scored(pod, with_scores=best_first), key=lambda each: -each[1])
        return [name for name, _ in in_order if name != own and (domain is None or name in domain)]

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
            slots = _slots(snapshot, [each for uid, each in self.pods.by_uid.items() if uid != pod.uid])
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
        """Returns those of the pods of which just one has to leave its node so that the pod fits there."""
        with self._without(pod):
            cycle = self._cycle(pod)
            if cycle is None:
                return []
            places = [_place(cycle, self.node_of[each.uid]) for each in leaving]
            leaving = [
                each for each, place in zip(leaving, places, strict=True) if place is not None and each.uid != pod.uid
            ]
            if not leaving:
                return []
            # A row for each pod, in which its node is without it: one run of the Filters tells of all. A node may have
            # several rows.
            going = PodChanges(
                np.arange(len(leaving)),
                _slots(cycle.snapshot, leaving),
                np.full(len(leaving), -1),
                rows_are_distinct=True,
            )
            index = cycle.snapshot.nodes.index
            rows = Rows.of(
                cycle.snapshot, np.array([index[self.node_of[each.uid]] for each in leaving], np.intp)
            ).changed(going)
            try:
                ok = cycle.run_filters_with_nominated_pods(rows).ok
            except PluginError:
                return []
            return [each for each, opens in zip(leaving, ok.tolist(), strict=True) if opens]

    def nodes_to_clear(self, pod: Pod, domain: Domain = None) -> list[tuple[str, list[MovablePod]]]:
        """Returns the nodes that would take the pod if all that may move left them, and which have to leave, fewest
        first. Pods are taken back one by one, those that lose most first, so that there may be too many.
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
                    leaving[name] = [each for each in pods[::-1] if each.uid != pod.uid]
            try:
                return self._cleared(cycle, leaving) if leaving else []
            except PluginError:
                return []

    def _cleared(self, cycle: Cycle, leaving: Mapping[str, list[MovablePod]]) -> list[tuple[str, list[MovablePod]]]:
        """Returns `nodes_to_clear` among the keys; `leaving` has pods in the order in which they are taken back."""
        snapshot, names = cycle.snapshot, list(leaving)
        # (V,) of each pod that leaves: the row of its node, and its slot. -1 takes a pod away.
        row = np.repeat(np.arange(len(names)), [len(pods) for pods in leaving.values()])
        slots = np.concatenate([_slots(snapshot, pods) for pods in leaving.values()])
        places = np.array([snapshot.nodes.index[name] for name in names], np.intp)
        without = Rows.of(snapshot, places).changed(PodChanges(row, slots, np.full(len(slots), -1)))
        fits = cycle.run_filters_with_nominated_pods(without).ok
        kept = fits[row]
        # The row of a node among those that fit is the number of those before it.
        back = (np.cumsum(fits) - 1)[row[kept]]
        # Pods are taken back on all nodes at a time, so that the node with most of them says how many runs there are.
        self.take(int(np.bincount(back, minlength=1).max()) * (1 + len(names) // _ROWS_OF_A_TRIAL))
        stays = reprieve(cycle, without.take(fits), slots[kept], back)
        pods = np.array([each for pods in leaving.values() for each in pods], np.object_)[kept][~stays].tolist()
        going: dict[int, list[MovablePod]] = {}
        for each, place in zip(pods, row[kept][~stays].tolist(), strict=True):
            going.setdefault(place, []).append(each)
        cleared = [(names[place], going.get(place, [])) for place in np.flatnonzero(fits).tolist()]
        return sorted(cleared, key=lambda way: (len(way[1]), sum(each.gpu_hours for each in way[1])))

    def is_decided_by_nodes(self, pod: Pod) -> bool:
        """Returns whether each node by itself decides whether it takes the pod. Then more pods on a node never help."""
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
    def moved(self, each: MovablePod, node: str) -> Iterator[bool]:
        """Moves the pod to another node for the block; yields False, with nothing moved, if the node refuses it."""
        before = self.node_of[each.uid]
        with self._without(each.pod):
            if not self._settle(each.pod, node):
                yield False
                return
            self.trial.disrupt([self.trial.cluster.cache.pod(each.uid) or each.running])
            self._relocate(each, before, node)
            try:
                yield True
            finally:
                self._relocate(each, node, before)

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

    def _relocate(self, each: MovablePod, before: str, node: str) -> None:
        del self._on[before][each.uid]
        self._on.setdefault(node, {})[each.uid] = each
        self.node_of[each.uid] = node
        self._moved[each.kind, before] -= 1
        self._moved[each.kind, node] += 1

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
    return np.array([snapshot.pods.slots[each.uid] for each in pods], np.intp)
