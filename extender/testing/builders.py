"""Builders that make a pod, a node or a snapshot in one line.

    make_pod("web").req(cpu="1", memory="1Gi").label(app="web").priority(10).obj()
    make_node("n1").capacity(cpu="4", memory="8Gi").taint("dedicated", "batch").obj()
    make_snapshot(make_node("n1").capacity(cpu="4"), pods=[make_pod("web").node("n1")])

A builder never changes: every step returns a new one, so that builders can be shared. For fields without a step, build
the struct with `extender.values.objects.decoding.replaced`.
"""

from collections.abc import Iterable, Mapping
from typing import Any, final

from extender.engine.cache import Cache
from extender.engine.snapshot import Snapshot
from extender.values.objects.decoding import convert, replaced
from extender.values.objects.grouping import PodGroup
from extender.values.objects.meta import (
    HasMetadata,
    LabelSelector,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectMeta,
)
from extender.values.objects.node import ContainerImage, Node, ResourceList, Taint
from extender.values.objects.pod import (
    Affinity,
    Container,
    ContainerPort,
    NodeAffinity,
    PersistentVolumeClaimVolumeSource,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSchedulingGate,
    PodSchedulingGroup,
    PreferredSchedulingTerm,
    ResourceRequirements,
    Toleration,
    TopologySpreadConstraint,
    Volume,
    WeightedPodAffinityTerm,
)

Amount = str | int | float
"""A quantity as in a manifest."""


