"""VolumeBinding: every claim of a pod needs a volume that the pod's node can reach; the plugin and its hints."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, final

import numpy as np

from extender.engine import framework as fwk
from extender.engine.plugins.volume_advice import VolumeAdvice
from extender.engine.plugins.volume_binding.binder import (
    AssumedVolumes,
    PodVolumes,
    assume_pod_volumes,
    find_pod_volumes,
    restore_pod_volumes,
)
from extender.engine.plugins.volume_binding.binding import BindingError, bind_pod_volumes
from extender.engine.plugins.volume_binding.pod_claims import (
    CLAIM_KIND,
    VOLUME_KIND,
    AssumeCache,
    AssumeError,
    BindingModeError,
    PodClaims,
    Storage,
    claims_of,
    why_unusable,
)
from extender.engine.plugins.volume_binding.scoring import storage_scores
from extender.engine.snapshot.axes import Int64s
from extender.values.config.args_validation import check_args
from extender.values.config.plugin_args import VolumeBindingArgs
from extender.values.golang.quoting import quoted
from extender.values.objects.claims import uses_claim, volumes_with_claims
from extender.values.objects.cluster import ClusterObjects, Key
from extender.values.objects.pod import Volume
from extender.values.objects.quantity import RawQuantity, value_of
from extender.values.objects.storage import (
    MIGRATED_PLUGINS_ANNOTATION,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)

UNBOUND_IMMEDIATE: Final = "pod has unbound immediate PersistentVolumeClaims"


@final
@dataclass(slots=True)
class _State:
    """The claims of the pod, for one cycle."""

    storage: Storage
    claims: PodClaims = field(default_factory=PodClaims)
    volumes: PodVolumes | None = None
    """Found when the first node is filtered."""


_STATE: Final = fwk.StateKey[_State]("VolumeBinding")
_SCORES: Final = fwk.StateKey[Int64s]("PreScoreVolumeBinding")
ASSUMED: Final = fwk.StateKey[AssumedVolumes]("VolumeBindingAssumed")
"""The volumes that Reserve assumed; empty if all claims were bound already."""
_NO_VOLUMES: Final = AssumedVolumes()


@final
class VolumeBinding(
    fwk.PreFilterPlugin,
    fwk.FilterPlugin,
    fwk.PreScorePlugin,
    fwk.ScorePlugin,
    fwk.ReservePlugin,
    fwk.PreBindPlugin,
    VolumeAdvice,
):
    """Refuses nodes that do not reach a volume of the pod, or on which an unbound claim would get no volume.

    Once a node is chosen, Reserve assumes the volumes found there, and PreBind binds them.

    Upstream: framework/plugins/volumebinding/volume_binding.go.
    """

    looks_at_pods = False

    def __init__(self, arguments: VolumeBindingArgs | None = None, handle: fwk.Handle | None = None) -> None:
        """Raises ConfigErrors for invalid arguments."""
        super().__init__(arguments, handle)
        args = arguments if arguments is not None else VolumeBindingArgs()
        check_args(args, self.feature_gates)
        self._shape = args.completed(self.feature_gates).shape
        self._compares_attributes = self.feature_gates.enabled("VolumeAttributesClass")
        self._bind_timeout = float(args.bind_timeout_seconds)
        self._with_claims = fwk.PodMemo[tuple[Volume, ...]]()
        self._assumed_claims: AssumeCache[Key, PersistentVolumeClaim] = AssumeCache(CLAIM_KIND)
        self._assumed_volumes: AssumeCache[str, PersistentVolume] = AssumeCache(VOLUME_KIND)

    def events_to_register(self) -> Sequence[fwk.ClusterEventWithHint]:
        add, update = fwk.ActionType.ADD, fwk.ActionType.UPDATE
        return [
            fwk.on(fwk.EventResource.STORAGE_CLASS, add | update, _after_class_change),
            fwk.on(fwk.EventResource.PERSISTENT_VOLUME_CLAIM, add | update, _after_claim_change),
            fwk.on(fwk.EventResource.PERSISTENT_VOLUME, add | update),
            fwk.on(fwk.EventResource.NODE, add | fwk.ActionType.UPDATE_NODE_LABEL),
            fwk.on(fwk.EventResource.CSI_NODE, add | update, _after_csi_node_change),
            fwk.on(fwk.EventResource.CSI_DRIVER, update, _after_csi_driver_update),
            fwk.on(fwk.EventResource.CSI_STORAGE_CAPACITY, add | update, _after_capacity_change),
        ]

    def pre_filter(self, state: fwk.CycleState, pod: fwk.Pod, snapshot: fwk.Snapshot) -> fwk.PreFilterResult:
        """Skips pods without claims; unresolvable if a claim is unusable, or should have been bound before."""
        used = self._with_claims.of(state, lambda: volumes_with_claims(pod))
        if not used:
            return fwk.PreFilterResult(fwk.SKIP_EQUAL_PODS)
        refusal = why_unusable(pod, used, snapshot.objects)
        if refusal is not None:
            return fwk.PreFilterResult(fwk.unresolvable(refusal))
        storage = self._storage(snapshot.objects)
        try:
            claims = claims_of(pod, storage)
        except BindingModeError as exc:
            return fwk.PreFilterResult(fwk.error(str(exc)))
        if claims.immediate:
            return fwk.PreFilterResult(fwk.unresolvable(UNBOUND_IMMEDIATE))
        state.write(_STATE, _State(storage, claims))
        return fwk.PreFilterResult(fwk.SUCCESS)

    def _storage(self, objects: ClusterObjects) -> Storage:
        return Storage(objects, self._assumed_claims, self._assumed_volumes, self._compares_attributes)

    def _storage_now(self, own_state: _State) -> Storage:
        """Returns this plugin's storage, also if the cycle began with the plugin of another trial."""
        live = None if self._handle is None else self._handle.live
        return self._storage(own_state.storage.objects if live is None else live.objects)

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        """Refusals are unresolvable, since removing pods neither moves nor frees a volume."""
        own_state = state.read(_STATE)
        if own_state.volumes is None:
            try:
                own_state.volumes = find_pod_volumes(rows.snapshot, own_state.storage, own_state.claims)
            except Exception:
                self._count_error("predicate")
                raise
        return own_state.volumes.verdicts(rows)

    def pre_score(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Status:
        """Skips unless nodes are scored by their storage, which is behind the feature gate StorageCapacityScoring."""
        if self._shape is None:
            return fwk.SKIP_EQUAL_PODS
        own_state = state.find(_STATE)
        if own_state is not None and own_state.volumes is not None:
            state.write(_SCORES, storage_scores(rows.snapshot, own_state.volumes, self._shape))
        return fwk.SUCCESS

    def score(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> Int64s:
        """(R,) the scores of the storage that the pod's unbound claims would use; 0 for pods without any."""
        scores = state.find(_SCORES)
        return np.zeros(len(rows), np.int64) if scores is None else scores[rows.node]

    def reserve(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> fwk.Status:
        """Assumes the volumes found on this node. Error if they have changed since."""
        own_state, assumed = state.find(_STATE), _NO_VOLUMES
        if own_state is not None and own_state.volumes is not None and not own_state.claims.all_bound:
            place = state.snapshot.nodes.index[node]
            bindings, provisions = own_state.volumes.bindings_on(place), own_state.volumes.provisions_on(place)
            try:
                assumed = assume_pod_volumes(self._storage_now(own_state), bindings, provisions, node, pod.uid)
            except AssumeError as exc:
                self._count_error("assume")
                return fwk.error(str(exc))
        state.write(ASSUMED, assumed)
        return fwk.SUCCESS

    def pre_bind_pre_flight(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> fwk.PreFlight:
        """Skips if all claims of the pod are bound."""
        assumed = state.find(ASSUMED)
        if assumed is None:
            return fwk.PreFlight(_nothing_reserved(node))
        return fwk.PreFlight(fwk.SKIP if assumed.is_empty else fwk.SUCCESS, allow_parallel=True)

    async def pre_bind(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> fwk.Status:
        """Writes the reserved volumes, and waits until they are bound; Error, which reschedules the pod, on failure."""
        assumed = state.find(ASSUMED)
        if assumed is None:
            return _nothing_reserved(node)
        if assumed.is_empty:
            return fwk.SUCCESS
        try:
            await bind_pod_volumes(state.read(_STATE).storage, assumed, pod, node, self.handle, self._bind_timeout)
        except (fwk.CallError, BindingError) as exc:
            self._count_error("bind")
            return fwk.error(str(exc))
        return fwk.SUCCESS

    def _count_error(self, operation: str) -> None:
        if self._handle is not None:
            self._handle.shared(fwk.PLUGIN_METRICS, fwk.PluginMetrics).volume_errors[operation] += 1

    def unreserve(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> None:
        """Drops what Reserve assumed."""
        own_state, assumed = state.find(_STATE), state.find(ASSUMED)
        if own_state is not None and assumed is not None:
            restore_pod_volumes(self._storage_now(own_state), assumed, pod.uid)


def _nothing_reserved(node: str) -> fwk.Status:
    return fwk.error(f"no pod volumes found for node {quoted(node)}")


def _after_class_change(pod: fwk.Pod, old: StorageClass | None, new: StorageClass) -> fwk.QueueingHint:
    # The binding mode of a class never changes.
    return fwk.queue_if(old is None or old.allowed_topologies != new.allowed_topologies)


def _after_claim_change(
    pod: fwk.Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim
) -> fwk.QueueingHint:
    return fwk.queue_if(uses_claim(pod, new))


def _after_csi_node_change(pod: fwk.Pod, old: CSINode | None, new: CSINode) -> fwk.QueueingHint:
    return fwk.queue_if(old is None or _migrated_plugins(old) != _migrated_plugins(new))


def _migrated_plugins(node: CSINode) -> str:
    return node.metadata.annotations.get(MIGRATED_PLUGINS_ANNOTATION, "")


def _after_csi_driver_update(pod: fwk.Pod, old: CSIDriver, new: CSIDriver) -> fwk.QueueingHint:
    """Queues the pod if a driver of its in-line volumes stops publishing capacity, which is not checked then."""
    is_used = any(volume.csi is not None and volume.csi.driver == new.metadata.name for volume in pod.spec.volumes)
    return fwk.queue_if(is_used and bool(old.spec.storage_capacity) and not new.spec.storage_capacity)


def _after_capacity_change(pod: fwk.Pod, old: CSIStorageCapacity | None, new: CSIStorageCapacity) -> fwk.QueueingHint:
    """Queues the pod if the capacity grew. Raises QuantityError for an invalid amount."""
    if old is None:
        return fwk.QueueingHint.QUEUE
    limit, old_limit = _volume_limit(new), _volume_limit(old)
    return fwk.queue_if(limit is not None and (old_limit is None or value_of(limit) > value_of(old_limit)))


def _volume_limit(capacity: CSIStorageCapacity) -> RawQuantity | None:
    """Returns the largest size of a volume, if it is known (volumeLimit)."""
    return capacity.maximum_volume_size if capacity.maximum_volume_size is not None else capacity.capacity
