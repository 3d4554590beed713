"""The operations of scheduler_perf workloads, and what each does to a simulated cluster.

Upstream: test/integration/scheduler_perf, operations.go, executor.go, update.go. There an operation meets an API server
in real time; here an API server takes `ARRIVALS` pods a second of virtual time, so that what happens at intervals has
its place among them.
"""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Final, final

import msgspec

from extender.values.objects.decoding import replaced
from extender.values.objects.meta import HasMetadata, Object
from extender.values.objects.node import HOSTNAME_LABEL, Node
from extender.values.objects.pod import Pod
from reprieve.lab import limits
from reprieve.lab.simulation.perf_devices import (
    AllocResourceClaims,
    CheckPodScheduled,
    CreateResourceDriver,
    UpdateDeviceConditions,
)
from reprieve.lab.simulation.perf_run import Operation, PerfRun, wait_for_pods
from reprieve.lab.simulation.perf_templates import PodSource
from reprieve.lab.simulation.text_template import Value
from reprieve.lab.simulation.workload import WorkloadError

ARRIVALS: Final = 1000
"""Pods that are created in a second of virtual time."""
BATCH: Final = 10
"""Pods that are created at one moment."""
DEFAULT_CHURN: Final = 500
DEFAULT_NODE: Final[Object] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {},
    "status": {"capacity": {"pods": "110", "cpu": "4", "memory": "32Gi"}},
}
"""The node that is created where a workload names no template. Upstream: util.go, getNodePreparer."""

MIGRATED_PLUGINS: Final = "storage.alpha.kubernetes.io/migrated-plugins"


@final
class LabelStrategy(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Labels of nodes, with the values in turn."""

    label_key: str
    label_values: tuple[str, ...] = ()


@final
class AllocatableStrategy(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What nodes can give besides, and how many volumes of each CSI driver they take."""

    node_allocatable: dict[str, str | int] = {}
    csi_node_allocatable: dict[str, dict[str, int]] = {}
    migrated_plugins: tuple[str, ...] = ()


class _Counted(Operation, frozen=True, kw_only=True):
    count: int | None = None
    count_param: str | None = None

    def number(self, run: PerfRun, default: int = 0) -> int:
        return run.count(self.count, self.count_param, default)


@final
class CreateNodes(_Counted, frozen=True, kw_only=True, tag="createNodes"):
    """Creates nodes of a template."""

    node_template_path: str | None = None
    label_node_prepare_strategy: LabelStrategy | None = None
    unique_node_label_strategy: LabelStrategy | None = None
    node_allocatable_strategy: AllocatableStrategy | None = None
    template_params: dict[str, Value] | None = None

    async def run(self, run: PerfRun) -> None:
        count = self.number(run)
        if run.num_nodes + count > limits.WORKLOAD_NODES:
            raise WorkloadError(f"more than {limits.WORKLOAD_NODES} nodes")
        for index in range(count):
            template = run.templates.source(self.node_template_path) if self.node_template_path else None
            manifest = (
                DEFAULT_NODE if template is None else template.manifest(run.values(self.template_params, index, count))
            )
            metadata = manifest.get("metadata") or {}
            name = metadata.get("name") or f"{metadata.get('generateName') or f'node-{run.number}-'}{run.num_nodes:05}"
            where = self.node_template_path or "the default node"
            node = run.templates.prototypes.admitted({**manifest, "metadata": {**metadata, "name": name}}, where)
            if not isinstance(node, Node):
                raise WorkloadError(f"{self.node_template_path}: this is not a Node")
            run.scene.put(*self._prepared(node, index, run))
            run.num_nodes += 1

    def _prepared(self, node: Node, index: int, run: PerfRun) -> Iterator[HasMetadata]:
        labels = {**node.labels, HOSTNAME_LABEL: node.name}
        if self.label_node_prepare_strategy is not None:
            values = self.label_node_prepare_strategy.label_values or ("",)
            labels[self.label_node_prepare_strategy.label_key] = values[index % len(values)]
        if self.unique_node_label_strategy is not None:
            labels[self.unique_node_label_strategy.label_key] = f"unique-{run.num_nodes}"
        node = replaced(node, metadata=replaced(node.metadata, labels=labels))
        strategy = self.node_allocatable_strategy
        if strategy is None:
            yield node
            return
        allocatable = {**node.status.allocatable, **strategy.node_allocatable}
        yield replaced(node, status=replaced(node.status, allocatable=allocatable))
        drivers = [
            {"name": driver, "nodeID": node.name, "allocatable": amounts}
            for driver, amounts in strategy.csi_node_allocatable.items()
        ]
        migrated = ",".join(strategy.migrated_plugins)
        annotations = {MIGRATED_PLUGINS: migrated} if migrated else {}
        metadata = {"name": node.name, "annotations": annotations}
        manifest = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSINode",
            "metadata": metadata,
            "spec": {"drivers": drivers},
        }
        csi_node = run.templates.prototypes.admitted(manifest, "nodeAllocatableStrategy")
        if csi_node is not None:
            yield csi_node