@final
class PodBuilder:
    """A pod under construction; `obj()` returns it."""

    __slots__ = ("_pod",)

    def __init__(self, pod: Pod) -> None:
        self._pod = pod

    def obj(self) -> Pod:
        """Returns the pod. Its UID is `namespace/name` unless it was set."""
        pod = self._pod
        return pod if pod.uid else replaced(pod, metadata=replaced(pod.metadata, uid=pod.key))

    def _meta(self, **changes: Any) -> "PodBuilder":
        return PodBuilder(replaced(self._pod, metadata=replaced(self._pod.metadata, **changes)))

    def _spec(self, **changes: Any) -> "PodBuilder":
        return PodBuilder(replaced(self._pod, spec=replaced(self._pod.spec, **changes)))

    def _status(self, **changes: Any) -> "PodBuilder":
        return PodBuilder(replaced(self._pod, status=replaced(self._pod.status, **changes)))

    # Identity.

    def name(self, name: str) -> "PodBuilder":
        return self._meta(name=name)

    def namespace(self, namespace: str) -> "PodBuilder":
        return self._meta(namespace=namespace)

    def uid(self, uid: str) -> "PodBuilder":
        return self._meta(uid=uid)

    def label(self, labels: Mapping[str, str] | None = None, /, **more: str) -> "PodBuilder":
        """Adds labels. Those whose key is no Python name are passed in the mapping."""
        return self._meta(labels={**self._pod.labels, **(labels or {}), **more})

    def annotation(self, annotations: Mapping[str, str] | None = None, /, **more: str) -> "PodBuilder":
        return self._meta(annotations={**self._pod.annotations, **(annotations or {}), **more})

    def terminating(self, since: str = "2026-01-01T00:00:00Z") -> "PodBuilder":
        return self._meta(deletion_timestamp=since)

    def priority(self, priority: int) -> "PodBuilder":
        return self._spec(priority=priority)

    def preemption_policy(self, policy: str) -> "PodBuilder":
        return self._spec(preemption_policy=policy)

    def scheduler_name(self, name: str) -> "PodBuilder":
        return self._spec(scheduler_name=name)

    def group(self, name: str) -> "PodBuilder":
        return self._spec(scheduling_group=PodSchedulingGroup(pod_group_name=name))

    # Placement.

    def node(self, name: str) -> "PodBuilder":
        """Sets spec.nodeName: the pod runs there, or may run nowhere else."""
        return self._spec(node_name=name)

    def nominated_node(self, name: str) -> "PodBuilder":
        return self._status(nominated_node_name=name)

    def start_time(self, time: str) -> "PodBuilder":
        return self._status(start_time=time)

    def phase(self, phase: str) -> "PodBuilder":
        return self._status(phase=phase)

    # Containers and volumes.

    def container(self, container: Container) -> "PodBuilder":
        return self._spec(containers=[*self._pod.spec.containers, container])

    def init_container(self, container: Container) -> "PodBuilder":
        return self._spec(init_containers=[*self._pod.spec.init_containers, container])

    def req(self, requests: Mapping[str, Amount] | None = None, /, **more: Amount) -> "PodBuilder":
        """Adds a container with these requests. Names that are no Python names are passed in the mapping."""
        return self.container(self._requesting("c", {**(requests or {}), **more}))

    def init_req(self, requests: Mapping[str, Amount] | None = None, /, **more: Amount) -> "PodBuilder":
        return self.init_container(self._requesting("i", {**(requests or {}), **more}))

    def sidecar_req(self, requests: Mapping[str, Amount] | None = None, /, **more: Amount) -> "PodBuilder":
        sidecar = self._requesting("s", {**(requests or {}), **more})
        return self.init_container(replaced(sidecar, restart_policy="Always"))

    def overhead(self, amounts: Mapping[str, Amount] | None = None, /, **more: Amount) -> "PodBuilder":
        return self._spec(overhead={**(amounts or {}), **more})

    def image(self, image: str) -> "PodBuilder":
        return self.container(Container(name=self._next("c"), image=image))

    def host_port(self, port: int, protocol: str = "", ip: str = "") -> "PodBuilder":
        """Adds a host port to the last container, or to a new one if there is none."""
        builder = self if self._pod.spec.containers else self.container(Container(name=self._next("c")))
        *leading, last = builder._pod.spec.containers
        container_port = ContainerPort(container_port=port, host_port=port, host_ip=ip, protocol=protocol)
        return builder._spec(containers=[*leading, replaced(last, ports=[*last.ports, container_port])])

    def claim(self, name: str) -> "PodBuilder":
        """Adds a volume from the PersistentVolumeClaim."""
        source = PersistentVolumeClaimVolumeSource(claim_name=name)
        return self.volume(Volume(name=f"v{len(self._pod.spec.volumes)}", persistent_volume_claim=source))

    def volume(self, volume: Volume) -> "PodBuilder":
        return self._spec(volumes=[*self._pod.spec.volumes, volume])

    def host_network(self, *, host_users: bool | None = None) -> "PodBuilder":
        """Sets spec.hostNetwork, and spec.hostUsers as given."""
        return self._spec(host_network=True, host_users=host_users)

    def _requesting(self, prefix: str, requests: ResourceList) -> Container:
        return Container(name=self._next(prefix), resources=ResourceRequirements(requests=requests))

    def _next(self, prefix: str) -> str:
        return f"{prefix}{len(self._pod.spec.containers) + len(self._pod.spec.init_containers)}"

    # Constraints.

    def gate(self, name: str) -> "PodBuilder":
        return self._spec(scheduling_gates=[*self._pod.spec.scheduling_gates, PodSchedulingGate(name=name)])

    def toleration(self, key: str = "", value: str = "", effect: str = "", operator: str = "") -> "PodBuilder":
        """Adds a toleration; no operator means Equal."""
        toleration = Toleration(key=key, operator=operator, value=value, effect=effect)
        return self._spec(tolerations=[*self._pod.spec.tolerations, toleration])

    def node_selector(self, labels: Mapping[str, str] | None = None, /, **more: str) -> "PodBuilder":
        """Adds entries to spec.nodeSelector. Without any, the selector is empty but present."""
        return self._spec(node_selector={**(self._pod.spec.node_selector or {}), **(labels or {}), **more})

    def node_affinity(self, *terms: NodeSelectorTerm) -> "PodBuilder":
        """Sets the required node affinity, of which any term must match (see `label_term` and `name_term`)."""
        return self._affinity(
            node_affinity=replaced(self._node_affinity, required=NodeSelector(node_selector_terms=list(terms)))
        )

    def preferred_node_affinity(self, weight: int, term: NodeSelectorTerm) -> "PodBuilder":
        preferred = [*(self._node_affinity.preferred or []), PreferredSchedulingTerm(weight=weight, preference=term)]
        return self._affinity(node_affinity=replaced(self._node_affinity, preferred=preferred))

    def pod_affinity(self, topology_key: str, **labels: str) -> "PodBuilder":
        """Adds a required affinity term for pods with these labels."""
        return self._required("pod_affinity", topology_key, labels)

    def pod_anti_affinity(self, topology_key: str, **labels: str) -> "PodBuilder":
        return self._required("pod_anti_affinity", topology_key, labels)

    def preferred_pod_affinity(self, weight: int, topology_key: str, **labels: str) -> "PodBuilder":
        return self._preferred("pod_affinity", weight, topology_key, labels)

    def preferred_pod_anti_affinity(self, weight: int, topology_key: str, **labels: str) -> "PodBuilder":
        return self._preferred("pod_anti_affinity", weight, topology_key, labels)

    def spread(
        self, max_skew: int, topology_key: str, when_unsatisfiable: str = "DoNotSchedule", /, **labels: str
    ) -> "PodBuilder":
        """Adds a topology spread constraint over pods with these labels."""
        constraint = TopologySpreadConstraint(
            max_skew=max_skew,
            topology_key=topology_key,
            when_unsatisfiable=when_unsatisfiable,
            label_selector=LabelSelector(match_labels=labels),
        )
        return self._spec(topology_spread_constraints=[*self._pod.spec.topology_spread_constraints, constraint])

    @property
    def _node_affinity(self) -> NodeAffinity:
        affinity = self._pod.spec.affinity
        return (affinity.node_affinity if affinity else None) or NodeAffinity()

    def _required(self, field: str, topology_key: str, labels: dict[str, str]) -> "PodBuilder":
        stanza, term = self._stanza(field), _pod_term(topology_key, labels)
        return self._affinity(**{field: replaced(stanza, required=[*stanza.required, term])})

    def _preferred(self, field: str, weight: int, topology_key: str, labels: dict[str, str]) -> "PodBuilder":
        stanza, term = self._stanza(field), _pod_term(topology_key, labels)
        weighted = WeightedPodAffinityTerm(weight=weight, pod_affinity_term=term)
        return self._affinity(**{field: replaced(stanza, preferred=[*stanza.preferred, weighted])})

    def _stanza(self, field: str) -> PodAffinity:
        affinity = self._pod.spec.affinity or Affinity()
        return (affinity.pod_affinity if field == "pod_affinity" else affinity.pod_anti_affinity) or PodAffinity()

    def _affinity(self, **changes: Any) -> "PodBuilder":
        return self._spec(affinity=replaced(self._pod.spec.affinity or Affinity(), **changes))


