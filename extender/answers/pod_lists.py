"""Lists of pods as values: what GET /v1/pods sends."""

from typing import final

from extender.answers.parts import PodName
from extender.answers.types import Answer


@final
class ListedPod(Answer, frozen=True, kw_only=True):
    """A pod, where it is, and what it belongs to."""

    pod: PodName
    node: str = ""
    """Empty for a pod that waits."""
    workload: str = ""
    """The workload that the pod belongs to, written as in `QueuePlace`."""
    group: str = ""
    """The name of its pod group."""
    since: str | None = None
    """When it was created."""


@final
class NamespacePods(Answer, frozen=True, kw_only=True):
    """The numbers of pods of one namespace."""

    namespace: str
    pods: int
    pending: int = 0


@final
class PodList(Answer, frozen=True, kw_only=True):
    """GET /v1/pods: the pods of a namespace, a workload or a pod group, pending ones first; without a namespace, the
    namespaces.
    """

    items: tuple[ListedPod, ...] = ()
    total: int = 0
    """The number of all such pods, also of those that are not listed."""
    namespaces: tuple[NamespacePods, ...] = ()
    """The namespaces that have such pods, by name."""
