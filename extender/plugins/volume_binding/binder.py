"""The binder: what would become of a pod's claims on each node, and what is assumed of them once a node is chosen.

Upstream: framework/plugins/volumebinding/binder.go, FindPodVolumes, AssumePodVolumes (v1.36.2).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, final

import numpy as np

from extender import framework as fwk
from extender.objects.claims import NO_PROVISIONER, SELECTED_NODE_ANNOTATION, bound_to, claim_namespace
from extender.objects.decoding import replaced
from extender.objects.storage import PersistentVolume, PersistentVolumeClaim
from extender.plugins.volume_binding.assume_cache import AssumeError
from extender.plugins.volume_binding.pod_claims import DelayedClaim, PodClaims, Storage
from extender.plugins.volume_binding.reach import capacity_mask, reach_of_bound, topology_mask
from extender.plugins.volume_binding.static_matching import ClaimSelectorError, VolumeChoice, match_claims
from extender.snapshot import Snapshot
from extender.snapshot.axes import Mask
from extender.snapshot.symbols import ABSENT

REASON_NODE_CONFLICT: Final = "node(s) didn't match PersistentVolume's node affinity"
REASON_BIND_CONFLICT: Final = "node(s) didn't find available persistent volumes to bind"
REASON_NOT_ENOUGH_SPACE: Final = "node(s) did not have enough free storage"
REASON_VOLUME_MISSING: Final = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"


@final
@dataclass(frozen=True, slots=True)
class Binding:
    """A claim and the volume it gets."""

    volume: PersistentVolume
    claim: PersistentVolumeClaim


@final
@dataclass(frozen=True, slots=True)
class PodVolumes:
    """What would become of a pod's claims, node by node."""

    refusals: tuple[tuple[str, Mask], ...]
    """(reason, (N,) nodes it holds for), in the order in which a node lists its reasons."""
    failures: tuple[tuple[str, Mask], ...]
    """(message, (N,) nodes about which nothing can be said)."""
    choices: tuple[VolumeChoice, ...] = ()
    to_provision: tuple[tuple[PersistentVolumeClaim, Mask], ...] = ()
    """(claim, (N,) nodes for which a volume would be made)."""

    def verdicts(self, rows: fwk.Rows) -> fwk.Verdicts:
        """The answers for these rows; refused for good, for no pod holds a volume's place."""
        codes = np.zeros(len(rows), np.int8)
        reasons: list[tuple[str, Mask]] = []
        for reason, nodes in self.refusals:
            mask = nodes[rows.node]
            codes[mask] = fwk.Code.UNSCHEDULABLE_AND_UNRESOLVABLE
            reasons.append((reason, mask))
        for message, nodes in self.failures:
            mask = nodes[rows.node]
            codes[mask] = fwk.Code.ERROR
            reasons.append((message, mask))
        return fwk.Verdicts(codes, tuple((reason, mask) for reason, mask in reasons if mask.any()))

    def bindings_on(self, node: int) -> list[Binding]:
        """The claims that would get volumes that exist, if the pod ran on the node at this place."""
        chosen = ((choice.at(node), choice.delayed.claim) for choice in self.choices)
        return [Binding(volume, claim) for volume, claim in chosen if volume is not None]

    def provisions_on(self, node: int) -> list[PersistentVolumeClaim]:
        """The claims for which volumes would be made, if the pod ran on the node at this place."""
        return [claim for claim, nodes in self.to_provision if nodes[node]]


def find_pod_volumes(snapshot: Snapshot, storage: Storage, claims: PodClaims) -> PodVolumes:
    """Look for volumes for all claims of a pod, from all nodes at once.

    Raises:
        QuantityError: a claim, a volume or a capacity has a size that cannot be read.
    """
    bound = _check_bound(snapshot, storage, claims.bound)
    delayed = _find_delayed(snapshot, storage, claims.delayed)
    failed = bound.failed | delayed.failed
    refusals = (
        (REASON_NODE_CONFLICT, bound.unreached & ~failed),
        (REASON_BIND_CONFLICT, delayed.unbound & ~failed),
        (REASON_NOT_ENOUGH_SPACE, delayed.without_room & ~failed),
        (REASON_VOLUME_MISSING, bound.missing & ~failed),
    )
    # Upstream looks at bound claims first, and stops at what it cannot tell.
    failures = (*bound.failures, *((message, nodes & ~bound.failed) for message, nodes in delayed.failures))
    return PodVolumes(refusals, failures, tuple(delayed.choices), tuple(delayed.to_provision))


@dataclass(slots=True)
class _Bound:
    """What the bound claims say: (N,) each."""

    unreached: Mask
    """Nodes that do not reach a volume."""
    missing: Mask
    """Nodes that reach all volumes up to one that does not exist."""
    failed: Mask
    failures: list[tuple[str, Mask]] = field(default_factory=list)