@final
class NodeBuilder:
    """A node under construction; `obj()` returns it."""

    __slots__ = ("_node",)

    def __init__(self, node: Node) -> None:
        self._node = node

    def obj(self) -> Node:
        return self._node

    def _spec(self, **changes: Any) -> "NodeBuilder":
        return NodeBuilder(replaced(self._node, spec=replaced(self._node.spec, **changes)))

    def _status(self, **changes: Any) -> "NodeBuilder":
        return NodeBuilder(replaced(self._node, status=replaced(self._node.status, **changes)))

    def label(self, labels: Mapping[str, str] | None = None, /, **more: str) -> "NodeBuilder":
        """Adds labels. Those whose key is no Python name are passed in the mapping."""
        merged = {**self._node.labels, **(labels or {}), **more}
        return NodeBuilder(replaced(self._node, metadata=replaced(self._node.metadata, labels=merged)))

    def annotation(self, annotations: Mapping[str, str] | None = None, /, **more: str) -> "NodeBuilder":
        merged = {**self._node.annotations, **(annotations or {}), **more}
        return NodeBuilder(replaced(self._node, metadata=replaced(self._node.metadata, annotations=merged)))

    def capacity(self, amounts: Mapping[str, Amount] | None = None, /, **more: Amount) -> "NodeBuilder":
        """Sets status.capacity and status.allocatable, which include 110 pods unless `pods` is given."""
        allocatable = {"pods": 110, **self._node.status.allocatable, **(amounts or {}), **more}
        return self._status(allocatable=allocatable, capacity=allocatable)

    def taint(self, key: str, value: str = "", effect: str = "NoSchedule") -> "NodeBuilder":
        return self._spec(taints=[*self._node.spec.taints, Taint(key=key, value=value, effect=effect)])

    def unschedulable(self) -> "NodeBuilder":
        return self._spec(unschedulable=True)

    def image(self, *names: str, size: int) -> "NodeBuilder":
        """Adds an image under all its names; the size is in bytes."""
        return self._status(images=[*self._node.status.images, ContainerImage(names=list(names), size_bytes=size)])

    def declared_features(self, *features: str) -> "NodeBuilder":
        return self._status(declared_features=list(features))


