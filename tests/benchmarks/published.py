"""What others have published, and what was recorded of kube-scheduler, to stand beside our figures."""

from dataclasses import dataclass

GO_CPU_MS = {
    (1000, "basic"): 2.5, (1000, "spread"): 4.0, (1000, "anti-affinity"): 12, (1000, "affinity"): 9.2, (1000, "mixed"): 7.1,
    (5000, "basic"): 13, (5000, "spread"): 43, (5000, "anti-affinity"): 73, (5000, "affinity"): 72, (5000, "mixed"): 52,
    (15000, "basic"): 46, (15000, "spread"): 135, (15000, "anti-affinity"): 225, (15000, "affinity"): 238, (15000, "mixed"): 185,
}  # fmt: skip
"""CPU milliseconds a decision of kube-scheduler 1.36.2 in process with percentageOfNodesToScore 100: the same clusters
and pods.
"""


GO_SAMPLED_CPU_MS = {
    (1000, "basic"): 1.3, (1000, "spread"): 2.6, (1000, "anti-affinity"): 11, (1000, "affinity"): 5.7, (1000, "mixed"): 5.5,
    (5000, "basic"): 1.8, (5000, "spread"): 24, (5000, "anti-affinity"): 59, (5000, "affinity"): 63, (5000, "mixed"): 39,
    (15000, "basic"): 2.3, (15000, "spread"): 74, (15000, "anti-affinity"): 184, (15000, "affinity"): 159, (15000, "mixed"): 131,
}  # fmt: skip
"""The same by default: of 1,000, 5,000 and 15,000 nodes the first 420, 500 and 750 that are feasible are scored."""


@dataclass(frozen=True)
class Published:
    """What others have published."""

    system: str
    nodes: int
    pods_per_second: int
    cores: int
    source: str
    remark: str

    @property
    def nodes_a_core(self) -> float:
        """Nodes evaluated a second and core, if every node is evaluated for every pod: no more than that."""
        return self.nodes * self.pods_per_second / self.cores


PUBLISHED = (
    Published(
        "k8s-1m, dist-scheduler", 1_000_000, 14_000, 8_670, "[bchess/k8s-1m](https://github.com/bchess/k8s-1m), README",
        "256 schedulers and 29 relays, each with a part of the nodes; no preemption; with an API server",
    ),
    Published(
        "Gödel, three shards", 30_000, 1_000, 48,
        "[kubewharf/godel-scheduler](https://github.com/kubewharf/godel-scheduler), docs/performance/best-practice.md",
        "kwok nodes; most nodes are left out of the search; with an API server",
    ),
    Published(
        "kube-scheduler, the same test", 30_000, 300, 48,
        "[kubewharf/godel-scheduler](https://github.com/kubewharf/godel-scheduler), docs/performance/best-practice.md",
        "a sample of the nodes is evaluated; with an API server",
    ),
)  # fmt: skip
