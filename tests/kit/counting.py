"""Counting instead of timing: the calls that something makes, and the objects that something holds. Both are the same on
any machine, however busy.
"""

import gc
import sys
from collections.abc import Callable
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, ModuleType
from typing import Any


def num_calls(act: Callable[[], object]) -> int:
    """Returns how many functions are called by `act` in this thread, those of C included. An operation on a whole array
    is one call.
    """
    calls = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(before)
    return calls


def num_held(*holders: object) -> int:
    """Returns how many objects can be reached from these, code aside."""
    object_by_id: dict[int, Any] = {}
    to_visit: list[Any] = [*holders]
    while to_visit:
        obj = to_visit.pop()
        if id(obj) in object_by_id or isinstance(obj, _CODE):
            continue
        object_by_id[id(obj)] = obj  # kept, so that its id stays its own
        to_visit += gc.get_referents(obj)
    return len(object_by_id)


_CODE = (type, ModuleType, FunctionType, BuiltinFunctionType, CodeType)
