"""The binder: finds volumes for a pod's claims on each node, and assumes them once a node is chosen.

Upstream: framework/plugins/volumebinding/binder.go, FindPodVolumes, AssumePodVolumes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, final

import msgspec
import numpy as np

from extender.engine import framework as fwk
from extender.engine.plugins.volume_binding.pod_claims import AssumeError, DelayedClaim, PodClaims, Storage
from extender.engine.plugins.volume_binding.reach import capacity_mask, reach_of_bound, topology_mask
from extender.engine.plugins.volume_binding.static_matching import ClaimSelectorError, VolumeChoice, match_claims
from extender.engine.snapshot import Snapshot
from extender.engine.snapshot.axes import Mask
from extender.engine.snapshot.symbols import ABSENT
from extender.values.objects.claims import NO_PROVISIONER, SELECTED_NODE_ANNOTATION, bound_to
from extender.values.objects.csi_translation import in_tree_plugin
from extender.values.objects.decoding import replaced
from extender.values.objects.storage import PersistentVolume, PersistentVolumeClaim

_ENCODE: Final = msgspec.json.Encoder().encode

REASON_NODE_CONFLICT: Final = "node(s) didn't match PersistentVolume's node affinity"
REASON_BIND_CONFLICT: Final = "node(s) didn't find available persistent volumes to bind"
REASON_NOT_ENOUGH_SPACE: Final = "node(s) did not have enough free storage"
REASON_VOLUME_MISSING: Final = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"


Binding = tuple[PersistentVolume, PersistentVolumeClaim]
"""A volume, and the claim that gets it."""


@final
class PodVolumes(msgspec.Struct, frozen=True):
    """The volumes of a pod's claims on each node."""

    refusals: tuple[tuple[str, Mask], ...]
    """(reason, (N,) refused nodes), in the order in which a node lists its reasons."""
    failures: tuple[tuple[str, Mask], ...]
    """(message, (N,) nodes for which an error occurred)."""
    choices: tuple[VolumeChoice, ...] = ()
    to_provision: tuple[tuple[PersistentVolumeClaim, Mask], ...] = ()
    """(claim, (N,) nodes on which a volume would be provisioned)."""

    def verdicts(self, rows: fwk.Rows) -> fwk.Verdicts:
        """Returns the verdicts on these rows. Refusals are unresolvable, since removing pods does not free volumes."""
        codes = np.zeros(len(rows), np.int8)
        reasons: list[tuple[str, Mask]] = []
        unresolvable, error = fwk.Code.UNSCHEDULABLE_AND_UNRESOLVABLE, fwk.Code.ERROR
        for code, masks in ((unresolvable, self.refusals), (error, self.failures)):
            for reason, nodes in masks:
                mask = nodes[rows.node]
                codes[mask] = code
                reasons.append((reason, mask))
        return fwk.Verdicts(codes, tuple((reason, mask) for reason, mask in reasons if mask.any()))

    def bindings_on(self, node: int) -> list[Binding]:
        chosen = ((choice.at(node), choice.delayed.claim) for choice in self.choices if choice.volumes)
        return [(volume, claim) for volume, claim in chosen if volume is not None]

    def provisions_on(self, node: int) -> list[PersistentVolumeClaim]:
        return [claim for claim, nodes in self.to_provision if nodes[node]]


def find_pod_volumes(snapshot: Snapshot, storage: Storage, claims: PodClaims) -> PodVolumes:
    """Finds volumes for all claims of a pod, for all nodes at once. Raises QuantityError for an invalid size."""
    outcome = _Outcome(*np.zeros((5, len(snapshot.nodes)), np.bool_))
    # Upstream checks bound claims first, and stops at the first error.
    _check_bound(snapshot, storage, claims.bound, outcome)
    _find_delayed(snapshot, storage, claims.delayed, outcome)
    refusals = (
        (REASON_NODE_CONFLICT, outcome.unreached & ~outcome.failed),
        (REASON_BIND_CONFLICT, outcome.unbound & ~outcome.failed),
        (REASON_NOT_ENOUGH_SPACE, outcome.without_capacity & ~outcome.failed),
        (REASON_VOLUME_MISSING, outcome.without_volume & ~outcome.failed),
    )
    return PodVolumes(refusals, tuple(outcome.failures), tuple(outcome.choices), tuple(outcome.to_provision))


@dataclass(slots=True)
class _Outcome:
    """The result for the bound claims, and for the unbound ones that wait for a node, as masks over nodes."""

    unreached: Mask
    """(N,) the nodes that do not reach a volume of a bound claim."""
    without_volume: Mask
    """(N,) the nodes that reach all volumes of bound claims up to a missing one."""
    unbound: Mask
    """(N,) the nodes on which an unbound claim would get no volume."""
    without_capacity: Mask
    """(N,) the nodes without capacity for a volume that would have to be provisioned."""
    failed: Mask
    failures: list[tuple[str, Mask]] = field(default_factory=list)
    choices: list[VolumeChoice] = field(default_factory=list)
    to_provision: list[tuple[PersistentVolumeClaim, Mask]] = field(default_factory=list)


