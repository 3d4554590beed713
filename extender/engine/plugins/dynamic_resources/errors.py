"""Errors of allocating devices."""


class AllocationError(Exception):
    """A claim, class, slice or selector is invalid, as upstream words it; other nodes need not be tried."""


class NodeAllocationError(Exception):
    """The node's pools are invalid; other nodes may do."""


class TimedOutError(Exception):
    """The search took too long."""


class OutOfStepsError(Exception):
    """The search would hold the event loop, or the thread that does long work, for too long. It goes on later."""
