"""Pods counted by their labels as they come and go: what a budget selects is the sum over a few sets of labels."""

from typing import Final, final

from extender.values.objects.label_selectors import Selector
from extender.values.objects.label_sets import LabelSets, places_of
from reprieve.cluster.controllers.observed_objects import Labels, ObservedOwner, ObservedPod

_SPARE: Final = 64
"""As many sets of labels that no pod has any more are not worth being dropped."""


def is_healthy(pod: ObservedPod) -> bool:
    """Returns True if the pod counts for its budget."""
    return pod.is_ready and not pod.deleted


@final
class PodTally:
    """The number of pods, and of healthy ones, and whose they are."""

    __slots__ = ("healthy", "owners", "total")

    def __init__(self) -> None:
        self.total = 0
        self.healthy = 0
        self.owners: Final[dict[str, tuple[ObservedOwner, int, str]]] = {}
        """By uid: a controller of the pods, the number of its pods here, and the name of one of them."""

    def count(self, pod: ObservedPod, one: int) -> None:
        """Counts a pod that came (+1) or left (-1)."""
        self.total += one
        self.healthy += one * is_healthy(pod)
        owner = pod.controller
        if owner is not None:
            self._count_owned(owner, one, pod.name)

    def add(self, other: "PodTally") -> None:
        self.total += other.total
        self.healthy += other.healthy
        for owner, number, name in other.owners.values():
            self._count_owned(owner, number, name)

    def _count_owned(self, owner: ObservedOwner, number: int, name: str) -> None:
        known = self.owners.get(owner.uid)
        number += known[1] if known is not None else 0
        if number:
            self.owners[owner.uid] = owner, number, name
        else:
            del self.owners[owner.uid]


@final
class PodTallies:
    """The pods of one namespace."""

    def __init__(self) -> None:
        self._sets = LabelSets()
        self._places: dict[Labels, int] = {}
        self._tallies: list[PodTally] = []
        self._num_empty = 0
        self._changed = 0

    @property
    def is_empty(self) -> bool:
        """True if there are no pods, and no changes that were not taken."""
        return self._num_empty == len(self._tallies) and not self._changed

    def count(self, pod: ObservedPod, one: int) -> None:
        """Counts a pod that came (+1) or left (-1)."""
        place = self._places.get(pod.labels)
        if place is None:
            place = self._places[pod.labels] = self._sets.add(pod.labels.of.items())
            self._tallies.append(PodTally())
            self._num_empty += 1
        tally = self._tallies[place]
        self._num_empty -= not tally.total
        tally.count(pod, one)
        self._num_empty += not tally.total
        self._changed |= 1 << place

    def changed(self, labels: Labels) -> None:
        """Takes note that something has changed for the pods with these labels."""
        place = self._places.get(labels)
        if place is not None:
            self._changed |= 1 << place

    def take_changed(self) -> int:
        """Returns the sets of labels for which something has changed since the last call, as bits."""
        changed, self._changed = self._changed, 0
        return changed

    def selected(self, selector: Selector) -> int:
        """Returns the sets of labels that the selector selects, as bits."""
        return self._sets.selected(selector)

    def of(self, selector: Selector) -> PodTally:
        tally = PodTally()
        for place in places_of(self.selected(selector)):
            tally.add(self._tallies[place])
        return tally

    def drop_empty(self) -> None:
        """Drops the sets of labels that no pod has any more, if they are many. What has changed was taken."""
        if self._changed or self._num_empty <= len(self._tallies) // 2 + _SPARE:
            return
        kept = [(labels, tally) for labels, place in self._places.items() if (tally := self._tallies[place]).total]
        self._sets, self._num_empty = LabelSets(), 0
        self._places = {labels: self._sets.add(labels.of.items()) for labels, _ in kept}
        self._tallies = [tally for _, tally in kept]
