"""What suggestions are made from, and what they are."""

from dataclasses import dataclass
from typing import Final, Literal, final

from extender.answers.explain.headroom import Headroom
from extender.answers.explain.refusals import Refusals
from extender.objects.pod import Pod
from extender.snapshot import Snapshot

Kind = Literal["request", "toleration", "affinity", "spread", "gate", "ports", "volume", "node", "preemption", "other"]

MAX_OF_A_SORT: Final = 3
"""Taints, labels, ports, terms or volumes that are given up one by one."""


@final
@dataclass(frozen=True, slots=True)
class Situation:
    """A pod that is refused, and by what."""

    pod: Pod
    snapshot: Snapshot
    headroom: Headroom
    refusals: Refusals | None
    """What the Filters said; None if PreFilter has refused the pod."""


@final
@dataclass(frozen=True, slots=True)
class Suggestion:
    """A change, in words, and the pod for which it would be as good as made. No text names another pod: not everybody may know of it."""

    kind: Kind
    text: str
    pod: Pod


def listed(noun: str, things: list[str]) -> str:
    """`taint a`, `taints a and b`, `taints a, b and c`."""
    *others, last = things
    return f"{noun}s {', '.join(others)} and {last}" if others else f"{noun} {last}"
