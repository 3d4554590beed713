"""Kubernetes objects from files: what `-f` names."""

import copy
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from extender.rules.api_resources import RESOURCES
from extender.values.byte_order_marks import in_utf8
from extender.values.concurrency.process import collector_paused
from extender.values.objects.cluster import ClusterState
from extender.values.objects.decoding import DecodeError
from extender.values.objects.kinds import KINDS
from extender.values.reasons import in_one_line
from extender.values.workloads.expansion import JOB_SET, WORKLOADS
from reprieve.errors import StartUpError
from reprieve.sources.manifest_text import ManifestTextError, objects_in

ENDINGS: Final = (".yaml", ".yml", ".json")
_TABLE_OF_KIND: Final = {kind.name: kind.list_name for kind in KINDS}
_MATTER: Final = {*_TABLE_OF_KIND, "ResourceClaimTemplate"}
_IN_NAMESPACES: Final = {resource.kind for resource in RESOURCES if resource.namespaced} | {JOB_SET[1]}


def read_manifests(file: str) -> list[dict[str, Any]]:
    """Returns the objects in a file of YAML or JSON; `-` is standard input. Raises StartUpError in one line."""
    try:
        text = in_utf8(sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()).decode()
    except (OSError, UnicodeDecodeError) as exc:
        raise StartUpError(
            f"{file}: {in_one_line(exc)}; give a file with Kubernetes objects, or - for standard input"
        ) from exc
    try:
        objects = objects_in(text)
    except ManifestTextError as exc:
        raise StartUpError(f"{file}: {exc}") from exc
    if not objects:
        raise StartUpError(f"{file}: it has no objects")
    return objects


def manifests_in(source: str | Path) -> list[dict[str, Any]]:
    """Returns the objects in a text of several lines, in a file, or in the files of a folder. Raises StartUpError."""
    if isinstance(source, str) and "\n" in source:
        if not (objects := objects_in(source)):
            raise StartUpError("the text has no objects")
        return objects
    path = Path(source)
    if (path / "Chart.yaml").exists():
        raise StartUpError(f"{path} is the source of a chart: give what `helm template {path}` prints")
    files = sorted(file for file in path.rglob("*") if file.suffix in ENDINGS) if path.is_dir() else [path]
    return [obj for file in files for obj in read_manifests(str(file))]


def placed(objects: Iterable[dict[str, Any]], namespace: str | None, default: str) -> list[dict[str, Any]]:
    """Returns the objects, namespaced ones with a namespace. Raises StartUpError for another than --namespace."""
    return [_placed(obj, namespace, default) for obj in objects]


def _placed(obj: dict[str, Any], namespace: str | None, default: str) -> dict[str, Any]:
    metadata = obj.get("metadata", {})
    if obj.get("kind") not in _IN_NAMESPACES or not isinstance(metadata, dict):
        return obj
    own_namespace = metadata.get("namespace")
    if not own_namespace:
        return {**obj, "metadata": {**metadata, "namespace": default}}
    if namespace is not None and own_namespace != namespace:
        raise StartUpError(
            f"{obj['kind']} {_key(obj)} is not in the namespace {namespace}: leave --namespace out, or the object's own"
        )
    return obj


def with_priority(obj: dict[str, Any], priority_class: str, preempts: bool | None) -> dict[str, Any]:
    """Returns a pod or workload with another PriorityClass and preemption policy, where these are given."""
    changed = copy.deepcopy(obj)
    for spec in _pod_specs_of(changed):
        if priority_class:
            spec.pop("priority", None)
            spec["priorityClassName"] = priority_class
        if preempts is not None:
            spec["preemptionPolicy"] = "PreemptLowerPriority" if preempts else "Never"
    return changed


def check_subject(objects: Sequence[dict[str, Any]], files: Sequence[str], *, is_about_pods: bool) -> None:
    """Raises StartUpError if no object matters to a scheduler, or none makes pods: a false all-clear."""
    if any(_pod_specs_of(obj) or (obj.get("kind") in _MATTER and not is_about_pods) for obj in objects):
        return
    kinds = ", ".join(sorted({str(obj.get("kind")) for obj in objects}))
    subject = "pod or workload" if is_about_pods else "object that a scheduler reads"
    raise StartUpError(f"{', '.join(files)}: {kinds:.80}, and no {subject} in it")


def _pod_specs_of(obj: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the spec of a pod, or those of a workload's templates, as parts of the object; none for others."""
    if obj.get("kind") != JOB_SET[1]:
        return [spec for spec in (pod_spec_of(obj),) if spec is not None]
    jobs = _member(obj, "spec", "replicatedJobs")
    specs = [_member(job, "template", "spec", "template", "spec") for job in (jobs if isinstance(jobs, list) else ())]
    return [spec for spec in specs if isinstance(spec, dict)]


def pod_spec_of(obj: dict[str, Any]) -> dict[str, Any] | None:
    """Returns the spec of a pod, or of a workload's template; None for other objects. It is a part of the object."""
    kind = str(obj.get("kind"))
    if kind != "Pod" and kind not in {workload_kind for _, workload_kind in WORKLOADS}:
        return None
    path = {"Pod": ("spec",), "CronJob": ("spec", "jobTemplate", "spec", "template", "spec")}.get(
        kind, ("spec", "template", "spec")
    )
    spec = _member(obj, *path)
    return spec if isinstance(spec, dict) else None


def _member(obj: Any, *path: str) -> Any:
    for member in path:
        obj = obj.get(member) if isinstance(obj, dict) else None
    return obj


def state_of(objects: Iterable[dict[str, Any]]) -> ClusterState:
    """Returns the cluster that the objects make up, without kinds that scheduling ignores. Raises DecodeError."""
    lists: dict[str, list[dict[str, Any]]] = {}
    for obj in objects:
        table = _TABLE_OF_KIND.get(str(obj.get("kind")))
        if table is not None:
            lists.setdefault(table, []).append(obj)
    try:
        with collector_paused():
            return ClusterState.decode(lists)
    except DecodeError:
        for table, rows in lists.items():
            for obj in rows:
                _decode_alone(table, obj)
        raise


def _decode_alone(table: str, obj: dict[str, Any]) -> None:
    try:
        ClusterState.decode({table: [obj]})
    except DecodeError as exc:
        _, _, why = str(exc).partition(": ")
        raise DecodeError(f"{obj['kind']} {_key(obj)}: {why}") from exc


def _key(obj: dict[str, Any]) -> str:
    metadata = obj.get("metadata")
    names = [metadata.get(part) for part in ("namespace", "name")] if isinstance(metadata, dict) else []
    return "/".join(name for name in names if isinstance(name, str) and name) or "without a name"
