"""The order of possible victims, and which of them would violate a PodDisruptionBudget.

Pods are ordered by priority, then by start time: the pod that started earlier is more important, and a pod without a start time counts as
started now. Full ties keep the order of the node's pods.

Upstream: pkg/scheduler/util/utils.go, MoreImportantPod; pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go,
filterPodsWithPDBViolation (v1.36.2). `by_priority` and `forbidden` are what these did before: pkg/scheduler/util/utils.go,
HigherPriorityPod (v1.12); pkg/scheduler/core/generic_scheduler.go, filterPodsWithPDBViolation (v1.12, v1.17).
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Final, final

import msgspec
import numpy as np

from extender.framework import PreemptionRules
from extender.objects.grouping import PodDisruptionBudget
from extender.objects.kept_parses import kept_for_equal
from extender.objects.label_selectors import Requirement, Selector, SelectorError, selector_of
from extender.objects.meta import LabelSelector
from extender.objects.pod import Pod
from extender.snapshot import Attribute, Snapshot
from extender.snapshot.axes import Index, Int64s, Mask
from extender.snapshot.pod_attributes import LabelClass

MAX_KEY: Final = 2**63


def in_order(*keys: Int64s | Index) -> Index:
    """Returns (C,) the order that sorts by the first key, then by the next ones; full ties keep their order.

    It is that of np.lexsort with the keys reversed, in one pass where they fit into one number.
    """
    first, *others = keys
    if not len(first):
        return np.zeros(0, np.intp)
    bounds = [(int(key.min()), int(key.max())) for key in keys]
    if math.prod(high - low + 1 for low, high in bounds) >= MAX_KEY:
        return np.lexsort(keys[::-1])
    key = first.astype(np.int64) - bounds[0][0]
    for further, (low, high) in zip(others, bounds[1:], strict=True):
        if low < high:
            key = key * (high - low + 1) + (further - low)
    return np.argsort(key, kind="stable")


def by_importance(snapshot: Snapshot, slots: Index, group: Index) -> Index:
    """Returns (C,) the order that sorts pods by group, and within a group by importance, the most important first.

    Arguments:
        slots: (C,) pod slots.
        group: (C,) a number per pod, such as its row.
    """
    pods = snapshot.pods
    return in_order(group, -pods.priority[slots], pods.start_time[slots], pods.position[slots])


def by_priority(snapshot: Snapshot, slots: Index, group: Index) -> Index:
    """Returns (C,) the order that sorts pods by group, and within a group by priority alone. Arguments as `by_importance`."""
    pods = snapshot.pods
    return in_order(group, -pods.priority[slots], pods.position[slots])


def lower_priority_pods(snapshot: Snapshot, pod: Pod, nodes: Index, rules: PreemptionRules) -> tuple[Index, Index]:
    """Returns (C,) slots and (C,) rows of the possible victims, row by row, most important first.

    Arguments:
        nodes: (B,) places on axis N.
    """
    pods = snapshot.pods
    if not has_lower_priority_pods(snapshot, pod):
        return np.zeros(0, np.intp), np.zeros(0, np.intp)
    lower = np.flatnonzero(pods.priority < pod.priority)
    row_at = np.full(len(snapshot.nodes) + 1, -1, np.intp)  # the last place is for pods without a node, whose index is -1
    row_at[nodes] = np.arange(len(nodes))
    row = row_at[pods.node[lower]]
    slots, row = lower[row >= 0], row[row >= 0]
    may_go = may_be_victims(snapshot, pod, slots, rules)
    slots, row = slots[may_go], row[may_go]
    order = rules.by_importance(snapshot, slots, row)
    slots, row = slots[order], row[order]
    if rules.budgets_are_hard and len(slots):
        allowed = ~_breaking(snapshot, slots, row, rules.is_going())
        slots, row = slots[allowed], row[allowed]
    return slots, row


def has_lower_priority_pods(snapshot: Snapshot, pod: Pod) -> bool:
    """Returns False if no pod of the cluster has a lower priority than this one."""
    priority = snapshot.pods.priority
    return bool(len(priority)) and int(priority.min()) < pod.priority


def may_be_victims(snapshot: Snapshot, preemptor: Pod, slots: Index, rules: PreemptionRules) -> Mask:
    """Returns (C,) which of these pods of lower priority the rules let go, budgets aside."""
    may_go = np.ones(len(slots), np.bool_)
    if rules.may_go is not None:
        may_go = np.fromiter((rules.may_go(snapshot.pod_at(slot)) for slot in slots.tolist()), np.bool_, len(slots))
    return may_go if rules.protects is None else may_go & ~rules.protects(snapshot, preemptor, slots)


def _breaking(snapshot: Snapshot, slots: Index, row: Index, going: Collection[str]) -> Mask:
    """Returns (C,) which pods of a row have to stay so that no budget is violated, whichever of the others go.

    The least important pods may go first. Pods that are terminating or about to be evicted count, even where the API server has already
    subtracted them from the budget: it takes a moment to do so, and nobody can see whether it has.

    Arguments:
        slots, row: as those of `violated`.
        going: UIDs of pods that are about to be evicted.
    """
    breaks = np.zeros(len(slots), np.bool_)
    least_important_first = np.lexsort((-np.arange(len(slots)), row))
    about_to_go = [slot for uid in going if (slot := snapshot.pods.slots.get(uid)) is not None]
    leaving = np.unique(np.r_[np.flatnonzero(terminating(snapshot)), np.array(about_to_go, np.intp)])
    # Pods that go anyway may go, and are counted once, as leaving.
    goes_anyway = np.isin(slots, leaving)
    together = np.r_[slots[least_important_first], leaving]
    counts = _CountsInRow(row[least_important_first])
    for budget, selected in _protected(snapshot, together):
        of_slots, of_leaving = selected[: len(slots)], selected[len(slots) :]
        counted = of_slots & ~goes_anyway[least_important_first]
        left = budget.status.disruptions_allowed - int(np.count_nonzero(of_leaving))
        breaks[least_important_first] |= counted & (counts.of(counted) > left)
    return breaks


def terminating(snapshot: Snapshot) -> Mask:
    """Returns (P,) the pods on nodes that are terminating."""
    codes = snapshot.pods.codes[Attribute.LABELS]
    symbols = snapshot.tallies.symbols[Attribute.LABELS]
    by_code = np.fromiter((isinstance(symbol, LabelClass) and symbol.is_terminating for symbol in symbols), np.bool_, len(symbols))
    mask: Mask = np.r_[by_code, False][codes] & (snapshot.pods.node >= 0)  # the last entry is for code -1
    return mask


def violating(snapshot: Snapshot, slots: Index, row: Index, rules: PreemptionRules) -> Mask:
    """Returns (C,) whether evicting the pod violates any budget. Arguments as `violated`."""
    result = np.zeros(len(slots), np.bool_)
    for _, breaks in rules.violated(snapshot, slots, row):
        result |= breaks
    return result


def broken_budgets(snapshot: Snapshot, nodes: Index, pod: Pod, rules: PreemptionRules) -> dict[str, tuple[str, ...]]:
    """Returns UID -> the names of the budgets that evicting the pod violates; pods that violate none are left out.

    Budgets are counted over all possible victims of a node, those that are reprieved included, as the dry run does.

    Arguments:
        nodes: places on axis N.
        pod: the preemptor.
    """
    if not snapshot.objects.pdbs:
        return {}
    slots, row = lower_priority_pods(snapshot, pod, nodes, rules)
    broken = [(budget.metadata.name, breaks) for budget, breaks in rules.violated(snapshot, slots, row) if breaks.any()]
    if not broken:
        return {}
    names, by_pod = np.array([name for name, _ in broken], np.object_), np.array([breaks for _, breaks in broken]).T
    return {snapshot.pod_at(int(slots[place])).uid: tuple(names[by_pod[place]]) for place in np.flatnonzero(by_pod.any(axis=1))}


def violated(snapshot: Snapshot, slots: Index, row: Index) -> Iterator[tuple[PodDisruptionBudget, Mask]]:
    """Yields the budgets that protect any of the pods, each with (C,) whether evicting the pod violates it.

    Budgets are counted per row (nodes do not share them), and pods in the given order. A matching pod takes one from every budget that
    selects it, even when it is reprieved later, and violates a budget that is used up.

    Arguments:
        slots: (C,) possible victims, row by row, most important first.
        row: (C,) their rows, ascending.
    """
    counts = _CountsInRow(row)
    for budget, selected in _protected(snapshot, slots):
        counted, disrupted = selected, budget.status.disrupted_pods
        if disrupted:
            # The API server has already subtracted the eviction of these pods from the budget.
            counted = selected & np.fromiter((snapshot.pod_at(slot).name not in disrupted for slot in slots.tolist()), np.bool_, len(slots))
        yield budget, counted & (counts.of(counted) > budget.status.disruptions_allowed)


def forbidden(snapshot: Snapshot, slots: Index, row: Index) -> Iterator[tuple[PodDisruptionBudget, Mask]]:
    """Yields the budgets that protect any of the pods, each with (C,) whether it allows no eviction at all and selects the pod.

    Nothing is counted: a budget that allows one eviction allows those of all its pods. Arguments as `violated`.
    """
    for budget, selected in _protected(snapshot, slots):
        if budget.status.disruptions_allowed <= 0:
            yield budget, selected


def _protected(snapshot: Snapshot, slots: Index) -> Iterator[tuple[PodDisruptionBudget, Mask]]:
    """Yields the budgets that select any of the pods, each with (C,) which of them."""
    if not len(slots) or not snapshot.objects.pdbs:
        return
    # Selectors are matched once for each distinct set of labels; `which` leads from a pod to its set.
    codes = snapshot.pods.codes[Attribute.LABELS, slots]
    distinct, which = np.unique(codes, return_inverse=True)
    symbols = snapshot.tallies.symbols[Attribute.LABELS]
    classes = _Classes([symbol for code in distinct.tolist() if isinstance(symbol := symbols[code], LabelClass)])
    for budget in snapshot.objects.pdbs.values():
        selector = selector_of_budget(budget)
        if selector is None:
            continue
        selected = classes.selected(budget.metadata.namespace or "default", selector)
        if selected.any():
            yield budget, selected[which]


@final
class _Classes:
    """Sets of labels, by label: there may be thousands of budgets, each of which is matched with thousands of them in a few operations."""

    def __init__(self, classes: Sequence[LabelClass]) -> None:
        self._classes: Final = classes
        self._labels: Final = [dict(each.labels) for each in classes]
        self._in_namespace: Final[dict[str, Mask]] = {}
        with_key: defaultdict[str, list[int]] = defaultdict(list)
        with_pair: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for place, labels in enumerate(self._labels):
            for pair in labels.items():
                with_key[pair[0]].append(place)
                with_pair[pair].append(place)
        self._with_key: Final = {key: np.array(places, np.intp) for key, places in with_key.items()}
        self._with_pair: Final = {pair: np.array(places, np.intp) for pair, places in with_pair.items()}

    def selected(self, namespace: str, selector: Selector) -> Mask:
        """Returns which of the classes a budget of the namespace selects. One without labels is never selected."""
        mask = self._in_namespace.get(namespace)
        if mask is None:
            found = (each.namespace == namespace and bool(each.labels) for each in self._classes)
            mask = self._in_namespace[namespace] = np.fromiter(found, np.bool_, len(self._classes))
        if selector.num_values > len(self._classes):
            ours = np.flatnonzero(mask)
            of_ours = np.fromiter((selector.matches(self._labels[place]) for place in ours.tolist()), np.bool_, len(ours))
            mask = mask.copy()
            mask[ours] = of_ours
            return mask
        for requirement in selector.requirements:
            mask = mask & self._fulfilling(requirement)
        return mask if selector.selectable else np.zeros(len(mask), np.bool_)

    def _fulfilling(self, requirement: Requirement) -> Mask:
        # All values that the requirement names have the same answer, as have all others, and as has no value.
        mask = np.full(len(self._classes), requirement.matches_value(None))
        with_key = self._with_key.get(requirement.key)
        if with_key is not None:
            mask[with_key] = requirement.matches_value("".join(requirement.values) + "?")
            for value in requirement.values:
                with_pair = self._with_pair.get((requirement.key, value))
                if with_pair is not None:
                    mask[with_pair] = requirement.matches_value(value)
        return mask


def selector_of_budget(budget: PodDisruptionBudget) -> Selector | None:
    """Returns the budget's selector; None if it selects nothing because it is absent, empty, or cannot be parsed."""
    return None if budget.spec.selector is None else _parsed(msgspec.json.encode(budget.spec.selector))


@kept_for_equal(len)
def _parsed(encoded: bytes) -> Selector | None:
    try:
        selector = selector_of(msgspec.json.decode(encoded, type=LabelSelector))
    except SelectorError:
        # Upstream ignores such a budget, too. The API server would not have accepted it.
        return None
    return None if selector.is_empty else selector


@final
class _CountsInRow:
    """Counts pods by row.

    Arguments:
        row: (C,) the rows of the pods, ascending.
    """

    def __init__(self, row: Index) -> None:
        self._first: Final = np.flatnonzero(np.r_[True, row[1:] != row[:-1]])
        self._lengths: Final = np.diff(np.r_[self._first, len(row)])

    def of(self, counted: Mask) -> Int64s:
        """Returns (C,) the number of counted pods in the pod's row up to and including the pod."""
        # The running count over all rows, less the count before the pod's row begins.
        running: Int64s = np.cumsum(counted)
        before: Int64s = running[self._first] - counted[self._first]
        return running - np.repeat(before, self._lengths)
