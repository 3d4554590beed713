"""Logging as k8s.io/klog does it: messages with keys and values, verbosity, text and JSON lines, and an outlet that
never blocks.
"""
