"""Evaluations: everything that the scheduler would find out about one pod, as one value."""
