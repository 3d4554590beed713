"""Errors of allocating devices."""


class AllocationError(Exception):
    """A claim, class, slice or selector is invalid, so that other nodes need not be tried. The message is upstream's."""


class NodeAllocationError(Exception):
    """The node's pools are invalid; other nodes may do."""


class TimedOutError(Exception):
    """The search took too long."""
