"""The advice of plugins to people whose pod is pending. It has no part in any decision.

A plugin that derives from `AdvicePlugin` beside its extension points is asked for advice while a refusal is explained:
how much the pod lacks on each node, and which changes of the pod are worth a try. Every suggestion is evaluated with
all Filters before it is shown, so a plugin may suggest a change without knowing that it helps; a suggestion that opens
no node is dropped.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, final

from extender.engine.snapshot.axes import Int64s
from extender.values.objects.decoding import replaced
from extender.values.objects.meta import HasMetadata
from extender.values.objects.pod import Container, Pod

SuggestionKind = Literal["request", "toleration", "affinity", "spread", "ports", "volume", "node", "other"]
"""What is changed. Of the suggestions of a kind that open the same nodes, only the first is shown."""


@final
@dataclass(frozen=True, slots=True)
class Shortage:
    """A resource of which some of the rows have too little left for the pod, in base units, millicores for cpu."""

    resource: str
    requested: int
    free: Int64s
    """(R,) how much is left; below zero on overcommitted nodes."""


@final
@dataclass(frozen=True, slots=True)
class Suggestion:
    """A change that may let the pod fit."""

    kind: SuggestionKind
    text: str
    """What to do, as half a sentence: `tolerate the taint dedicated=gpu:NoSchedule`. It names no other pod, which its
    reader may not be allowed to see.
    """
    pod: Pod
    """The pod for which the change would be as good as made; it is evaluated, and nothing is written."""
    objects: tuple[HasMetadata, ...] = ()
    """Objects other than the pod that would be changed, as they would be then, such as one of its claims."""


def listed(noun: str, things: Sequence[str]) -> str:
    """Returns `taint a`, `taints a and b`, or `taints a, b and c`."""
    *others, last = things
    return f"{noun}s {', '.join(others)} and {last}" if others else f"{noun} {last}"


def with_containers(pod: Pod, changed: Callable[[Container], Container], **others: object) -> Pod:
    """Returns the pod with each of its containers changed, and with other fields of its spec."""
    containers, init = [*map(changed, pod.spec.containers)], [*map(changed, pod.spec.init_containers)]
    return replaced(pod, spec=replaced(pod.spec, containers=containers, init_containers=init, **others))
