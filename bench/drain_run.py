"""One scheduler that drains one backlog, as the watch of a bystander sees it."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple, final

import msgspec

from bench.backlog import node, pod
from extender.client.client import Client
from extender.client.paths import path
from tests.kit.control_plane import ControlPlane
from tests.kit.processes import Process

PATIENCE: Final = 300.0
"""Seconds for a drain, and for what is done before it."""
QPS: Final = 5000
"""As in upstream's scheduler_perf: nothing waits for its turn."""
SERVE: Final = (
    *("serve", "--schedule", "--no-leader-elect", "--port", "0"),
    *("--kube-api-qps", str(QPS), "--kube-api-burst", str(QPS)),
)
KUBE_SCHEDULER: Final = "kube-scheduler"
CALLERS: Final = 32
"""That create objects at one time."""
NODES: Final = path("", "v1", "nodes")
PODS: Final = path("", "v1", "pods", namespace="default")
EVENTS: Final = path("events.k8s.io", "v1", "events", namespace="default")


@final
class Drained(NamedTuple):
    """What became of one backlog."""

    cpu_ms: float
    """Milliseconds of CPU a pod, between the first binding and the last."""
    per_second: float
    """Pods from the first binding to the last."""
    told_per_second: float
    """Pods from the first binding until the last Event is stored."""
    first_seconds: float
    """From the start of the process to its first binding."""
    first_cpu: float
    """Seconds of CPU until then."""

    def __str__(self) -> str:
        rates = f"{self.per_second:7.0f} {self.told_per_second:12.0f}"
        return f"{self.cpu_ms:9.3f} {rates} {self.first_seconds:16.2f} {self.first_cpu:12.2f}"


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Pod(msgspec.Struct):
    metadata: _Meta
    spec: _Spec


class _Event(msgspec.Struct):
    object: _Pod


@final
class Wire:
    """An API server with nodes, which schedulers are run against one after the other."""

    def __init__(self, client: Client, kubeconfig: Path) -> None:
        self._client = client
        self._kubeconfig = kubeconfig

    @staticmethod
    @asynccontextmanager
    async def open(plane: ControlPlane, num_nodes: int) -> AsyncIterator["Wire"]:
        """Creates the nodes."""
        async with aclosing(Client(plane.target())) as client:
            await _at_once(client.create(NODES, node(number)) for number in range(num_nodes))
            yield Wire(client, plane.kubeconfig())

    async def version(self) -> str:
        """What the API server says of itself."""
        answer = json.loads(await self._client.get("/version"))
        return f"an API server {answer['gitVersion']}"

    async def drain(self, scheduler: Path, shape: str, num_pods: int) -> Drained:
        """Makes a new backlog, and runs the scheduler until all of it is bound: the kube-scheduler of this path, or the
        Reprieve of this interpreter's environment.
        """
        since = await self._make_backlog(shape, num_pods)
        with TemporaryDirectory() as folder:
            command = self._command(scheduler, Path(folder))
            began = time.perf_counter()
            process = Process(command, Path(folder, "log"))
            try:
                async with asyncio.timeout(PATIENCE):
                    return await self._watched(process, began, num_pods, since)
            finally:
                await asyncio.to_thread(process.stop, 30.0)

    async def bindings_alone(self, num_pods: int) -> float:
        """Returns how many pods a second are bound where nothing is decided, watched or told."""
        await self._make_backlog("basic", num_pods)
        began = time.perf_counter()
        await _at_once(self._bind(pod(number, "basic")["metadata"]["name"]) for number in range(num_pods))
        return num_pods / (time.perf_counter() - began)

    async def _bind(self, name: str) -> None:
        target = {"apiVersion": "v1", "kind": "Node", "name": node(0)["metadata"]["name"]}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        await self._client.create(
            path("", "v1", "pods", namespace="default", name=name, subresource="binding"), binding
        )

    def _command(self, scheduler: Path, folder: Path) -> tuple[str | Path, ...]:
        if scheduler.name != KUBE_SCHEDULER:
            return scheduler.with_name("reprieve"), *SERVE, "--kubeconfig", self._kubeconfig
        connection = {"kubeconfig": str(self._kubeconfig), "qps": QPS, "burst": QPS}
        configuration = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": connection,
            "leaderElection": {"leaderElect": False},
        }
        (folder / "config.yaml").write_text(json.dumps(configuration))
        return scheduler, "--config", folder / "config.yaml", "--secure-port", "0"

    async def _make_backlog(self, shape: str, num_pods: int) -> str:
        for old in (PODS, EVENTS):
            await self._client.delete(old, grace_period_seconds=0, timeout=PATIENCE)
        async with asyncio.timeout(PATIENCE):
            while (await self._list(PODS))["items"]:  # noqa: ASYNC110 - nobody tells when a collection is gone
                await asyncio.sleep(0.5)
        await _at_once(self._client.create(PODS, pod(number, shape)) for number in range(num_pods))
        version: str = (await self._list(PODS))["metadata"]["resourceVersion"]
        return version

    async def _watched(self, process: Process, began: float, num_pods: int, since: str) -> Drained:
        bound: set[str] = set()
        first, first_cpu, at_first = 0.0, 0.0, 0
        decoder = msgspec.json.Decoder(_Event)
        params = {"watch": "1", "resourceVersion": since}
        async with self._client.watch(PODS, params=params, silence=PATIENCE) as lines:
            async for line in lines:
                for event in map(decoder.decode, (line, *lines.arrived())):
                    if event.object.spec.node_name:
                        bound.add(event.object.metadata.name)
                if bound and not at_first:
                    first, first_cpu, at_first = time.perf_counter(), process.cpu_seconds, len(bound)
                if len(bound) >= num_pods:
                    break
        last, last_cpu = time.perf_counter(), process.cpu_seconds
        if len(bound) < num_pods or at_first == num_pods:
            raise SystemExit(
                f"{at_first} and then {len(bound)} of {num_pods} pods were seen bound when the watch ended"
            )
        while (await self._num_events()) < num_pods:  # noqa: ASYNC110 - a watch of them would cost as much as the bindings
            await asyncio.sleep(0.1)
        end = time.perf_counter()
        num_after = num_pods - at_first
        return Drained(
            cpu_ms=(last_cpu - first_cpu) / num_after * 1e3,
            per_second=num_after / (last - first),
            told_per_second=num_after / (end - first),
            first_seconds=first - began,
            first_cpu=first_cpu,
        )

    async def _num_events(self) -> int:
        events = await self._list(EVENTS)
        return len(events["items"]) + int(events["metadata"].get("remainingItemCount", 0))

    async def _list(self, where: str) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(await self._client.get(where, params={"limit": "1"}))
        return answer


async def _at_once(calls: Iterable[Coroutine[Any, Any, object]]) -> None:
    """Makes the calls, so many at a time."""
    remaining = iter(calls)

    async def worker() -> None:
        for call in remaining:
            await call

    async with asyncio.TaskGroup() as workers:
        for _ in range(CALLERS):
            workers.create_task(worker())
