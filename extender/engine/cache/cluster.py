"""Cluster: the scheduler's view of the cluster, kept up to date by (old, new) changes of its objects.

Its state, in full: the cache, the nodes in it, the pods without a node, and the pods that cannot be read. Every pod
that has not finished is in exactly one of the cache, `pending` and `unreadable`; only an assumed pod is both pending
and in the cache. A change never fails: where it contradicts the present state, the change wins. `ClusterFeed` passes
changes on to several subscribers.

Upstream: pkg/scheduler/eventhandlers.go.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, final
from zlib import crc32

from extender.engine.cache import Cache, CacheError
from extender.engine.cache.nodes import NodeTree
from extender.values.klog.logger import Logger
from extender.values.objects import decoding
from extender.values.objects.cluster import ClusterState, identified
from extender.values.objects.meta import HasMetadata
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod

Nominee = tuple[int, Pod]
"""(slot in the cache, pod)."""

_LOG: Final = Logger(__name__)


def not_at_all(frameworks: Iterable[Any]) -> None:
    """Leaves frameworks as they are: the cluster is known completely."""


@final
class Cluster:
    """Applies changes to the cache, and keeps the pending pods and their nominations."""

    def __init__(self, cache: Cache | None = None) -> None:
        self.cache = cache or Cache()
        self.nodes: dict[str, Node] = {}
        self.changes = 0
        """Counts the changes and assumptions: equal numbers mean that the cluster has not changed."""
        self.pending: dict[str, Pod] = {}
        """UID -> pod without spec.nodeName, in order of arrival. Assumed pods are in the cache, too."""
        self.unreadable: dict[str, tuple[str, str]] = {}
        """UID -> (namespace/name, the error)."""
        self.narrow: Callable[[Iterable[Any]], None] = not_at_all
        """Narrows frameworks that answer about this cluster to its known objects."""
        self._nominated: dict[str, Pod] = {}
        self._nominees: Mapping[str, tuple[Nominee, ...]] | None = None
        self._uids: dict[str, tuple[str, ...]] | None = None
        """namespace/name -> UIDs of the pods of that name, of which an API server has one; None until it is asked for.
        Kept up to date from then on, also by copies: the cluster that decides is seldom asked.
        """

    @staticmethod
    def of(state: ClusterState) -> "Cluster":
        """Returns a cluster with the objects of a state file, as the scheduler knows it after its first list."""
        cluster = Cluster()
        for item in state.items():
            cluster.changed(None, item)
        cluster.draw_other_uids((*cluster.pending.values(), *cluster.cache.pods))
        return cluster

    def draw_other_uids(self, pods: Iterable[Pod]) -> None:
        """Draws the UIDs of this cluster's trials by another number than those of its present pods, which may be of an
        earlier trial.
        """
        uids = "".join(pod.uid for pod in pods)
        self.changes = crc32(uids.encode(errors="surrogatepass"), self.changes & 0xFFFFFFFF)

    def fork(self) -> "Cluster":
        other = Cluster(self.cache.fork())
        other.changes = self.changes
        other.nodes, other.pending, other.unreadable = self.nodes.copy(), self.pending.copy(), self.unreadable.copy()
        other._nominated, other.narrow = self._nominated.copy(), self.narrow
        other._uids = None if self._uids is None else self._uids.copy()
        return other

    def items(self) -> Iterator[HasMetadata]:
        """Yields all objects that can be read, in order of arrival; pods with the nodes that they are assumed on."""
        yield from self.nodes.values()
        yield from self.cache.objects.everything()
        yield from self.cache.pods
        yield from (pod for pod in self.pending.values() if self.cache.pod(pod.uid) is None)

    def find(self, key: str) -> Pod | None:
        """Returns the pod namespace/name if it can be read. It searches all pods, and is for users' requests only."""
        namespace, _, name = key.partition("/")
        for pods in (self.pending.values(), self.cache.pods):
            for pod in pods:
                if pod.metadata.name == name and (pod.metadata.namespace or "default") == namespace:
                    return pod
        return None

    def named(self, key: str) -> Pod | None:
        """Returns the pod namespace/name as it is on its node, or pending, if it can be read.

        The first call goes through all pods, later ones do not: for callers that ask often.
        """
        pods = (self.cache.pod(uid) or self.pending.get(uid) for uid in self.uids_by_name.get(key, ()))
        return next((pod for pod in pods if pod is not None), None)

    @property
    def uids_by_name(self) -> Mapping[str, tuple[str, ...]]:
        if self._uids is None:
            uids_by_key = self._uids = dict[str, tuple[str, ...]]()
            for pod in (*self.pending.values(), *self.cache.pods):
                key, uid = pod.key, pod.uid
                if uid not in (uids := uids_by_key.get(key, ())):
                    uids_by_key[key] = (*uids, uid)
        return self._uids

    def _name(self, pod: Pod) -> None:
        if self._uids is not None and pod.uid not in (uids := self._uids.get(pod.key, ())):
            self._uids[pod.key] = (*uids, pod.uid)

    def _unname(self, pod: Pod) -> None:
        if self._uids is not None and pod.uid in (uids := self._uids.get(pod.key, ())):
            if len(uids) == 1:
                del self._uids[pod.key]
            else:
                self._uids[pod.key] = tuple(uid for uid in uids if uid != pod.uid)

    def changed(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        """Applies a change: an object was added (`old` is None), updated, or deleted (`new` is None)."""
        self.changes += 1
        item = old if new is None else new
        if isinstance(item, Pod):
            self._pod_changed(_pod(old), _pod(new))
        elif isinstance(item, Node):
            self.drop_node(item.name) if new is None else self.set_node(item)
        else:
            self.cache.objects.changed(old, new)

    # Nodes.

    def set_node(self, node: Node) -> None:
        previous = self.nodes.get(node.name)
        self.nodes[node.name] = node
        if previous is None:
            self.cache.add_node(node)
        elif previous is not node and previous != node:
            self.cache.update_node(previous, node)

    def drop_node(self, name: str) -> None:
        """Removes the node. Idempotent."""
        node = self.nodes.pop(name, None)
        if node is not None:
            self.cache.remove_node(node)

    def restore_node(self, node: Node, order: NodeTree, nodes: Mapping[str, Node]) -> None:
        """Undoes the drop of a node; `order` and `nodes` are copies from before it."""
        self.changes += 1
        self.cache.restore_node(node, order)
        self.nodes.clear()
        self.nodes.update(nodes)

    # Pods.

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        before = identified(old).metadata.uid if old is not None else None
        pod = identified(new) if new is not None else None
        if old is not None and before is not None and (pod is None or pod.uid != before):
            # The name now belongs to another pod, or to none.
            self._forget(before)
            self._unname(identified(old))
            self.cache.members.drop(identified(old))
        if pod is None:
            return
        is_terminal = pod.is_terminal
        self._unname(pod) if is_terminal else self._name(pod)
        if pod.spec.scheduling_group is not None:
            self.cache.members.drop(pod) if is_terminal else self.cache.members.put(pod)
        if is_terminal:
            self._forget(pod.uid)
        elif pod.spec.node_name:
            self._place(pod)
        else:
            self._pend(pod)

    def _pend(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        self.unreadable.pop(uid, None)
        self.pending[uid] = pod
        if self.cache.is_assumed(pod):
            return  # it is about to be bound, and this is its state from before that
        self._leave_node(uid)
        self._unnominate(uid)
        if pod.status.nominated_node_name:
            self._nominated[uid] = pod
            self._nominees = None

    def assume(self, uid: str, node: str) -> Pod | None:
        """Assumes the pending pod on this node, until it is seen there or elsewhere, forgotten or deleted.

        Returns the pod with its node; None if there is no such pod, or it is assumed already. Raises as
        `Cache.assume_pod`.
        """
        pod = self.pending.get(uid)
        if pod is None or self.cache.is_assumed(pod):
            return None
        assumed = decoding.replaced(pod, spec=decoding.replaced(pod.spec, node_name=node))
        self.cache.assume_pod(assumed)
        self.changes += 1
        self._unnominate(uid)
        return assumed

    def forget(self, uid: str) -> None:
        """Withdraws the assumption: the pod is pending again. Idempotent."""
        cached = self.cache.pod(uid)
        if cached is not None and self.cache.is_assumed(cached):
            self.cache.forget_pod(cached)
            self.changes += 1
            pod = self.pending.get(uid)
            if pod is not None:
                self._pend(pod)

    @contextmanager
    def assuming(self, pods: Iterable[tuple[Pod, str]]) -> Iterator[None]:
        """Assumes pods on nodes of the cluster, as another scheduler has, until the end of the block.

        Pods that have a node here, or cannot be read, are left out. Nothing may be awaited in the block.
        """
        cache, assumed = self.cache, []
        try:
            for pod, node in pods:
                with suppress(ValueError, CacheError):
                    on_node = decoding.replaced(pod, spec=decoding.replaced(pod.spec, node_name=node))
                    ports = cache.used_ports(node)
                    cache.assume_pod(on_node)
                    assumed.append((on_node, ports))
            yield
        finally:
            for on_node, ports in reversed(assumed):
                cache.forget_pod(on_node)
                cache.restore_ports(on_node.spec.node_name, ports)
            if assumed:  # whoever has the last snapshot, such as a cycle that awaits an extender, sees nothing of it
                cache.update_snapshot()

    def _place(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        self.pending.pop(uid, None)
        self._unnominate(uid)
        cached = self.cache.pod(uid)
        try:
            if cached is not None and cached.spec.node_name != pod.spec.node_name and not self.cache.is_assumed(cached):
                self.cache.remove_pod(cached)
                cached = None
            if cached is None or self.cache.is_assumed(cached):
                self.cache.add_pod(pod)
            else:
                self.cache.update_pod(cached, pod)
        except (ValueError, CacheError) as exc:
            # A pod that cannot be read (for example, one with an invalid quantity) must not keep other pods from being
            # scheduled.
            self._leave_node(uid)
            if self.unreadable.get(uid) != (pod.key, str(exc)):
                _LOG.error(exc, "Scheduler cache AddPod failed", pod=pod)
            self.unreadable[uid] = pod.key, str(exc)
        else:
            self.unreadable.pop(uid, None)

    def _forget(self, uid: str) -> None:
        self._leave_node(uid)
        self.pending.pop(uid, None)
        self.unreadable.pop(uid, None)
        self._unnominate(uid)

    def _leave_node(self, uid: str) -> None:
        cached = self.cache.pod(uid)
        if cached is not None:
            self.cache.remove_pod(cached)

    # Nominations.

    def _unnominate(self, uid: str) -> None:
        if self._nominated.pop(uid, None) is not None:
            self.cache.unnominate(uid)
            self._nominees = None

    def nominees(
        self, profiles: Container[str], extra: Sequence[tuple[Pod, str]] = ()
    ) -> Mapping[str, tuple[Nominee, ...]]:
        """Returns node -> the pods nominated there: pending ones by their status, then `extra` ones.

        Call it before the snapshot is taken, since pods that cannot be read are moved to `unreadable`. Pods of other
        schedulers and gated ones are in no queue, so that they do not count. `profiles` are the same at each call.
        """
        if extra:
            return self._by_node(profiles, extra)
        if self._nominees is None:
            self._nominees = self._by_node(profiles, ())
        return self._nominees

    def _by_node(self, profiles: Container[str], extra: Sequence[tuple[Pod, str]]) -> Mapping[str, tuple[Nominee, ...]]:
        pending = [(pod, pod.status.nominated_node_name) for pod in self._nominated.values()]
        by_node: dict[str, list[Nominee]] = {}
        for pod, node in [*pending, *extra]:
            if node and pod.scheduler_name in profiles and not pod.spec.scheduling_gates:
                try:
                    by_node.setdefault(node, []).append((self.cache.nominate(pod), pod))
                except ValueError as exc:
                    self._forget(pod.uid)
                    self.unreadable[pod.uid] = pod.key, str(exc)
        return {node: tuple(pods) for node, pods in by_node.items()}


def _pod(item: HasMetadata | None) -> Pod | None:
    return item if isinstance(item, Pod) else None


Subscriber = Callable[[HasMetadata | None, HasMetadata | None], None]
"""Takes (old, new): an object was added (`old` is None), updated, or deleted (`new` is None)."""


@final
class ClusterFeed:
    """Passes each change to every subscriber, in the order in which they subscribed."""

    def __init__(self, *subscribers: Subscriber) -> None:
        self._subscribers = list(subscribers)

    def subscribe(self, subscriber: Subscriber) -> None:
        self._subscribers.append(subscriber)

    def changed(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        """Passes a change on. If a subscriber fails, that is logged, and the others are served as usual."""
        for subscriber in self._subscribers:
            try:
                subscriber(old, new)
            except Exception as exc:
                _LOG.exception(exc, "A change was not taken in", oldObj=old, newObj=new)
