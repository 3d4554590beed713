"""The advice of plugins to people whose pod is pending. It has no part in any decision.

A plugin that derives from `AdvicePlugin` beside its extension points is asked for advice while a refusal is explained:
how much the pod lacks on each node, and which changes of the pod are worth a try. Every suggestion is evaluated with
all Filters before it is shown, so a plugin may suggest a change without knowing that it helps; a suggestion that opens
no node is dropped.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

from extender.engine.snapshot.axes import Int64s
from extender.values.objects.pod import Pod

SuggestionKind = Literal["request", "toleration", "affinity", "spread", "ports", "volume", "node", "other"]
"""What is changed. Of the suggestions of a kind that open the same nodes, only the first is shown."""


@final
@dataclass(frozen=True, slots=True)
class Shortage:
    """A resource of which some of the rows have too little left for the pod.

    Attributes:
        requested: how much the pod requests: base units, millicores for cpu.
        free: (R,) how much is left, in the same unit; below zero on overcommitted nodes.
    """

    resource: str
    requested: int
    free: Int64s


@final
@dataclass(frozen=True, slots=True)
class Suggestion:
    """A change that may let the pod fit.

    Attributes:
        text: what to do, as half a sentence: `tolerate the taint dedicated=gpu:NoSchedule`. It must not name another
            pod, since a caller may read it who must not see that pod.
        pod: the pod for which the change would be as good as made; it is evaluated, and nothing is written.
    """

    kind: SuggestionKind
    text: str
    pod: Pod


def listed(noun: str, things: Sequence[str]) -> str:
    """Returns `taint a`, `taints a and b`, or `taints a, b and c`."""
    *others, last = things
    return f"{noun}s {', '.join(others)} and {last}" if others else f"{noun} {last}"
