"""Pods that wait. Knows events, not plugins; no I/O and no clock of its own in here."""
