"""Snapshot: the cluster at one generation, the only thing that a decision may read."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import final

from extender.engine.snapshot.axes import Index
from extender.engine.snapshot.change_log import ChangeLog
from extender.engine.snapshot.columns import NodeColumns, PodColumns
from extender.engine.snapshot.pod_attributes import Attribute
from extender.engine.snapshot.symbols import SymbolTable
from extender.engine.snapshot.tallies import RelevantCodes, Tallies, Tally, Weight
from extender.values.objects.cluster import ClusterObjects
from extender.values.objects.pod import Pod


@final
@dataclass(frozen=True, slots=True)
class Snapshot:
    """Nodes, pods and the other objects of the cluster, as columns.

    It is read-only, and valid until the cache's next `update_snapshot()`, which writes the columns in place: take one
    at the start of a cycle, decide, and drop it. (Upstream has the same rule for its nodeInfoSnapshot.)
    """

    generation: int
    changes: ChangeLog
    """Which nodes changed in which generation, they or the pods on them."""
    node_changes: ChangeLog
    """Which nodes changed themselves in which generation."""
    nodes: NodeColumns
    pods: PodColumns
    resources: SymbolTable[str]
    """Names along axis K: cpu, memory, ephemeral-storage, then the scalar resources that pods request and nodes offer,
    in order of appearance. Others are not on the axis; `Rows.allocatable_of` and `Rows.requested_of` find them.
    """
    tallies: Tallies
    all_nodes: Index
    """(N,) 0, 1, 2, ...: the places of all nodes."""
    objects: ClusterObjects
    """The objects that are neither nodes nor pods: claims, volumes, budgets, services, namespaces and others."""

    def at(self, generation: int) -> "Snapshot":
        """Returns the same columns at another generation."""
        return Snapshot(
            generation,
            self.changes,
            self.node_changes,
            self.nodes,
            self.pods,
            self.resources,
            self.tallies,
            self.all_nodes,
            self.objects,
        )

    @property
    def num_resources(self) -> int:
        """The length of axis K. A resource with a code beyond it was first seen after the snapshot was taken."""
        num_resources: int = self.nodes.allocatable.shape[1]
        return num_resources

    def tally(
        self, attribute: Attribute, question: Hashable, weight: Weight, relevant: RelevantCodes | None = None
    ) -> Tally:
        """Returns the sums per node of a question about pods; see `tallies`. `Rows.tally` adds the hypothesis."""
        return self.tallies.of(
            attribute, question, weight, relevant, self.pods.node, self.pods.codes[attribute], len(self.nodes)
        )

    def pod_at(self, slot: int) -> Pod:
        """Returns the pod in a slot that is in use."""
        pod = self.pods.objects[slot]
        if pod is None:
            raise LookupError(f"pod slot {slot} is free")
        return pod
