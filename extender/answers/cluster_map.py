"""The cluster as a map: every node with its capacity and the requests on it; in a small cluster with its pods, too."""

import re
from collections.abc import Container
from typing import Final, final

import msgspec
import numpy as np

from extender.answers.types import Answer
from extender.cache.cluster import Cluster
from extender.objects.node import BETA_ZONE_LABEL, ZONE_LABEL, Node
from extender.records.values import PodName
from extender.snapshot import Snapshot
from extender.snapshot.axes import CPU, MEMORY

MAX_NODES_WITH_PODS: Final = 120
MAX_PODS: Final = 4000
"""The pods of a larger cluster are only in the answers about single nodes."""


@final
class PodOnNode(Answer, frozen=True, kw_only=True):
    """A pod and its requests."""

    pod: PodName
    cpu: int = 0
    """Millicores."""
    memory: int = 0
    """Bytes."""
    terminating: bool = False


@final
class NodeOnMap(Answer, frozen=True, kw_only=True):
    """A node. Cpu in millicores, memory in bytes."""

    name: str
    zone: str = ""
    cordoned: bool = False
    taints: tuple[str, ...] = ()
    """key=value:effect."""
    cpu: int = 0
    """The allocatable amount, as `memory` is."""
    memory: int = 0
    requested_cpu: int = 0
    requested_memory: int = 0
    max_pods: int = 0
    num_pods: int = 0
    pods: tuple[PodOnNode, ...] = ()
    """Highest priority first, the largest of equal ones first; see `ClusterMap.has_pods`."""


@final
class ClusterMap(Answer, frozen=True, kw_only=True):
    """GET /v1/cluster: nodes by zone and name."""

    generation: int
    """A number that changes whenever the nodes or pods change."""
    nodes: tuple[NodeOnMap, ...]
    num_pods: int = 0
    priorities: tuple[int, ...] = ()
    """The distinct priorities of pods that have a node, lowest first."""
    has_pods: bool = True
    """Whether the nodes list their pods; GET /v1/cluster/{node} lists those of one node in any case."""


def cluster_map(cluster: Cluster) -> ClusterMap:
    """Returns the cluster as it is now."""
    snapshot = cluster.cache.update_snapshot()
    nodes, pods = snapshot.nodes, snapshot.pods
    num_pods = int(nodes.pod_count.sum())
    has_pods = len(nodes) <= MAX_NODES_WITH_PODS and num_pods <= MAX_PODS
    shown = [_node(snapshot, place, with_pods=has_pods) for place in range(len(nodes))]
    shown.sort(key=lambda node: (node.zone, natural(node.name)))
    return ClusterMap(
        generation=snapshot.generation,
        nodes=tuple(shown),
        num_pods=num_pods,
        priorities=tuple(np.unique(pods.priority[pods.node >= 0]).tolist()),
        has_pods=has_pods,
    )


def node_on_map(cluster: Cluster, name: str) -> NodeOnMap | None:
    """Returns one node with its pods; None if there is no such node."""
    snapshot = cluster.cache.update_snapshot()
    place = snapshot.nodes.index.get(name)
    return None if place is None else _node(snapshot, place, with_pods=True)


def hiding(shown: NodeOnMap, may_see: Container[str]) -> NodeOnMap:
    """Returns the node without the names of pods in other namespaces than these."""
    pods = tuple(each if each.pod.hidden or each.pod.namespace in may_see else _hidden(each) for each in shown.pods)
    return msgspec.structs.replace(shown, pods=pods)


def natural(name: str) -> tuple[tuple[int, str], ...]:
    """Returns a sort key that puts node-9 before node-10."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d{1,18})", name))


def _hidden(pod: PodOnNode) -> PodOnNode:
    return msgspec.structs.replace(pod, pod=PodName(namespace="", name="", priority=pod.pod.priority, hidden=True))


def _node(snapshot: Snapshot, place: int, *, with_pods: bool) -> NodeOnMap:
    columns = snapshot.nodes
    node = columns.objects[place]
    return NodeOnMap(
        name=node.name,
        zone=_zone(node),
        cordoned=bool(columns.unschedulable[place]),
        taints=tuple(f"{taint.key}={taint.value}:{taint.effect}" for taint in node.spec.taints),
        cpu=int(columns.allocatable[place, CPU]),
        memory=int(columns.allocatable[place, MEMORY]),
        requested_cpu=int(columns.requested[place, CPU]),
        requested_memory=int(columns.requested[place, MEMORY]),
        max_pods=int(columns.allowed_pods[place]),
        num_pods=int(columns.pod_count[place]),
        pods=_pods(snapshot, place) if with_pods else (),
    )


def _pods(snapshot: Snapshot, place: int) -> tuple[PodOnNode, ...]:
    found = []
    for slot in snapshot.pods.on_node[place]:
        pod = snapshot.pod_at(slot)
        found.append(
            PodOnNode(
                pod=PodName(namespace=pod.namespace, name=pod.name, uid=pod.uid, priority=pod.priority),
                cpu=int(snapshot.pods.requests[slot, CPU]),
                memory=int(snapshot.pods.requests[slot, MEMORY]),
                terminating=pod.is_terminating,
            )
        )
    return tuple(sorted(found, key=lambda each: (-each.pod.priority, -each.cpu, -each.memory, each.pod.namespace, each.pod.name)))


def _zone(node: Node) -> str:
    return node.labels.get(ZONE_LABEL) or node.labels.get(BETA_ZONE_LABEL, "")
