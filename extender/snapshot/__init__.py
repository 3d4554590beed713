"""THE CORE: the cluster as arrays.

Read a shape by its letters: N nodes, P pod slots, R rows, C pod changes, K resources (see `axes`). `Snapshot` is the cluster at one
generation, `Rows` are hypothetical nodes over it, `PodChanges` are the hypotheses. There are no verdicts in here (those are one floor
up, in `framework`) and nobody writes: the one writer is `cache`.
"""

from extender.snapshot.pod_attributes import Attribute
from extender.snapshot.rows import NodeInfo, PodChanges, Rows
from extender.snapshot.snapshot import Snapshot

__all__ = ["Attribute", "NodeInfo", "PodChanges", "Rows", "Snapshot"]
