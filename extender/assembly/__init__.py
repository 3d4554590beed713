"""Puts the parts together: a cluster, the scheduler, the verbs, the answers and the metrics."""
