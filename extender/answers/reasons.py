"""Reasons and on how many nodes they hold."""

from collections.abc import Mapping

from extender.answers.types import ReasonCount


def counted(reasons: Mapping[str, int]) -> tuple[ReasonCount, ...]:
    """Reason -> number of nodes, as a list: those that hold on most nodes first."""
    in_order = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    return tuple(ReasonCount(reason=reason, nodes=nodes) for reason, nodes in in_order)
