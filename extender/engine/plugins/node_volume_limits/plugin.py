"""NodeVolumeLimits: the plugin."""

from collections.abc import Sequence
from typing import Any, Final, final

import numpy as np

from extender.engine import framework as fwk
from extender.engine.plugins.node_volume_limits import hints
from extender.engine.plugins.node_volume_limits.counting import VolumeCounter, volumes_named
from extender.engine.plugins.node_volume_limits.csi_volumes import CountedVolumes
from extender.engine.plugins.volume_advice import VolumeAdvice
from extender.engine.snapshot.axes import Mask

_COUNTING: Final = fwk.StateKey[VolumeCounter]("PreFilterNodeVolumeLimits")


@final
class NodeVolumeLimits(fwk.PreFilterPlugin, fwk.FilterPlugin, VolumeAdvice):
    """Refuses nodes where a CSI driver cannot attach the pod's volumes in addition to those attached; a shared volume
    counts once.

    Upstream: framework/plugins/nodevolumelimits/csi.go (v1.36.2).
    """

    def __init__(self, arguments: Any = None, handle: fwk.Handle | None = None) -> None:
        super().__init__(arguments, handle)
        self._volumes = fwk.PodMemo[CountedVolumes]()
        self._needs_drivers = self.feature_gates.enabled("VolumeLimitScaling")

    def events_to_register(self) -> Sequence[fwk.ClusterEventWithHint]:
        add, delete = fwk.ActionType.ADD, fwk.ActionType.DELETE
        return [
            fwk.on(fwk.EventResource.CSI_NODE, add),
            fwk.on(fwk.EventResource.CSI_NODE, fwk.ActionType.UPDATE, hints.after_csi_node_update),
            fwk.on(fwk.EventResource.POD, delete, hints.after_pod_deletion),
            fwk.on(fwk.EventResource.PERSISTENT_VOLUME_CLAIM, add, hints.after_claim_addition),
            fwk.on(fwk.EventResource.VOLUME_ATTACHMENT, delete, hints.after_attachment_deletion),
        ]

    def pre_filter(self, state: fwk.CycleState, pod: fwk.Pod, snapshot: fwk.Snapshot) -> fwk.PreFilterResult:
        """Skips pods without claims and without in-line disks that a CSI driver may attach."""
        volumes = self._counted(state, pod)
        if not volumes.all:
            return fwk.PreFilterResult(fwk.SKIP_EQUAL_PODS)
        state.write(_COUNTING, VolumeCounter(pod, volumes, snapshot, needs_drivers=self._needs_drivers))
        return fwk.PreFilterResult(fwk.SUCCESS)

    def _counted(self, state: fwk.CycleState, pod: fwk.Pod) -> CountedVolumes:
        return self._volumes.of(state, lambda: CountedVolumes.of(pod))

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        """Refuses rows whose pods have too many volumes attached.

        The volumes that the pods of a row name are summed for all rows at once, an upper bound. Only where it exceeds
        the room are the volumes themselves looked at: pods may share volumes, and other drivers may have some of them.
        """
        counter = state.find(_COUNTING)
        if counter is None:
            counter = VolumeCounter(pod, self._counted(state, pod), rows.snapshot, needs_drivers=self._needs_drivers)
        named = rows.tally(fwk.Attribute.VOLUMES, (self.name,), volumes_named)
        uncertain = np.flatnonzero(named > counter.room[rows.node]).tolist()
        return _verdicts(dict(zip(uncertain, counter.statuses_of(rows, uncertain), strict=True)), len(rows))


def _verdicts(statuses: dict[int, fwk.Status], num_rows: int) -> fwk.Verdicts:
    """Returns verdicts with these statuses; other rows pass."""
    codes = np.zeros(num_rows, np.int8)
    reasons: dict[str, Mask] = {}
    for row, status in statuses.items():
        codes[row] = status.code
        for reason in status.reasons:
            reasons.setdefault(reason, np.zeros(num_rows, np.bool_))[row] = True
    return fwk.Verdicts(codes, tuple(reasons.items()))
