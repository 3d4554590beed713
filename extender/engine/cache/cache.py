"""Cache: the scheduler's view of the cluster, and the one writer of the columns.

Its state, in full: the nodes (and ghosts: nodes that were deleted while pods are still on them), the pods that have a
node, which of them are only assumed, the images, the other objects, and the changes since the last snapshot. Every pod
is on one node, or on none.

Upstream: pkg/scheduler/backend/cache/cache.go.
"""

from collections.abc import Mapping, Set
from typing import final

from extender.engine.cache.column_writer import ColumnWriter
from extender.engine.cache.dump import NodeDump, dump_entry
from extender.engine.cache.group_members import GroupMembers
from extender.engine.cache.nodes import ImageState, NodeEntry, NodeTree, counted_images
from extender.engine.snapshot import Snapshot
from extender.engine.snapshot.columns import ImagesOnNode, image_names
from extender.engine.snapshot.pod_attributes import HostPort
from extender.values.objects.cluster import ClusterObjects
from extender.values.objects.decoding import replaced
from extender.values.objects.grouping import GroupKey
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod

Move = tuple[str, int]
"""The name of a node, and +1 if a pod came to it or -1 if it left it."""


class CacheError(Exception):
    """The call contradicts the state of the cache.

    The cache is unchanged, with one exception, as upstream: a node that is removed under zone labels other than those
    it was added with is removed nevertheless.
    """


