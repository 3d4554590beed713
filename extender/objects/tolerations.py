"""The match of taints and tolerations.

Upstream: api/core/v1/toleration.go; component-helpers/scheduling/corev1/helpers.go (v1.36.2).
"""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from extender.golang.int64 import MAX_INT64, MIN_INT64
from extender.objects.decoding import replaced
from extender.objects.node import Taint
from extender.objects.pod import Pod, Toleration

NO_SCHEDULE: Final = "NoSchedule"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
NO_EXECUTE: Final = "NoExecute"

COMPARISON_OPERATORS: Final = ("Lt", "Gt")

_MOST_DIGITS: Final = 20

FORBIDDING_EFFECTS: Final = (NO_SCHEDULE, NO_EXECUTE)
"""Effects that keep a pod off a node, rather than just make the node less liked."""


_DECIMAL_INTEGER: Final = re.compile("0|-?[1-9][0-9]*")


def tolerates(toleration: Toleration, taint: Taint, *, compares: bool = False) -> bool:
    """Returns whether the toleration covers the taint; an empty key or effect covers all.

    Arguments:
        compares: whether the operators `Lt` and `Gt` cover taints with a smaller or a greater number than their own; else they cover none.
            It is the feature gate TaintTolerationComparisonOperators.

    Upstream: toleration.go, ToleratesTaint.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    if compares and toleration.operator in COMPARISON_OPERATORS:
        own, other = decimal_integer(toleration.value), decimal_integer(taint.value)
        if own is None or other is None:
            return False
        return other < own if toleration.operator == "Lt" else other > own
    return toleration.operator == "Exists"


def decimal_integer(text: str) -> int | None:
    """Returns the int64 that the text is; None if it is none, or is written otherwise than Kubernetes writes it.

    Upstream: apimachinery/pkg/api/validate/content, IsDecimalInteger.
    """
    if len(text) > _MOST_DIGITS or _DECIMAL_INTEGER.fullmatch(text) is None:
        return None
    number = int(text)
    return number if MIN_INT64 <= number <= MAX_INT64 else None


def find_untolerated_taint(
    taints: Iterable[Taint],
    tolerations: Sequence[Toleration],
    effects: Collection[str] | None = FORBIDDING_EFFECTS,
    *,
    compares: bool = False,
) -> Taint | None:
    """Returns the first taint of one of these effects (None: of any) that no toleration covers; for `compares` see `tolerates`.

    Upstream: helpers.go, FindMatchingUntoleratedTaint.
    """
    for taint in taints:
        if effects is not None and taint.effect not in effects:
            continue
        if not any(tolerates(toleration, taint, compares=compares) for toleration in tolerations):
            return taint
    return None


def tolerating(pod: Pod, taints: Iterable[Taint]) -> Pod:
    """Returns the pod with a toleration for each of these taints."""
    more = [Toleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect) for taint in taints]
    return replaced(pod, spec=replaced(pod.spec, tolerations=[*pod.spec.tolerations, *more]))