def _check_bound(
    snapshot: Snapshot, storage: Storage, claims: Iterable[PersistentVolumeClaim], outcome: _Outcome
) -> None:
    """Upstream: checkBoundClaims, which stops on each node at the first claim that refuses it."""
    remaining = np.ones(len(snapshot.nodes), np.bool_)
    checked_affinities: set[bytes] = set()
    for claim in claims:
        volume = storage.volume(claim.spec.volume_name)
        if volume is None:
            outcome.without_volume |= remaining
            break
        reached_by = _ENCODE(volume.spec.node_affinity) if in_tree_plugin(volume) is None else b""
        if reached_by in checked_affinities or not remaining.any():
            continue  # a pod may have thousands of volumes of one zone
        if reached_by:
            checked_affinities.add(reached_by)
        reach = reach_of_bound(snapshot, volume)
        if reach.unknown is not None:
            unknown = remaining & reach.unknown
            outcome.failures.append((reach.why_unknown, unknown))
            outcome.failed |= unknown
            remaining &= ~unknown
        outcome.unreached |= remaining & ~reach.nodes
        remaining &= reach.nodes


def _find_delayed(snapshot: Snapshot, storage: Storage, claims: Sequence[DelayedClaim], outcome: _Outcome) -> None:
    provisioning: list[DelayedClaim] = []
    unassigned: list[DelayedClaim] = []
    nodes_selected: set[str] = set()
    for delayed in claims:
        selected = delayed.claim.metadata.annotations.get(SELECTED_NODE_ANNOTATION)
        if selected is None:
            unassigned.append(delayed)
        else:
            # A volume is being provisioned for that node, so that the claim can be bound nowhere else.
            provisioning.append(delayed)
            if selected not in nodes_selected:
                nodes_selected.add(selected)
                outcome.unbound |= snapshot.all_nodes != snapshot.nodes.index.get(selected, ABSENT)
    remaining = ~outcome.unbound
    try:
        outcome.choices = match_claims(snapshot, storage, unassigned)
    except ClaimSelectorError as exc:
        outcome.failures.append((str(exc), remaining & ~outcome.failed))
        outcome.failed |= remaining
        return
    searches = [(delayed, remaining) for delayed in provisioning]
    searches += [
        (choice.delayed, remaining & ~choice.found if choice.volumes else remaining) for choice in outcome.choices
    ]
    masks_by_kind: dict[tuple[str, object, int], Mask | None] = {}
    for delayed, nodes in searches:
        # Claims of one class and size that may be provisioned on the same nodes: a pod may have thousands. That other
        # claims have ruled out further nodes meanwhile makes no difference.
        kind = delayed.storage_class.metadata.name, delayed.claim.spec.resources.requests.get("storage"), id(nodes)
        if kind not in masks_by_kind:
            masks_by_kind[kind] = _provision(
                snapshot, delayed, nodes & ~outcome.unbound & ~outcome.without_capacity, outcome
            )
        on_nodes = masks_by_kind[kind]
        if on_nodes is not None:
            outcome.to_provision.append((delayed.claim, on_nodes))


def _provision(snapshot: Snapshot, delayed: DelayedClaim, nodes: Mask, outcome: _Outcome) -> Mask | None:
    """Returns the nodes that can get a volume; None without provisioner or nodes (checkVolumeProvisions)."""
    if not nodes.any():
        return None
    storage_class = delayed.storage_class
    if storage_class.provisioner in ("", NO_PROVISIONER):
        outcome.unbound |= nodes
        return None
    allowed = topology_mask(snapshot, storage_class.allowed_topologies)
    outcome.unbound |= nodes & ~allowed
    nodes = nodes & allowed
    enough = capacity_mask(snapshot, storage_class, delayed.claim)
    if enough is not None:
        outcome.without_capacity |= nodes & ~enough
        nodes = nodes & enough
    return nodes


# After a node is chosen.


@final
class AssumedVolumes(msgspec.Struct, frozen=True):
    """The assumed objects of a pod, to be written: volumes with claims, claims with the selected node."""

    volumes: tuple[PersistentVolume, ...] = ()
    claims: tuple[PersistentVolumeClaim, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.volumes and not self.claims


def assume_pod_volumes(
    storage: Storage, bindings: Iterable[Binding], provisions: Iterable[PersistentVolumeClaim], node: str, uid: str
) -> AssumedVolumes:
    """Assumes for a pod that the claims get their volumes, or that volumes are provisioned for them.

    Raises AssumeError if a claim or volume was deleted or changed meanwhile; then nothing is assumed.
    """
    volumes: list[PersistentVolume] = []
    claims: list[PersistentVolumeClaim] = []
    objects = storage.objects
    try:
        for free, claim in bindings:
            volume, current = bound_to(free, claim), objects.pvs.get(free.metadata.name)
            # What is assumed already, for a pod with the same claim, is for this one as well.
            if volume is not free or (current is not None and bound_to(current, claim) is not current):
                storage.assumed_volumes.assume(volume.metadata.name, volume, objects.pvs, uid)
            volumes.append(volume)
        selected: dict[int, PersistentVolumeClaim] = {}
        for claim in provisions:
            if id(claim) in selected:  # the pod names it more than once
                claims.append(selected[id(claim)])
                continue
            annotations = {**claim.metadata.annotations, SELECTED_NODE_ANNOTATION: node}
            assumed = replaced(claim, metadata=replaced(claim.metadata, annotations=annotations))
            storage.assumed_claims.assume((claim.namespace, claim.metadata.name), assumed, objects.pvcs, uid)
            claims.append(assumed)
            selected[id(claim)] = assumed
    except AssumeError:
        restore_pod_volumes(storage, AssumedVolumes(tuple(volumes), tuple(claims)), uid)
        raise
    return AssumedVolumes(tuple(volumes), tuple(claims))


def restore_pod_volumes(storage: Storage, assumed: AssumedVolumes, uid: str) -> None:
    """Drops what was assumed for a pod. Idempotent."""
    for volume in assumed.volumes:
        storage.assumed_volumes.restore(volume.metadata.name, uid)
    for claim in assumed.claims:
        storage.assumed_claims.restore((claim.namespace, claim.metadata.name), uid)