@final
class CreateNamespaces(_Counted, frozen=True, kw_only=True, tag="createNamespaces"):
    """Creates numbered namespaces."""

    prefix: str
    namespace_template_path: str | None = None

    async def run(self, run: PerfRun) -> None:
        for index in range(self.number(run)):
            run.count_object()
            name = f"{self.prefix}-{index}"
            if self.namespace_template_path is None or name in run.in_namespace:
                run.ensure_namespace(name)
                continue
            manifest = run.templates.source(self.namespace_template_path).manifest({})
            metadata = {**(manifest.get("metadata") or {}), "name": name}
            metadata.pop("generateName", None)
            created = run.templates.prototypes.admitted(
                {**manifest, "metadata": metadata}, self.namespace_template_path
            )
            if created is not None:
                run.scene.put(created)
            run.in_namespace[name] = []


@final
class CreatePods(_Counted, frozen=True, kw_only=True, tag="createPods"):
    """Creates pods, and waits until they have nodes; or keeps a number of them coming and going for a while."""

    count_multiplier_param: str | None = None
    namespace: str | None = None
    pod_template_path: str | None = None
    persistent_volume_template_path: str | None = None
    persistent_volume_claim_template_path: str | None = None
    collect_metrics: bool = False
    skip_wait_to_completion: bool = False
    steady_state: bool = False
    steady_state_param: str | None = None
    duration: str | None = None
    duration_param: str | None = None
    template_params: dict[str, Value] | None = None

    async def run(self, run: PerfRun) -> None:
        await self.in_namespace(run, self.namespace if self.namespace is not None else f"namespace-{run.number}")

    async def in_namespace(self, run: PerfRun, namespace: str) -> None:
        run.ensure_namespace(namespace)
        count = self.number(run) * run.count(1, self.count_multiplier_param)
        path = self.pod_template_path or run.default_pod
        source = PodSource(
            run.templates, path, self.persistent_volume_template_path, self.persistent_volume_claim_template_path
        )
        end = run.scene.begin_measuring(namespace, run.threshold) if self.collect_metrics else None
        await self._made(run, namespace, count, source)
        if end is not None:
            run.scene.phases.append(end())

    async def _made(self, run: PerfRun, namespace: str, count: int, source: PodSource) -> None:
        is_steady = bool(run.param(self.steady_state_param)) if self.steady_state_param else self.steady_state
        if is_steady:
            await self._keep_coming(run, namespace, count, source)
            return
        run.scene.expect_pods(count)
        for index in range(count):
            self._create(run, namespace, source, index, count)
            if index % BATCH == BATCH - 1:
                await asyncio.sleep(BATCH / ARRIVALS)
        if not self.skip_wait_to_completion:
            await wait_for_pods(run, [namespace], {})

    def _create(self, run: PerfRun, namespace: str, source: PodSource, index: int, count: int) -> Pod:
        run.count_object()
        pod, volumes, lifetime = source.made(
            namespace, run.unique("pod-"), run.values(self.template_params, index, count)
        )
        run.scene.put(*volumes)
        run.scene.create_pods([pod], lifetime)
        run.in_namespace[namespace].append(pod.name)
        return pod

    async def _keep_coming(self, run: PerfRun, namespace: str, count: int, source: PodSource) -> None:
        """Deletes each pod once it has a node, and creates another one in its place."""
        loop, cluster = asyncio.get_running_loop(), run.scene.cluster
        end, index = loop.time() + run.seconds(self.duration, self.duration_param), count
        names = [self._create(run, namespace, source, number, count).name for number in range(count)]
        while loop.time() < end:
            await asyncio.sleep(max(count, 1) / ARRIVALS)
            for place, name in enumerate(names):
                pod = cluster.find(Pod, name, namespace)
                if pod is not None and pod.spec.node_name:
                    cluster.remove(pod)
                    names[place] = self._create(run, namespace, source, index, count).name
                    index += 1


