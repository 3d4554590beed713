"""All objects as controllers see them, with the indexes that controllers need.

The view of a controller that catches up before it decides is exact, so that upstream's expectations about writes that
have not come back yet are not needed.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeVar, final
from weakref import WeakKeyDictionary

from extender.rules.api_resources import NODES, PODS, Object, Resource, of_kind
from extender.values.objects.label_selectors import NOTHING, Selector
from extender.values.workloads.templates import selector_in
from reprieve.cluster.controllers.observed_objects import Key, Labels, Observed, ObservedNode, ObservedPod, Reader

K = TypeVar("K")
L = TypeVar("L")
V = TypeVar("V")

Ref = tuple[str, str, str]
"""The address of an object of any kind: (the name under which the resource is stored, namespace, name)."""

_REMEMBERED: Final = 10_000
"""The number of removed owners that are remembered for dependents that appear late."""


@final
class OwnedPods:
    """The pods of one controller, counted as they come and go.

    Attributes:
        ready: the number of active pods that are ready.
        terminating: the number of unfinished pods that are being deleted.
        labels: the number of pods with each set of labels.
    """

    __slots__ = ("active", "labels", "pods", "ready", "terminating")

    def __init__(self) -> None:
        self.pods: Final[dict[Key, ObservedPod]] = {}
        self.active = 0
        self.ready = 0
        self.terminating = 0
        self.labels: Final[Counter[Labels]] = Counter()

    def add(self, pod: ObservedPod) -> None:
        self.pods[pod.key] = pod
        self.labels[pod.labels] += 1
        self._count(pod, 1)

    def remove(self, pod: ObservedPod) -> None:
        del self.pods[pod.key]
        self.labels[pod.labels] -= 1
        if not self.labels[pod.labels]:
            del self.labels[pod.labels]
        self._count(pod, -1)

    def _count(self, pod: ObservedPod, one: int) -> None:
        if pod.is_active:
            self.active += one
            self.ready += one * pod.is_ready
        elif not pod.is_finished:
            self.terminating += one


_NO_PODS: Final = OwnedPods()


@final
class ClusterView:
    """All objects by key, node, owner and namespace; and the custom resources that are defined now."""

    def __init__(self) -> None:
        self.custom: tuple[Resource, ...] = ()
        self._reader = Reader()
        self.pods: Final[dict[Key, ObservedPod]] = {}
        self._objects: dict[str, dict[Key, Observed]] = {}
        self._on_node: dict[str, dict[Key, ObservedPod]] = {}
        self._groups: dict[str, OwnedPods] = {}
        self._loose: dict[str, dict[Labels, dict[Key, ObservedPod]]] = {}
        self._dependents: dict[str, dict[Ref, Observed]] = {}
        self._in_namespace: dict[str, dict[Ref, Observed]] = {}
        self._labelled: dict[str, dict[Labels, dict[Key, ObservedPod]]] = {}
        self._gone: dict[str, None] = {}

    def apply(self, resource: Resource, key: Key, raw: bytes | None) -> tuple[Observed | None, Observed | None]:
        """Stores an object other than a pod, or removes it (None); returns it as it was and as it is.

        Raises DecodeError, and changes nothing, if the bytes hold no such object.
        """
        objects = self._objects.setdefault(resource.stored_as, {})
        old, new = objects.get(key), None if raw is None else self._reader.read(resource, raw)
        if new is None:
            objects.pop(key, None)
        else:
            objects[key] = new
        self._relate(old, new)
        return old, new

    def apply_pod(self, key: Key, raw: bytes | None) -> tuple[ObservedPod | None, ObservedPod | None]:
        """Stores or removes a pod, as `apply` does."""
        old, new = self.pods.get(key), None if raw is None else self._reader.pod(raw)
        if old is not None:
            self._unindex_pod(old)
        if new is None:
            self.pods.pop(key, None)
        else:
            self.pods[key] = new
            self._index_pod(new)
        self._relate(old, new)
        return old, new

    def _relate(self, old: Observed | None, new: Observed | None) -> None:
        if old is not None:
            self._unindex(old)
            if new is None or new.uid != old.uid:
                self._remember_gone(old)
        if new is not None:
            self._index(new)

    def all(self, resource: Resource) -> Mapping[Key, Observed]:
        """Returns the objects of a resource. Beware: the mapping changes while other tasks run."""
        return self.pods if resource is PODS else self._objects.get(resource.stored_as, {})

    def get(self, resource: Resource, namespace: str, name: str) -> Observed | None:
        return self.all(resource).get((namespace, name))

    def at(self, ref: Ref) -> Observed | None:
        objects = self.pods if ref[0] == PODS.stored_as else self._objects.get(ref[0], {})
        return objects.get(ref[1:])

    def node(self, name: str) -> ObservedNode | None:
        node = self.all(NODES).get(("", name))
        return node if isinstance(node, ObservedNode) else None

    def pods_on(self, node: str) -> Mapping[Key, ObservedPod]:
        """Returns the pods bound to a node, whether the node exists or not."""
        return self._on_node.get(node, {})

    def pods_of(self, owner_uid: str) -> OwnedPods:
        return self._groups.get(owner_uid, _NO_PODS)

    def pods_in(self, namespace: str) -> Mapping[Labels, Mapping[Key, ObservedPod]]:
        """Returns the pods of a namespace by labels, so that a selector is matched once for each set of labels."""
        return self._labelled.get(namespace, {})

    def loose_pods(self, namespace: str) -> Mapping[Labels, Mapping[Key, ObservedPod]]:
        """Returns the active pods of a namespace without a controller, by their labels."""
        return self._loose.get(namespace, {})

    def dependents(self, owner_uid: str) -> Mapping[Ref, Observed]:
        return self._dependents.get(owner_uid, {})

    def controlled(self, resource: Resource, owner_uid: str) -> Iterator[Observed]:
        """Yields the objects of a resource whose controller is this owner."""
        for dependent in self.dependents(owner_uid).values():
            owner = dependent.controller
            if dependent.resource is resource and owner is not None and owner.uid == owner_uid:
                yield dependent

    def in_namespace(self, namespace: str) -> Mapping[Ref, Observed]:
        return self._in_namespace.get(namespace, {})

    def owner(self, dependent: Observed, api_version: str, kind: str, name: str) -> Observed | None:
        """Returns the object that an owner reference names by its kind and name, whatever its uid."""
        resource = of_kind(api_version, kind, self.custom)
        if resource is None:
            return None
        return self.get(resource, dependent.namespace if resource.namespaced else "", name)

    def is_gone(self, uid: str) -> bool:
        """Returns whether an object of this uid has been removed. Removals of long ago are forgotten."""
        return uid in self._gone

    def _index(self, obj: Observed) -> None:
        for owner in obj.owners:
            self._dependents.setdefault(owner.uid, {})[ref_of(obj)] = obj
        if obj.namespace:
            self._in_namespace.setdefault(obj.namespace, {})[ref_of(obj)] = obj

    def _index_pod(self, pod: ObservedPod) -> None:
        self._labelled.setdefault(pod.namespace, {}).setdefault(pod.labels, {})[pod.key] = pod
        if pod.node:
            self._on_node.setdefault(pod.node, {})[pod.key] = pod
        controller = pod.controller
        if controller is not None:
            self._groups.setdefault(controller.uid, OwnedPods()).add(pod)
        elif pod.is_active:
            self._loose.setdefault(pod.namespace, {}).setdefault(pod.labels, {})[pod.key] = pod

    def _unindex(self, obj: Observed) -> None:
        for owner in obj.owners:
            _drop(self._dependents, owner.uid, ref_of(obj))
        if obj.namespace:
            _drop(self._in_namespace, obj.namespace, ref_of(obj))

    def _unindex_pod(self, pod: ObservedPod) -> None:
        _drop_labelled(self._labelled, pod)
        if pod.node:
            _drop(self._on_node, pod.node, pod.key)
        controller = pod.controller
        if controller is not None:
            group = self._groups[controller.uid]
            group.remove(pod)
            if not group.pods:
                del self._groups[controller.uid]
        elif pod.is_active:
            _drop_labelled(self._loose, pod)

    def _remember_gone(self, obj: Observed) -> None:
        self._gone[obj.uid] = None
        if len(self._gone) > _REMEMBERED:
            del self._gone[next(iter(self._gone))]


@final
class SelectorIndex:
    """The selectors of one kind of workload, each matched once with each set of labels."""

    def __init__(self) -> None:
        self._selectors: dict[str, dict[Key, Selector]] = {}
        self._answers: dict[str, WeakKeyDictionary[Labels, Sequence[Key]]] = {}

    def put(self, key: Key, content: Object) -> None:
        selector = selector_in(content)
        selectors = self._selectors.setdefault(key[0], {})
        if selectors.get(key) != selector:
            selectors[key] = selector
            self._answers.pop(key[0], None)

    def remove(self, key: Key) -> None:
        selectors = self._selectors.get(key[0], {})
        if selectors.pop(key, None) is not None:
            self._answers.pop(key[0], None)
        if not selectors:
            self._selectors.pop(key[0], None)

    def selector(self, key: Key) -> Selector:
        """Returns the selector of a workload; one that selects nothing if the workload is unknown."""
        return self._selectors.get(key[0], {}).get(key, NOTHING)

    def selecting(self, namespace: str, labels: Labels) -> Sequence[Key]:
        selectors = self._selectors.get(namespace)
        if not selectors:
            return ()
        answers = self._answers.setdefault(namespace, WeakKeyDictionary())
        answer = answers.get(labels)
        if answer is None:
            answer = answers[labels] = [key for key, selector in selectors.items() if selector.matches(labels.by_name)]
        return answer


def ref_of(obj: Observed) -> Ref:
    return obj.resource.stored_as, obj.namespace, obj.name


def _drop(index: dict[K, dict[L, V]], outer: K, inner: L) -> None:
    entries = index.get(outer)
    if entries is None:
        return
    entries.pop(inner, None)
    if not entries:
        del index[outer]


def _drop_labelled(index: dict[str, dict[Labels, dict[Key, ObservedPod]]], pod: ObservedPod) -> None:
    by_labels = index[pod.namespace]
    _drop(by_labels, pod.labels, pod.key)
    if not by_labels:
        del index[pod.namespace]