@final
class Cache:
    """Takes nodes, pods and other objects; makes Snapshots."""

    def __init__(self) -> None:
        self.objects: ClusterObjects = ClusterObjects()
        self.members: GroupMembers = GroupMembers()
        self._nodes: dict[str, NodeEntry] = {}
        self._present: set[str] = set()
        """The names of the nodes that are no ghosts."""
        self._owner = object()
        self._tree = NodeTree()
        self._images: dict[str, ImageState] = {}
        self._images_version = 0
        self._images_written: dict[str, int] = {}
        """Node -> the version of the images when its own were written to the columns."""
        self._assumed: set[str] = set()
        self._slots: dict[str, int] = {}
        """UID -> the slot of each pod that has a node, in order of arrival."""
        self._nominated: dict[str, int] = {}
        self._writer: ColumnWriter = ColumnWriter(self.objects)
        # Since the last snapshot, which may be days old: the slots of pods that came or left, or that were confirmed
        # where they are, the nodes of pods that did both, of which no more stays, the nodes to write again, and the
        # slots of pods no longer nominated.
        self._moves: dict[int, Move] = {}
        self._renewed: dict[int, tuple[Pod, int]] = {}
        self._passed: set[str] = set()
        self._rewritten: set[str] = set()
        self._unnominated: list[int] = []
        # The last snapshot, the names of the nodes in it, and the number of nodes that the tree listed for it.
        self._snapshot: Snapshot | None = None
        self._laid_out: set[str] = set()
        self._order: list[str] = []
        """The names of the nodes that have places, in visiting order."""
        self._num_listed = 0

    def fork(self) -> "Cache":
        """Returns an independent copy, without reading pods and nodes again; this cache's last snapshot stays valid."""
        other = Cache()
        other.objects = self.objects.copy()
        other.members = self.members.copy()
        other._writer = self._writer.fork(other.objects)
        other._tree, other._present = self._tree.copy(), self._present.copy()
        other._images = {name: state.copy() for name, state in self._images.items()}
        other._images_version, other._images_written = self._images_version, self._images_written.copy()
        # The entries of nodes are copied on write: with a new owner on either side, the first cache to modify one makes
        # a copy.
        self._owner, other._nodes = object(), self._nodes.copy()
        for name in self._nodes.keys() - self._present:
            images = self._nodes[name].images
            other._own(name).images = {image: state.copy() for image, state in images.items()}
        other._slots, other._nominated = self._slots.copy(), self._nominated.copy()
        other._assumed = self._assumed.copy()
        other._moves, other._renewed, other._passed = self._moves.copy(), self._renewed.copy(), self._passed.copy()
        other._rewritten, other._unnominated = self._rewritten.copy(), self._unnominated.copy()
        # This only tells `update_snapshot` that the nodes are laid out. The new writer has no views yet, so that the
        # snapshot of the original is not handed out.
        other._snapshot = self._snapshot
        other._laid_out, other._order, other._num_listed = self._laid_out.copy(), self._order.copy(), self._num_listed
        return other

    def _own(self, name: str) -> NodeEntry:
        entry = self._nodes.get(name)
        if entry is None:
            entry = self._nodes[name] = NodeEntry(self._owner)
        elif entry.owner is not self._owner:
            entry = self._nodes[name] = entry.owned_by(self._owner)
        return entry

    # Nodes.

    def add_node(self, node: Node) -> None:
        """Adds the node, with the pods that were added before it."""
        entry = self._own(node.name)
        self._forget_images(entry.node)
        self._tree.add(node)
        self._set_node(entry, node)

    def update_node(self, old: Node | None, new: Node) -> None:
        """Updates the node. If its zone changed, so does its place when the nodes are next laid out."""
        if new.name not in self._nodes:
            self._tree.add(new)
        entry = self._own(new.name)
        self._tree.update(old, new)
        has_same_images = entry.node is not None and entry.node.status.images == new.status.images
        # An image that no other node has gets the size that this one reports now: it may still have that of a node
        # which is gone.
        if has_same_images and all(len(state.nodes) > 1 for state in entry.images.values()):
            entry.node = new
            self._present.add(new.name)
            self._rewritten.add(new.name)
        else:
            self._forget_images(entry.node)
            self._set_node(entry, new)

    def remove_node(self, node: Node) -> None:
        """Removes the node; a ghost that is in no snapshot stays while it has pods. Raises CacheError if it is unknown,
        or not in the zone that its labels name.
        """
        if node.name not in self._nodes:
            raise CacheError(f"node {node.name} is not found")
        entry = self._own(node.name)
        entry.node = None
        self._present.discard(node.name)
        self._rewritten.add(node.name)
        if not entry.slots:
            del self._nodes[node.name]
        error = self._tree.remove(node)
        if error is not None:
            raise CacheError(error)
        self._forget_images(node)

    def _set_node(self, entry: NodeEntry, node: Node) -> None:
        entry.node = node
        self._present.add(node.name)
        entry.images = {}
        self._images_version += 1
        for name, size in image_names(node.status.images).items():
            state = self._images.setdefault(name, ImageState(size))
            state.own_nodes().add(node.name)
            entry.images[name] = state
        self._rewritten.add(node.name)

    def _forget_images(self, node: Node | None) -> None:
        if node is None:
            return
        self._images_version += 1
        for name in image_names(node.status.images):
            state = self._images.get(name)
            if state is not None:
                state.own_nodes().discard(node.name)
                if not state.nodes:
                    del self._images[name]

    # Pods.

    def add_pod(self, pod: Pod) -> None:
        """Adds a pod that runs on spec.nodeName, which confirms an assumed one, wherever it was assumed.

        Raises CacheError if it has no UID, or was added before, QuantityError or DecodeError if it cannot be read.
        """
        uid = _uid(pod)
        cached = self.pod(uid)
        if cached is None:
            self._put(pod, self._writer.allocate_slot(pod))
        elif uid in self._assumed:
            if cached.spec.node_name != pod.spec.node_name or not self._confirm(pod):
                self._replace(cached, pod)
        else:
            raise CacheError(f"pod {_id(pod)} was already in added state")

    def update_pod(self, old: Pod, new: Pod) -> None:
        """Updates a pod on its node. Raises as `add_pod`, and if the pod is only assumed or the update moves it."""
        uid = _uid(old)
        if new.uid != uid:
            raise CacheError(f"pod {_id(old)} cannot be updated to {_id(new)}, which is another pod")
        cached = self.pod(uid)
        if cached is None:
            raise CacheError(f"pod {_id(old)} is not added to scheduler cache, so cannot be updated")
        if uid in self._assumed:
            raise CacheError(f"assumed pod {_id(old)} should not be updated")
        if cached.spec.node_name != new.spec.node_name:
            # Upstream ends the process here, because its cache is corrupt. This one is not: nothing has changed yet.
            raise CacheError(f"pod {_id(old)} updated on a different node than previously added to")
        self._replace(cached, new)

    def remove_pod(self, pod: Pod) -> None:
        """Removes the pod. Raises CacheError if it is unknown, or on a node other than its spec.nodeName."""
        uid = _uid(pod)
        cached = self.pod(uid)
        if cached is None:
            raise CacheError(f"pod {_id(pod)} is not found in scheduler cache, so cannot be removed from it")
        if pod.spec.node_name not in ("", cached.spec.node_name):
            raise CacheError(f"pod {_id(pod)} was added to a different node than it was assumed to be on")
        self._take(cached)

    def assume_pod(self, pod: Pod) -> None:
        """Counts the pod on spec.nodeName until it is confirmed, forgotten or removed. Raises as `add_pod`."""
        uid = _uid(pod)
        if uid in self._slots:
            raise CacheError(f"pod {_id(pod)} is in the cache, so can't be assumed")
        self._put(pod, self._writer.allocate_slot(pod))
        self._assumed.add(uid)

    def forget_pod(self, pod: Pod) -> None:
        """Withdraws the assumption; an unknown pod is ignored. Raises CacheError if it was not assumed there."""
        uid = _uid(pod)
        cached = self.pod(uid)
        if cached is None:
            return
        if cached.spec.node_name != pod.spec.node_name:
            raise CacheError(
                f"pod {_id(pod)} was assumed on {pod.spec.node_name} but assigned to {cached.spec.node_name}"
            )
        if uid not in self._assumed:
            raise CacheError(f"pod {_id(pod)} wasn't assumed so cannot be forgotten")
        self._take(cached)

    def annotate(self, uid: str, annotations: Mapping[str, str] | None) -> None:
        """Adds to an assumed pod the annotations that its binding will write."""
        cached = self.pod(uid)
        if annotations and cached is not None and uid in self._assumed:
            merged = {**cached.metadata.annotations, **annotations}
            self._replace(cached, replaced(cached, metadata=replaced(cached.metadata, annotations=merged)))
            self._assumed.add(uid)

    def group_members(self, group: GroupKey) -> Mapping[str, Pod]:
        """Returns UID -> pod of all known pods of a pod group, with a node or without."""
        return self.members.of(group)

    def is_assumed(self, pod: Pod) -> bool:
        """True between `assume_pod` and the pod's confirmation or withdrawal."""
        return pod.metadata.uid in self._assumed

    def node(self, name: str) -> Node | None:
        """Returns the node; None if there is none, even if there are pods on it."""
        entry = self._nodes.get(name)
        return entry.node if entry is not None else None

    def pod(self, uid: str) -> Pod | None:
        slot = self._slots.get(uid)
        if slot is None:
            return None
        return self._renewed[slot][0] if slot in self._renewed else self._writer.pod(slot)

    @property
    def pods(self) -> list[Pod]:
        """All pods that have a node, in order of arrival."""
        renewed, pod = self._renewed, self._writer.pod
        return [renewed[slot][0] if slot in renewed else pod(slot) for slot in self._slots.values()]

    @property
    def num_pods(self) -> int:
        return len(self._slots)

    def _put(self, pod: Pod, slot: int) -> None:
        uid, name = pod.metadata.uid, pod.spec.node_name
        entry = self._own(name)
        entry.slots.append(slot)
        entry.used_ports.update(self._writer.host_ports(slot))
        self._slots[uid] = slot
        self._moves[slot] = name, +1

    def _take(self, pod: Pod) -> None:
        name, slot = pod.spec.node_name, self._slots.pop(pod.uid)
        self._renewed.pop(slot, None)
        self._assumed.discard(pod.uid)
        entry = self._own(name)
        # The last pod moves into the hole, as in upstream's NodeInfo: preemption depends on the order.
        hole = entry.slots.index(slot)
        last = entry.slots.pop()
        if last != slot:
            entry.slots[hole] = last
        entry.used_ports.difference_update(self._writer.host_ports(slot))
        if self._moves.pop(slot, None) is None:
            self._moves[slot] = name, -1  # the last snapshot's readers still find the pod
        else:
            self._writer.free_slot(slot)
            self._passed.add(name)
        if not entry.slots and entry.node is None:
            del self._nodes[name]
            self._passed.discard(name)

    def _confirm(self, pod: Pod) -> bool:
        """Replaces a pod by its newer version in its slot, which differs in labels at most; returns whether it does.

        The API server copies labels of the node to a pod that is bound.
        """
        uid, name = pod.metadata.uid, pod.spec.node_name
        slot = self._slots[uid]
        code = self._writer.code_of_renewed(slot, pod)
        if code is None:
            return False
        slots = self._own(name).slots
        # In the order in which `_take` and `_put` leave pods.
        hole = slots.index(slot)
        slots[hole], slots[-1] = slots[-1], slot
        self._slots[uid] = self._slots.pop(uid)  # it arrives as a pod that was removed and added again
        self._assumed.discard(uid)
        self._renewed[slot] = pod, code
        return True

    def _replace(self, old: Pod, new: Pod) -> None:
        # First, since it raises for a pod that cannot be read, and the old one must then stay.
        slot = self._writer.allocate_slot(new)
        self._take(old)
        self._put(new, slot)

    # For what is tried and taken back.

    def used_ports(self, node: str) -> frozenset[HostPort]:
        return frozenset(self._nodes[node].used_ports)

    def restore_ports(self, node: str, ports: frozenset[HostPort]) -> None:
        """Replaces the used ports of a node to which a pod came back; see `NodeEntry.used_ports`."""
        self._own(node).used_ports = set(ports)

    @property
    def visiting_order(self) -> NodeTree:
        return self._tree.copy()

    def restore_node(self, node: Node, order: NodeTree) -> None:
        """Adds a node that was removed, and restores the order in which nodes were visited when it was there."""
        self.add_node(node)
        self._tree = order

    # For debugging.

    @property
    def assumed_pods(self) -> frozenset[str]:
        return frozenset(self._assumed)

    def dump(self) -> dict[str, NodeDump]:
        """Returns all nodes, ghosts included, in their present state (a snapshot may be older)."""
        return {name: dump_entry(entry, self._writer, self._images) for name, entry in self._nodes.items()}

    # Nominated pods.

    def nominate(self, pod: Pod) -> int:
        """Returns a slot for a pending pod, so that hypotheses can place it. Idempotent."""
        slot = self._nominated.get(pod.uid)
        if slot is None:
            slot = self._nominated[pod.uid] = self._writer.allocate_slot(pod)
        return slot

    def unnominate(self, uid: str) -> None:
        """Releases the slot of a pending pod. Readers of the last snapshot still find the pod in it."""
        slot = self._nominated.pop(uid, None)
        if slot is not None:
            self._unnominated.append(slot)

    # Snapshots.

    def update_snapshot(self) -> Snapshot:
        """Returns the present state of the cluster. The previous snapshot becomes invalid.

        Raises CacheError if the order of nodes is inconsistent, because a node was added twice or removed under zone
        labels other than those it was added with. The next call has recovered.
        """
        has_changed = self._moves or self._renewed or self._passed or self._rewritten
        is_current = not has_changed and self._writer.views_are_current
        if self._snapshot is not None and is_current and self._num_listed == self._tree.num_nodes:
            return self._snapshot
        for slot, (pod, label_code) in self._renewed.items():
            self._writer.renew(slot, pod, label_code)
        nodes_change = bool(self._rewritten or self._snapshot is None or len(self._laid_out) > self._tree.num_nodes)
        if nodes_change:
            self._update_nodes()
        else:
            self._apply_changes()
        for slot, (_, sign) in self._moves.items():
            if sign > 0:
                self._writer.index_pod(slot)
            else:
                self._writer.free_slot(slot)
        for slot in self._unnominated:
            self._writer.free_slot(slot)
        self._moves.clear()
        self._renewed.clear()
        self._passed.clear()
        self._unnominated.clear()
        if self._writer.has_unused_symbols:
            self._writer.drop_unused_symbols()
        if nodes_change and self._writer.is_bloated:
            self._writer.drop_unused_values()
        self._snapshot = self._writer.snapshot()
        if self._num_listed != self._tree.num_nodes:
            num_listed, self._num_listed = self._num_listed, self._lay_out()
            raise CacheError(
                f"snapshot state is not consistent, length of NodeInfoList={num_listed} not equal to length of nodes "
                f"in tree={self._tree.num_nodes} , length of NodeInfoMap={len(self._laid_out)}, length of nodes in "
                f"cache={len(self._nodes)}, trying to recover"
            )
        return self._snapshot

    def _update_nodes(self) -> None:
        """Lays the nodes out again if the list of nodes has changed, or applies the changes in place."""
        present = self._rewritten & self._present
        came = present - self._laid_out
        self._laid_out |= came
        has_too_many = len(self._laid_out) > self._tree.num_nodes
        if has_too_many:
            self._laid_out &= self._present
        places = self._writer.places.keys()
        if came or has_too_many or self._snapshot is None:
            self._num_listed = self._lay_out()
        elif not present <= places or not places.isdisjoint(self._rewritten - present):
            # Events contradict each other: a node is back that was a ghost when the nodes were laid out last, or one is
            # gone that the tree still lists. Upstream shows neither until its numbers of nodes differ.
            self._lay_out()
        else:
            self._apply_changes()
        self._rewritten.clear()

    def _lay_out(self) -> int:
        """Renumbers the nodes; returns the number of names that the tree lists, twice for a node added in two zones."""
        listed = list(filter(self._laid_out.__contains__, self._tree.names()))
        order = list(dict.fromkeys(filter(self._present.__contains__, listed)))
        pairs = enumerate(zip(order, self._order, strict=False))
        first = next((place for place, (new, old) in pairs if new != old), min(len(order), len(self._order)))
        entries, places = self._nodes, self._writer.places
        unplaced = [(name, entries[name]) for name in order[first:] if name not in places]
        came = {name: (entry.node, entry.slots) for name, entry in unplaced if entry.node is not None}
        self._writer.lay_out(first, order[first:], came)
        for name in self._images_written.keys() - self._writer.places.keys():
            del self._images_written[name]
        self._order = order
        self._apply_changes(came.keys())
        return len(listed)

    def _apply_changes(self, came: Set[str] = frozenset()) -> None:
        """Writes what changed to the columns; nodes that `came` were just laid out with their pods."""
        writer, passed = self._writer, self._passed
        places = writer.places
        for slot, (name, sign) in self._moves.items():
            place = places.get(name)
            if place is None or name in came:
                continue
            if sign > 0:
                writer.put_on_node(slot, place)
            else:
                writer.take_off_node(slot)
            passed.add(name)
        image_counts: ImagesOnNode = {}
        confirmed = [pod.spec.node_name for pod, _ in self._renewed.values()]
        for name in {*came, *self._rewritten, *passed, *confirmed}:
            entry, place = self._nodes.get(name), places.get(name)
            if entry is None or entry.node is None or place is None:
                continue
            if name in self._rewritten and name not in came:
                writer.write_node(place, entry.node)
            writer.write_pods(place, entry.slots)
            if name in passed or name in came:
                writer.write_ports(place, frozenset(entry.used_ports))
            if self._images_written.get(name) != self._images_version:
                self._images_written[name] = self._images_version
                writer.write_images(place, counted_images(entry.images, self._images, image_counts))


def _uid(pod: Pod) -> str:
    uid = pod.metadata.uid
    if not uid:
        raise CacheError("cannot get cache key for pod with empty UID")
    return uid


def _id(pod: Pod) -> str:
    return f"{pod.uid}({pod.key})"
