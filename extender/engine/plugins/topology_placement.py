"""A pod group in one topology domain, and in the one that takes most of its pods.

Upstream: pkg/scheduler/framework/plugins/topologyaware/topology_placement.go, podgrouppodscount (v1.36.2).
"""

from collections.abc import Sequence
from typing import final

import numpy as np

from extender.engine import framework as fwk
from extender.engine.snapshot.axes import Int64s
from extender.values.objects.grouping import PodGroup


@final
class TopologyPlacementGenerator(fwk.PlacementGeneratePlugin):
    """Makes a placement for each value of the label that the group names, of which its scheduled pods leave one."""

    def generate_placements(
        self, group: PodGroup, scheduled: Sequence[fwk.Pod], parent: fwk.GroupPlacement, snapshot: fwk.Snapshot
    ) -> Sequence[fwk.GroupPlacement]:
        key = group.topology_key
        if not key:
            return [parent]
        column = snapshot.nodes.label(key)
        codes = column.codes[parent.nodes]
        domain = _domain_of(key, scheduled, snapshot)
        present = codes[codes >= 0]
        _, first = np.unique(present, return_index=True)
        wanted = [int(present[place]) for place in sorted(first.tolist())]
        if domain is not None:
            wanted = [code for code in wanted if column.values[code] == domain]
        return [fwk.GroupPlacement(column.values[code], parent.nodes[codes == code]) for code in wanted]


def _domain_of(key: str, scheduled: Sequence[fwk.Pod], snapshot: fwk.Snapshot) -> str | None:
    """Returns the domain of the placed pods, if any; ValueError if they are in several, or in none."""
    domain: str | None = None
    for pod in scheduled:
        place = snapshot.nodes.index.get(pod.spec.node_name)
        if place is None:
            raise ValueError(f"getting node for pod {pod.key}: nodeinfo not found for node name {pod.spec.node_name!r}")
        found = snapshot.nodes.objects[place].labels.get(key)
        if found is None:
            raise ValueError(f"no topology domain found for pod {pod.key}")
        if domain is not None and found != domain:
            raise ValueError(f"more than 1 domain found for pod group: {domain}, {found}")
        domain = found
    return domain


@final
class PodGroupPodsCount(fwk.PlacementScorePlugin):
    """Prefers the placement with most pods of the group."""

    def score_placement(self, group: PodGroup, placed: fwk.PlacedGroup, snapshot: fwk.Snapshot) -> int:
        return placed.num_scheduled + len(placed.pods)

    def normalize_placement_scores(self, scores: Int64s) -> Int64s:
        highest = int(scores.max(initial=0))
        if not highest:
            raise ValueError("no pods from pod group are assigned to any of the candidate placements")
        return scores * fwk.MAX_NODE_SCORE // highest
