"""Recordings: what a scheduler saw and decided, in a file from which it can be decided again.

A recorder takes note in the event loop; everything else happens in a thread. Deciding again is
`extender.lab.simulation.replay`.
"""
