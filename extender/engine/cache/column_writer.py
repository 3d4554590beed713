"""ColumnWriter: maintains the arrays behind a Snapshot.

The buffers have room to grow; snapshots get read-only views of the part in use. The cache reports what changed since
the last snapshot, and the writer updates only that. When nodes come, leave or change places, the columns over axis N
are moved, without reading the others again.
"""

from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from typing import Final, final

import numpy as np
import numpy.typing as npt

from extender.engine.cache.buffers import moved, resized, with_more_resources, zeros
from extender.engine.cache.pod_encoding import PodReader, are_read_alike, is_resized
from extender.engine.snapshot import columns
from extender.engine.snapshot.axes import NATIVE_RESOURCES, Index, Int64s, read_only
from extender.engine.snapshot.pod_attributes import Attribute, HostPort, num_parts
from extender.engine.snapshot.snapshot import ChangeLog, Snapshot
from extender.engine.snapshot.symbols import ABSENT, SymbolTable
from extender.engine.snapshot.tallies import Tallies
from extender.values.objects.cluster import ClusterObjects
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod
from extender.values.objects.quantity import QuantityError
from extender.values.objects.resource_amounts import allocatable

NO_NODE = -1

SPARE_SYMBOLS = 1024
"""The unused symbols of an attribute that may stay, besides as many as there are pods."""

SPARE_PARTS = 2**16
"""The parts of unused symbols (`num_parts`) that may stay, besides as many as pods had: 20 MB of labels."""

MADE_ANEW: Final = frozenset({"_objects", "_changes", "_node_changes", "_reader", "_amounts", "_snapshot"})
"""The attributes that a fork makes anew; it copies all others."""

_LABELS, _HOST_PORTS = int(Attribute.LABELS), int(Attribute.HOST_PORTS)

NUM_COUNTS: Final = 3
"""The amounts of a pod before those of axis K: 1 for the pod itself, and cpu and memory with defaults."""


