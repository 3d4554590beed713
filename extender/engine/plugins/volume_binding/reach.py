"""Finds the nodes that reach a volume, and those with capacity for one: for all nodes at once.

Upstream: component-helpers/storage/volume/helpers.go, CheckNodeAffinity; framework/plugins/volumebinding/binder.go,
checkBoundClaims, tryTranslatePVToCSI, hasEnoughCapacity.
"""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, final

import msgspec
import numpy as np
from msgspec.structs import replace

from extender.engine.snapshot import Snapshot
from extender.engine.snapshot.axes import Int64s, Mask
from extender.engine.snapshot.matching import label_selector_mask, node_selector_mask, requirement_mask
from extender.engine.snapshot.symbols import ABSENT
from extender.values.golang.quoting import quoted
from extender.values.objects.claims import requested_storage
from extender.values.objects.csi_translation import InTreePlugin, TranslationError, in_tree_plugin, translated
from extender.values.objects.label_selectors import Operator, Requirement, Selector, SelectorError, selector_of
from extender.values.objects.node import Node
from extender.values.objects.node_selectors import ParsedNodeSelector, node_selector_of
from extender.values.objects.quantity import QuantityError, value_of
from extender.values.objects.storage import (
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    TopologySelectorTerm,
    attach_profile,
)

NO_CAPACITY: Final = -1
"""The capacity of a node on which no volume can be provisioned."""


@final
class Reach(msgspec.Struct, frozen=True):
    """The nodes that reach a bound volume, and those for which this is unknown."""

    nodes: Mask
    """(N,)"""
    unknown: Mask | None = None
    """(N,) the nodes that need the volume in CSI form, if it cannot be translated."""
    why_unknown: str = ""


def reach_of_bound(snapshot: Snapshot, volume: PersistentVolume) -> Reach:
    """Returns the nodes that reach the volume, translated where nodes serve in-tree volumes through CSI."""
    plugin = in_tree_plugin(volume)
    plain = affinity_mask(snapshot, affinity_of(volume))
    if plugin is None or not plugin.is_migrated:
        return Reach(plain)
    migrated = _migrated(snapshot, plugin)
    if not migrated.any():
        return Reach(plain)
    try:
        as_csi = affinity_mask(snapshot, affinity_of(translated(volume, plugin)))
    except TranslationError as exc:
        return Reach(plain & ~migrated, migrated, f"could not translate pv: {exc}")
    return Reach(np.where(migrated, as_csi, plain))


def affinity_of(volume: PersistentVolume) -> ParsedNodeSelector | None:
    """Returns the selector of the volume's node affinity, of its labels alone as upstream; None for all nodes."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return None
    terms = node_selector_of(affinity.required).terms
    return ParsedNodeSelector(tuple(replace(term, fields=()) if term.fields else term for term in terms))


def why_unreached(volume: PersistentVolume, node: Node, csi_node: CSINode | None) -> str | None:
    """Returns why one node does not reach a bound volume, None if it does, as `reach_of_bound` would.

    Raises TranslationError if the node needs the volume in CSI form, and it cannot be translated.
    """
    plugin = in_tree_plugin(volume)
    migrated = frozenset[str]() if csi_node is None else attach_profile(csi_node).migrated_plugins
    if plugin is not None and plugin.is_migrated and plugin.name in migrated:
        try:
            volume = translated(volume, plugin)
        except TranslationError as exc:
            raise TranslationError(f"could not translate pv: {exc}") from exc
    selector = affinity_of(volume)
    if selector is None or selector.matches(node):
        return None
    return selector.error or "no matching NodeSelectorTerms"


def affinity_mask(snapshot: Snapshot, selector: ParsedNodeSelector | None) -> Mask:
    """(N,) the nodes that match a volume's node affinity."""
    return np.ones(len(snapshot.nodes), np.bool_) if selector is None else node_selector_mask(snapshot, selector)


@final
class Affinities:
    """The node affinities of volumes, each parsed once for all claims of the pod."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._selectors: dict[str, ParsedNodeSelector | None] = {}
        self._masks: dict[str, Mask] = {}

    def of(self, volume: PersistentVolume) -> ParsedNodeSelector | None:
        """Returns the selector of the volume's node affinity; None for all nodes."""
        name = volume.metadata.name
        if name not in self._selectors:
            self._selectors[name] = affinity_of(volume)
        return self._selectors[name]

    def mask(self, volume: PersistentVolume) -> Mask:
        """(N,) the nodes that match the volume's node affinity."""
        mask = self._masks.get(volume.metadata.name)
        if mask is None:
            mask = self._masks[volume.metadata.name] = affinity_mask(self.snapshot, self.of(volume))
        return mask


