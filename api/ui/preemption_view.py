"""A preemption as a table of nodes: the chosen one, its runners-up, and why each of them lost; and what it changes on
its node.
"""

from dataclasses import dataclass
from typing import final

import msgspec

from api.ui.changes import NodeChange
from extender.answers.cluster_map import NodeOnMap, PodOnNode
from extender.answers.records.values import CandidateNode, PodName
from extender.answers.types import Preemption, PreemptionAnswer


@final
@dataclass(frozen=True, slots=True)
class PreemptionView:
    """The candidates of a preemption.

    Attributes:
        candidates: those that the answer lists, the chosen one first.
        chosen: the name of the chosen node; empty while none is chosen.
        num_unlisted: how many further candidates there are.
    """

    candidates: tuple[CandidateNode, ...]
    chosen: str
    num_unlisted: int


def preemption_view(answer: PreemptionAnswer | Preemption) -> PreemptionView:
    """Returns the candidates of the answer; none if no node helps."""
    chosen = (
        [CandidateNode(node=answer.node, victims=answer.victims, num_pdb_violations=answer.num_pdb_violations)]
        if answer.node
        else []
    )
    listed = (*chosen, *(candidate for candidate in answer.candidates if candidate.node != answer.node))
    return PreemptionView(listed, answer.node, max(0, answer.num_candidates - len(listed)))


def change_by_record(now: NodeOnMap, record: Preemption) -> NodeChange | None:
    """Returns what a preemption has changed on its node, worked out from the node as it is now.

    Before, the victims were there and the preemptor was not. Returns None if the preemptor is not on the node, or may
    not be shown.
    """
    by = next((pod for pod in now.pods if pod.pod.uid and pod.pod.uid == record.by.uid), None)
    if by is None:
        return None
    uids = {victim.pod.uid for victim in record.victims}
    gone = tuple(
        PodOnNode(pod=msgspec.structs.replace(victim.pod, uid=f"victim {place}"), cpu=victim.cpu, memory=victim.memory)
        for place, victim in enumerate(record.victims)
    )
    others = [pod for pod in now.pods if pod is not by and not (pod.pod.uid and pod.pod.uid in uids)]
    before = sorted([*others, *gone], key=lambda pod: (-pod.pod.priority, -pod.cpu, -pod.memory))
    return NodeChange(msgspec.structs.replace(now, pods=tuple(before)), frozenset(each.pod.uid for each in gone), (by,))


def change_by_answer(node: NodeOnMap, answer: PreemptionAnswer, pod: PodName, cpu: int, memory: int) -> NodeChange:
    """Returns what the preemption would change on the chosen node: the victims leave, and the pod arrives."""
    arrives = PodOnNode(pod=pod, cpu=cpu, memory=memory)
    return NodeChange(node, frozenset(victim.pod.uid for victim in answer.victims if victim.pod.uid), (arrives,))
