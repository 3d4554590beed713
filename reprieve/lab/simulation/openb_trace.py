"""GPU clusters and their pods, as in Alibaba's cluster-trace-gpu-v2023 (`openb_node_list`, `openb_pod_list`).

A node offers 1000 `alibabacloud.com/gpu-milli` for each GPU, and a pod asks for its share of each of its GPUs; so the
scheduler sees one amount a node. A pod that names GPU models (`gpu_spec`) requires a node labelled with one of them.
Pods arrive all at once, in the order of the file or in one shuffled by the seed, until they have asked for as many GPUs
as there are. This is how published studies load the trace: replayed by its own times, only few pods run at once.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from extender.values.objects.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, ObjectMeta
from extender.values.objects.node import HOSTNAME_LABEL, Node, NodeStatus
from extender.values.objects.pod import Affinity, Container, NodeAffinity, Pod, PodSpec, ResourceRequirements
from reprieve.lab import limits
from reprieve.lab.simulation.scene import Scene
from reprieve.lab.simulation.workload import Workload, WorkloadError, lines_of

GPU: Final = "alibabacloud.com/gpu-milli"
MODEL_LABEL: Final = "gpu"
PODS_A_NODE: Final = "250"
LARGEST: Final = 10**12
"""No amount in a trace is larger."""

_NODE_COLUMNS: Final = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
_POD_COLUMNS: Final = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec")

Shape = tuple[int, int, int, str]
"""(millicores, MiB, thousandths of a GPU, models)."""


@final
@dataclass(frozen=True, slots=True)
class _Row:
    where: str
    fields: Mapping[str, str]

    def text(self, column: str) -> str:
        return self.fields[column].strip()

    def number(self, column: str) -> int:
        text = self.text(column) or "0"
        if not text.isascii() or not text.isdigit() or int(text[:20]) > LARGEST:
            raise WorkloadError(f"{self.where}: {column}: {text!r:.40} is not a number up to {LARGEST}")
        return int(text)


@final
class OpenbTrace(Workload):
    """The tables of a trace. Making it raises WorkloadError if one of them cannot be read."""

    def __init__(self, nodes: Path, pods: Path) -> None:
        self.name = f"{pods.parent.name}/{pods.name}"
        self._nodes = [_node(row) for row in _rows(nodes, _NODE_COLUMNS, limits.WORKLOAD_NODES)]
        self._gpus = _gpus(self._nodes)
        self._pods = [(row.text("name"), _shape(row)) for row in _rows(pods, _POD_COLUMNS, limits.WORKLOAD_PODS)]
        for path, rows in ((nodes, self._nodes), (pods, self._pods)):
            if not rows:
                raise WorkloadError(f"{path}: there is no line below the names of the columns")

    @staticmethod
    def find(path: Path) -> "OpenbTrace | None":
        """Returns the trace in a folder, or that of a table of pods with nodes beside it; None if there is none."""
        folder, name = (path, "pods") if path.is_dir() else (path.parent, "")
        nodes = _table(folder, "nodes")
        pods = _table(folder, name) if name else path
        is_table = pods is not None and pods.name.removesuffix(".gz").endswith(".csv")
        return OpenbTrace(nodes, pods) if nodes is not None and pods is not None and is_table else None

    def half(self, *, is_later: bool) -> Workload:
        """Returns every second node, with the first or the second half of the pods: half a cluster with its load."""
        half, middle = copy(self), len(self._pods) // 2
        half.name = f"{self.name}, {'later' if is_later else 'earlier'} half"
        half._nodes = self._nodes[is_later::2]
        half._gpus = _gpus(half._nodes)
        half._pods = self._pods[middle:] if is_later else self._pods[:middle]
        return half

    async def play(self, scene: Scene) -> None:
        scene.put(*self._nodes)
        pods = list(self._pods)
        if scene.seed:
            scene.rng.shuffle(pods)
        specs: dict[Shape, PodSpec] = {}
        gpus, arriving = 0, []
        for name, shape in pods:
            if self._gpus and gpus >= self._gpus:
                break
            gpus += shape[2]
            spec = specs.get(shape)
            if spec is None:
                spec = specs[shape] = _spec(shape)
            arriving.append(Pod(metadata=ObjectMeta(name=name, namespace="default"), spec=spec))
        if self._gpus:
            text = (
                f"{len(arriving)} of {len(pods)} pods arrive; they ask for {gpus / self._gpus:.1%} of "
                f"{self._gpus / 1000:,.0f} GPUs"
            )
            scene.notes.append(text)
        scene.expect_pods(len(arriving))
        scene.create_pods(arriving)
        await scene.settle()


def _gpus(nodes: Sequence[Node]) -> int:
    return sum(int(node.status.allocatable.get(GPU, 0)) for node in nodes)


def _table(folder: Path, name: str) -> Path | None:
    return next((path for end in (".csv", ".csv.gz") if (path := folder / f"{name}{end}").is_file()), None)


def _rows(path: Path, columns: tuple[str, ...], limit: int) -> Iterator[_Row]:
    reader = csv.reader(lines_of(path, limits.WORKLOAD_BYTES), strict=True)
    try:
        names = [name.strip() for name in next(reader, [])]
        lacking = [column for column in columns if column not in names]
        if lacking:
            raise WorkloadError(f"{path}: line 1: there is no column {', '.join(lacking)}")
        for number, fields in enumerate(reader, start=1):
            if number > limit:
                raise WorkloadError(f"{path}: more than {limit} lines")
            if len(fields) != len(names):
                raise WorkloadError(f"{path}: line {reader.line_num}: {len(fields)} fields for {len(names)} columns")
            yield _Row(f"{path}: line {reader.line_num}", dict(zip(names, fields, strict=True)))
    except csv.Error as exc:
        raise WorkloadError(f"{path}: line {reader.line_num}: {exc}") from exc


def _node(row: _Row) -> Node:
    name, model, gpus = row.text("sn"), row.text("model"), row.number("gpu")
    if not name:
        raise WorkloadError(f"{row.where}: sn: a node needs a name")
    labels = {HOSTNAME_LABEL: name} | ({MODEL_LABEL: model} if model else {})
    amounts: dict[str, str | int | float] = {
        "cpu": f"{row.number('cpu_milli')}m",
        "memory": f"{row.number('memory_mib')}Mi",
    }
    gpu: dict[str, str | int | float] = {GPU: str(1000 * gpus)} if gpus else {}
    return Node(
        metadata=ObjectMeta(name=name, labels=labels),
        status=NodeStatus(allocatable={**amounts, "pods": PODS_A_NODE, **gpu}),
    )


def _shape(row: _Row) -> Shape:
    if not row.text("name"):
        raise WorkloadError(f"{row.where}: name: a pod needs a name")
    share = row.number("num_gpu") * row.number("gpu_milli")
    return row.number("cpu_milli"), row.number("memory_mib"), share, row.text("gpu_spec")


def _spec(shape: Shape) -> PodSpec:
    cpu, memory, share, models = shape
    requests: dict[str, str | int | float] = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}
    if share:
        requests[GPU] = str(share)
    container = Container(name="main", image="trace", resources=ResourceRequirements(requests=requests))
    affinity = None
    if models:
        one_of = NodeSelectorRequirement(
            key=MODEL_LABEL, operator="In", values=[model for model in models.split("|") if model]
        )
        terms = NodeSelector(node_selector_terms=[NodeSelectorTerm(match_expressions=[one_of])])
        affinity = Affinity(node_affinity=NodeAffinity(required=terms))
    return PodSpec(containers=[container], affinity=affinity)
