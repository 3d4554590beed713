"""What is kept of a preemption: the chosen node with its victims, and the best of the others."""

from typing import Final

import numpy as np

from extender.framework import NodeVictims
from extender.objects.pod import Pod
from extender.objects.resources import assigned_requests
from extender.preemption import Candidates
from extender.preemption.costs import best, broken_budgets, costs_of
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
    order = best(candidates, MAX_ROOMS + 1)
    if chosen is not None:
        order = np.r_[chosen, order[order != chosen]]
    kept = candidates.take(order[:MAX_ROOMS])
    costs, broken = costs_of(kept), broken_budgets(kept, preemptor)
    rooms: list[Room] = []
    for at, (first, last) in enumerate(zip(kept.first[:-1].tolist(), kept.first[1:].tolist(), strict=True)):
        limit = MAX_VICTIMS if at == 0 or chosen is None else MAX_VICTIMS_OF_OTHERS
        slots: list[int] = kept.slots[first : min(last, first + limit)].tolist()
        held = kept.snapshot.pods.requests[slots][:, [CPU, MEMORY]].tolist()
        going = zip(map(kept.snapshot.pod_at, slots), held, strict=True)
        rooms.append(
            Room(
                node=kept.snapshot.nodes.objects[int(kept.node[at])].name,
                victims=tuple(_leaving(pod, broken.get(pod.uid, ()), cpu, memory) for pod, (cpu, memory) in going),
                num_victims=last - first,
                num_pdb_violations=int(kept.num_pdb_violations[at]),
                costs=tuple(costs[at]),
            )
        )
    return tuple(rooms)


def keep_victims(victims: NodeVictims) -> Room:
    """A node that a plugin chose by a way of its own."""
    leaving = []
    for pod in victims.pods[:MAX_VICTIMS]:
        held, _, _ = assigned_requests(pod)
        leaving.append(_leaving(pod, (), held.milli_cpu, held.memory))
    return Room(victims.node, tuple(leaving), len(victims.pods), victims.num_pdb_violations)


def place_of(candidates: Candidates, node: str) -> int | None:
    """The place of a node among the candidates; None if it is none."""
    found = np.flatnonzero(candidates.node == candidates.snapshot.nodes.index.get(node, -1))
    return int(found[0]) if len(found) else None


def _leaving(pod: Pod, violates: tuple[str, ...], cpu: int, memory: int) -> Leaving:
    owner = next((f"{owner.kind}/{owner.name}" for owner in pod.metadata.owner_references if owner.controller), "")
    return Leaving(pod_id(pod), pod.status.start_time, owner, violates, cpu, memory)
