"""What was recorded of kube-scheduler, to stand beside our figures."""

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
