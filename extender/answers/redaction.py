"""Redaction: callers who may not list the pods of a namespace see that there are pods, but not their names."""

import re
from collections.abc import Callable, Collection, Container
from functools import cache
from typing import Any, Final, Protocol, TypeVar, cast, final

import msgspec

from extender.answers.overviews import NodeOnMap, PlannedMove
from extender.answers.parts import PodName, Victim
from extender.answers.types import Eviction, GroupOutcome, Placement, QueuePlace, ReasonCount, WakesOn

A = TypeVar("A")

# What replaces names in texts.
HIDDEN_POD: Final = "a pod of another namespace"
HIDDEN_BUDGET: Final = "a PodDisruptionBudget of another namespace"
HIDDEN_GROUP: Final = "a PodGroup of another namespace"


class Visibility(Protocol):
    """What one caller may see."""

    async def namespaces(self, among: Collection[str]) -> frozenset[str]:
        """Returns those of the namespaces in which the caller may list pods."""
        ...

    async def events(self, namespace: str) -> bool:
        """Returns whether the caller may list the events of the namespace."""
        ...


@final
class SeesAll:
    """What a caller may see of whom nothing is hidden."""

    async def namespaces(self, among: Collection[str]) -> frozenset[str]:
        return frozenset(among)

    async def events(self, namespace: str) -> bool:
        return True


SEES_ALL: Final = SeesAll()


async def as_seen_by(visibility: Visibility, answer: A) -> A:
    """Returns the answer with only those names in it that the caller may see."""
    namespaces = namespaces_in(answer)
    return redacted(answer, await visibility.namespaces(namespaces)) if namespaces else answer


def namespaces_in(answer: object) -> frozenset[str]:
    """Returns the namespaces of all pods that the answer names."""
    return frozenset(pod.namespace for pod in _pods_in(answer))


def redacted(answer: A, may_see: Container[str]) -> A:
    """Returns the answer without names of pods outside these namespaces, nor of their budgets and owners."""
    hidden = {f"{pod.namespace}/{pod.name}" for pod in _pods_in(answer) if pod.namespace not in may_see}
    if not hidden:
        return answer

    @cache  # a map has many pods and no texts
    def patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
        # Whole names only: a name may be a part of another.
        pod_names = re.compile(rf"(?<![\w.-])(?:{'|'.join(map(re.escape, hidden))})(?![\w-]|\.\w)")
        namespaces = "|".join(re.escape(name) for name in namespaces_in(answer) if name not in may_see)
        budgets = re.compile(rf"PodDisruptionBudget (?:{namespaces})/[\w-]+(?:\.[\w-]+)*")
        return pod_names, budgets, re.compile(rf"PodGroup (?:{namespaces})/[\w-]+(?:\.[\w-]+)*")

    def without_names(text: str) -> str:
        pod_names, budgets, groups = patterns()
        return pod_names.sub(HIDDEN_POD, budgets.sub(HIDDEN_BUDGET, groups.sub(HIDDEN_GROUP, text)))

    return cast("A", _redacted(answer, may_see, without_names))


def _pods_in(value: object) -> list[PodName]:
    if isinstance(value, (str, int, WakesOn, ReasonCount)):  # most of what is in an answer
        return []
    if isinstance(value, PodName):
        return [] if value.hidden else [value]
    if isinstance(value, tuple):
        return [pod for item in value for pod in _pods_in(item)]
    if isinstance(value, NodeOnMap):  # of which there may be many, without pods
        return [item.pod for item in value.pods if not item.pod.hidden]
    if isinstance(value, msgspec.Struct):
        return [pod for part in msgspec.structs.astuple(value) for pod in _pods_in(part)]
    return []


def _redacted(value: Any, may_see: Container[str], without_names: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return without_names(value)
    if isinstance(value, tuple):
        return tuple(_redacted(item, may_see, without_names) for item in value)
    if isinstance(value, PodName):
        if value.hidden or value.namespace in may_see:
            return value
        return PodName(namespace="", name="", priority=value.priority, hidden=True)
    if isinstance(value, Victim) and value.pod.namespace not in may_see:
        pod = _redacted(value.pod, may_see, without_names)
        return msgspec.structs.replace(value, pod=pod, owner="", violates=("",) * len(value.violates))
    if isinstance(value, PlannedMove) and value.pod.namespace not in may_see:
        value = msgspec.structs.replace(value, owner="")
    if isinstance(value, Eviction | Placement | PlannedMove) and _pod_of(value).namespace not in may_see:
        value = msgspec.structs.replace(value, waits_for=("",) * len(value.waits_for))
    if isinstance(value, QueuePlace) and value.pod.namespace not in may_see:
        value = msgspec.structs.replace(value, workload="", claims=(), standing=None)
    if isinstance(value, NodeOnMap):  # its other texts are not about pods
        pods = (msgspec.structs.replace(item, pod=_redacted(item.pod, may_see, without_names)) for item in value.pods)
        return msgspec.structs.replace(value, pods=tuple(pods))
    if isinstance(value, GroupOutcome) and value.namespace not in may_see:
        value = msgspec.structs.replace(value, namespace="", name="")
    if isinstance(value, msgspec.Struct):
        parts = msgspec.structs.asdict(value).items()
        return msgspec.structs.replace(value, **{name: _redacted(part, may_see, without_names) for name, part in parts})
    return value


def _pod_of(value: Eviction | Placement | PlannedMove) -> PodName:
    return value.victim.pod if isinstance(value, Eviction) else value.pod
