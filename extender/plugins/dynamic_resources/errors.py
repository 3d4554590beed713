"""What can come of looking for devices, other than devices."""


class AllocationError(Exception):
    """A claim, class, slice or selector is wrong, so that looking at other nodes makes no sense. The message is upstream's."""


class NodeAllocationError(Exception):
    """The node's pools are wrong; other nodes may do."""


class TimedOutError(Exception):
    """The search took too long."""