@final
class ColumnWriter:
    """Owns the buffers. State: the arrays, the symbol tables, the free slots, and the last snapshot."""

    def __init__(self, objects: ClusterObjects) -> None:
        self._objects = objects
        self.resources: SymbolTable[str] = SymbolTable(*NATIVE_RESOURCES)
        self._taint_sets: SymbolTable[tuple[tuple[str, str, str], ...]] = SymbolTable()
        self._tallies: Tallies = Tallies()
        self._counted_symbols = [0 for _ in Attribute]
        self._counted_reads = self._most_symbols = 0
        self._num_parts = 0
        self._most_parts = SPARE_PARTS
        self._generation = 0
        self._changes = ChangeLog()
        self._node_changes = ChangeLog()

        self._allocatable = zeros(8, 64)  # (K, N), so that each resource is contiguous; views are transposed
        self._filled_resources = 3  # the places on axis K that have been filled from the nodes
        self._offered: set[str] = set()
        self._unoffered: dict[str, dict[int, int]] = {}
        self._unoffered_of: dict[int, list[str]] = {}  # slot -> the resources that no node offered when the pod came
        self._label_keys: set[str] = set()
        self._image_names: set[str] = set()
        self._most_names = 1024  # with more names of these three kinds, those of no node are dropped
        self._scalar_columns: dict[str, Int64s] = {}
        self._sums = zeros(NUM_COUNTS + 8, 64)  # (NUM_COUNTS + K, N) the `_amounts` of each node's pods, summed
        self._allowed_pods = zeros(64)
        self._unschedulable = np.zeros(64, np.bool_)
        self._taint_set = np.full(64, ABSENT, np.int32)
        self._nodes: list[Node] = []
        self._index: dict[str, int] = {}
        self._invalid: dict[int, str] = {}
        self._label_columns: dict[str, columns.LabelColumn] = {}
        self._images_on: list[columns.ImagesOnNode] = []
        self._image_columns: dict[str, columns.ImageColumn] = {}
        self._used_ports: list[frozenset[HostPort]] = []
        self._port_columns: dict[HostPort, npt.NDArray[np.bool_]] = {}
        self._on_node: list[list[int]] = []
        self._unranked = np.zeros(64, np.bool_)

        self._reader = PodReader()
        self._pods: list[Pod | None] = []
        self._uids: list[str] = []
        self._slots: dict[str, int] = {}
        self._free: list[int] = []
        self._node = np.full(256, NO_NODE, np.intp)
        self._uid_rank = zeros(256)
        self._amounts = zeros(NUM_COUNTS + 8, 256)  # (NUM_COUNTS + K, P)
        self._priority = zeros(256)
        self._start_time = zeros(256)
        self._codes = np.full((len(Attribute), 256), ABSENT, np.int32)

        self._snapshot: Snapshot | None = None

    def fork(self, objects: ClusterObjects) -> "ColumnWriter":
        """Returns an independent copy with its own buffers and codes, for a cluster with these other objects.

        Values that are replaced and never modified (the slots, images and ports of a node, the names of a pod's
        resources) are shared.
        """
        other = ColumnWriter(objects)
        if self._snapshot is not None:
            self._snapshot.pods.rank()  # once, and not in each copy
        self._counted_reads = -1  # the copy's reader counts from the beginning
        for name in vars(self).keys() - MADE_ANEW:
            value = getattr(self, name)
            setattr(other, name, value if isinstance(value, int) else value.copy())
        # The amounts are the largest array: only the part in use is copied.
        used = np.s_[: NUM_COUNTS + len(self.resources), : len(self._pods)]
        other._amounts = zeros(*self._amounts.shape)
        other._amounts[used] = self._amounts[used]
        for name in ("_unoffered", "_label_columns", "_image_columns", "_scalar_columns", "_port_columns"):
            setattr(other, name, {key: column.copy() for key, column in getattr(self, name).items()})
        other._changes.all_changed()
        other._node_changes.all_changed()
        return other

    # Pods, by slot.

    def allocate_slot(self, pod: Pod) -> int:
        """Puts the pod into a slot and returns it; the pod is on no node until `put_on_node`.

        If it raises QuantityError or DecodeError because the pod cannot be read, nothing has changed.
        """
        encoding, started, codes = self._reader.read(pod, self._tallies.symbols)
        slot = self._free.pop() if self._free else self._new_slot()
        self._pods[slot], self._uids[slot] = pod, pod.metadata.uid
        num_native = len(encoding.amounts)
        self._amounts[:num_native, slot] = encoding.amounts
        if len(self.resources) > len(NATIVE_RESOURCES):
            self._amounts[num_native:, slot] = 0
        for name, amount in encoding.scalars:
            place = self.resources.code_of(name)
            if place == ABSENT:
                self._unoffered.setdefault(name, {})[slot] = amount
                self._unoffered_of.setdefault(slot, []).append(name)
                if name in self._offered:
                    self._add_resource(name)
            else:
                self._amounts[NUM_COUNTS + place, slot] = amount
        self._priority[slot] = encoding.priority
        self._start_time[slot] = started
        self._codes[:, slot] = codes
        return slot

    def code_of_renewed(self, slot: int, pod: Pod) -> int | None:
        """Returns the code of the pod's labels if its other columns equal those of the pod in the slot; else None.
        Raises as `allocate_slot`.
        """
        before = self.pod(slot)
        has_started = pod.status.start_time != before.status.start_time
        if has_started or is_resized(before) or not are_read_alike(pod, before):
            return None
        if pod.metadata.labels == before.metadata.labels:
            return int(self._codes[_LABELS, slot])
        return self._reader.read(pod, self._tallies.symbols)[2][_LABELS]

    def renew(self, slot: int, pod: Pod, label_code: int) -> None:
        """Replaces the pod in a slot by a newer version of it, which `code_of_renewed` has accepted."""
        self._pods[slot] = pod
        before, node = int(self._codes[_LABELS, slot]), int(self._node[slot])
        if before == label_code:
            return
        self._codes[_LABELS, slot] = label_code
        if node != NO_NODE:
            self._tallies.count(_LABELS, before, node, -1)
            self._tallies.count(_LABELS, label_code, node, +1)

    def index_pod(self, slot: int) -> None:
        """Makes the pod in the slot findable by its UID, in place of an earlier pod with that UID."""
        self._slots[self._uids[slot]] = slot

    def free_slot(self, slot: int) -> None:
        """Frees a slot whose pod is on no node."""
        pod = self._pods[slot]
        if pod is not None and self._slots.get(pod.uid) == slot:
            del self._slots[pod.uid]
        for name in self._unoffered_of.pop(slot, ()):
            if (requests := self._unoffered.get(name)) is not None:
                requests.pop(slot, None)
                if not requests:
                    del self._unoffered[name]
        self._pods[slot] = None
        self._free.append(slot)

    def pod(self, slot: int) -> Pod:
        pod = self._pods[slot]
        if pod is None:
            raise LookupError(f"pod slot {slot} is free")
        return pod

    def requests(self, slot: int) -> tuple[dict[str, int], int, int]:
        """Returns resource -> the amount that the pod in a slot requests, without zeros; and its cpu and memory with
        defaults.
        """
        _, cpu, memory, *requests = self._amounts[: NUM_COUNTS + len(self.resources), slot].tolist()
        amounts = dict(zip(self.resources, requests, strict=True))
        unoffered = self._unoffered_of.get(slot, ())
        amounts |= {name: self._unoffered[name][slot] for name in unoffered if name in self._unoffered}
        return {name: amount for name, amount in amounts.items() if amount}, cpu, memory

    def put_on_node(self, slot: int, node: int) -> None:
        self._node[slot] = node
        self._count(slot, node, +1)

    def take_off_node(self, slot: int) -> None:
        node = int(self._node[slot])
        self._node[slot] = NO_NODE
        self._count(slot, node, -1)

    def write_pods(self, node: int, slots: list[int]) -> None:
        """Writes the pods of the node at this place, in order, which marks the node as changed."""
        self._changes.changed(node)
        self._on_node[node] = slots.copy()
        self._unranked[node] = True

    def _count(self, slot: int, node: int, sign: int) -> None:
        # Arrays of int64 wrap when a sum overflows, as Go does.
        sums, amounts = self._sums[:, node], self._amounts[:, slot]
        if sign > 0:
            sums += amounts
        else:
            sums -= amounts
        for attribute, code in enumerate(self._codes[:, slot].tolist()):
            if code != ABSENT:
                self._tallies.count(attribute, code, node, sign)

    @property
    def has_unused_symbols(self) -> bool:
        """True if most known symbols of pods (their labels, ports, affinity or volumes) are no longer those of any pod.

        The pods of each Job have labels of their own: a cluster with Jobs would otherwise take ever more memory.
        """
        if self._reader.num_read != self._counted_reads:
            self._count_parts()
        limit = 2 * (len(self._pods) - len(self._free)) + SPARE_SYMBOLS
        return self._num_parts > self._most_parts or self._most_symbols > limit

    def drop_unused_symbols(self) -> None:
        """Renumbers the symbols, keeping those of the pods in slots, and drops all sums, which depend on codes."""
        in_use = np.fromiter((pod is not None for pod in self._pods), np.bool_, len(self._pods))
        codes = self._codes[:, : len(in_use)]
        codes[:, ~in_use] = ABSENT
        used = [np.unique(of_pods[of_pods != ABSENT]) for of_pods in codes]
        for of_pods, old, symbols in zip(codes, used, self._tallies.symbols, strict=True):
            new = np.full(len(symbols) + 1, ABSENT, np.int32)  # the last entry is for ABSENT, which indexes it
            new[old] = np.arange(len(old))
            of_pods[:] = new[of_pods]
        self._tallies = self._tallies.of_symbols(used)
        self._counted_symbols, self._num_parts = [0 for _ in Attribute], 0
        self._count_parts()
        self._most_parts = 2 * self._num_parts + SPARE_PARTS
        self._snapshot = None

    def _count_parts(self) -> None:
        for attribute, symbols in zip(Attribute, self._tallies.symbols, strict=True):
            for code in range(self._counted_symbols[attribute], len(symbols)):
                self._num_parts += num_parts(symbols[code])
            self._counted_symbols[attribute] = len(symbols)
        self._counted_reads, self._most_symbols = self._reader.num_read, max(self._counted_symbols)

    def _new_slot(self) -> int:
        slot = len(self._pods)
        self._pods.append(None)
        self._uids.append("")
        if slot >= len(self._node):
            room = 2 * len(self._node)
            self._node = resized(self._node, room, NO_NODE)
            self._uid_rank = resized(self._uid_rank, room)
            self._amounts = resized(self._amounts, room, used=NUM_COUNTS + len(self.resources))
            self._priority = resized(self._priority, room)
            self._start_time = resized(self._start_time, room)
            self._codes = resized(self._codes, room, ABSENT)
            self._snapshot = None
        return slot

    # Nodes, by place.

    @property
    def places(self) -> dict[str, int]:
        """Name -> place on axis N."""
        return self._index

    def write_node(self, place: int, node: Node) -> None:
        """Writes the node at this place; its name and its zone have not changed."""
        self._node_changes.changed(place)
        self._nodes[place] = node
        self._label_keys.update(node.metadata.labels)
        self._invalid.pop(place, None)
        self._allocatable[:, place] = 0
        try:
            resources, allowed_pods = allocatable(node)
        except QuantityError as exc:
            self._invalid[place] = str(exc)
            self._allowed_pods[place] = 0
        else:
            self._allocatable[:3, place] = resources.milli_cpu, resources.memory, resources.ephemeral_storage
            for name, amount in resources.scalar.items():
                self._offered.add(name)
                if name in self._unoffered:
                    self._add_resource(name)
                code = self.resources.code_of(name)
                if 0 <= code < self._filled_resources:
                    self._allocatable[code, place] = amount
            self._allowed_pods[place] = allowed_pods
        for name, scalars in self._scalar_columns.items():
            scalars[place] = columns.scalar_amounts(name, [node], () if place not in self._invalid else (0,))[0]
        self._unschedulable[place] = node.spec.unschedulable
        taints = tuple((taint.key, taint.value, taint.effect) for taint in node.spec.taints)
        self._taint_set[place] = self._taint_sets.intern(taints)
        for column in self._label_columns.values():
            column.set(place, node)

    def write_images(self, place: int, images: columns.ImagesOnNode) -> None:
        """Writes the images of the node at this place, also if only the number of nodes with an image has changed."""
        if images == self._images_on[place]:
            return
        self._node_changes.changed(place)
        self._images_on[place] = images
        self._image_names.update(images)
        for column in self._image_columns.values():
            column.set(place, images)

    def write_ports(self, place: int, used: frozenset[HostPort]) -> None:
        self._used_ports[place] = used
        for port, column in self._port_columns.items():
            column[place] = port in used

    def host_ports(self, slot: int) -> tuple[HostPort, ...]:
        code = int(self._codes[_HOST_PORTS, slot])
        ports = self._tallies.symbols[_HOST_PORTS][code] if code >= 0 else ()
        return ports if isinstance(ports, tuple) else ()

    def lay_out(self, first: int, names: Sequence[str], came: Mapping[str, tuple[Node, list[int]]]) -> None:
        """Renumbers the nodes from a place on, in visiting order.

        Pods stay on their nodes; those of nodes that left are on no node. `came` has the slots of the pods, in order,
        of the nodes among `names` that had no place; those are written now, but for images and ports.
        """
        old = np.fromiter(map(self._index.get, names, repeat(NO_NODE)), np.intp, len(names))
        # (A,) `old[i]` is the place that names[i] had, whose new place is first + i.
        has_place, count = old != NO_NODE, first + len(names)
        self._snapshot = None
        self._changes.all_changed()
        self._node_changes.all_changed()
        self._tallies.forget()
        if has_place.any() or first < len(self._nodes):
            stay = np.arange(first)
            # From the places `stay` and `old[has_place]` to the places `to`: those before `first` do not move.
            to = np.concatenate((stay, first + np.flatnonzero(has_place)))
            self._move(to, np.concatenate((stay, old[has_place])), count)
            self._drop_unused_taint_sets(to)
        else:
            self._move(slice(first), slice(first), count)
        if not self._nodes:
            # Read later, these labels cost twice as much: nodes are in the processor's cache while they are written.
            self._label_columns = {key: columns.LabelColumn.unread(key, count) for key in columns.WIDELY_ASKED}
        index = self._index.copy() if first else {}
        for node in self._nodes[first:] if first else ():
            del index[node.metadata.name]
        index.update(zip(names, range(first, count), strict=True))
        self._index, places = index, old.tolist()
        self._nodes = self._nodes[:first] + [
            self._nodes[place] if place != NO_NODE else came[name][0] for name, place in zip(names, places, strict=True)
        ]
        # A place of NO_NODE takes the last item, which stands for a node that came.
        self._on_node = self._on_node[:first] + list(map([*self._on_node, []].__getitem__, places))
        self._used_ports = self._used_ports[:first] + list(map([*self._used_ports, frozenset()].__getitem__, places))
        self._images_on = self._images_on[:first] + list(map([*self._images_on, {}].__getitem__, places))
        new = [offset for offset, place in enumerate(places) if place == NO_NODE] if came else []
        for offset in new:
            self.write_node(first + offset, came[names[offset]][0])
        self._place_pods(first + np.array(new, np.intp), [came[names[offset]][1] for offset in new])

    def _move(self, to: Index | slice, old: Index | slice, count: int) -> None:
        """Moves the columns over axis N from the `old` places `to` new ones, and the pods with them.

        The columns become as long as there are nodes: without spare room, those of several resources are contiguous, so
        that rows are taken fast.
        """
        new_places = np.full(len(self._nodes) + 1, NO_NODE, np.intp)  # the last entry is for NO_NODE, which indexes it
        new_places[old] = np.arange(count)[to]
        used = len(self._pods)
        self._node[:used] = new_places[self._node[:used]]
        self._invalid = {
            place: why for old_place, why in self._invalid.items() if (place := int(new_places[old_place])) != NO_NODE
        }
        self._allocatable = moved(self._allocatable, to, old, count)
        self._sums = moved(self._sums, to, old, count)
        self._allowed_pods = moved(self._allowed_pods, to, old, count)
        self._unschedulable = moved(self._unschedulable, to, old, count)
        self._taint_set = moved(self._taint_set, to, old, count, ABSENT)
        self._unranked = moved(self._unranked, to, old, count)
        # Of other columns, those that can be moved without reading each node stay.
        self._label_columns = {
            key: column.moved(to, old, count) for key, column in self._label_columns.items() if column.is_shared
        }
        self._scalar_columns = {name: moved(column, to, old, count) for name, column in self._scalar_columns.items()}
        self._port_columns = {port: moved(column, to, old, count) for port, column in self._port_columns.items()}
        self._image_columns = {}

    def _drop_unused_taint_sets(self, carried: Index) -> None:
        """Renumbers the lists of taints, keeping those of the nodes at these places: plugins evaluate every list."""
        old, self._taint_sets = self._taint_sets, SymbolTable()
        # `inverse` holds, per carried node, the index of its old code in `codes`.
        codes, inverse = np.unique(self._taint_set[carried], return_inverse=True)
        new = np.array([self._taint_sets.intern(old[code]) for code in codes.tolist()], np.int32)
        self._taint_set[carried] = new[inverse]

    @property
    def is_bloated(self) -> bool:
        """True if most known names, values of a label or lists of taints are no longer those of any node."""
        limit = 2 * len(self._nodes) + 1024
        if len(self._taint_sets) > limit or any(len(column.values) > limit for column in self._label_columns.values()):
            return True
        return self._num_names > self._most_names

    @property
    def _num_names(self) -> int:
        """The number of known label keys, resources and images."""
        return len(self._label_keys) + len(self._offered) + len(self._image_names)

    def drop_unused_values(self) -> None:
        """Forgets the label keys, label values, resources, images and lists of taints that no node has."""
        self._label_keys = {key for node in self._nodes for key in node.metadata.labels}
        self._offered = {name for node in self._nodes for name in node.status.allocatable}
        self._image_names = set(chain.from_iterable(self._images_on))
        self._most_names = 2 * self._num_names + 1024
        self._label_columns = {}
        self._drop_unused_taint_sets(np.arange(len(self._nodes)))
        self._changes.all_changed()
        self._node_changes.all_changed()
        self._tallies.forget()
        self._snapshot = None

    def _place_pods(self, came: Index, pods_on: list[list[int]]) -> None:
        for place, on_node in zip(came.tolist(), pods_on, strict=True):
            self._on_node[place] = list(on_node)
        # Vectorized: `slots` and `nodes` have an entry per pod, node by node.
        counts = np.fromiter(map(len, pods_on), np.int64, len(pods_on))
        slots = np.fromiter(chain.from_iterable(pods_on), np.intp, int(counts.sum()))
        nodes = np.repeat(came, counts)
        self._node[slots] = nodes
        for sums, amounts in zip(self._sums, self._amounts, strict=True):
            np.add.at(sums, nodes, amounts[slots])

    def _add_resource(self, name: str) -> None:
        """Puts a resource that pods request and a node offers on axis K, with the requests of present pods.

        Nodes may offer and pods may request any number of resources: only those both offered and requested have a
        place, so that neither the author of a node nor that of a pod alone makes the arrays grow.
        """
        place = self.resources.intern(name)
        self._grow_resources(place + 1)
        requests = self._unoffered.pop(name)
        slots, amounts = np.array([*requests], np.intp), np.array([*requests.values()], np.int64)
        self._amounts[NUM_COUNTS + place, slots] = amounts
        nodes = self._node[slots]
        # Arrays of int64 wrap when a sum overflows, as Go does.
        np.add.at(self._sums[NUM_COUNTS + place], nodes[nodes != NO_NODE], amounts[nodes != NO_NODE])

    def _grow_resources(self, count: int) -> None:
        if count > len(self._allocatable):
            self._allocatable = with_more_resources(self._allocatable, 2 * count)
            self._sums = with_more_resources(self._sums, NUM_COUNTS + 2 * count)
            self._amounts = with_more_resources(self._amounts, NUM_COUNTS + 2 * count)
            self._snapshot = None

    # Snapshots.

    def snapshot(self) -> Snapshot:
        """Returns views of the columns as they are now, at a new generation."""
        self._generation += 1
        self._changes.close(self._generation)
        self._node_changes.close(self._generation)
        if self._snapshot is not None and self.views_are_current:
            self._snapshot = self._snapshot.at(self._generation)
        else:
            self._snapshot = self._with_new_views()
        return self._snapshot

    @property
    def views_are_current(self) -> bool:
        """True while the last snapshot's views cover the columns, which may have been reallocated or grown."""
        return self._snapshot is not None and self._filled_resources == len(self.resources)

    def _with_new_views(self) -> Snapshot:
        num_nodes, num_resources = len(self._nodes), len(self.resources)
        self._grow_resources(num_resources)
        for code in range(self._filled_resources, num_resources):
            amounts = columns.scalar_amounts(self.resources[code], self._nodes, self._invalid)
            self._allocatable[code, :num_nodes] = amounts
        self._filled_resources = num_resources
        used = NUM_COUNTS + num_resources
        nodes = columns.NodeColumns(
            objects=self._nodes,
            index=self._index,
            allocatable=read_only(self._allocatable[:num_resources, :num_nodes].T),
            allowed_pods=read_only(self._allowed_pods[:num_nodes]),
            requested=read_only(self._sums[NUM_COUNTS:used, :num_nodes].T),
            non_zero_requested=read_only(self._sums[1:NUM_COUNTS, :num_nodes].T),
            pod_count=read_only(self._sums[0, :num_nodes]),
            unschedulable=read_only(self._unschedulable[:num_nodes]),
            scalar_columns=self._scalar_columns,
            offered=self._offered,
            taint_set=read_only(self._taint_set[:num_nodes]),
            taint_sets=self._taint_sets,
            invalid=self._invalid,
            label_columns=self._label_columns,
            label_keys=self._label_keys,
            image_names=self._image_names,
            images_on=self._images_on,
            image_columns=self._image_columns,
            used_ports=self._used_ports,
            port_columns=self._port_columns,
        )
        pods = columns.PodColumns(
            objects=self._pods,
            slots=self._slots,
            uids=self._uids,
            node=read_only(self._node),
            last_ranks=self._uid_rank,
            unranked=self._unranked[:num_nodes],
            requests=read_only(self._amounts[NUM_COUNTS:used].T),
            unoffered=self._unoffered,
            non_zero_requests=read_only(self._amounts[1:NUM_COUNTS].T),
            priority=read_only(self._priority),
            start_time=read_only(self._start_time),
            codes=read_only(self._codes),
            on_node=self._on_node,
        )
        return Snapshot(
            generation=self._generation,
            changes=self._changes,
            node_changes=self._node_changes,
            nodes=nodes,
            pods=pods,
            resources=self.resources,
            tallies=self._tallies,
            all_nodes=read_only(np.arange(num_nodes)),
            objects=self._objects,
        )
