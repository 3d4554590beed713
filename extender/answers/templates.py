"""Whether pods are what a template would make: part by part, in what scheduling looks at."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, final

import msgspec

from extender.objects import decoding
from extender.objects.meta import Object
from extender.objects.pod import DEFAULT_SCHEDULER_NAME, Container, Pod, PodSpec, Volume
from extender.objects.quantity import quantity_of
from extender.workloads.stateful_sets import INDEX_LABEL, POD_NAME_LABEL, REVISION_LABEL
from extender.workloads.templates import HASH_LABEL

OF_CONTROLLERS: Final = frozenset(
    (HASH_LABEL, REVISION_LABEL, POD_NAME_LABEL, INDEX_LABEL, "pod-template-generation", "batch.kubernetes.io/job-name", "job-name")
)
"""Labels that controllers put on pods."""
_SERVICE_ACCOUNT_VOLUME: Final = "kube-api-access-"
_TOLERATED_BY_ALL: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_OFTEN_ADDED: Final = ("label ", "container ", "image ", "request ", "toleration ", "volume ", "overhead ")
"""What admission is known to add to pods; a node selector that only a pod has was taken out of the template."""


@final
@dataclass(frozen=True, slots=True)
class Differences:
    """Between a template and a pod, in words."""

    changed: tuple[str, ...]
    """What the template says otherwise."""
    added: tuple[str, ...]
    """What only the pod has, and admission may have put there."""


def differences(template: Object, pod: Pod, *, is_pinned: bool = False) -> Differences:
    """Where the pod is not as the template says.

    What scheduling does not look at (environments, commands) is not compared: the scheduler's view of pods does not hold it.

    Arguments:
        is_pinned: it is a DaemonSet's: its node affinity and many of its tolerations are the controller's.

    Raises:
        DecodeError: the template has the wrong form.
    """
    metadata = template.get("metadata") or {}
    wanted = dict(_parts(metadata.get("labels") or {}, decoding.convert(PodSpec, template.get("spec") or {}), is_pinned=is_pinned))
    has = dict(_parts(pod.labels, pod.spec, is_pinned=is_pinned))
    more = [part for part in has if part not in wanted]
    added = tuple(part for part in more if part.startswith(_OFTEN_ADDED))
    changed = [part for part, value in wanted.items() if has.get(part) != value]
    return Differences((*changed, *(part for part in more if part not in added)), added)


def _parts(labels: dict[str, str], spec: PodSpec, *, is_pinned: bool) -> Iterator[tuple[str, object]]:
    yield "scheduler name", spec.scheduler_name or DEFAULT_SCHEDULER_NAME
    for name, text in labels.items():
        if name not in OF_CONTROLLERS:
            yield f"label {name}", text
    for container in (*spec.init_containers, *spec.containers):
        yield from _parts_of(container)
    for resource, amount in spec.overhead.items():
        yield f"overhead {resource}", quantity_of(amount)
    for name, text in (spec.node_selector or {}).items():
        yield f"node selector {name}", text
    if spec.affinity is not None and not is_pinned:
        yield "affinity", _json(spec.affinity)
    for toleration in spec.tolerations:
        if not is_pinned and toleration.key not in _TOLERATED_BY_ALL:
            yield f"toleration {toleration.key or 'of everything'} {toleration.effect}".rstrip(), _json(toleration)
    if spec.topology_spread_constraints:
        yield "spread constraints", [_json(each) for each in spec.topology_spread_constraints]
    for volume in spec.volumes:
        # A StatefulSet's own claims are in its pods alone, and volumes of other kinds are not kept.
        is_seen = volume != Volume(name=volume.name) and volume.persistent_volume_claim is None
        if is_seen and not volume.name.startswith(_SERVICE_ACCOUNT_VOLUME):
            yield f"volume {volume.name}", _json(volume)
        elif volume.persistent_volume_claim is not None:
            yield f"volume {volume.name}", volume.persistent_volume_claim.claim_name
    for claim in spec.resource_claims:
        yield f"resource claim {claim.name}", _json(claim)
    if spec.priority_class_name:
        yield "priority class", spec.priority_class_name
    if spec.host_network:
        yield "host network", True


def _parts_of(container: Container) -> Iterator[tuple[str, object]]:
    name, resources = container.name, container.resources
    yield f"container {name}", container.restart_policy
    yield f"image {name}", container.image
    for resource, amount in {**resources.limits, **resources.requests}.items():
        yield f"request {resource} of {name}", quantity_of(amount)
    for port in container.ports:
        if port.host_port:
            yield f"host port {port.host_port} of {name}", (port.host_ip, port.protocol or "TCP")


def _json(value: object) -> Any:
    plain = msgspec.to_builtins(value)
    return _without_merged_keys(plain)


def _without_merged_keys(value: Any) -> Any:
    """Without what the API server merges into the selectors of a pod that names labels by their keys alone."""
    if isinstance(value, list):
        return [_without_merged_keys(item) for item in value]
    if not isinstance(value, dict):
        return value
    read = {key: _without_merged_keys(item) for key, item in value.items()}
    keys = {*(read.get("matchLabelKeys") or ()), *(read.get("mismatchLabelKeys") or ())}
    selector = read.get("labelSelector")
    if keys and isinstance(selector, dict):
        kept = [each for each in selector.get("matchExpressions") or () if each.get("key") not in keys]
        others = {key: item for key, item in selector.items() if key != "matchExpressions"}
        read["labelSelector"] = others | ({"matchExpressions": kept} if kept else {})
    return read
