"""Everything that the scheduler finds out about one pod, as one value."""
