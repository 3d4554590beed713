"""Arrays with more room than is in use, which are replaced when they must grow."""

import numpy as np
import numpy.typing as npt

from extender.engine.snapshot.axes import D, Index, Int64s


def zeros(*shape: int) -> Int64s:
    """Returns zeros; those that are never written take no memory."""
    return np.zeros(shape, np.int64)


def resized(array: npt.NDArray[D], room: int, fill: int = 0, used: int | None = None) -> npt.NDArray[D]:
    """Returns a copy with this much room on the last axis; of the first axis, the `used` entries are copied. Zeros that
    are never written take no memory.
    """
    shape = (*array.shape[:-1], room)
    copy = np.full(shape, fill, array.dtype) if fill else np.zeros(shape, array.dtype)
    width = min(room, array.shape[-1])
    copy[..., :width][:used] = array[..., :width][:used]
    return copy


def moved(array: npt.NDArray[D], to: Index | slice, places: Index | slice, count: int, fill: int = 0) -> npt.NDArray[D]:
    """Returns an array with `count` entries on the last axis, those from `places` at `to`."""
    shape = (*array.shape[:-1], count)
    copy = np.full(shape, fill, array.dtype) if fill else np.zeros(shape, array.dtype)
    copy[..., to] = array[..., places]
    return copy


def with_more_resources(array: Int64s, count: int) -> Int64s:
    """Returns a copy with room for this many resources, which are on the first axis."""
    grown = np.zeros((count, array.shape[1]), np.int64)
    grown[: len(array)] = array
    return grown
