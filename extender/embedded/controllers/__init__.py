"""The controllers of the embedded cluster: kubelets, workloads, disruption budgets, volumes, garbage collection.

Each controller is level-triggered: it can begin on any state, and what it writes follows from what exists. Scheduling
is not among them.
"""

from collections.abc import Callable
from datetime import datetime
from random import Random

from extender.embedded.controllers.cluster_view import ClusterView
from extender.embedded.controllers.controller_loop import Controller, ControllerContext, Loops
from extender.embedded.controllers.deployment_controller import Deployments
from extender.embedded.controllers.disruption_controller import Disruption, StaleDisruptions
from extender.embedded.controllers.garbage_collector import Garbage
from extender.embedded.controllers.kubelet import Kubelet
from extender.embedded.controllers.namespace_controller import Namespaces
from extender.embedded.controllers.node_lifecycle_controller import NodeTaints, TaintEviction
from extender.embedded.controllers.pod_garbage_collector import PodGarbage
from extender.embedded.controllers.pod_group_protection import PodGroupProtection
from extender.embedded.controllers.replica_set_controller import ReplicaSets, ReplicationControllers
from extender.embedded.controllers.resource_claim_controller import ClaimsForPods, ResourceClaims
from extender.embedded.controllers.stateful_set_controller import StatefulSets
from extender.embedded.controllers.volume_controller import Volumes
from extender.embedded.registry.object_registry import ObjectRegistry

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
    ClaimsForPods,
    ResourceClaims,
    PodGroupProtection,
)


async def run(registry: ObjectRegistry, *, now: Callable[[], datetime], rng: Random, kubelet: bool = True) -> None:
    """Runs all controllers until it is cancelled.

    Arguments:
        now: the wall clock, for timestamps.
        rng: spreads retries.
        kubelet: whether bound pods run and nodes become ready by themselves.
    """
    context = ControllerContext(ClusterView(), now, rng)
    kinds: tuple[type[Controller], ...] = (*_CONTROLLERS, Kubelet) if kubelet else _CONTROLLERS
    await Loops(registry, context.cluster, [kind(context) for kind in kinds]).run()
