"""Evaluations: all results of the scheduler about one pod, as one value."""