def make_pod(name: str = "p") -> PodBuilder:
    """Returns a pending pod in namespace `default` without requests."""
    return PodBuilder(Pod(metadata=ObjectMeta(name=name, namespace="default")))


def make_pod_group(
    name: str = "g", min_count: int | None = None, *, topology_key: str = "", priority: int = 0
) -> PodGroup:
    """Returns a PodGroup in the namespace `default`: a gang if it has a least number of pods."""
    gang = None if min_count is None else {"minCount": min_count}
    return convert(
        PodGroup,
        {
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
            "spec": {
                "schedulingPolicy": {"basic": {}} if gang is None else {"gang": gang},
                "schedulingConstraints": {"topology": [{"key": topology_key}]} if topology_key else None,
                "priority": priority,
            },
        },
    )


def make_node(name: str = "n") -> NodeBuilder:
    """Returns a node without labels, taints or resources. It takes pods once `capacity` was called."""
    return NodeBuilder(Node(metadata=ObjectMeta(name=name)))


def label_term(key: str, operator: str, *values: str) -> NodeSelectorTerm:
    """Returns a node selector term with one requirement on a label."""
    return NodeSelectorTerm(
        match_expressions=[NodeSelectorRequirement(key=key, operator=operator, values=list(values))]
    )


def name_term(operator: str, *names: str) -> NodeSelectorTerm:
    """Returns a node selector term with one requirement on the node's name."""
    return NodeSelectorTerm(
        match_fields=[NodeSelectorRequirement(key="metadata.name", operator=operator, values=list(names))]
    )


def make_snapshot(
    *nodes: Node | NodeBuilder, pods: Iterable[Pod | PodBuilder] = (), objects: Iterable[HasMetadata] = ()
) -> Snapshot:
    """Returns a snapshot of a cluster with these nodes, pods (each on its spec.nodeName) and other objects."""
    return make_cache(*nodes, pods=pods, objects=objects).update_snapshot()


def make_cache(
    *nodes: Node | NodeBuilder, pods: Iterable[Pod | PodBuilder] = (), objects: Iterable[HasMetadata] = ()
) -> Cache:
    """Returns the same as a Cache, for tests in which the cluster changes."""
    cache = Cache()
    for node in nodes:
        cache.add_node(node.obj() if isinstance(node, NodeBuilder) else node)
    for pod in pods:
        cache.add_pod(pod.obj() if isinstance(pod, PodBuilder) else pod)
    for other in objects:
        cache.objects.changed(None, other)
    return cache


def _pod_term(topology_key: str, labels: dict[str, str]) -> PodAffinityTerm:
    return PodAffinityTerm(label_selector=LabelSelector(match_labels=labels), topology_key=topology_key)
