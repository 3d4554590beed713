"""What happens to a pod: the scheduling cycle's algorithm, from a snapshot to a node."""
