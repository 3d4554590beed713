"""DynamicResources: claims for devices, and who holds them.

Upstream: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go (v1.36.2).
"""

from dataclasses import dataclass
from typing import Final, final

import numpy as np

from extender import framework as fwk
from extender.objects.pod import Pod
from extender.snapshot.axes import Int64s

NOTHING_TO_DEALLOCATE: Final = "no new claims to deallocate"


@final
@dataclass(frozen=True, slots=True)
class ClaimsOfCycle:
    """What PreFilter found out about the pod's claims."""


_CLAIMS: Final = fwk.StateKey[ClaimsOfCycle]("DynamicResources")


@final
class DynamicResources(fwk.PreFilterPlugin, fwk.FilterPlugin, fwk.PostFilterPlugin, fwk.ScorePlugin):
    """Pods without claims pass; they cost nothing."""

    looks_at_pods = False

    def pre_filter(self, state: fwk.CycleState, pod: Pod, snapshot: fwk.Snapshot) -> fwk.PreFilterResult:
        """Skip for pods without claims; PostFilter wants to know that it was here."""
        state.write(_CLAIMS, ClaimsOfCycle())
        return fwk.PreFilterResult(fwk.SKIP)

    def filter(self, state: fwk.CycleState, pod: Pod, rows: fwk.Rows) -> fwk.Verdicts:
        """Without claims every node is as good."""
        return fwk.accept(len(rows))

    async def post_filter(self, state: fwk.CycleState, pod: Pod, statuses: fwk.NodeStatuses) -> fwk.PostFilterResult:
        """Nothing was allocated, so nothing can be freed.

        Raises:
            NotFoundError: a plugin before this one refused the pod, so that PreFilter was never called.
        """
        state.read(_CLAIMS)
        return fwk.PostFilterResult(fwk.unschedulable(NOTHING_TO_DEALLOCATE))

    def score(self, state: fwk.CycleState, pod: Pod, rows: fwk.Rows) -> Int64s:
        """(R,) nothing to prefer."""
        return np.zeros(len(rows), np.int64)
