"""The match of taints and tolerations.

Upstream: api/core/v1/toleration.go, ToleratesTaint; component-helpers/scheduling/corev1/helpers.go,
FindMatchingUntoleratedTaint.
"""

import re
from collections.abc import Collection, Iterable
from typing import Final, final

import msgspec

from extender.values.caches import cached_by_size
from extender.values.golang.int64 import parse_int64
from extender.values.objects.decoding import replaced
from extender.values.objects.node import Taint
from extender.values.objects.pod import Pod, Toleration

NO_SCHEDULE: Final = "NoSchedule"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
NO_EXECUTE: Final = "NoExecute"

COMPARISON_OPERATORS: Final = ("Lt", "Gt")

FORBIDDING_EFFECTS: Final = (NO_SCHEDULE, NO_EXECUTE)
"""Effects that keep a pod off a node, rather than just make the node less liked."""


_ENCODE: Final = msgspec.json.Encoder().encode
_DECODE: Final = msgspec.json.Decoder(list[Toleration]).decode
_DECIMAL_INTEGER: Final = re.compile("0|-?[1-9][0-9]*")


def tolerates(toleration: Toleration, taint: Taint, *, compares: bool = False) -> bool:
    """Returns whether the toleration covers the taint; an empty key or effect covers all.

    `compares` is the gate TaintTolerationComparisonOperators: `Lt` and `Gt` cover taints with a smaller or a greater
    number than their own; else they cover none.
    """
    return Tolerations((toleration,)).cover(taint, compares=compares)


def decimal_integer(text: str) -> int | None:
    """Returns the int64 that the text is, if Kubernetes writes it so (IsDecimalInteger)."""
    return parse_int64(text) if _DECIMAL_INTEGER.fullmatch(text) is not None else None


@final
class Tolerations:
    """The tolerations of a pod by what they cover. A pod may have thousands, and nodes as many different taints."""

    __slots__ = ("_above", "_any_value", "_below", "_values")

    def __init__(self, tolerations: Iterable[Toleration]) -> None:
        # Keyed by the key and the effect of taints; empty ones stand for all.
        self._any_value: set[tuple[str, str]] = set()
        self._values: set[tuple[str, str, str]] = set()
        self._below: dict[tuple[str, str], int] = {}
        self._above: dict[tuple[str, str], int] = {}
        for toleration in tolerations:
            covered = toleration.key, toleration.effect
            if toleration.operator == "Exists":
                self._any_value.add(covered)
            elif toleration.operator in ("", "Equal"):
                self._values.add((*covered, toleration.value))
            elif (
                toleration.operator in COMPARISON_OPERATORS and (limit := decimal_integer(toleration.value)) is not None
            ):
                limits, widest = (self._below, max) if toleration.operator == "Lt" else (self._above, min)
                limits[covered] = widest(limit, limits.get(covered, limit))

    def cover(self, taint: Taint, *, compares: bool = False) -> bool:
        """Returns whether any of them covers the taint, as `tolerates` says it."""
        number = decimal_integer(taint.value) if compares and (self._below or self._above) else None
        for covered in ((key, effect) for key in (taint.key, "") for effect in (taint.effect, "")):
            if covered in self._any_value or (*covered, taint.value) in self._values:
                return True
            if number is not None:
                below, above = self._below.get(covered), self._above.get(covered)
                if (below is not None and number < below) or (above is not None and number > above):
                    return True
        return False


def tolerations_of(pod: Pod) -> Tolerations:
    """Returns the pod's tolerations, which are kept for pods with equal ones."""
    return _kept_tolerations(_ENCODE(pod.spec.tolerations))


@cached_by_size(1024)
def _kept_tolerations(encoded: bytes) -> Tolerations:
    return Tolerations(_DECODE(encoded))


def find_untolerated_taint(
    taints: Iterable[Taint],
    tolerations: Tolerations,
    effects: Collection[str] | None = FORBIDDING_EFFECTS,
    *,
    compares: bool = False,
) -> Taint | None:
    """Returns the first taint of these effects (None: of any) that no toleration covers; see `tolerates`."""
    for taint in taints:
        if (effects is None or taint.effect in effects) and not tolerations.cover(taint, compares=compares):
            return taint
    return None


def tolerating(pod: Pod, taints: Iterable[Taint]) -> Pod:
    more = [Toleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect) for taint in taints]
    return replaced(pod, spec=replaced(pod.spec, tolerations=[*pod.spec.tolerations, *more]))
