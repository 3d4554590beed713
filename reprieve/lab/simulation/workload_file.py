"""A workload in a YAML form of our own: nodes, groups of pods that arrive and run, and what is expected.

name: web and batch
nodes: {count: 20, cpu: 16, memory: 64Gi, zones: [a, b, c]}
pods:
  - {name: web, count: 40, cpu: 1, memory: 2Gi, priority: 100}
  - {name: batch, rate: 0.5, for: 1h, runsFor: {mean: 20m}, cpu: 2, memory: 8Gi}
expect: [placed >= 95%, waiting.p99 < 600]
"""

import heapq
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, final

import msgspec

from extender.values.golang.json import plain
from extender.values.golang.times import Duration, DurationError
from extender.values.golang.yaml import YamlError, read_yaml, split_documents
from extender.values.objects.decoding import DecodeError, convert, replaced
from extender.values.objects.meta import HasMetadata, Object
from extender.values.objects.pod import Pod
from reprieve.lab import limits
from reprieve.lab.simulation.prototypes import Prototypes, named
from reprieve.lab.simulation.scene import Scene
from reprieve.lab.simulation.simulated_cluster import Lifetime
from reprieve.lab.simulation.workload import ExpectationError, ExpectedFigure, Workload, WorkloadError, lines_of
from reprieve.lab.verification.rules import NodeGroup, nodes_of


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A part of the file; unknown fields are refused."""


@final
class RandomLifetime(_Part, frozen=True, kw_only=True):
    """How long pods run: exponentially distributed with a mean, or uniformly between two times."""

    mean: str = ""
    at_least: str = ""
    at_most: str = ""


@final
class ArrivingPods(_Part, frozen=True, kw_only=True):
    """Pods that are alike, and when they arrive: so many at once, or again and again, or at random with a rate."""

    name: str
    at: str = "0s"
    count: int = 1
    every: str = ""
    rate: float = 0.0
    """Pods a second on average, at random moments; then `count` pods come at each of them."""
    for_: str = msgspec.field(default="", name="for")
    """How long they go on arriving."""
    runs_for: str | RandomLifetime = ""
    """Empty for pods that run until they are deleted."""
    grace: str = "0s"
    """How long a pod takes to stop when it is evicted."""
    namespace: str = "default"
    priority: int | None = None
    cpu: str | int | float | None = None
    memory: str | int | None = None
    resources: dict[str, str | int | float] = {}
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    spec: dict[str, Any] = {}
    """Anything else of the pods' spec."""


@final
class WrittenWorkload(_Part, frozen=True, kw_only=True):
    """The whole file."""

    name: str = ""
    nodes: NodeGroup | tuple[NodeGroup, ...]
    objects: tuple[dict[str, Any], ...] = ()
    """Manifests that are there from the beginning: priority classes, disruption budgets, services, ..."""
    pods: tuple[ArrivingPods, ...]
    expect: tuple[str, ...] = ()


@final
class _Group:
    """A group of pods, read: its prototype and its arrivals."""

    def __init__(self, number: int, pods: ArrivingPods, prototype: Pod, where: str) -> None:
        self.pods = pods
        self.prototype = prototype
        self._number = number
        seconds = {name: _seconds(text, f"{where}.{name}") for name, text in _durations(pods)}
        self._at, self._every, self._for, self._grace = (
            seconds[name] or 0.0 for name in ("at", "every", "for", "grace")
        )
        self._lifetime = [
            seconds.get(name) for name in ("runsFor", "runsFor.mean", "runsFor.atLeast", "runsFor.atMost")
        ]
        if (pods.rate or pods.every) and not pods.for_:
            raise WorkloadError(f"{where}: `for` says how long pods arrive with `rate` or `every`")
        if pods.rate < 0 or pods.count < 0 or (pods.every and not self._every) or (pods.rate and pods.every):
            raise WorkloadError(f"{where}: give a positive `count`, and `rate` or `every` but not both")
        expected = pods.count * (
            self._for * pods.rate if pods.rate else self._for / self._every + 1 if self._every else 1
        )
        if expected > limits.WORKLOAD_PODS:
            raise WorkloadError(f"{where}: about {expected:.3g} pods, but at most {limits.WORKLOAD_PODS}")
        self.num_expected = int(expected)

    def arrivals(self, seed: int) -> "Iterator[tuple[float, int, _Group]]":
        """Yields the arrivals in order: (virtual time, number of the group, group)."""
        time, rng = self._at, random.Random(f"arrivals {seed} {self._number}")
        if not (self._every or self.pods.rate):
            yield time, self._number, self
            return
        time += rng.expovariate(self.pods.rate) if self.pods.rate else 0.0
        while time < self._at + self._for:
            yield time, self._number, self
            time += rng.expovariate(self.pods.rate) if self.pods.rate else self._every

    def lifetime(self, rng: random.Random) -> Lifetime:
        exactly, mean, shortest, longest = self._lifetime
        if mean is not None:
            runs_for: float | None = rng.expovariate(1 / mean) if mean else 0.0
        elif shortest is not None or longest is not None:
            runs_for = rng.uniform(shortest or 0.0, longest if longest is not None else shortest or 0.0)
        else:
            runs_for = exactly
        return Lifetime(runs_for, self._grace)


