"""The possible victims, their order, and those whose eviction would violate a PodDisruptionBudget.

Pods are ordered by priority, then by start time: the pod that started earlier is more important, and a pod without a
start time counts as started now. Of pods that tie in both, the one with the smaller UID is more important.

There may be thousands of budgets over thousands of pods. A selector is matched with all distinct sets of labels at
once, in integers with a bit for each; pods are judged in arrays of pods and budgets.

Upstream: pkg/scheduler/util/utils.go, MoreImportantPod; the UID as kubernetes#140999 does;
pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go, filterPodsWithPDBViolation. `by_priority` and
`forbidden` are those of earlier releases: pkg/scheduler/util/utils.go, HigherPriorityPod (v1.12);
pkg/scheduler/core/generic_scheduler.go, filterPodsWithPDBViolation (v1.12, v1.17).
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, final

import numpy as np

from extender.engine.framework import PodsByBudget, PreemptionRules
from extender.engine.snapshot import Attribute, Snapshot
from extender.engine.snapshot.axes import Index, Int64s, Mask
from extender.engine.snapshot.pod_attributes import LabelClass
from extender.values import limits
from extender.values.golang.int64 import MAX_INT64
from extender.values.objects.grouping import PodDisruptionBudget
from extender.values.objects.label_selectors import Selector
from extender.values.objects.label_sets import LabelSets, as_bits, places_of
from extender.values.objects.pod import Pod

FURTHER_ENTRIES: Final = 2**19
"""The preferred size of the array of pods and budgets: it takes milliseconds, and fits into the cache."""

FIRST_ENTRIES: Final = 2**16
"""The preferred size of the first array: if each pod violates thousands of budgets, nobody asks for more."""


def protected(snapshot: Snapshot, slots: Index, budgets: Collection[PodDisruptionBudget]) -> Iterator[PodsByBudget]:
    """Yields the budgets that select any of (C,) pods, in order, with the places of these pods."""
    if budgets and len(slots):
        yield from LabelClasses(snapshot, slots).protected(budgets)


@final
class LabelClasses:
    """The distinct sets of labels and namespaces of some pods; `of_pod` (C,) is the place of each pod's."""

    def __init__(self, snapshot: Snapshot, slots: Index) -> None:
        distinct, of_pod = np.unique(snapshot.pods.codes[Attribute.LABELS, slots], return_inverse=True)
        symbols = snapshot.tallies.symbols[Attribute.LABELS]
        self.of_pod: Final[Index] = of_pod
        self._classes: Final = [symbol for code in distinct.tolist() if isinstance(symbol := symbols[code], LabelClass)]
        in_namespace: defaultdict[str, list[int]] = defaultdict(list)
        for place, label_class in enumerate(self._classes):
            in_namespace[label_class.namespace].append(place)
        self._in_namespace: Final = {namespace: as_bits(places) for namespace, places in in_namespace.items()}

    def __len__(self) -> int:
        return len(self._classes)

    def protected(self, budgets: Iterable[PodDisruptionBudget]) -> Iterator[PodsByBudget]:
        """Yields the budgets that select any of the pods, in chunks that fit into an array."""
        chunk: list[tuple[PodDisruptionBudget, int]] = []
        of_any, max_entries = 0, FIRST_ENTRIES
        pods_per_class = len(self.of_pod) / len(self._classes)
        for budget, selected in self.selected(budgets):
            with_it = of_any | selected
            if chunk and (len(chunk) + 1) * with_it.bit_count() * pods_per_class > max_entries:
                yield self._by_pod(chunk, of_any)
                chunk, with_it, max_entries = [], selected, FURTHER_ENTRIES
            chunk.append((budget, selected))
            of_any = with_it
        if chunk:
            yield self._by_pod(chunk, of_any)

    def selected(self, budgets: Iterable[PodDisruptionBudget]) -> Iterator[tuple[PodDisruptionBudget, int]]:
        """Yields the budgets that select any class, with those classes as bits."""
        possible: list[tuple[PodDisruptionBudget, Selector, int]] = []
        for budget in budgets:
            classes = self._in_namespace.get(budget.metadata.namespace or "default")
            if classes is not None:
                possible.append((budget, budget.spec.parsed_selector, classes))
        sets = LabelSets({requirement.key for _, selector, _ in possible for requirement in selector.requirements})
        for label_class in self._classes:
            sets.add(label_class.labels)
        for budget, selector, classes in possible:
            selected = sets.selected(selector) & classes
            if selected:
                yield budget, selected

    def _by_pod(self, budgets: list[tuple[PodDisruptionBudget, int]], of_any: int) -> PodsByBudget:
        size = len(self._classes)
        packed = b"".join(selected.to_bytes(size // 8 + 1, "little") for _, selected in budgets)
        by_budget = np.unpackbits(
            np.frombuffer(packed, np.uint8).reshape(len(budgets), -1), axis=1, count=size, bitorder="little"
        )
        place, classes = self.of_pod, places_of(of_any)
        if len(classes) < size:
            by_budget = by_budget[:, classes]
            place_at = np.full(size, -1, np.intp)
            place_at[classes] = np.arange(len(classes))
            place = place_at[place]
        pods = np.flatnonzero(place >= 0)
        by_class: Mask = np.ascontiguousarray(by_budget.T).view(np.bool_)
        return PodsByBudget([budget for budget, _ in budgets], pods, by_class[place[pods]])


def in_order(*keys: Int64s | Index) -> Index:
    """Returns (C,) the order by the first key, then the next ones; full ties keep their order.

    It equals np.lexsort with the keys reversed, and takes one pass where the keys fit into one number.
    """
    first, *later_keys = keys
    if not len(first):
        return np.zeros(0, np.intp)
    bounds = [(int(key.min()), int(key.max())) for key in keys]
    if math.prod(high - low + 1 for low, high in bounds) > MAX_INT64:
        return np.lexsort(keys[::-1])
    key = first.astype(np.int64) - bounds[0][0]
    for later_key, (low, high) in zip(later_keys, bounds[1:], strict=True):
        if low < high:
            key = key * (high - low + 1) + (later_key - low)
    return np.argsort(key, kind="stable")


def by_importance(snapshot: Snapshot, slots: Index, group: Index) -> Index:
    """Returns (C,) the order of (C,) pod slots by (C,) group, such as their rows, and then by importance."""
    pods = snapshot.pods
    return in_order(group, -pods.priority[slots], pods.start_time[slots], pods.uid_ranks(slots))


def by_priority(snapshot: Snapshot, slots: Index, group: Index) -> Index:
    """Returns (C,) the order as `by_importance` does, with priority alone within a group."""
    pods = snapshot.pods
    return in_order(group, -pods.priority[slots], pods.uid_ranks(slots))


def lower_priority_pods(snapshot: Snapshot, pod: Pod, nodes: Index, rules: PreemptionRules) -> tuple[Index, Index]:
    """Returns (C,) slots and (C,) rows of the possible victims on (B,) nodes, row by row, most important first."""
    pods = snapshot.pods
    if not has_lower_priority_pods(snapshot, pod):
        return np.zeros(0, np.intp), np.zeros(0, np.intp)
    lower = np.flatnonzero(pods.priority < pod.priority)
    row = rows_by_place(snapshot, nodes)[pods.node[lower]]
    slots, row = lower[row >= 0], row[row >= 0]
    may_go = may_be_victims(snapshot, pod, slots, rules)
    slots, row = slots[may_go], row[may_go]
    order = rules.by_importance(snapshot, slots, row)
    slots, row = slots[order], row[order]
    if rules.budgets_are_hard and len(slots):
        allowed = ~_breaking(snapshot, slots, row, rules.is_going())
        slots, row = slots[allowed], row[allowed]
    return slots, row


def rows_by_place(snapshot: Snapshot, nodes: Index) -> Index:
    """Returns (N + 1,) the row of each node, given the (R,) nodes of the rows; -1 for other nodes and for none."""
    row_at = np.full(len(snapshot.nodes) + 1, -1, np.intp)  # the last is for pods without a node, whose index is -1
    row_at[nodes] = np.arange(len(nodes))
    return row_at


def has_lower_priority_pods(snapshot: Snapshot, pod: Pod) -> bool:
    priority = snapshot.pods.priority
    return bool(len(priority)) and int(priority.min()) < pod.priority


def may_be_victims(snapshot: Snapshot, preemptor: Pod, slots: Index, rules: PreemptionRules) -> Mask:
    """Returns (C,) the pods, all of lower priority, that the rules let go, budgets aside."""
    may_go = np.ones(len(slots), np.bool_)
    if rules.may_go is not None:
        may_go = np.fromiter((rules.may_go(snapshot.pod_at(slot)) for slot in slots.tolist()), np.bool_, len(slots))
    return may_go if rules.protects is None else may_go & ~rules.protects(snapshot, preemptor, slots)


def _breaking(snapshot: Snapshot, slots: Index, row: Index, going: Collection[str]) -> Mask:
    """Returns (C,) the pods of each row that must stay so that no budget is violated, whichever others go.

    The least important pods may go first. Pods that are terminating or about to be evicted (`going`, by UID) count,
    even where the API server has already subtracted them: it takes a moment to do so, and nobody can see whether it
    has.
    """
    breaks = np.zeros(len(slots), np.bool_)
    least_important_first = np.lexsort((-np.arange(len(slots)), row))
    about_to_go = [slot for uid in going if (slot := snapshot.pods.slots.get(uid)) is not None]
    leaving = np.unique(np.r_[np.flatnonzero(terminating(snapshot)), np.array(about_to_go, np.intp)])
    # Pods that go anyway may go, and are counted once, as leaving.
    stays = ~np.isin(slots, leaving)[least_important_first]
    for chunk in protected(snapshot, np.r_[slots[least_important_first], leaving], snapshot.objects.pdbs.values()):
        is_leaving = chunk.pods >= len(slots)
        allowance = _allowed(chunk) - np.count_nonzero(chunk.marked[is_leaving], axis=0)
        is_counted = ~is_leaving
        is_counted[is_counted] = stays[chunk.pods[is_counted]]
        pods = least_important_first[chunk.pods[is_counted]]
        breaks[pods] |= _beyond(chunk.marked[is_counted], row[pods], allowance).any(axis=1)
    return breaks


def terminating(snapshot: Snapshot) -> Mask:
    """Returns (P,) the pods on nodes that are terminating."""
    codes = snapshot.pods.codes[Attribute.LABELS]
    symbols = snapshot.tallies.symbols[Attribute.LABELS]
    by_code = np.fromiter(
        (isinstance(symbol, LabelClass) and symbol.is_terminating for symbol in symbols), np.bool_, len(symbols)
    )
    mask: Mask = np.r_[by_code, False][codes] & (snapshot.pods.node >= 0)  # the last entry is for code -1
    return mask


def violating(snapshot: Snapshot, slots: Index, row: Index, rules: PreemptionRules) -> Mask:
    """Returns (C,) whether evicting the pod violates any budget. Arguments as `violated`."""
    undecided = np.ones(len(slots), np.bool_)
    for chunk in rules.violated(snapshot, slots, row, undecided):
        undecided[chunk.pods[chunk.marked.any(axis=1)]] = False
    return ~undecided


def broken_budgets(snapshot: Snapshot, nodes: Index, pod: Pod, rules: PreemptionRules) -> dict[str, tuple[str, ...]]:
    """Returns UID -> the names of budgets that evicting the pod violates, at most a few, the strictest ones.

    As in the dry run, budgets are counted over all possible victims of a node, including reprieved ones.
    """
    pdbs = snapshot.objects.pdbs
    if not pdbs:
        return {}
    slots, row = lower_priority_pods(snapshot, pod, nodes, rules)
    rank = {key: place for place, key in enumerate(pdbs)}
    ranked_names: list[list[tuple[int, str]]] = [[] for _ in slots]
    room, undecided = np.full(len(slots), limits.BUDGETS_NAMED), np.ones(len(slots), np.bool_)
    for chunk in rules.violated(snapshot, slots, row, undecided):
        concerned = chunk.marked.any(axis=1) & undecided[chunk.pods]
        pods, marked = chunk.pods[concerned], chunk.marked[concerned]
        to_name = marked & (np.cumsum(marked, axis=1, dtype=np.int32) <= room[pods, np.newaxis])
        room[pods] -= np.count_nonzero(to_name, axis=1)
        for of_pod, of_budget in np.argwhere(to_name).tolist():
            meta = chunk.budgets[of_budget].metadata
            ranked_names[pods[of_pod]].append((rank[meta.namespace or "default", meta.name], meta.name))
        undecided[pods] = room[pods] > 0
    return {
        snapshot.pod_at(slot).uid: tuple(name for _, name in sorted(names))
        for slot, names in zip(slots.tolist(), ranked_names, strict=True)
        if names
    }


def violated(snapshot: Snapshot, slots: Index, row: Index, undecided: Mask) -> Iterator[PodsByBudget]:
    """Yields the budgets that evicting pods may violate, some at a time, with the pods whose eviction violates each.
    Those that allow the fewest evictions come first.

    Budgets are counted per row (nodes do not share them), and pods in the given order. A matching pod takes one from
    every budget that selects it, even when it is reprieved later, and violates a budget that is used up.

    Arguments:
        slots, row: (C,) possible victims and their rows, ascending; in each row the most important first.
        undecided: (C,) the pods that the caller asks about. It clears those that are decided.
    """
    lengths = np.bincount(row)
    # The number of pods in the pod's row up to and including the pod: a budget that allows as many evictions is not
    # violated by it.
    number = np.arange(1, len(row) + 1) - (np.cumsum(lengths) - lengths)[row]
    longest = int(lengths.max(initial=0))
    budgets = [budget for budget in snapshot.objects.pdbs.values() if budget.status.disruptions_allowed < longest]
    by_name: defaultdict[str, list[int]] = defaultdict(list)
    if any(budget.status.disrupted_pods for budget in budgets):
        for place, slot in enumerate(slots.tolist()):
            by_name[snapshot.pod_at(slot).name].append(place)
    for chunk in protected(snapshot, slots, sorted(budgets, key=lambda budget: budget.status.disruptions_allowed)):
        # The API server has already subtracted the eviction of disrupted pods from the budget.
        marked = _without_disrupted(chunk, by_name) if by_name else chunk.marked
        allowed = _allowed(chunk)
        yield PodsByBudget(chunk.budgets, chunk.pods, _beyond(marked, row[chunk.pods], allowed))
        if not (undecided & (number > allowed[-1])).any():
            return


def _without_disrupted(chunk: PodsByBudget, by_name: Mapping[str, Sequence[int]]) -> Mask:
    """Returns the pods that the budgets select, without those whose eviction was granted; `by_name` are places."""
    marked = chunk.marked.copy()
    for place, budget in enumerate(chunk.budgets):
        if names := budget.status.disrupted_pods:
            marked[np.isin(chunk.pods, [pod for name in names for pod in by_name.get(name, ())]), place] = False
    return marked


@final
class Disruptions:
    """Evictions of some pods, counted against budgets one after the other, wherever the pods are.

    State: the evictions that each budget still allows; negative once too many were counted.
    """

    def __init__(self, snapshot: Snapshot, slots: Index) -> None:
        """Takes (C,) slots of the pods that may be evicted."""
        self._snapshot: Final = snapshot
        self._slots: Final = slots
        classes = LabelClasses(snapshot, slots)
        selected = [*classes.selected(snapshot.objects.pdbs.values())]
        self.budgets: Final[Sequence[PodDisruptionBudget]] = [budget for budget, _ in selected]
        """The budgets that select any of the pods."""
        self.left: Final = [budget.status.disruptions_allowed for budget in self.budgets]
        self._classes: Final = classes
        self._protecting: Final[list[list[int]]] = [[] for _ in range(len(classes))]
        for place, (_, of_classes) in enumerate(selected):
            for of_class in places_of(of_classes):
                self._protecting[of_class].append(place)

    def evict(self, pod_place: int) -> Iterator[PodDisruptionBudget]:
        """Takes the eviction of the pod at this place from its budgets, and yields those that are used up.

        A budget is counted when it is asked for, so that a caller may stop at the first.
        """
        for place in self._protecting[self._classes.of_pod[pod_place]]:
            budget = self.budgets[place]
            # The API server has already subtracted the eviction of disrupted pods from the budget.
            if (names := budget.status.disrupted_pods) and self._snapshot.pod_at(self._slots[pod_place]).name in names:
                continue
            self.left[place] -= 1
            if self.left[place] < 0:
                yield budget


def forbidden(snapshot: Snapshot, slots: Index, row: Index, undecided: Mask) -> Iterator[PodsByBudget]:
    """Yields the budgets that allow no eviction at all, with the pods that each selects.

    Nothing is counted: a budget that allows one eviction allows those of all its pods. Arguments as `violated`.
    """
    budgets = [budget for budget in snapshot.objects.pdbs.values() if budget.status.disruptions_allowed <= 0]
    for chunk in protected(snapshot, slots, budgets):
        yield chunk
        if not undecided.any():
            return


def _allowed(chunk: PodsByBudget) -> Int64s:
    return np.array([budget.status.disruptions_allowed for budget in chunk.budgets], np.int64)


def _beyond(marked: Mask, row: Index, allowed: Int64s) -> Mask:
    """Returns (S, b) the marked pods that come after as many others of their row as the budget allows.

    In turn k, the k-th pod of every row that has one is counted, for all budgets at once. Pods are sorted by row (S,);
    `allowed` is (b,).
    """
    beyond = np.zeros(marked.shape, np.bool_)
    first = np.flatnonzero(np.r_[True, row[1:] != row[:-1]][: len(row)])
    lengths = np.diff(np.r_[first, len(row)])
    longest_first = np.argsort(-lengths, kind="stable")
    first, lengths = first[longest_first], lengths[longest_first]
    counts, quota = np.zeros((len(first), len(allowed)), np.int32), np.maximum(allowed, 0).astype(np.int32)
    for turn in range(int(lengths.max(initial=0))):
        # The rows that have so many pods come first.
        kth_pods = first[: np.count_nonzero(lengths > turn)] + turn
        of_turn, so_far = marked[kth_pods], counts[: len(kth_pods)]
        so_far += of_turn
        beyond[kth_pods] = of_turn & (so_far > quota)
    return beyond
