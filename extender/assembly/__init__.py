"""Puts the parts together: a cluster that is followed or our own, the scheduler, the verbs, the answers and the
metrics.
"""
