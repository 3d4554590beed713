"""What a pod lacks on nodes, and how much less it would have to request."""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Final

import numpy as np

from extender.engine import framework as fwk
from extender.engine.framework.interface import with_containers
from extender.values.objects.decoding import replaced
from extender.values.objects.node import ResourceList
from extender.values.objects.pod import Container, ResourceRequirements
from extender.values.objects.quantity import nanos_of
from extender.values.objects.resource_amounts import as_quantity, in_words, pod_requests, requested_amounts
from extender.values.objects.resource_names import CPU, PODS

_NANOS: Final = 10**9
_NANOS_OF_A_MILLICORE: Final = 10**6


def suggestions(pod: fwk.Pod, shortages: Sequence[fwk.Shortage]) -> Iterator[fwk.Suggestion]:
    """Yields for each resource the pod that requests as much as is free on a node that lacks nothing else.

    Where each node lacks several resources at once, it is as much as is free of them on the first node, which is the
    nearest. The shortages are those on the nodes that only NodeResourcesFit refuses.
    """
    if not shortages:
        return
    short = np.stack([each.requested > each.free for each in shortages])
    number = short.sum(axis=0)
    found = [
        suggestion
        for shortage, is_short in zip(shortages, short, strict=True)
        if (alone := is_short & (number == 1)).any()
        and (suggestion := requesting_at_most(pod, {shortage.resource: int(shortage.free[alone].max())})) is not None
    ]
    if not found:
        for row in np.flatnonzero(number > 1)[:1].tolist():
            limits = {each.resource: int(each.free[row]) for each in shortages if each.requested > each.free[row]}
            suggestion = requesting_at_most(pod, limits)
            found = [] if suggestion is None else [suggestion]
    yield from found


def requesting_at_most(pod: fwk.Pod, limits: Mapping[str, int]) -> fwk.Suggestion | None:
    """Returns the pod with requests within the limits: base units, millicores for cpu.

    It is None if the pod would have to request nothing, and if there are too many pods: a small pod is a pod, too.
    """
    if not limits or PODS in limits or any(limit <= 0 for limit in limits.values()):
        return None
    changed = with_smaller_requests(pod, limits)
    if changed is None:
        return None
    before, after = requested_amounts(pod), requested_amounts(changed)
    if not all(after[resource] for resource in limits):
        return None
    texts = [
        f"{in_words(name, as_quantity(name, after[name]))} of {name} instead of "
        f"{in_words(name, as_quantity(name, before[name]))}"
        for name in limits
    ]
    return fwk.Suggestion("request", f"ask for {' and '.join(texts)}", changed)


def with_smaller_requests(pod: fwk.Pod, limits: Mapping[str, int]) -> fwk.Pod | None:
    """Returns the pod with requests reduced by one factor, if its overhead fits. Raises QuantityError."""
    for resource, limit in limits.items():
        overhead = nanos_of(pod.spec.overhead.get(resource, 0))
        requested = pod_requests(pod, use_status=False)[resource].nanos() - overhead
        allowed = limit * _unit(resource) - overhead
        if allowed <= 0:
            return None
        if requested > allowed:
            pod = _scaled(pod, resource, Fraction(allowed, requested))
    return pod


def _scaled(pod: fwk.Pod, resource: str, factor: Fraction) -> fwk.Pod:
    def scaled(container: Container) -> Container:
        return replaced(container, resources=_requirements_scaled(container.resources, resource, factor))

    whole = pod.spec.resources
    resources = None if whole is None else _requirements_scaled(whole, resource, factor)
    return with_containers(pod, scaled, resources=resources)


def _requirements_scaled(resources: ResourceRequirements, resource: str, factor: Fraction) -> ResourceRequirements:
    raw = resources.requests.get(resource)
    if raw is None:
        return resources
    units = int(nanos_of(raw) * factor) // _unit(resource)
    requests: ResourceList = {**resources.requests, resource: f"{units}m" if resource == CPU else units}
    return replaced(resources, requests=requests)


def _unit(resource: str) -> int:
    return _NANOS_OF_A_MILLICORE if resource == CPU else _NANOS
