"""What a trial answers beside the answers of the commands: placements, and nodes as arrays."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import msgspec
import numpy as np
import numpy.typing as npt

from extender.answers.phrases import plural
from extender.answers.shown import Columns, Framed, Shown
from extender.engine.evaluation.evaluate import Evaluation
from extender.engine.snapshot import Rows, Snapshot
from extender.values.objects.kinds import kind_of
from extender.values.objects.meta import HasMetadata, Namespaced
from extender.values.objects.pod import Pod
from extender.values.objects.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, PODS

__all__ = ["NodeArrays", "Placement"]


@final
@dataclass(frozen=True, slots=True, repr=False)
class Placement(Shown):
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
    scores: Mapping[str, int] = field(default_factory=dict, hash=False)

    def _words(self) -> str:
        return f"{self.pod} on {self.node}" if self.node else f"{self.pod} is pending: {self.message}"

    def _columns(self) -> Columns:
        return Placements([self])._columns()


@final
class Placements(Framed, list[Placement]):
    """A list of placements."""

    __repr__ = Shown._as_text

    def _words(self) -> str:
        return f"{sum(bool(placement.node) for placement in self):,} of {len(self):,} pods have a node"

    def _columns(self) -> Columns:
        plugins = dict.fromkeys(plugin for placement in self for plugin in placement.scores)
        columns = {name: [getattr(placement, name) for placement in self] for name in ("pod", "node", "message")}
        return columns | {f"score.{plugin}": [placement.scores.get(plugin) for placement in self] for plugin in plugins}


@final
@dataclass(frozen=True, slots=True, repr=False, eq=False)
class NodeArrays(Framed):
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

    __repr__ = Shown._as_text

    def __eq__(self, other: object) -> bool:
        mine, its = self._columns(), other._columns() if isinstance(other, NodeArrays) else {}
        return [*mine] == [*its] and all(map(np.array_equal, mine.values(), its.values()))

    def __hash__(self) -> int:
        return hash((*self.names, *self.resources))

    def _words(self) -> str:
        return f"{np.count_nonzero(self.feasible):,} of {len(self.names):,} nodes are feasible"

    def _columns(self) -> Columns:
        columns: dict[str, Any] = {"node": self.names, "pods": self.pods, "feasible": self.feasible}
        columns |= {"reason": self.reasons} | {f"score.{plugin}": points for plugin, points in self.scores.items()}
        for what, amounts in (("requested", self.requested), ("allocatable", self.allocatable)):
            columns |= zip((f"{what}.{name}" for name in self.resources), amounts.T, strict=True)
        return columns


def node_arrays(evaluated: Snapshot | Evaluation) -> NodeArrays:
    """Returns the nodes of a snapshot, or with their verdicts on the pod of an evaluation."""
    evaluation = evaluated if isinstance(evaluated, Evaluation) else None
    snapshot = evaluated if isinstance(evaluated, Snapshot) else evaluated.snapshot
    nodes, names = snapshot.nodes, [node.name for node in snapshot.nodes.objects]
    feasible = np.full(len(names), evaluation is None)
    reasons, scores = [""] * len(names), dict[str, npt.NDArray[np.int64]]()
    if evaluation is not None:
        feasible[places := np.array([nodes.index[name] for name in evaluation.feasible], np.intp)] = True
        refused = evaluation.statuses
        for place in np.flatnonzero(~feasible).tolist():
            reasons[place] = evaluation.error if refused is None else refused.at_place(place, snapshot).message
        for plugin, of_feasible in {} if evaluation.scores is None else evaluation.scores.weighted.items():
            scores[plugin] = np.zeros(len(names), np.int64)
            scores[plugin][places] = of_feasible
    rows, offered = Rows.of(snapshot), {name for node in nodes.objects for name in node.status.allocatable}
    resources = [*(first := [CPU, MEMORY, EPHEMERAL_STORAGE]), *sorted(offered - {*first, PODS})]
    allocatable, requested = (
        np.stack([column(name) for name in resources], axis=1) for column in (rows.allocatable_of, rows.requested_of)
    )
    pods = nodes.pod_count.copy()
    return NodeArrays(names, resources, allocatable, requested, pods, feasible, reasons, scores)


class Counted(Shown):
    """Base of classes that hold objects: shows their number by kind."""

    _items: Callable[[], Iterable[HasMetadata]]

    def _words(self) -> str:
        kinds = Counter(kind_of(item).name for item in self._items())
        pending = sum(isinstance(item, Pod) and not item.spec.node_name for item in self._items())
        return f"{plural(kinds['Node'], 'node')}, {plural(kinds['Pod'], 'pod')}, {pending} of them pending"

    def _columns(self) -> Columns:
        kinds = Counter(kind_of(item).name for item in self._items())
        return {"kind": [*kinds], "objects": [*kinds.values()]}


def objects_of(items: Iterable[HasMetadata]) -> list[dict[str, Any]]:
    """Returns objects as the API has them, with what the scheduler reads of them, and all of them with a namespace that
    are in one.
    """
    objects = []
    for item in items:
        kind, content = kind_of(item), msgspec.to_builtins(item)
        if isinstance(item, Namespaced):
            content["metadata"]["namespace"] = item.namespace
        objects.append({"apiVersion": kind.api_version, "kind": kind.name, **content})
    return objects