def topology_mask(snapshot: Snapshot, terms: list[TopologySelectorTerm]) -> Mask:
    """(N,) the nodes that match any of a StorageClass's terms, or all if there are none.

    Upstream: pkg/apis/core/v1/helper/helpers.go, MatchTopologySelectorTerms.
    """
    if not terms:
        return np.ones(len(snapshot.nodes), np.bool_)
    allowed = np.zeros(len(snapshot.nodes), np.bool_)
    for term in terms:
        if not term.match_label_expressions:
            continue
        matching = np.ones(len(snapshot.nodes), np.bool_)
        for expression in term.match_label_expressions:
            matching &= requirement_mask(snapshot, Requirement(expression.key, Operator.IN, tuple(expression.values)))
        allowed |= matching
    return allowed


def capacity_mask(snapshot: Snapshot, storage_class: StorageClass, claim: PersistentVolumeClaim) -> Mask | None:
    """(N,) the nodes where the driver has enough capacity; None if it publishes none. Raises QuantityError."""
    capacity = capacity_of_nodes(snapshot, storage_class, claim)
    return None if capacity is None else capacity != NO_CAPACITY


def capacity_of_nodes(snapshot: Snapshot, storage_class: StorageClass, claim: PersistentVolumeClaim) -> Int64s | None:
    """(N,) the bytes that the class's driver has on each node, NO_CAPACITY where that is too little; None if it does
    not publish them. Raises QuantityError.

    Of several capacities that are enough for a node, one counts; upstream takes the first of a map.
    """
    size = _published_size(snapshot, storage_class, claim)
    if size is None:
        return None
    capacities = np.full(len(snapshot.nodes), NO_CAPACITY, np.int64)
    # With local storage each node has its own capacity object. Those that select one label by value are evaluated
    # together.
    of_label: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for capacity, selector in _sufficient(snapshot, storage_class, size):
        available = 0 if capacity.capacity is None else value_of(capacity.capacity)
        match selector.requirements:
            case (Requirement(key, Operator.IN | Operator.EQUALS, values),):
                for value in values:
                    of_label[key].setdefault(value, available)
            case _:
                capacities[label_selector_mask(snapshot, selector) & (capacities == NO_CAPACITY)] = available
    for label, of_value in of_label.items():
        column = snapshot.nodes.label(label)
        # The last entry, which ABSENT indexes, is for nodes without the label.
        of_code = np.full(len(column.values) + 1, NO_CAPACITY, np.int64)
        for value, available in of_value.items():
            code = column.values.code_of(value)
            if code != ABSENT:
                of_code[code] = available
        capacities = np.where(capacities == NO_CAPACITY, of_code[column.codes], capacities)
    return capacities


def _published_size(snapshot: Snapshot, storage_class: StorageClass, claim: PersistentVolumeClaim) -> int | None:
    """Returns the required capacity in bytes; None if the claim or the driver tells nothing."""
    requested = requested_storage(claim)
    driver = snapshot.objects.csi_drivers.get(storage_class.provisioner)
    return None if requested is None or driver is None or not driver.spec.storage_capacity else requested.value()


def _sufficient(
    snapshot: Snapshot, storage_class: StorageClass, size: int
) -> Iterator[tuple[CSIStorageCapacity, Selector]]:
    """Yields large enough capacities with their nodes' selectors; as upstream, an invalid one selects none."""
    for capacity in snapshot.objects.csi_storage_capacities.values():
        is_of_class = capacity.storage_class_name == storage_class.metadata.name
        if is_of_class and capacity.node_topology is not None and _fits(size, capacity):
            with suppress(SelectorError):
                yield capacity, selector_of(capacity.node_topology)


def _fits(size: int, capacity: CSIStorageCapacity) -> bool:
    """Upstream: binder.go, capacitySufficient, where the largest possible volume takes precedence over the capacity."""
    limit = capacity.maximum_volume_size if capacity.maximum_volume_size is not None else capacity.capacity
    try:
        return limit is not None and value_of(limit) >= size
    except QuantityError as exc:
        raise QuantityError(f"csistoragecapacity {quoted(capacity.metadata.name)}: {exc}") from exc


def _migrated(snapshot: Snapshot, plugin: InTreePlugin) -> Mask:
    """(N,) the nodes that serve the plugin's volumes through its CSI driver."""
    migrated = np.zeros(len(snapshot.nodes), np.bool_)
    places = snapshot.nodes.index
    for profile, nodes in snapshot.objects.csi_nodes.groups().items():
        if plugin.name in profile.migrated_plugins:
            migrated[[places[name] for name in nodes if name in places]] = True
    return migrated
