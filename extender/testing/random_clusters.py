"""Small random clusters, rich in what Filters look at: labels, taints, ports, resources, affinities, spread.

Names, values and sizes come from tiny pools, so that they match and collide often.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar, final

from extender.engine.snapshot import Snapshot
from extender.testing.builders import NodeBuilder, PodBuilder, label_term, make_node, make_pod, make_snapshot, name_term
from extender.values.objects.meta import HasMetadata
from extender.values.objects.node import HOSTNAME_LABEL, ZONE_LABEL, Node
from extender.values.objects.pod import Pod

_ZONES: Final = ("z1", "z2")
T = TypeVar("T")

_APPS: Final = ("web", "db")
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_ADDRESSES: Final = ("", "0.0.0.0", "127.0.0.1", "10.0.0.1")  # noqa: S104  (values to compare, nothing is bound)
_PROTOCOLS: Final = ("", "TCP", "UDP")


@final
@dataclass(frozen=True, slots=True)
class RandomCluster:
    """A cluster, a pod to place, and pods that may be added."""

    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]
    pod: Pod
    arrivals: tuple[Pod, ...]
    objects: tuple[HasMetadata, ...] = ()
    """Claims, volumes and the like."""

    def snapshot(self) -> Snapshot:
        return make_snapshot(*self.nodes, pods=self.pods, objects=self.objects)


def random_cluster(chance: random.Random) -> RandomCluster:
    """Returns a cluster of up to five nodes with up to three pods each, a pending pod, and up to three pods that may be
    added.
    """
    nodes = tuple(_node(f"n{number}", chance) for number in range(chance.randint(1, 5)))
    pods = tuple(
        _pod(f"p{number}-{node.name}", chance).node(node.name).obj()
        for node in nodes
        for number in range(chance.randint(0, 3))
    )
    arrivals = tuple(_pod(f"a{number}", chance).obj() for number in range(chance.randint(0, 3)))
    return RandomCluster(nodes, pods, _pod("pending", chance).obj(), arrivals)


def _node(name: str, chance: random.Random) -> Node:
    node = make_node(name).capacity(cpu=chance.choice((1, 2, 4)), memory="4Gi", pods=chance.choice((2, 3, 110)))
    steps: Sequence[Callable[[NodeBuilder], NodeBuilder]] = (
        lambda node: node.label({HOSTNAME_LABEL: name}),
        lambda node: node.label({ZONE_LABEL: chance.choice(_ZONES)}),
        lambda node: node.label(disk=chance.choice(("ssd", "hdd")), rank=chance.choice(("1", "7", "x"))),
        lambda node: node.taint("dedicated", chance.choice(("a", "b")), chance.choice(_EFFECTS)),
        lambda node: node.capacity({"example.com/gpu": chance.randint(0, 2)}),
    )
    rare: Sequence[Callable[[NodeBuilder], NodeBuilder]] = (
        lambda node: node.unschedulable(),
        lambda node: node.declared_features("UserNamespacesHostNetworkSupport"),
    )
    return _some(_some(node, steps, 0.6, chance), rare, 0.2, chance).obj()


def _pod(name: str, chance: random.Random) -> PodBuilder:
    pod = make_pod(name).req(cpu=chance.choice((0, "500m", 1)), memory="512Mi")
    steps: Sequence[Callable[[PodBuilder], PodBuilder]] = (
        lambda pod: pod.label(app=chance.choice(_APPS)),
        lambda pod: pod.priority(chance.randint(-1, 2)),
        lambda pod: pod.host_port(chance.choice((80, 81)), chance.choice(_PROTOCOLS), chance.choice(_ADDRESSES)),
        lambda pod: pod.toleration("dedicated", chance.choice(("a", "b")), chance.choice(("", *_EFFECTS))),
    )
    rare: Sequence[Callable[[PodBuilder], PodBuilder]] = (
        lambda pod: pod.req({"example.com/gpu": 1}),
        lambda pod: pod.toleration(operator="Exists"),
        lambda pod: pod.node_selector(disk=chance.choice(("ssd", "hdd"))),
        lambda pod: pod.node_affinity(label_term("rank", chance.choice(("Gt", "Lt")), "3"), name_term("In", "n1")),
        lambda pod: pod.pod_affinity(ZONE_LABEL, app=chance.choice(_APPS)),
        lambda pod: pod.pod_anti_affinity(chance.choice((HOSTNAME_LABEL, ZONE_LABEL)), app=chance.choice(_APPS)),
        lambda pod: pod.spread(
            chance.randint(1, 2), chance.choice((HOSTNAME_LABEL, ZONE_LABEL)), app=chance.choice(_APPS)
        ),
        lambda pod: pod.host_network(host_users=chance.choice((None, False, True))),
        lambda pod: pod.terminating(),
    )
    return _some(_some(pod, steps, 0.5, chance), rare, 0.15, chance)


def _some(start: T, steps: Sequence[Callable[[T], T]], share: float, chance: random.Random) -> T:
    for step in steps:
        if chance.random() < share:
            start = step(start)
    return start
