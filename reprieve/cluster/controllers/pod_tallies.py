"""Counts pods by their labels as they come and go, so that the pods of a budget are the sum of a few tallies."""

from typing import Final, final

from extender.values.objects.label_selectors import Selector
from extender.values.objects.label_sets import LabelSets, places_of
from reprieve.cluster.controllers.observed_objects import Labels, ObservedOwner, ObservedPod

_SPARE: Final = 64
"""The number of sets of labels without pods that are never dropped."""


def is_healthy(pod: ObservedPod) -> bool:
    """Returns True if the pod counts for its budget."""
    return pod.is_ready and not pod.deleted


@final
class PodTally:
    """The numbers of pods and of healthy pods, and their controllers."""

    __slots__ = ("healthy", "owners", "total")

    def __init__(self) -> None:
        self.total = 0
        self.healthy = 0
        self.owners: Final[dict[str, tuple[ObservedOwner, int, str]]] = {}
        """By uid: a controller of the pods, the number of its pods, and the name of one of them."""

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
        tally = self.owners.get(owner.uid)
        number += tally[1] if tally is not None else 0
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
        """Returns whether there are neither pods nor changes to take."""
        return self._num_empty == len(self._tallies) and not self._changed

    def count(self, pod: ObservedPod, one: int) -> None:
        """Counts a pod that came (+1) or left (-1)."""
        place = self._places.get(pod.labels)
        if place is None:
            place = self._places[pod.labels] = self._sets.add(pod.labels.by_name.items())
            self._tallies.append(PodTally())
            self._num_empty += 1
        tally = self._tallies[place]
        self._num_empty -= not tally.total
        tally.count(pod, one)
        self._num_empty += not tally.total
        self._changed |= 1 << place

    def changed(self, labels: Labels) -> None:
        """Marks the pods with these labels as changed."""
        place = self._places.get(labels)
        if place is not None:
            self._changed |= 1 << place

    def take_changed(self) -> int:
        """Returns the sets of labels that have changed since the last call, as bits."""
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
        """Drops the sets of labels without pods if they are many, and all changes are taken."""
        if self._changed or self._num_empty <= len(self._tallies) // 2 + _SPARE:
            return
        populated = [(labels, tally) for labels, place in self._places.items() if (tally := self._tallies[place]).total]
        self._sets, self._num_empty = LabelSets(), 0
        self._places = {labels: self._sets.add(labels.by_name.items()) for labels, _ in populated}
        self._tallies = [tally for _, tally in populated]
