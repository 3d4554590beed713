"""Nodes before and after a change: which pods leave and which arrive, as two drawings side by side."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

import msgspec
from markupsafe import Markup

from api.ui.node_drawing import Mark, node_drawing
from api.ui.priorities import Priorities
from api.ui.resources import Resource
from extender.answers.cluster_map import ClusterMap, NodeOnMap, PodOnNode

WIDTH, HEIGHT = 190, 210


@final
@dataclass(frozen=True, slots=True)
class NodeChange:
    """The pods that leave and arrive on one node.

    Attributes:
        leaves: UIDs.
    """

    node: NodeOnMap
    leaves: frozenset[str] = frozenset()
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


def before_and_after(change: NodeChange, by: Resource, priorities: Priorities) -> BeforeAndAfter:
    """Returns the node now, with the pods that leave crossed out, and then, with the pods that arrive marked."""
    node = change.node
    now: dict[str, Mark] = dict.fromkeys(change.leaves, "leaves")
    stays = [pod for pod in node.pods if pod.pod.uid not in change.leaves]
    then = _with_pods(
        node, sorted([*stays, *change.arrives], key=lambda pod: (-pod.pod.priority, -pod.cpu, -pod.memory))
    )
    come: dict[str, Mark] = {pod.pod.uid: "arrives" for pod in change.arrives}
    return BeforeAndAfter(
        node.name,
        node.zone,
        node_drawing(node, by, priorities, width=WIDTH, height=HEIGHT, marks=now, label=f"{node.name} before"),
        node_drawing(then, by, priorities, width=WIDTH, height=HEIGHT, marks=come, label=f"{node.name} after"),
        len(change.leaves),
        len(change.arrives),
    )


def changed_priorities(changes: Iterable[NodeChange], shown: ClusterMap) -> Priorities:
    """Returns one scale for all pods that are shown."""
    return Priorities.of(
        [*shown.priorities, *(pod.pod.priority for change in changes for pod in change.arrives)], shown.priority_classes
    )


def _with_pods(node: NodeOnMap, pods: list[PodOnNode]) -> NodeOnMap:
    cpu, memory = sum(pod.cpu for pod in pods), sum(pod.memory for pod in pods)
    return msgspec.structs.replace(
        node, pods=tuple(pods), num_pods=len(pods), requested_cpu=cpu, requested_memory=memory
    )
