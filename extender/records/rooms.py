"""What is kept of a preemption: the chosen node with its victims, and the best of the others."""

from collections.abc import Mapping
from itertools import chain
from typing import Final

import numpy as np

from extender.framework import Candidate, Candidates
from extender.objects.pod import Pod
from extender.objects.resource_amounts import assigned_requests
from extender.preemption.costs import best, broken_budgets
from extender.records.kept import Leaving, PodId, Room
from extender.snapshot.axes import CPU, MEMORY

MAX_ROOMS: Final = 8
"""Candidates kept of a preemption."""
MAX_VICTIMS_OF_OTHERS: Final = 16
"""Victims kept of a candidate that was not chosen."""
MAX_VICTIMS: Final = 1000
"""Victims kept of the chosen one; more than kubelets run pods."""


def pod_id(pod: Pod) -> PodId:
    """The pod, by its names."""
    return PodId(pod.namespace, pod.metadata.name, pod.uid, pod.priority)


def keep_rooms(candidates: Candidates, preemptor: Pod, chosen: int | None = None) -> tuple[Room, ...]:
    """The best candidates, the chosen one first.

    Arguments:
        chosen: its place in `candidates`; None if nobody has chosen yet, and several may be taken: all keep all their victims then.
    """
    if not len(candidates):
        return ()
    found = best(candidates, MAX_ROOMS, chosen)
    kept, snapshot = found.candidates, candidates.snapshot
    broken = broken_budgets(snapshot, kept.node, preemptor)
    first: list[int] = kept.first.tolist()
    slots: list[int] = kept.slots.tolist()
    limits = [MAX_VICTIMS, *[MAX_VICTIMS if chosen is None else MAX_VICTIMS_OF_OTHERS] * (MAX_ROOMS - 1)]
    of_rooms = [slots[first[place] : first[place + 1]][:limit] for place, limit in zip(found.order, limits, strict=False)]
    held = iter(snapshot.pods.requests[list(chain.from_iterable(of_rooms))][:, [CPU, MEMORY]].tolist())
    return tuple(
        Room(
            node=snapshot.nodes.objects[int(kept.node[place])].name,
            victims=tuple(_leaving(snapshot.pod_at(slot), broken, *next(held)) for slot in of_room),
            num_victims=first[place + 1] - first[place],
            num_pdb_violations=costs.num_pdb_violations,
            costs=costs,
        )
        for place, costs, of_room in zip(found.order, found.costs, of_rooms, strict=True)
    )


def keep_chosen(candidates: Candidates, preemptor: Pod, place: int) -> Room:
    """The chosen candidate alone, without what it costs."""
    snapshot, first, last = candidates.snapshot, int(candidates.first[place]), int(candidates.first[place + 1])
    node = int(candidates.node[place])
    broken = broken_budgets(snapshot, np.array([node]), preemptor)
    slots: list[int] = candidates.slots[first : min(last, first + MAX_VICTIMS)].tolist()
    held = snapshot.pods.requests[slots][:, [CPU, MEMORY]].tolist()
    victims = tuple(_leaving(snapshot.pod_at(slot), broken, *of_pod) for slot, of_pod in zip(slots, held, strict=True))
    return Room(snapshot.nodes.objects[node].name, victims, last - first, int(candidates.num_pdb_violations[place]))


def keep_victims(chosen: Candidate) -> Room:
    """A node that a plugin chose by a way of its own."""
    leaving = []
    for pod in chosen.victims[:MAX_VICTIMS]:
        held, _, _ = assigned_requests(pod)
        leaving.append(_leaving(pod, {}, held.milli_cpu, held.memory))
    return Room(chosen.node, tuple(leaving), len(chosen.victims), chosen.num_pdb_violations)


def place_of(candidates: Candidates, node: str) -> int | None:
    """The place of a node among the candidates; None if it is none."""
    found = np.flatnonzero(candidates.node == candidates.snapshot.nodes.index.get(node, -1))
    return int(found[0]) if len(found) else None


def _leaving(pod: Pod, broken: Mapping[str, tuple[str, ...]], cpu: int, memory: int) -> Leaving:
    owner = ""
    for each in pod.metadata.owner_references:
        if each.controller:
            owner = f"{each.kind}/{each.name}"
            break
    return Leaving(pod_id(pod), pod.status.start_time, owner, broken.get(pod.uid, ()), cpu, memory)
