"""The controllers of the embedded cluster: kubelets, workloads, disruption budgets, volumes, garbage collection.

Each is level-triggered: it can begin on any state, and what it writes follows from what exists. None schedules.
"""

from collections.abc import Callable
from datetime import datetime
from random import Random

from reprieve.cluster.controllers.cluster_view import ClusterView
from reprieve.cluster.controllers.controller_loop import Controller, ControllerContext, ControllerLoops
from reprieve.cluster.controllers.daemon_set_controller import DaemonSets
from reprieve.cluster.controllers.deployment_controller import Deployments
from reprieve.cluster.controllers.disruption_controller import Disruption, StaleDisruptions
from reprieve.cluster.controllers.garbage_collector import Garbage, Namespaces, PodGarbage, PodGroupProtection
from reprieve.cluster.controllers.job_controller import Jobs
from reprieve.cluster.controllers.kubelet import Kubelet
from reprieve.cluster.controllers.node_lifecycle_controller import NodeTaints, TaintEviction
from reprieve.cluster.controllers.replica_set_controller import ReplicaSets, ReplicationControllers
from reprieve.cluster.controllers.resource_claim_controller import ClaimsForPods, ResourceClaims
from reprieve.cluster.controllers.stateful_set_controller import StatefulSets
from reprieve.cluster.controllers.volume_controller import Volumes
from reprieve.cluster.registry.object_registry import ObjectRegistry

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
