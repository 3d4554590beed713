"""Pods that come and go, in short."""

import numpy as np

from extender.engine.snapshot import PodChanges, Snapshot


def moves(*changes: tuple[int, int, int]) -> PodChanges:
    """(row, pod slot, sign) each: +1 comes, -1 leaves."""
    table = np.array(changes, np.int64).reshape(-1, 3)
    return PodChanges(row=table[:, 0].astype(np.intp), pod=table[:, 1].astype(np.intp), sign=table[:, 2])


def slot_of(snapshot: Snapshot, name: str) -> int:
    """The slot of a pod of namespace default that is on a node."""
    return snapshot.pods.slots[f"default/{name}"]
