"""Workloads in the form of upstream's scheduler_perf: cases of operations, each with workloads that give parameters.

Upstream: test/integration/scheduler_perf, scheduler_perf.go, test_case.go.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, final

import msgspec

from extender.values.config.configuration import ConfigErrors, Configuration
from extender.values.config.feature_gates import FeatureGates
from extender.values.config.loading import load_file
from extender.values.golang.json import plain
from extender.values.golang.yaml import YamlError, read_yaml
from extender.values.objects.decoding import DecodeError, convert
from reprieve.lab import limits
from reprieve.lab.simulation.perf_operations import OPERATIONS
from reprieve.lab.simulation.perf_run import Operation, PerfRun
from reprieve.lab.simulation.perf_templates import Templates
from reprieve.lab.simulation.scene import Scene
from reprieve.lab.simulation.sent_files import SentFiles
from reprieve.lab.simulation.workload import Workload, WorkloadError, lines_of

THROUGHPUT: Final = "SchedulingThroughput"
BINDING_CONDITIONS: Final = "DRADeviceBindingConditions"
"""A workload that names this gate is about devices that drivers prepare before a pod is bound."""


class _Written(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A part of the file. What only concerns upstream's collectors is read over."""


@final
class ThresholdMetricSelector(_Written, frozen=True, kw_only=True):
    """The metric that a threshold is about."""

    name: str = THROUGHPUT


@final
class PerfVariant(_Written, frozen=True, kw_only=True):
    """A workload of a test case: parameters, and what the figures ought to be."""

    name: str
    params: dict[str, Any] = {}
    labels: tuple[str, ...] = ()
    threshold: float | dict[str, float] | None = None
    threshold_metric_selector: ThresholdMetricSelector | None = None
    feature_gates: dict[str, bool] = {}


@final
class PerfCase(_Written, frozen=True, kw_only=True):
    """A test case."""

    name: str
    workload_template: tuple[dict[str, Any], ...]
    workloads: tuple[PerfVariant, ...]
    default_pod_template_path: str = ""
    scheduler_config_path: str = ""
    feature_gates: dict[str, bool] = {}
    labels: tuple[str, ...] = ()
    default_threshold_metric_selector: ThresholdMetricSelector | None = None


@final
class PerfWorkload(Workload):
    """One workload of one test case."""

    def __init__(self, path: Path, case: PerfCase, variant: PerfVariant, prefix: str = "") -> None:
        self.name = f"{prefix}{case.name}/{variant.name}"
        self.labels = (*case.labels, *variant.labels)
        self._path = path
        self._files = SentFiles(path.parent / name for name in _named_files(case))
        self._case = case
        self._variant = variant
        self._notes: list[str] = []

    def configured(self, configuration: Configuration) -> Configuration:
        self._notes = []
        if self._case.scheduler_config_path:
            path = self._path.parent / self._case.scheduler_config_path
            try:
                configuration = load_file(self._files.at(path))
            except ConfigErrors as exc:
                raise WorkloadError(f"{path}: {exc}") from exc
        gates: dict[str, bool] = {}
        for gate, is_on in self._gates().items():
            try:
                FeatureGates.of({**gates, gate: is_on})
            except ValueError as exc:
                if is_on:
                    raise WorkloadError(f"{self.name}: feature gate {gate}: {exc}") from exc
                self._notes.append(f"feature gate {gate}=false is without effect: {exc}")
            else:
                gates[gate] = is_on
        return dataclasses.replace(configuration, feature_gates=FeatureGates.of(gates)) if gates else configuration

    async def play(self, scene: Scene) -> None:
        scene.notes += self._notes
        has_conditions = self._gates().get(BINDING_CONDITIONS, False)
        templates = Templates(self._path.parent, self._files, has_binding_conditions=has_conditions)
        run = PerfRun(scene, templates, self._variant.params, self._case.default_pod_template_path, self._threshold())
        try:
            for number, fields in enumerate(self._case.workload_template):
                run.number = number
                where = f"{self.name}: operation {number} ({fields.get('opcode', 'no opcode')!s:.60})"
                try:
                    await _operation(fields).run(run)
                except (WorkloadError, DecodeError) as exc:
                    raise WorkloadError(f"{where}: {exc}") from exc
                for task in run.background:
                    if task.done():
                        task.result()
        finally:
            for task in run.background:
                task.cancel()

    def _gates(self) -> dict[str, bool]:
        return {**self._case.feature_gates, **self._variant.feature_gates}

    def _threshold(self) -> float | None:
        selector = (
            self._variant.threshold_metric_selector
            or self._case.default_threshold_metric_selector
            or ThresholdMetricSelector()
        )
        threshold = self._variant.threshold
        if selector.name != THROUGHPUT or isinstance(threshold, dict):
            return None
        return threshold or None


def read_scheduler_perf(path: Path, prefix: str = "") -> Sequence[PerfWorkload]:
    """Returns the workloads of a file, in order, with this before their names. Raises WorkloadError."""
    try:
        document = read_yaml("".join(lines_of(path, limits.WORKLOAD_BYTES)), max_nodes=limits.WORKLOAD_YAML_NODES)
        cases = convert(tuple[PerfCase, ...], plain(document.value))
    except (YamlError, DecodeError) as exc:
        raise WorkloadError(f"{path}: {exc}") from exc
    return [PerfWorkload(path, case, variant, prefix) for case in cases for variant in case.workloads]


def _named_files(value: object, field: str = "") -> Iterator[str]:
    """Yields the files that a case names: those in fields such as `podTemplatePath` and `templatePaths`."""
    if isinstance(value, PerfCase):
        yield from filter(None, (value.default_pod_template_path, value.scheduler_config_path))
        yield from _named_files(value.workload_template)
    elif isinstance(value, dict):
        for name, member in value.items():
            yield from _named_files(member, str(name))
    elif isinstance(value, list | tuple):
        for member in value:
            yield from _named_files(member, field)
    elif isinstance(value, str) and field.lower().endswith(("path", "paths")):
        yield value


def _operation(fields: dict[str, Any]) -> Operation:
    kind = OPERATIONS.get(str(fields.get("opcode")))
    if kind is None:
        raise WorkloadError(f"the opcode {fields.get('opcode')!r:.60} is not supported")
    # Go's decoder takes ConditionTypeParam for conditionTypeParam.
    return convert(kind, {name[:1].lower() + name[1:]: value for name, value in fields.items()})
