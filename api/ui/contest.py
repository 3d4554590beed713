"""A preemption as a contest of nodes: the chosen one, its runners-up, and why each of them lost."""

from dataclasses import dataclass
from typing import final

import msgspec

from api.ui.changes import NodeChange
from extender.answers.cluster_map import NodeOnMap, PodOnNode
from extender.answers.types import CandidateNode, PodName, PreemptionAnswer, PreemptionRecord, Victim


@final
@dataclass(frozen=True, slots=True)
class Contestant:
    """One node."""

    rank: int
    """0 for the chosen one."""
    node: str
    victims: tuple[Victim, ...]
    num_pdb_violations: int
    why_not: str


@final
@dataclass(frozen=True, slots=True)
class Contest:
    """The nodes, the chosen one first."""

    contestants: tuple[Contestant, ...]
    num_candidates: int

    @property
    def num_unnamed(self) -> int:
        """Candidates that the answer does not name."""
        return max(0, self.num_candidates - len(self.contestants))


def contest(answer: PreemptionAnswer | PreemptionRecord) -> Contest:
    """The contest that an answer tells of; no contestants if no node helps."""
    chosen = [CandidateNode(node=answer.node, victims=answer.victims, num_pdb_violations=answer.num_pdb_violations)] if answer.node else []
    others = [candidate for candidate in answer.candidates if candidate.node != answer.node]
    shown = tuple(
        Contestant(rank, each.node, each.victims, each.num_pdb_violations, each.why_not) for rank, each in enumerate([*chosen, *others])
    )
    return Contest(shown, max(answer.num_candidates, len(shown)))


def change_told(now: NodeOnMap, record: PreemptionRecord) -> NodeChange | None:
    """What has happened on the node, told from what is there now: the same with the victims and without the preemptor, and then without
    them and with it. None if the preemptor is not there, or not to be seen.
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


def change_on(node: NodeOnMap, answer: PreemptionAnswer, pod: PodName, cpu: int, memory: int) -> NodeChange:
    """What happens on the chosen node: the victims go, the pod comes."""
    comes = PodOnNode(pod=pod, cpu=cpu, memory=memory)
    return NodeChange(node, frozenset(victim.pod.uid for victim in answer.victims if victim.pod.uid), (comes,))
