"""The requests of all containers of a pod together: sums over containers, maxima over phases. Units do not matter here.

Everything here works on whole numbers (billionths, see `quantity.nanos_of`) as well as on `Quantity`: it only adds and
compares. Numbers are quick and exact; a Quantity also rounds and overflows as upstream does.

Upstream: component-helpers/resource/helpers.go, PodRequests, PodLimits.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from extender.values.objects.node import ResourceList
from extender.values.objects.pod import Container, Pod, ResourceRequirements
from extender.values.objects.quantity import Quantity, RawQuantity
from extender.values.objects.resource_names import is_pod_level_resource

N = TypeVar("N", int, Quantity)
Read = Callable[[RawQuantity], N]
"""A function from a quantity as written to a number."""

NOTHING_ASKED: ResourceList = {}


def sum_requests(
    pod: Pod,
    read: Read[N],
    *,
    use_status: bool = False,
    pod_level: bool = True,
    defaults: Mapping[str, RawQuantity] = NOTHING_ASKED,
) -> dict[str, N]:
    """Returns what containers, sidecars, the widest init phase and overhead ask for (AggregateContainerRequests).

    Arguments:
        use_status: what the kubelet has allocated or runs counts too, if larger (in-place resize).
        pod_level: spec.resources.requests replace the sums.
        defaults: assumed for each container that does not name the resource; an explicit zero stays zero.
    """
    infeasible = use_status and _is_resize_infeasible(pod)
    reported = (*pod.status.container_statuses, *pod.status.init_container_statuses) if use_status else ()
    statuses = {status.name: status for status in reported}
    assumed = [(name, read(raw)) for name, raw in defaults.items()]

    def add_needs(container: Container, total: dict[str, N], counts_status: bool) -> None:
        asked = container.resources.requests
        status = statuses.get(container.name) if statuses and counts_status else None
        if status is None or status.resources is None:
            _add(_read_all(asked, read), total)
            named: Mapping[str, object] = asked
        else:
            lists = (NOTHING_ASKED if infeasible else asked, status.resources.requests, status.allocated_resources)
            named = _largest(lists, read)
            _add(named, total)
        for name, amount in assumed:
            if name not in named:
                total[name] = total[name] + amount if name in total else amount

    total = _over_phases(pod, add_needs)
    if pod_level and has_pod_level_requests(pod):
        _set_pod_level(total, pod, read, use_status=use_status, infeasible=infeasible)
    _add(_read_all(pod.spec.overhead, read), total)
    return total


def sum_limits(pod: Pod, read: Read[N]) -> dict[str, N]:
    """Returns the limits of the pod by its spec, with overhead where there is a limit (AggregateContainerLimits)."""

    def add_limits(container: Container, total: dict[str, N], _: bool) -> None:
        _add(_read_all(container.resources.limits, read), total)

    total = _over_phases(pod, add_limits)
    whole = pod.spec.resources or ResourceRequirements()
    total |= {name: read(raw) for name, raw in whole.limits.items() if is_pod_level_resource(name)}
    overhead = _read_all(pod.spec.overhead, read)
    _add({name: amount for name, amount in overhead.items() if total.get(name)}, total)
    return total


def has_pod_level_requests(pod: Pod) -> bool:
    """True if spec.resources asks for what can be asked for a pod (IsPodLevelRequestsSet)."""
    return pod.spec.resources is not None and any(map(is_pod_level_resource, pod.spec.resources.requests))


def _over_phases(pod: Pod, add_needs: Callable[[Container, dict[str, N], bool], None]) -> dict[str, N]:
    """Returns the sums of containers and sidecars, but not less than any init phase.

    In its phase an init container runs beside the sidecars started before it; a sidecar stays. `add_needs` adds to a
    total what a container needs; the status of a plain init container never counts.
    """
    total: dict[str, N] = {}
    sidecars: dict[str, N] = {}
    widest_phase: dict[str, N] = {}
    for container in pod.spec.containers:
        add_needs(container, total, True)
    for container in pod.spec.init_containers:
        amounts: dict[str, N] = {}
        add_needs(container, amounts, container.is_sidecar)
        if container.is_sidecar:
            _add(amounts, total)
            _add(amounts, sidecars)
            _raise_to(sidecars, widest_phase)
        else:
            _add(sidecars, amounts)
            _raise_to(amounts, widest_phase)
    _raise_to(widest_phase, total)
    return total


def _set_pod_level(total: dict[str, N], pod: Pod, read: Read[N], *, use_status: bool, infeasible: bool) -> None:
    """Replaces what the containers add up to by the requests of the whole pod."""
    asked = pod.spec.resources.requests if pod.spec.resources else NOTHING_ASKED
    amounts = _read_all(asked, read)
    if use_status and pod.status.resources is not None:
        lists = (NOTHING_ASKED if infeasible else asked, pod.status.resources.requests, pod.status.allocated_resources)
        effective = _largest(lists, read)
        amounts = {name: effective.get(name, read("0")) for name in asked}
    total |= {name: amount for name, amount in amounts.items() if is_pod_level_resource(name)}


def _is_resize_infeasible(pod: Pod) -> bool:
    """True if the kubelet has said that the asked-for resize cannot be done (IsPodResizeInfeasible)."""
    pending = next((condition for condition in pod.status.conditions if condition.type == "PodResizePending"), None)
    return pending is not None and pending.reason == "Infeasible"


def _largest(lists: Iterable[ResourceList | None], read: Read[N]) -> dict[str, N]:
    """Returns per resource the largest amount in any list; a missing list has none."""
    largest: dict[str, N] = {}
    for resources in lists:
        _raise_to(_read_all(resources or NOTHING_ASKED, read), largest)
    return largest


def _read_all(resources: ResourceList, read: Read[N]) -> dict[str, N]:
    return {name: read(raw) for name, raw in resources.items()}


def _add(more: Mapping[str, N], total: dict[str, N]) -> None:
    for name, amount in more.items():
        total[name] = total[name] + amount if name in total else amount


def _raise_to(floor: Mapping[str, N], total: dict[str, N]) -> None:
    for name, amount in floor.items():
        if name not in total or amount > total[name]:
            total[name] = amount
