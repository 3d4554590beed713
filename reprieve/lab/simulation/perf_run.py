"""PerfRun: one scheduler_perf workload while it is played, and what all its operations share."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, final

import msgspec

from extender.values.golang.times import Duration, DurationError
from extender.values.objects.pod import Pod
from reprieve.lab import limits
from reprieve.lab.simulation.perf_templates import Templates
from reprieve.lab.simulation.report import Phase
from reprieve.lab.simulation.scene import Scene
from reprieve.lab.simulation.text_template import Value
from reprieve.lab.simulation.workload import WorkloadError

Params = Mapping[str, Any]


@final
@dataclass(slots=True)
class PerfRun:
    """One workload while it is played. State: what was created, and what goes on in the background.

    What an operation has by itself or as the name of a parameter is read by `count` and `seconds`.
    """

    scene: Scene
    templates: Templates
    params: Params
    default_pod: str
    threshold: float | None
    number: int = 0
    """The place of the operation that runs."""
    num_nodes: int = 0
    num_objects: int = 0
    in_namespace: dict[str, list[str]] = field(default_factory=dict)
    """Namespace -> the names of the pods created there."""
    background: list[asyncio.Task[None]] = field(default_factory=list)
    measuring: "Callable[[], Phase] | None" = None
    names: int = 0

    def count(self, number: int | None, param: str | None, default: int = 0) -> int:
        value = self.param(param) if param else number if number is not None else default
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= limits.WORKLOAD_PODS:
            raise WorkloadError(
                f"{param or 'count'} is {value!r:.40}, and has to be a number up to {limits.WORKLOAD_PODS}"
            )
        return int(value)

    def seconds(self, text: str | None, param: str | None) -> float:
        value = self.param(param) if param else text or "0s"
        try:
            seconds = Duration.parse(str(value)).nanoseconds / 1e9
        except DurationError as exc:
            raise WorkloadError(f"{param or 'duration'}: {exc}") from exc
        if not 0 <= seconds <= limits.WORKLOAD_SECONDS:
            raise WorkloadError(
                f"{param or 'duration'}: {value!r:.40} is negative, or longer than "
                f"{limits.WORKLOAD_SECONDS // 86400} days"
            )
        return seconds

    def count_object(self) -> None:
        self.num_objects += 1
        if self.num_objects > limits.WORKLOAD_PODS:
            raise WorkloadError(f"more than {limits.WORKLOAD_PODS} objects")

    def param(self, name: str) -> Any:
        """Returns the parameter of a name that begins with a dollar sign."""
        if not name.startswith("$") or name[1:] not in self.params:
            raise WorkloadError(f"the parameter {name!r:.60} is not given")
        return self.params[name[1:]]

    def values(self, params: Mapping[str, Value] | None, index: int, count: int) -> dict[str, Value]:
        resolved = {
            name: self.param(value) if isinstance(value, str) and value.startswith("$") else value
            for name, value in (params or {}).items()
        }
        return {**resolved, "Index": index, "Count": count}

    def unique(self, base: str) -> str:
        self.names += 1
        return f"{base}{self.names}"

    def ensure_namespace(self, name: str) -> None:
        if name not in self.in_namespace:
            self.in_namespace[name] = []
            created = self.templates.prototypes.admitted(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, name
            )
            if created is not None:
                self.scene.put(created)


class Operation(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, tag_field="opcode"
):
    """One step of a workload."""

    async def run(self, run: PerfRun) -> None:
        """Does the step; returns once the next one may begin."""
        raise WorkloadError(f"{type(self).__name__} does nothing")


async def wait_for_pods(run: PerfRun, namespaces: list[str], labels: Mapping[str, str]) -> None:
    """Waits until all pods in the namespaces have nodes, or notes that some will have none."""
    cluster = run.scene.cluster
    waiting = {(namespace, name) for namespace in namespaces for name in run.in_namespace.get(namespace, ())}

    def are_placed() -> bool:
        for namespace, name in list(waiting):
            pod = cluster.find(Pod, name, namespace)
            if pod is None or pod.spec.node_name or not labels.items() <= pod.labels.items():
                waiting.discard((namespace, name))
        return not waiting

    await run.scene.settle(are_placed)
    if not are_placed():
        run.scene.notes.append(
            f"operation {run.number}: {len(waiting)} pods have no node, so that scheduler_perf would fail here"
        )