def _check_bound(snapshot: Snapshot, storage: Storage, claims: Iterable[PersistentVolumeClaim]) -> _Bound:
    """Upstream: checkBoundClaims: on each node the first claim that is in the way is the last that is looked at."""
    found = _Bound(_no_node(snapshot), _no_node(snapshot), _no_node(snapshot))
    in_play = np.ones(len(snapshot.nodes), np.bool_)
    for claim in claims:
        volume = storage.volume(claim.spec.volume_name)
        if volume is None:
            found.missing |= in_play
            break
        reach = reach_of_bound(snapshot, volume)
        if reach.unknown is not None:
            unknown = in_play & reach.unknown
            found.failures.append((reach.why_unknown, unknown))
            found.failed |= unknown
            in_play &= ~unknown
        found.unreached |= in_play & ~reach.nodes
        in_play &= reach.nodes
    return found


@dataclass(slots=True)
class _Delayed:
    """What the claims that wait for a node would get: (N,) each."""

    unbound: Mask
    """Nodes on which a claim would get nothing."""
    without_room: Mask
    """Nodes for which a volume would have to be made for which there is no room."""
    failed: Mask
    failures: list[tuple[str, Mask]] = field(default_factory=list)
    choices: list[VolumeChoice] = field(default_factory=list)
    to_provision: list[tuple[PersistentVolumeClaim, Mask]] = field(default_factory=list)


def _find_delayed(snapshot: Snapshot, storage: Storage, claims: Sequence[DelayedClaim]) -> _Delayed:
    """Match the claims with volumes, and provision volumes for those that get none."""
    found = _Delayed(_no_node(snapshot), _no_node(snapshot), _no_node(snapshot))
    begun: list[DelayedClaim] = []
    others: list[DelayedClaim] = []
    for delayed in claims:
        selected = delayed.claim.metadata.annotations.get(SELECTED_NODE_ANNOTATION)
        if selected is None:
            others.append(delayed)
        else:
            # A volume is being made for that node, and the claim can go nowhere else.
            begun.append(delayed)
            found.unbound |= snapshot.all_nodes != snapshot.nodes.index.get(selected, ABSENT)
    in_play = ~found.unbound
    try:
        found.choices = match_claims(snapshot, storage, others)
    except ClaimSelectorError as exc:
        found.failures.append((str(exc), in_play))
        found.failed |= in_play
        return found
    wanted = [(delayed, in_play) for delayed in begun] + [(choice.delayed, in_play & ~choice.found) for choice in found.choices]
    for delayed, nodes in wanted:
        _provision(snapshot, delayed, nodes & ~found.unbound & ~found.without_room, found)
    return found


def _provision(snapshot: Snapshot, delayed: DelayedClaim, nodes: Mask, found: _Delayed) -> None:
    """Note on which of these nodes a volume could be made for the claim. Upstream: checkVolumeProvisions."""
    if not nodes.any():
        return
    storage_class = delayed.storage_class
    if storage_class.provisioner in ("", NO_PROVISIONER):
        found.unbound |= nodes
        return
    allowed = topology_mask(snapshot, storage_class.allowed_topologies)
    found.unbound |= nodes & ~allowed
    nodes = nodes & allowed
    enough = capacity_mask(snapshot, storage_class, delayed.claim)
    if enough is not None:
        found.without_room |= nodes & ~enough
        nodes = nodes & enough
    found.to_provision.append((delayed.claim, nodes))


def _no_node(snapshot: Snapshot) -> Mask:
    return np.zeros(len(snapshot.nodes), np.bool_)


# Once a node is chosen.


@final
@dataclass(frozen=True, slots=True)
class AssumedVolumes:
    """What was assumed for a pod, as it has to be written: volumes that name their claims, claims that name the node."""

    volumes: tuple[PersistentVolume, ...] = ()
    claims: tuple[PersistentVolumeClaim, ...] = ()

    @property
    def is_empty(self) -> bool:
        """True when all claims of the pod were bound already."""
        return not self.volumes and not self.claims


def assume_pod_volumes(
    storage: Storage, bindings: Iterable[Binding], provisions: Iterable[PersistentVolumeClaim], node: str
) -> AssumedVolumes:
    """Assume that the claims get their volumes, and that volumes are made for the others.

    Raises:
        AssumeError: a claim or volume is gone or has changed meanwhile; then nothing is assumed.
    """
    volumes: list[PersistentVolume] = []
    claims: list[PersistentVolumeClaim] = []
    objects = storage.objects
    try:
        for binding in bindings:
            volume = bound_to(binding.volume, binding.claim)
            if volume is not binding.volume:
                storage.assumed_volumes.assume(volume.metadata.name, volume, objects.pvs)
            volumes.append(volume)
        for claim in provisions:
            annotations = {**claim.metadata.annotations, SELECTED_NODE_ANNOTATION: node}
            assumed = replaced(claim, metadata=replaced(claim.metadata, annotations=annotations))
            storage.assumed_claims.assume((claim_namespace(claim), claim.metadata.name), assumed, objects.pvcs)
            claims.append(assumed)
    except AssumeError:
        restore_pod_volumes(storage, AssumedVolumes(tuple(volumes), tuple(claims)))
        raise
    return AssumedVolumes(tuple(volumes), tuple(claims))


def restore_pod_volumes(storage: Storage, assumed: AssumedVolumes) -> None:
    """What was assumed comes to nothing. Idempotent."""
    for volume in assumed.volumes:
        storage.assumed_volumes.restore(volume.metadata.name)
    for claim in assumed.claims:
        storage.assumed_claims.restore((claim_namespace(claim), claim.metadata.name))
