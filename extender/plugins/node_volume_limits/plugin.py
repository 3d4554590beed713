"""NodeVolumeLimits: how many volumes of a CSI driver a node can attach."""

from collections.abc import Sequence
from typing import Final, final

import numpy as np

from extender import framework as fwk
from extender.objects.claims import claim_name
from extender.objects.csi_translation import in_tree_plugin
from extender.plugins.node_volume_limits import hints
from extender.plugins.node_volume_limits.counting import Counting, volumes_named
from extender.plugins.volume_advice import VolumeAdvice
from extender.snapshot.axes import Mask

_COUNTING: Final = fwk.StateKey[Counting]("PreFilterNodeVolumeLimits")


@final
class NodeVolumeLimits(fwk.PreFilterPlugin, fwk.FilterPlugin, VolumeAdvice):
    """Refuses nodes to which a CSI driver cannot attach the pod's volumes besides those that are there; a shared volume counts once.

    Upstream: framework/plugins/nodevolumelimits/csi.go (v1.36.2).
    """

    def events_to_register(self) -> Sequence[fwk.ClusterEventWithHint]:
        """A node can attach more, or less is attached; or a missing claim has come."""
        add, delete = fwk.ActionType.ADD, fwk.ActionType.DELETE
        return [
            fwk.on(fwk.EventResource.CSI_NODE, add),
            fwk.on(fwk.EventResource.CSI_NODE, fwk.ActionType.UPDATE, hints.after_csi_node_update),
            fwk.on(fwk.EventResource.POD, delete, hints.after_pod_deletion),
            fwk.on(fwk.EventResource.PERSISTENT_VOLUME_CLAIM, add, hints.after_claim_addition),
            fwk.on(fwk.EventResource.VOLUME_ATTACHMENT, delete, hints.after_attachment_deletion),
        ]

    def pre_filter(self, state: fwk.CycleState, pod: fwk.Pod, snapshot: fwk.Snapshot) -> fwk.PreFilterResult:
        """Skip for pods without claims and without disks that a CSI driver might serve."""
        if not any(claim_name(pod, volume) is not None or in_tree_plugin(volume) is not None for volume in pod.spec.volumes):
            return fwk.PreFilterResult(fwk.SKIP)
        state.write(_COUNTING, Counting(pod, snapshot))
        return fwk.PreFilterResult(fwk.SUCCESS)

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        """Refused as long as the pods of the row have too many volumes attached.

        How many volumes the pods of a row name is summed up for all rows at once. Only where that may be too many (it need not be so: pods
        share volumes, and other drivers have some) are the volumes themselves looked at.
        """
        counting = state.find(_COUNTING)
        if counting is None:
            counting = Counting(pod, rows.snapshot)
        named = rows.tally(fwk.Attribute.VOLUMES, (self.name,), volumes_named)
        unsure = np.flatnonzero(named > counting.room[rows.node]).tolist()
        return _verdicts(dict(zip(unsure, counting.statuses_of(rows, unsure), strict=True)), len(rows))


def _verdicts(statuses: dict[int, fwk.Status], num_rows: int) -> fwk.Verdicts:
    """The rows' answers; rows without one pass."""
    codes = np.zeros(num_rows, np.int8)
    reasons: dict[str, Mask] = {}
    for row, status in statuses.items():
        codes[row] = status.code
        for reason in status.reasons:
            reasons.setdefault(reason, np.zeros(num_rows, np.bool_))[row] = True
    return fwk.Verdicts(codes, tuple(reasons.items()))
