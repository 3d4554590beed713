"""The controllers of the embedded cluster: kubelets, workloads, disruption budgets, volumes, garbage collection.

Each is level-triggered: it can begin on any state, and what it writes follows from what exists. None schedules.
"""

from collections.abc import Callable
from datetime import datetime
from random import Random

from extender.cluster.controllers.cluster_view import ClusterView
from extender.cluster.controllers.controller_loop import Controller, ControllerContext, ControllerLoops
from extender.cluster.controllers.daemon_set_controller import DaemonSets
from extender.cluster.controllers.deployment_controller import Deployments
from extender.cluster.controllers.disruption_controller import Disruption, StaleDisruptions
from extender.cluster.controllers.garbage_collector import Garbage, Namespaces, PodGarbage, PodGroupProtection
from extender.cluster.controllers.job_controller import Jobs
from extender.cluster.controllers.kubelet import Kubelet
from extender.cluster.controllers.node_lifecycle_controller import NodeTaints, TaintEviction
from extender.cluster.controllers.replica_set_controller import ReplicaSets, ReplicationControllers
from extender.cluster.controllers.resource_claim_controller import ClaimsForPods, ResourceClaims
from extender.cluster.controllers.stateful_set_controller import StatefulSets
from extender.cluster.controllers.volume_controller import Volumes
from extender.cluster.registry.object_registry import ObjectRegistry

_CONTROLLERS: tuple[type[Controller], ...] = (
    Namespaces,
    NodeTaints,
    TaintEviction,
    ReplicationControllers,
    ReplicaSets,
    Deployments,
    StatefulSets,
    DaemonSets,
    Jobs,
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
    """Runs all controllers until it is cancelled; `kubelet`: bound pods run and nodes become ready by themselves."""
    context = ControllerContext(ClusterView(), now, rng)
    kinds: tuple[type[Controller], ...] = (*_CONTROLLERS, Kubelet) if kubelet else _CONTROLLERS
    await ControllerLoops(registry, context.cluster, [kind(context) for kind in kinds]).run()
