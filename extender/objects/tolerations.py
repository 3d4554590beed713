"""The match of taints and tolerations.

Upstream: api/core/v1/toleration.go; component-helpers/scheduling/corev1/helpers.go (v1.36.2).
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from extender.objects.decoding import replaced
from extender.objects.node import Taint
from extender.objects.pod import Pod, Toleration

NO_SCHEDULE: Final = "NoSchedule"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
NO_EXECUTE: Final = "NoExecute"

FORBIDDING_EFFECTS: Final = (NO_SCHEDULE, NO_EXECUTE)
"""Effects that keep a pod off a node, rather than just make the node less liked."""


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Returns whether the toleration covers the taint; an empty key or effect covers all, `Lt` and `Gt` (off in 1.36) none.

    Upstream: toleration.go, ToleratesTaint.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def find_untolerated_taint(
    taints: Iterable[Taint], tolerations: Sequence[Toleration], effects: Collection[str] | None = FORBIDDING_EFFECTS
) -> Taint | None:
    """Returns the first taint of one of these effects (None: of any) that no toleration covers.

    Upstream: helpers.go, FindMatchingUntoleratedTaint.
    """
    for taint in taints:
        if effects is not None and taint.effect not in effects:
            continue
        if not any(tolerates(toleration, taint) for toleration in tolerations):
            return taint
    return None


def tolerating(pod: Pod, taints: Iterable[Taint]) -> Pod:
    """Returns the pod with a toleration for each of these taints."""
    more = [Toleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect) for taint in taints]
    return replaced(pod, spec=replaced(pod.spec, tolerations=[*pod.spec.tolerations, *more]))
