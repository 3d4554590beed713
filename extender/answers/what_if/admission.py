"""What manifests meet: an API server, as far as what-ifs need one, which the assembly decides; and the cluster to which
they are applied: its pods by name and owner, and the classes that pods and claims can name.
"""

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final, Protocol, final

import msgspec

from extender.answers.parts import deployment_named_by
from extender.engine.cache.cluster import Cluster
from extender.values.objects.grouping import SYSTEM_CLASSES
from extender.values.objects.meta import Object
from extender.values.objects.pod import Pod


class Admission(Protocol):
    """An API server for the objects of one question: it sets defaults, and refuses what is wrong in its words."""

    def api_version_of(self, kind: str) -> str | None:
        """Returns the apiVersion under which objects of this kind are kept; None if they are not."""
        ...

    def is_namespaced(self, api_version: str, kind: str) -> bool | None:
        """Returns whether objects of this kind are in namespaces; None if they are not kept."""
        ...

    def why_undecodable(self, obj: Object) -> str:
        """Returns why the object has fields that no API server knows; empty if it has none."""
        ...

    def create(self, objects: Iterable[Object]) -> Sequence[str]:
        """Keeps the objects, which belong to the server afterwards. Returns its refusals: `Pod default/web: why`."""
        ...

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        """Returns an object as it is kept; None if there is none. A kind without namespaces takes an empty one."""
        ...


Admits = Callable[..., Admission]
"""Makes an empty API server for one question; may be called from any thread. Takes the `seed` of what it draws,
UIDs and names: what stays in one cluster needs different ones.
"""


_IN_EVERY_CLUSTER: Final = "default"
"""The namespace that every cluster has: if it is missing, the namespaces of the cluster are not known."""


@final
class Inventory:
    """Pods and objects by name and by owner. State: which of them leave, and which names are taken by new ones."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster: Final = cluster
        self.nodes: Final = list(cluster.nodes.values())
        objects = cluster.cache.objects
        self._namespaces = objects.namespaces.keys()
        self._objects: Mapping[str, Container[tuple[str, str]]] = {
            "PersistentVolumeClaim": objects.pvcs,
            "ReplicaSet": objects.replica_sets,
            "ResourceClaim": objects.resource_claims,
        }
        self._added: set[tuple[str, str]] = set()
        self._leaving_names: set[tuple[str, str]] = set()
        """Names of pods that leave, which new ones may have."""
        self._new_uids: Final[dict[str, tuple[str, str]]] = {}
        """UID -> (namespace, name) of the new pod that keeps it."""

    @cached_property
    def _owned(self) -> defaultdict[tuple[str, str, str], list[Pod]]:
        """Pods by kind, namespace and name of their controller: found when a workload asks, for all at once."""
        cluster = self._cluster
        owned: defaultdict[tuple[str, str, str], list[Pod]] = defaultdict(list)
        deployment_of = {
            (namespace, name): owner.name
            for (namespace, name), replica_set in cluster.cache.objects.replica_sets.items()
            for owner in replica_set.metadata.owner_references
            if owner.kind == "Deployment"
        }
        waiting = (pod for pod in cluster.pending.values() if not cluster.cache.is_assumed(pod))
        for pod in (*cluster.cache.pods, *waiting):
            for owner in pod.metadata.owner_references:
                if owner.controller and not pod.is_terminating:
                    owned[owner.kind, pod.namespace, owner.name].append(pod)
                    deployment = deployment_of.get((pod.namespace, owner.name)) or deployment_named_by(pod, owner.name)
                    if owner.kind == "ReplicaSet" and deployment is not None:
                        owned["Deployment", pod.namespace, deployment].append(pod)
        return owned

    def lacks_namespace(self, name: str) -> bool:
        """Returns whether the namespace is missing; False if the namespaces of the cluster are not known."""
        if _IN_EVERY_CLUSTER not in self._namespaces or name in self._namespaces:
            return False
        cluster = self._cluster
        return not any(pod.namespace == name for pod in (*cluster.cache.pods, *cluster.pending.values()))

    def runs(self, namespace: str, name: str) -> bool:
        """Returns whether a pod of that name has a node."""
        pod = self._pod(namespace, name)
        return pod is not None and bool(pod.spec.node_name)

    def has(self, kind: str, namespace: str, name: str) -> bool:
        """Returns whether there is such an object, of a kind that controllers make for pods."""
        return (namespace, name) in self._objects.get(kind, ())

    def has_pod(self, namespace: str, name: str) -> bool:
        return (namespace, name) in self._added or self._pod(namespace, name) is not None

    def add(self, namespace: str, name: str) -> None:
        """Takes the name for a new pod."""
        self._added.add((namespace, name))

    def owns_uid(self, namespace: str, name: str, uid: str) -> bool:
        """Returns whether the pod of that name has the UID; the first one that asks for a free UID keeps it."""
        pod = self._cluster.cache.pod(uid) or self._cluster.pending.get(uid)
        if pod is not None:
            return (pod.namespace, pod.name) == (namespace, name)
        return self._new_uids.setdefault(uid, (namespace, name)) == (namespace, name)

    def pending(self, pod: Pod) -> Pod | None:
        namesake = self._pod(pod.namespace, pod.name)
        return None if namesake is None or namesake.spec.node_name else namesake

    def _pod(self, namespace: str, name: str) -> Pod | None:
        return None if (namespace, name) in self._leaving_names else self._cluster.named(f"{namespace}/{name}")

    def owned(self, kind: str, namespace: str, name: str) -> Sequence[Pod]:
        """Returns the pods of a controller; see `Surroundings.owned`."""
        return self._owned.get((kind, namespace, name), ())

    def remove(self, kind: str, namespace: str, name: str, pods: Sequence[Pod]) -> None:
        """Takes pods off their controller; new pods may have the names of a StatefulSet's."""
        going = {pod.uid for pod in pods}
        self._owned[kind, namespace, name] = [pod for pod in self.owned(kind, namespace, name) if pod.uid not in going]
        if kind == "StatefulSet":
            self._leaving_names.update((pod.namespace, pod.name) for pod in pods)


