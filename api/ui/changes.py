"""Nodes before and after a change: which pods leave and which arrive, as two drawings side by side; and a preemption:
its candidates, the chosen one, its runners-up and why each of them lost, and what it changes on its node.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

import msgspec
from markupsafe import Markup

from api.ui.node_drawing import Mark, node_drawing
from api.ui.resources import Priorities, Resource
from extender.answers.overviews import NodeOnMap, PodOnNode
from extender.answers.parts import CandidateNode, PodName
from extender.answers.stories import Preemption
from extender.answers.types import PreemptionAnswer

WIDTH, HEIGHT = 190, 210


@final
@dataclass(frozen=True, slots=True)
class NodeChange:
    """The pods that leave and arrive on one node."""

    node: NodeOnMap
    leaves: frozenset[str] = frozenset()
    """The UIDs of the pods that would leave the node."""
    arrives: tuple[PodOnNode, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class BeforeAndAfter:
    """The two drawings of one node."""

    name: str
    zone: str
    before: Markup
    after: Markup
    num_leaves: int
    num_arrives: int


def before_and_after(change: NodeChange, resource: Resource, priorities: Priorities) -> BeforeAndAfter:
    """Returns the node now, with the pods that leave crossed out, and then, with the pods that arrive marked."""
    node = change.node
    now: dict[str, Mark] = dict.fromkeys(change.leaves, "leaves")
    pods = _stacked([*(pod for pod in node.pods if pod.pod.uid not in change.leaves), *change.arrives])
    cpu, memory = sum(pod.cpu for pod in pods), sum(pod.memory for pod in pods)
    then = msgspec.structs.replace(node, pods=pods, num_pods=len(pods), requested_cpu=cpu, requested_memory=memory)
    come: dict[str, Mark] = {pod.pod.uid: "arrives" for pod in change.arrives}
    return BeforeAndAfter(
        node.name,
        node.zone,
        node_drawing(node, resource, priorities, width=WIDTH, height=HEIGHT, marks=now, label=f"{node.name} before"),
        node_drawing(then, resource, priorities, width=WIDTH, height=HEIGHT, marks=come, label=f"{node.name} after"),
        len(change.leaves),
        len(change.arrives),
    )


def _stacked(pods: Iterable[PodOnNode]) -> tuple[PodOnNode, ...]:
    return tuple(sorted(pods, key=lambda pod: (-pod.pod.priority, -pod.cpu, -pod.memory)))


@final
@dataclass(frozen=True, slots=True)
class PreemptionView:
    """The candidates that the answer about a preemption lists, the chosen one first, and the number of further ones."""

    candidates: tuple[CandidateNode, ...]
    chosen: str
    """The name of the chosen node; empty while none is chosen."""
    num_unlisted: int


def preemption_view(answer: PreemptionAnswer | Preemption) -> PreemptionView:
    chosen = (
        [CandidateNode(node=answer.node, victims=answer.victims, num_pdb_violations=answer.num_pdb_violations)]
        if answer.node
        else []
    )
    listed = (*chosen, *(candidate for candidate in answer.candidates if candidate.node != answer.node))
    return PreemptionView(listed, answer.node, max(0, answer.num_candidates - len(listed)))


def change_by_record(now: NodeOnMap, record: Preemption) -> NodeChange | None:
    """Returns what a preemption has changed on its node, where the victims were and the preemptor was not.

    None if the preemptor is not on the node now, or may not be shown.
    """
    preemptor = next((pod for pod in now.pods if pod.pod.uid and pod.pod.uid == record.by.uid), None)
    if preemptor is None:
        return None
    uids = {victim.pod.uid for victim in record.victims}
    victims = tuple(
        PodOnNode(pod=msgspec.structs.replace(victim.pod, uid=f"victim {place}"), cpu=victim.cpu, memory=victim.memory)
        for place, victim in enumerate(record.victims)
    )
    other_pods = [pod for pod in now.pods if pod is not preemptor and not (pod.pod.uid and pod.pod.uid in uids)]
    before = msgspec.structs.replace(now, pods=_stacked([*other_pods, *victims]))
    return NodeChange(before, frozenset(victim.pod.uid for victim in victims), (preemptor,))


def change_by_answer(node: NodeOnMap, answer: PreemptionAnswer, pod: PodName, cpu: int, memory: int) -> NodeChange:
    """Returns what the preemption would change on the chosen node: the victims leave, and the pod arrives."""
    arrives = PodOnNode(pod=pod, cpu=cpu, memory=memory)
    return NodeChange(node, frozenset(victim.pod.uid for victim in answer.victims if victim.pod.uid), (arrives,))
