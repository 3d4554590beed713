"""Plays workloads: pods arrive at a simulated cluster in virtual time, and the real scheduler places them.

The scheduler is that of `assembly.scheduling`, with its queue, cache and plugins. Only what surrounds it is simulated:
the API server with its controllers (`simulated_cluster`) and the clock. No decision is made in here, and nothing is
written to a cluster.
"""
