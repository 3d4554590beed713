"""PodMemo: what follows from a pod alone, worked out once for a crowd of equal pods."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar, final

from extender.framework.cycle_state import CycleState

T = TypeVar("T")

KEPT = 64
"""Kinds of pods remembered; the longest unasked is forgotten first."""


@final
class PodMemo(Generic[T]):
    """A plugin's memo, by pod signature. What is kept must depend on nothing but the pod's spec, labels, annotations and namespace, and on
    what is given as `also`."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[bytes, Hashable], T] = OrderedDict()

    def of(self, state: CycleState, work_out: Callable[[], T], also: Hashable = None) -> T:
        """The value for the pod of this cycle; worked out each time where the cycle has no signature."""
        if not state.pod_signature:
            return work_out()
        key = state.pod_signature, also
        value = self._kept.get(key)
        if value is None:
            value = self._kept[key] = work_out()
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return value
