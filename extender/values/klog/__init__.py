"""Logging as k8s.io/klog does it: messages with keys and values, in text or JSON; an outlet that never blocks."""
