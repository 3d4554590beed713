"""VolumeZone: keeps pods in the zones and regions of their bound volumes, as the labels of the volumes give them."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, final

import numpy as np
from msgspec.structs import replace

from extender.engine import framework as fwk
from extender.engine.plugins.volume_advice import VolumeAdvice
from extender.engine.snapshot.axes import Mask
from extender.engine.snapshot.matching import requirement_mask
from extender.engine.snapshot.symbols import ABSENT
from extender.values.golang.quoting import quoted
from extender.values.objects.claims import (
    WAIT_FOR_FIRST_CONSUMER,
    claim_class,
    claim_not_found,
    class_not_found,
    names_claim,
    volume_not_found,
    volumes_with_claims,
)
from extender.values.objects.csi_translation import MULTI_ZONE_DELIMITER
from extender.values.objects.label_selectors import Operator, Requirement
from extender.values.objects.node import BETA_REGION_LABEL, BETA_ZONE_LABEL, REGION_LABEL, ZONE_LABEL
from extender.values.objects.pod import Volume
from extender.values.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass

REASON: Final = "node(s) had no available volume zone"
NO_CLAIM_NAME: Final = "PersistentVolumeClaim had no name"
NO_VOLUME_NO_CLASS: Final = "PersistentVolumeClaim had no pv name and storageClass name"
NO_VOLUME_NAME: Final = "PersistentVolume had no name"

_TOPOLOGY_LABELS: Final = (BETA_ZONE_LABEL, BETA_REGION_LABEL, ZONE_LABEL, REGION_LABEL)
_CURRENT_LABEL: Final = {BETA_ZONE_LABEL: ZONE_LABEL, BETA_REGION_LABEL: REGION_LABEL}

_REFUSED: Final = fwk.StateKey[Mask]("PreFilterVolumeZone")


@final
class VolumeZone(fwk.PreFilterPlugin, fwk.FilterPlugin, VolumeAdvice):
    """Refuses nodes in zones or regions from which a bound volume of the pod is not accessible. Nodes without such
    labels pass.

    Upstream: framework/plugins/volumezone/volume_zone.go.
    """

    looks_at_pods = False

    def __init__(self, arguments: Any = None, handle: fwk.Handle | None = None) -> None:
        super().__init__(arguments, handle)
        self._with_claims = fwk.PodMemo[tuple[Volume, ...]]()

    def events_to_register(self) -> Sequence[fwk.ClusterEventWithHint]:
        add, update = fwk.ActionType.ADD, fwk.ActionType.UPDATE
        return [
            fwk.on(fwk.EventResource.STORAGE_CLASS, add, _after_class_addition),
            fwk.on(fwk.EventResource.NODE, add | fwk.ActionType.UPDATE_NODE_LABEL),
            fwk.on(fwk.EventResource.PERSISTENT_VOLUME_CLAIM, add | update, _after_claim_change),
            fwk.on(fwk.EventResource.PERSISTENT_VOLUME, add | update, _after_volume_change),
        ]

    def pre_filter(self, state: fwk.CycleState, pod: fwk.Pod, snapshot: fwk.Snapshot) -> fwk.PreFilterResult:
        """Skips pods whose volumes have no topology; unresolvable if an object is missing, or a claim not bound."""
        if not pod.spec.volumes:
            return fwk.PreFilterResult(fwk.SKIP_EQUAL_PODS)
        topologies = _topologies(pod, self._claims(state, pod), snapshot)
        if isinstance(topologies, fwk.Status):
            return fwk.PreFilterResult(topologies)
        if not topologies:
            return fwk.PreFilterResult(fwk.SKIP)
        state.write(_REFUSED, _refused(topologies, snapshot))
        return fwk.PreFilterResult(fwk.SUCCESS)

    def _claims(self, state: fwk.CycleState, pod: fwk.Pod) -> tuple[Volume, ...]:
        return self._with_claims.of(state, lambda: volumes_with_claims(pod))

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        """Refusals are unresolvable, since removing pods does not move a volume."""
        refused = state.find(_REFUSED)
        if refused is None:
            # A profile may run this Filter without its PreFilter.
            topologies = _topologies(pod, self._claims(state, pod), rows.snapshot)
            if isinstance(topologies, fwk.Status):
                return fwk.reject(np.ones(len(rows), np.bool_), topologies.message, unresolvable=True)
            refused = _refused(topologies, rows.snapshot)
        return fwk.reject(refused[rows.node], REASON, unresolvable=True)


def volume_topologies(volume: PersistentVolume) -> list[Requirement]:
    """Returns what the volume's labels require of nodes. A label whose list has an empty value is ignored.

    Upstream: getPVTopologies; cloud-provider/volume/helpers/zones.go, LabelZonesToSet.
    """
    topologies: list[Requirement] = []
    for key in _TOPOLOGY_LABELS:
        listed = volume.metadata.labels.get(key)
        if listed is not None:
            values = tuple(value.strip() for value in listed.split(MULTI_ZONE_DELIMITER))
            if all(values):
                topologies.append(Requirement(key, Operator.IN, values))
    return topologies


def _topologies(pod: fwk.Pod, volumes: Iterable[Volume], snapshot: fwk.Snapshot) -> list[Requirement] | fwk.Status:
    objects = snapshot.objects
    topologies: dict[Requirement, None] = {}
    unbound: set[str] = set()
    for volume in volumes:
        if volume.persistent_volume_claim is None:
            continue
        name = volume.persistent_volume_claim.claim_name
        if not name:
            return fwk.unresolvable(NO_CLAIM_NAME)
        claim = objects.pvcs.get((pod.namespace, name))
        if claim is None:
            return fwk.unresolvable(claim_not_found(name))
        if not claim.spec.volume_name:
            storage_class = claim_class(claim)
            refusal = None if storage_class in unbound else _why_unbound(storage_class, snapshot)
            if refusal is not None:
                return refusal
            unbound.add(storage_class)
            continue
        bound = objects.pvs.get(claim.spec.volume_name)
        if bound is None:
            return fwk.unresolvable(volume_not_found(claim.spec.volume_name))
        topologies.update(dict.fromkeys(volume_topologies(bound)))
    return [*topologies]


def _why_unbound(class_name: str, snapshot: fwk.Snapshot) -> fwk.Status | None:
    """Returns why an unbound claim of this class prevents scheduling; None if it waits for its first consumer."""
    if not class_name:
        return fwk.unresolvable(NO_VOLUME_NO_CLASS)
    storage_class = snapshot.objects.storage_classes.get(class_name)
    if storage_class is None:
        return fwk.unresolvable(class_not_found(class_name))
    if storage_class.volume_binding_mode is None:
        return fwk.unresolvable(f"VolumeBindingMode not set for StorageClass {quoted(class_name)}")
    return None if storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER else fwk.unresolvable(NO_VOLUME_NAME)


def _refused(topologies: list[Requirement], snapshot: fwk.Snapshot) -> Mask:
    """(N,) the nodes from which some volume is not accessible."""
    nodes = snapshot.nodes
    refused = np.zeros(len(nodes), np.bool_)
    for topology in topologies:
        reachable = requirement_mask(snapshot, topology)
        current_label = _CURRENT_LABEL.get(topology.key)
        if current_label is not None:
            lacks_old_label = nodes.label(topology.key).codes == ABSENT
            reachable |= lacks_old_label & requirement_mask(snapshot, replace(topology, key=current_label))
        refused |= ~reachable
    has_any_label = np.zeros(len(nodes), np.bool_)
    for key in _TOPOLOGY_LABELS:
        has_any_label |= nodes.label(key).codes != ABSENT
    return refused & has_any_label


def _after_class_addition(pod: fwk.Pod, old: None, new: StorageClass) -> fwk.QueueingHint:
    return fwk.queue_if(new.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER)


def _after_claim_change(
    pod: fwk.Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim
) -> fwk.QueueingHint:
    return fwk.queue_if(names_claim(pod, new))


def _after_volume_change(pod: fwk.Pod, old: PersistentVolume | None, new: PersistentVolume) -> fwk.QueueingHint:
    return fwk.queue_if(old is None or _zones(old) != _zones(new))


def _zones(volume: PersistentVolume) -> list[tuple[str, frozenset[str]]]:
    return [(topology.key, frozenset(topology.values)) for topology in volume_topologies(volume)]
