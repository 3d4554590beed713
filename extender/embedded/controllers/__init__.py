"""What moves in a cluster by itself: kubelets, workloads, disruption budgets, garbage collection; only in the embedded cluster."""
