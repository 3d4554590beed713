"""PriorityClasses, the priorities that every cluster agrees on, and what preemption by them says of a node.

Upstream: pkg/apis/scheduling/types.go; v1/helpers.go, SystemPriorityClasses (v1.36.2).
"""

from collections.abc import Mapping
from typing import Final

from extender.values.objects.meta import HasMetadata, Int32

HIGHEST_USER_PRIORITY: Final = 1_000_000_000
"""Upstream: HighestUserDefinablePriority."""
SYSTEM_CRITICAL: Final = 2 * HIGHEST_USER_PRIORITY
"""Priorities from here on belong to the cluster itself. Upstream: SystemCriticalPriority."""
SYSTEM_CLASSES: Final[Mapping[str, int]] = {
    "system-node-critical": SYSTEM_CRITICAL + 1000,
    "system-cluster-critical": SYSTEM_CRITICAL,
}
"""The PriorityClasses that every API server makes."""

# The evaluator writes these messages; records and answers recognise them, also where no engine is loaded.
# Upstream: framework/preemption/preemption.go.
NO_VICTIMS: Final = "No preemption victims found for incoming pod"
NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"


class PriorityClass(HasMetadata, frozen=True):
    """scheduling/v1.PriorityClass. Only answers for people read it: pods get their priority from the API server."""

    value: Int32 = 0
    global_default: bool = False
    """True if it is the class of pods that name none."""
    preemption_policy: str | None = None