@final
class CreatePodSets(_Counted, frozen=True, kw_only=True, tag="createPodSets"):
    """Creates pods in each of some numbered namespaces."""

    namespace_prefix: str
    create_pods_op: CreatePods

    async def run(self, run: PerfRun) -> None:
        for index in range(self.number(run)):
            await self.create_pods_op.in_namespace(run, f"{self.namespace_prefix}-{index}")


@final
class DeletePods(Operation, frozen=True, kw_only=True, tag="deletePods"):
    """Deletes pods of a namespace, all at once or so many a second."""

    namespace: str
    label_selector: dict[str, str] = msgspec.field(default_factory=dict)
    skip_wait_to_completion: bool = False
    delete_pods_per_second: int = 0

    async def run(self, run: PerfRun) -> None:
        pods = [
            pod
            for pod in run.scene.cluster.all_of(Pod, self.namespace)
            if self.label_selector.items() <= pod.labels.items()
        ]
        deleting = self._delete(run, pods)
        if self.skip_wait_to_completion:
            run.background.append(asyncio.create_task(deleting, name="deletePods"))
        else:
            await deleting

    async def _delete(self, run: PerfRun, pods: list[Pod]) -> None:
        for pod in pods:
            if self.delete_pods_per_second > 0:
                await asyncio.sleep(1 / self.delete_pods_per_second)
            run.scene.cluster.delete_pod(pod)


@final
class Churn(Operation, frozen=True, kw_only=True, tag="churn"):
    """Creates objects at intervals in the background; in the mode `recreate`, deletes them again in the next round."""

    mode: str
    number: int = 0
    interval_milliseconds: int = DEFAULT_CHURN
    namespace: str | None = None
    template_paths: tuple[str, ...]

    async def run(self, run: PerfRun) -> None:
        if self.mode not in ("create", "recreate") or self.number < 0 or (self.mode == "recreate" and not self.number):
            raise WorkloadError(f"churn: the mode {self.mode!r:.40} with number {self.number} is not supported")
        namespace = self.namespace if self.namespace is not None else f"namespace-{run.number}"
        run.ensure_namespace(namespace)
        run.background.append(asyncio.create_task(self._go_on(run, namespace), name="churn"))

    async def _go_on(self, run: PerfRun, namespace: str) -> None:
        objects: list[list[HasMetadata | None]] = [[None] * self.number for _ in self.template_paths]
        rounds = 0
        while self.mode == "recreate" or not self.number or rounds < self.number:
            await asyncio.sleep(max(self.interval_milliseconds, 1) / 1000)
            for place, path in enumerate(self.template_paths):
                old = objects[place][rounds % self.number] if self.mode == "recreate" else None
                if isinstance(old, Pod):
                    run.scene.cluster.delete_pod(old)
                elif old is not None:
                    run.scene.cluster.remove(old)
                run.count_object()
                obj = run.templates.churned(path, run.unique("churn-"), namespace) if old is None else None
                if isinstance(obj, Pod):
                    run.scene.create_pods([obj])
                    obj = run.scene.cluster.find(Pod, obj.name, namespace)
                elif obj is not None:
                    obj = run.scene.cluster.put(obj)
                if self.mode == "recreate":
                    objects[place][rounds % self.number] = obj
            rounds += 1