def classes(cluster: Cluster, objects: Sequence[Object]) -> Iterator[Object]:
    """Yields the StorageClasses of the cluster, and the PriorityClasses that the objects name, or that are the default,
    and that they do not bring.

    Where the classes of the cluster are not known, those of its pods stand in: of a dump without classes, or where they
    may not be read.
    """
    brought = {obj["metadata"].get("name") for obj in objects if obj["kind"] == "PriorityClass"}
    class_names = set(_class_names(objects)) - brought
    by_name = cluster.cache.objects.priority_classes
    for name, priority_class in by_name.items():
        if name in class_names or (priority_class.global_default and name not in brought):
            yield {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", **msgspec.to_builtins(priority_class)}
    stand_ins: dict[str, tuple[int, str | None]] = {
        name: (value, None) for name, value in SYSTEM_CLASSES.items() if name in class_names and name not in by_name
    }
    if knows_classes(cluster):
        class_names = set()
    for pod in (*cluster.cache.pods, *cluster.pending.values()) if class_names - stand_ins.keys() else ():
        if pod.spec.priority_class_name in class_names and pod.spec.priority_class_name not in stand_ins:
            stand_ins[pod.spec.priority_class_name] = pod.priority, pod.spec.preemption_policy
    for name, (value, policy) in stand_ins.items():
        manifest = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
        }
        yield manifest | ({"preemptionPolicy": policy} if policy else {})
    for storage_class in cluster.cache.objects.storage_classes.values():
        yield {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", **msgspec.to_builtins(storage_class)}


def knows_classes(cluster: Cluster) -> bool:
    """Returns whether the PriorityClasses of the cluster are known, so that others do not exist."""
    return SYSTEM_CLASSES.keys() <= cluster.cache.objects.priority_classes.keys()


def _class_names(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        name = value.get("priorityClassName")
        if isinstance(name, str):
            yield name
        for member in value.values():
            yield from _class_names(member)
    elif isinstance(value, list):
        for member in value:
            yield from _class_names(member)
