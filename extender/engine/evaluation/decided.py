"""Decided: what was decided about a pod, in a form in which two decisions can be compared."""

from typing import final

import msgspec


@final
class Decided(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided about a pod."""

    node: str = ""
    status: str = ""
    """Why there is no node: Unschedulable, Error and so on."""
    message: str = ""
    nominated: str = ""
    """The node that preemption is to make free."""
    victims: tuple[str, ...] = ()
    """The pods to evict, as namespace/name."""

    def is_like(self, other: "Decided") -> bool:
        """Whether both decide the same. What they say about it may differ."""
        return (self.node, self.status, self.nominated, {*self.victims}) == (
            other.node,
            other.status,
            other.nominated,
            {*other.victims},
        )
