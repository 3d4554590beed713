"""The axis letters, and the array types named after what they hold.

    N  nodes of the snapshot, in visiting order        K  resources: cpu, memory, ephemeral-storage, then scalars
    P  pod slots (a slot is reused after its pod left)  R  rows: hypothetical nodes
    C  pod changes

Units: cpu in millicores, memory and storage in bytes, everything else in base units; always int64, never floats.
Docstrings give shapes as `(R, K)`; mypy checks the dtypes below. A "place" is an index on an axis.
"""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

D = TypeVar("D", bound=np.generic)

Int64s = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
"""Symbol codes; -1 means that there is no symbol."""
Mask = npt.NDArray[np.bool_]
Index = npt.NDArray[np.intp]
Floats = npt.NDArray[np.float64]

CPU, MEMORY, EPHEMERAL_STORAGE = 0, 1, 2
"""The places of the native resources on axis K."""
NATIVE_RESOURCES = ("cpu", "memory", "ephemeral-storage")


def read_only(array: npt.NDArray[D]) -> npt.NDArray[D]:
    """Returns a view through which nobody can write."""
    view = array.view()
    view.flags.writeable = False
    return view


def any_of(mask: Mask) -> bool:
    """Returns whether any entry is True. The search ends at the first, and takes less than to count them or `any`."""
    return mask.size > 0 and bool(mask.item(mask.argmax()))


def all_of(mask: Mask) -> bool:
    """Returns whether all entries are True, as `any_of`."""
    return not mask.size or bool(mask.item(mask.argmin()))


def extremes(numbers: Int64s) -> tuple[int, int]:
    """Returns the lowest and the highest of some numbers, in a third of the time that min and max take for few."""
    return numbers.item(numbers.argmin()), numbers.item(numbers.argmax())
