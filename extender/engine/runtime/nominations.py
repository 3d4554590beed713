"""Nominated pods: pending pods that have a nominated node. They count there for pods of lower or equal priority."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

import numpy as np

from extender.engine.snapshot import PodChanges, Rows
from extender.engine.snapshot.axes import Mask
from extender.values.objects.pod import Pod


@final
@dataclass(frozen=True, slots=True)
class Nominations:
    """Node name -> (slot, pod) of the pods nominated to it, in order of nomination."""

    by_node: Mapping[str, tuple[tuple[int, Pod], ...]] = field(default_factory=dict)

    def changes_for(self, pod: Pod, rows: Rows) -> PodChanges | None:
        """Returns a +1 for every nominated pod of at least the priority of `pod`; None if these rows have none.

        Upstream: pkg/scheduler/framework/runtime/framework.go, addGENominatedPods (v1.36.2).
        """
        if not self.by_node:
            return None
        nodes = rows.snapshot.nodes
        slots_at: dict[int, list[int]] = {}
        for name, nominated in self.by_node.items():
            place = nodes.index.get(name)
            if place is not None:
                slots_at[place] = [
                    slot for slot, other in nominated if other.priority >= pod.priority and other.uid != pod.uid
                ]
        has_nominated = np.zeros(len(nodes), np.bool_)
        has_nominated[[place for place, slots in slots_at.items() if slots]] = True
        # Several rows may be hypotheses over the same node, so the search goes from rows to nodes.
        affected = np.flatnonzero(has_nominated[rows.node])
        added = [(row, slot) for row in affected.tolist() for slot in slots_at[int(rows.node[row])]]
        if not added:
            return None
        changes = np.array(added, np.intp)
        return PodChanges(changes[:, 0], changes[:, 1], np.ones(len(changes), np.int64))


NO_NOMINATIONS = Nominations()


def rows_with_changes(changes: PodChanges, num_rows: int) -> Mask:
    """Returns (R,) the rows that have any change."""
    mask = np.zeros(num_rows, np.bool_)
    mask[changes.row] = True
    return mask