@final
class WorkloadFile(Workload):
    """The file, read and checked."""

    def __init__(self, path: Path) -> None:
        """Raises WorkloadError if the file cannot be read, or something in it is wrong."""
        file = _read(path)
        self.name = file.name or path.name
        try:
            self.expectations = tuple(ExpectedFigure.read(text) for text in file.expect)
        except ExpectationError as exc:
            raise WorkloadError(f"{path}: expect: {exc}") from exc
        prototypes = Prototypes()
        groups = (file.nodes,) if isinstance(file.nodes, NodeGroup) else file.nodes
        if sum(max(group.count, 0) for group in groups) > limits.WORKLOAD_NODES:
            raise WorkloadError(f"{path}: nodes: more than {limits.WORKLOAD_NODES}")
        objects = [prototypes.admitted(obj, f"{path}: objects[{place}]") for place, obj in enumerate(file.objects)]
        objects += _nodes(groups, prototypes, path)
        self._objects = [obj for obj in objects if obj is not None]
        self._groups: list[_Group] = []
        for number, group in enumerate(file.pods):
            where = f"{path}: pods[{number}]"
            self._groups.append(_Group(number, group, prototypes.pod(_manifest(group, where), where), where))
        if len({group.pods.name for group in self._groups}) < len(self._groups):
            raise WorkloadError(f"{path}: pods: two groups have the same name")
        if any(isinstance(obj, Pod) for obj in self._objects):
            raise WorkloadError(f"{path}: objects: pods are written below `pods`")

    async def play(self, scene: Scene) -> None:
        scene.put(*self._objects)
        scene.expect_pods(sum(group.num_expected for group in self._groups))
        created = 0
        numbers = dict.fromkeys(range(len(self._groups)), 0)
        for time, place, group in heapq.merge(
            *(group.arrivals(scene.seed) for group in self._groups), key=lambda arrival: arrival[:2]
        ):
            await scene.sleep_until(time)
            for _ in range(group.pods.count):
                created += 1
                if created > limits.WORKLOAD_PODS:
                    raise WorkloadError(f"{self.name}: more than {limits.WORKLOAD_PODS} pods")
                numbers[place] += 1
                scene.create_pods(
                    [named(group.prototype, f"{group.pods.name}-{numbers[place]}")], group.lifetime(scene.rng)
                )
        await scene.settle()


def _read(path: Path) -> WrittenWorkload:
    text = "".join(lines_of(path, limits.WORKLOAD_BYTES))
    try:
        document = read_yaml(text, max_nodes=limits.WORKLOAD_YAML_NODES)
        if document.has_more or len([part for part in split_documents(text) if part.strip()]) > 1:
            raise WorkloadError(f"{path}: more than one document")
        if document.duplicates:
            raise WorkloadError(f"{path}: {document.duplicates[0]}")
        return convert(WrittenWorkload, plain(document.value))
    except (YamlError, DecodeError) as exc:
        raise WorkloadError(f"{path}: {exc}") from exc


def _nodes(groups: tuple[NodeGroup, ...], prototypes: Prototypes, path: Path) -> Iterator[HasMetadata]:
    """Yields the nodes. Those of a group differ in name and zone only, so that each group is admitted once."""
    for place, group in enumerate(groups):
        prototype: HasMetadata | None = None
        for obj in nodes_of(group):
            if prototype is None:
                prototype = prototypes.admitted(obj, f"{path}: nodes[{place}]")
            if prototype is not None:
                name, labels = obj["metadata"]["name"], obj["metadata"]["labels"]
                yield replaced(prototype, metadata=replaced(prototype.metadata, name=name, labels=labels))


def _manifest(group: ArrivingPods, where: str) -> Object:
    if "containers" in group.spec and (group.cpu is not None or group.memory is not None or group.resources):
        raise WorkloadError(f"{where}: give cpu, memory and resources, or spec.containers, but not both")
    native = {"cpu": group.cpu, "memory": group.memory}
    amounts = {name: str(amount) for name, amount in native.items() if amount is not None}
    amounts |= {name: str(amount) for name, amount in group.resources.items()}
    # An extended resource has a limit, and it is equal to the request.
    extended = {name: amount for name, amount in amounts.items() if name not in native}
    container = {"name": "main", "image": "workload", "resources": {"requests": amounts, "limits": extended}}
    spec = {"containers": [container], **group.spec} | ({} if group.priority is None else {"priority": group.priority})
    metadata = {"namespace": group.namespace, "labels": group.labels, "annotations": group.annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _durations(group: ArrivingPods) -> Iterator[tuple[str, str]]:
    yield from (("at", group.at), ("every", group.every), ("for", group.for_), ("grace", group.grace))
    lifetime = group.runs_for
    if isinstance(lifetime, str):
        yield "runsFor", lifetime
    else:
        yield from (
            ("runsFor.mean", lifetime.mean),
            ("runsFor.atLeast", lifetime.at_least),
            ("runsFor.atMost", lifetime.at_most),
        )


def _seconds(text: str, where: str) -> float | None:
    if not text:
        return None
    try:
        seconds = Duration.parse(text).nanoseconds / 1e9
    except DurationError as exc:
        raise WorkloadError(f"{where}: {exc}") from exc
    if not 0 <= seconds <= limits.WORKLOAD_SECONDS:
        raise WorkloadError(
            f"{where}: {text!r:.40} is negative, or longer than {limits.WORKLOAD_SECONDS / 86400:.0f} days"
        )
    return seconds