@final
class Barrier(Operation, frozen=True, kw_only=True, tag="barrier"):
    """Waits until pods have nodes, or until each was tried once."""

    namespaces: tuple[str, ...] = ()
    label_selector: dict[str, str] = msgspec.field(default_factory=dict)
    stage_requirement: str = "Scheduled"

    async def run(self, run: PerfRun) -> None:
        if self.stage_requirement == "Attempted":
            await run.scene.settle()
            return
        if self.stage_requirement != "Scheduled":
            raise WorkloadError(f"barrier: the stage {self.stage_requirement!r:.40} is not supported")
        await wait_for_pods(run, list(self.namespaces or run.in_namespace), self.label_selector)


@final
class Sleep(Operation, frozen=True, kw_only=True, tag="sleep"):
    """Lets virtual time pass."""

    duration: str | None = None
    duration_param: str | None = None

    async def run(self, run: PerfRun) -> None:
        await asyncio.sleep(run.seconds(self.duration, self.duration_param))


@final
class StartCollectingMetrics(Operation, frozen=True, kw_only=True, tag="startCollectingMetrics"):
    """Begins to measure how many pods a second are placed."""

    name: str = ""
    namespaces: tuple[str, ...] = ()
    label_selector: dict[str, str] = msgspec.field(default_factory=dict)

    async def run(self, run: PerfRun) -> None:
        if run.measuring is not None:
            raise WorkloadError("startCollectingMetrics: a measurement is under way")
        run.measuring = run.scene.begin_measuring(self.name or ", ".join(self.namespaces), run.threshold)


@final
class StopCollectingMetrics(Operation, frozen=True, kw_only=True, tag="stopCollectingMetrics"):
    """Ends the measurement."""

    async def run(self, run: PerfRun) -> None:
        if run.measuring is None:
            raise WorkloadError("stopCollectingMetrics: no measurement is under way")
        run.scene.phases.append(run.measuring())
        run.measuring = None


@final
class CreateAny(_Counted, frozen=True, kw_only=True, tag="createAny"):
    """Creates objects of any kind that a scheduler looks at."""

    template_path: str
    namespace: str = ""
    template_params: dict[str, Value] | None = None

    async def run(self, run: PerfRun) -> None:
        if self.namespace:
            run.ensure_namespace(self.namespace)
        count = self.number(run, 1)
        for index in range(count):
            run.count_object()
            run.templates.create(
                run.scene, self.template_path, self.namespace, run.values(self.template_params, index, count)
            )


@final
class UpdateAny(_Counted, frozen=True, kw_only=True, tag="updateAny"):
    """Replaces objects, all at once or so many a second."""

    template_path: str
    namespace: str = ""
    update_per_second: int = 0
    subresources: tuple[str, ...] = ()
    template_params: dict[str, Value] | None = None

    async def run(self, run: PerfRun) -> None:
        count = self.number(run, 1)
        for index in range(count):
            if self.update_per_second > 0:
                await asyncio.sleep(1 / self.update_per_second)
            values = run.values(self.template_params, index, count)
            run.templates.create(run.scene, self.template_path, self.namespace, values, is_update=True)


@final
class CreateResourceClaims(Operation, frozen=True, kw_only=True, tag="createResourceClaims"):
    """Creates claims of a template."""

    template_path: str
    namespace: str
    count: int | None = None
    count_param: str | None = None

    async def run(self, run: PerfRun) -> None:
        any_kind = CreateAny(
            template_path=self.template_path, namespace=self.namespace, count=self.count, count_param=self.count_param
        )
        await any_kind.run(run)


OPERATIONS: Final[Mapping[str, type[Operation]]] = {
    str(operation.__struct_config__.tag): operation
    for operation in (
        CreateNodes, CreateNamespaces, CreatePods, CreatePodSets, DeletePods, Churn, Barrier, Sleep,
        StartCollectingMetrics, StopCollectingMetrics, CreateAny, UpdateAny,
        CreateResourceClaims, CreateResourceDriver, AllocResourceClaims,
        UpdateDeviceConditions, CheckPodScheduled,
    )
}  # fmt: skip
"""Opcode -> the operation that plays it."""
