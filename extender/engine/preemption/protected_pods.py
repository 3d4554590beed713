"""Which pods are protected by which PodDisruptionBudgets, for many budgets at a time.

There may be thousands of budgets over thousands of pods. A selector is matched with all distinct sets of labels at
once, in integers with a bit for each; what is asked of pods is answered in arrays of pods and budgets.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import Final, final

import numpy as np

from extender.engine.framework import PodsByBudget
from extender.engine.snapshot import Attribute, Snapshot
from extender.engine.snapshot.axes import Index, Mask
from extender.engine.snapshot.pod_attributes import LabelClass
from extender.values.objects.grouping import PodDisruptionBudget
from extender.values.objects.label_selectors import Selector
from extender.values.objects.label_sets import LabelSets, as_bits, places_of

FURTHER_ENTRIES: Final = 2**19
"""The largest array of pods and budgets, unless one budget needs more: it takes a few milliseconds, and fits into the
processor's cache.
"""

FIRST_ENTRIES: Final = 2**16
"""The largest array that is yielded first: where each pod violates thousands of budgets, nobody asks for more."""


def protected(snapshot: Snapshot, slots: Index, budgets: Collection[PodDisruptionBudget]) -> Iterator[PodsByBudget]:
    """Yields those of the budgets that select any of (C,) pods, in order, with the places of the pods they select."""
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
        for place, each in enumerate(self._classes):
            in_namespace[each.namespace].append(place)
        self._in_namespace: Final = {namespace: as_bits(places) for namespace, places in in_namespace.items()}

    def __len__(self) -> int:
        return len(self._classes)

    def protected(self, budgets: Iterable[PodDisruptionBudget]) -> Iterator[PodsByBudget]:
        """Yields those of the budgets that select any of the pods, as many at a time as fit into an array."""
        some: list[tuple[PodDisruptionBudget, int]] = []
        of_any, most = 0, FIRST_ENTRIES
        pods_per_class = len(self.of_pod) / len(self._classes)
        for budget, selected in self.selected(budgets):
            with_it = of_any | selected
            if some and (len(some) + 1) * with_it.bit_count() * pods_per_class > most:
                yield self._by_pod(some, of_any)
                some, with_it, most = [], selected, FURTHER_ENTRIES
            some.append((budget, selected))
            of_any = with_it
        if some:
            yield self._by_pod(some, of_any)

    def selected(self, budgets: Iterable[PodDisruptionBudget]) -> Iterator[tuple[PodDisruptionBudget, int]]:
        """Yields the budgets that select any class, with those classes as bits."""
        possible: list[tuple[PodDisruptionBudget, Selector, int]] = []
        for budget in budgets:
            classes = self._in_namespace.get(budget.metadata.namespace or "default")
            if classes is not None:
                possible.append((budget, budget.spec.parsed_selector, classes))
        sets = LabelSets({requirement.key for _, selector, _ in possible for requirement in selector.requirements})
        for each in self._classes:
            sets.add(each.labels)
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
