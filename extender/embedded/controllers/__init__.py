"""What moves in a cluster by itself: kubelets, workloads, disruption budgets, garbage collection; only in the embedded cluster.

`run` starts them all on one view of a registry. Each is level-triggered: it can begin on any state, and what it writes follows from what
exists. Nothing here decides where a pod runs.
"""

from collections.abc import Callable
from datetime import datetime
from random import Random

from extender.embedded.controllers.cluster import Cluster
from extender.embedded.controllers.controller import Controller, Loops
from extender.embedded.controllers.deployments import Deployments
from extender.embedded.controllers.disruption import Disruption, StaleDisruptions
from extender.embedded.controllers.garbage import Garbage
from extender.embedded.controllers.kubelet import Kubelet
from extender.embedded.controllers.namespaces import Namespaces
from extender.embedded.controllers.node_taints import NodeTaints
from extender.embedded.controllers.pod_claims import PodClaims
from extender.embedded.controllers.pod_garbage import PodGarbage
from extender.embedded.controllers.replica_sets import ReplicaSets, ReplicationControllers
from extender.embedded.controllers.resourceclaims import ResourceClaims
from extender.embedded.controllers.stateful_sets import StatefulSets
from extender.embedded.controllers.taints import TaintEviction
from extender.embedded.controllers.volumes import Volumes
from extender.embedded.registry import Registry

_CONTROLLERS: tuple[type[Controller], ...] = (
    Namespaces,
    NodeTaints,
    TaintEviction,
    ReplicationControllers,
    ReplicaSets,
    Deployments,
    StatefulSets,
    Disruption,
    StaleDisruptions,
    PodGarbage,
    Garbage,
    Volumes,
    PodClaims,
    ResourceClaims,
)


async def run(registry: Registry, *, now: Callable[[], datetime], rng: Random, kubelet: bool = True) -> None:
    """Keep the cluster moving until cancelled.

    Arguments:
        now: the wall clock, for timestamps.
        rng: spreads retries.
        kubelet: whether pods that are bound run, and nodes become ready, by themselves.
    """
    cluster = Cluster()
    kinds: tuple[type[Controller], ...] = (*_CONTROLLERS, Kubelet) if kubelet else _CONTROLLERS
    await Loops(registry, cluster, [kind(cluster, now, rng) for kind in kinds]).run()
