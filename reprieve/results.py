"""What a trial answers beside the answers of the commands: placements, and nodes as arrays."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import msgspec
import numpy as np
import numpy.typing as npt

from extender.values.objects.kinds import kind_of
from extender.values.objects.meta import HasMetadata

__all__ = ["NodeArrays", "Placement"]


@final
@dataclass(frozen=True, slots=True)
class Placement:
    """What became of a pod.

    Attributes:
        pod: namespace/name.
        node: where it is now; empty if it stays pending.
        message: why it does, in kube-scheduler's words.
        scores: Score plugin -> what it gave to the node, 0 to 100 times its weight, where `schedule(..., scores=True)`
            asked for it. Empty where nothing was to choose, and for members of pod groups.
    """

    pod: str
    node: str = ""
    message: str = ""
    scores: Mapping[str, int] = field(default_factory=dict)


@final
@dataclass(frozen=True, slots=True)
class NodeArrays:
    """The N nodes with their K resources, and what they are to a pod. All arrays are copies.

    Attributes:
        names: N names, in the order in which the scheduler visits the nodes.
        resources: K names: cpu (in millicores), memory and ephemeral-storage (in bytes), and what else nodes offer, in
            its own units.
        allocatable, requested: (N, K) what the nodes offer, and what the pods on them request.
        pods: (N,) the number of pods.
        feasible: (N,) the nodes that pass all Filters; all without a pod.
        reasons: N sentences in kube-scheduler's words: why a node is refused; empty where it is not.
        scores: Score plugin -> (N,) 0 to 100 times its weight; 0 for nodes that are not feasible.
    """

    names: Sequence[str]
    resources: Sequence[str]
    allocatable: npt.NDArray[np.int64]
    requested: npt.NDArray[np.int64]
    pods: npt.NDArray[np.int64]
    feasible: npt.NDArray[np.bool_]
    reasons: Sequence[str]
    scores: Mapping[str, npt.NDArray[np.int64]]


def objects_of(items: Iterable[HasMetadata]) -> list[dict[str, Any]]:
    """Returns objects as the API has them, with what the scheduler reads of them."""
    kinds = ((kind_of(item), item) for item in items)
    return [{"apiVersion": kind.api_version, "kind": kind.name, **msgspec.to_builtins(item)} for kind, item in kinds]
