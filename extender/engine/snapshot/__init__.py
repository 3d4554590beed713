"""THE CORE: the cluster as arrays.

Shapes are read by their letters: N nodes, P pod slots, R rows, C pod changes, K resources (see `axes`). A `Snapshot` is
the cluster at one generation, `Rows` are hypothetical nodes over it, and `PodChanges` are the hypotheses. This package
holds no verdicts (they are one floor up, in `framework`) and writes nothing: the one writer is `cache`.
"""

from extender.engine.snapshot.pod_attributes import Attribute
from extender.engine.snapshot.rows import NodeInfo, PodChanges, Rows
from extender.engine.snapshot.snapshot import Account, Snapshot
