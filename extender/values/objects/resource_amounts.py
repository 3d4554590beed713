"""The requests of pods and the allocatable amounts of nodes, as the numbers that scheduling compares.

What reads quantities raises QuantityError with the field for one that cannot be read.

Upstream: pkg/scheduler/framework/types.go, CalculateResource, Resource.Add, SetMaxResource;
plugins/noderesources/fit.go and resource_allocation.go; component-helpers/resource/helpers.go.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeVar, final

import msgspec

from extender.values import limits
from extender.values.caches import cached_by_size
from extender.values.golang.field_errors import NEGATIVE
from extender.values.objects.node import Node, ResourceList
from extender.values.objects.pod import Container, ContainerStatus, Pod, PodSpec, PodStatus, ResourceRequirements
from extender.values.objects.quantity import (
    BINARY_SI,
    DECIMAL_SI,
    MILLI,
    PLAIN_BELOW,
    Quantity,
    QuantityError,
    RawQuantity,
    milli_value_of,
    nanos_of,
    quantity_of,
    value_of,
)
from extender.values.objects.resource_names import (
    CPU,
    EPHEMERAL_STORAGE,
    HUGEPAGES_PREFIX,
    MEMORY,
    PODS,
    is_pod_level_resource,
    is_scalar_resource_name,
)

# The requests of all containers of a pod together: sums over containers, maxima over phases. What adds only works on
# whole numbers (billionths, see `nanos_of`) as well as on `Quantity`. Numbers are quick and exact; a Quantity also
# rounds and overflows as upstream does.
# Upstream: component-helpers/resource/helpers.go, PodRequests, PodLimits.

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
        requests = container.resources.requests
        status = statuses.get(container.name) if statuses and counts_status else None
        if status is None or status.resources is None:
            _add(_read_all(requests, read), total)
            effective: Mapping[str, object] = requests
        else:
            lists = (NOTHING_ASKED if infeasible else requests, status.resources.requests, status.allocated_resources)
            effective = _largest(lists, read)
            _add(effective, total)
        for name, amount in assumed:
            if name not in effective:
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
    requests = pod.spec.resources.requests if pod.spec.resources else NOTHING_ASKED
    amounts = _read_all(requests, read)
    if use_status and pod.status.resources is not None:
        lists = (
            NOTHING_ASKED if infeasible else requests,
            pod.status.resources.requests,
            pod.status.allocated_resources,
        )
        effective = _largest(lists, read)
        amounts = {name: effective.get(name, read("0")) for name in requests}
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


DEFAULT_MILLI_CPU: Final = 100
"""Millicores assumed for a container that asks for none, where spreading load needs a number."""
DEFAULT_MEMORY: Final = 200 * 1024 * 1024
"""Bytes assumed for a container that asks for none."""

_NAMED: Final = frozenset({CPU, MEMORY, EPHEMERAL_STORAGE, PODS})
_DEFAULTS: Final[Mapping[str, RawQuantity]] = {CPU: f"{DEFAULT_MILLI_CPU}m", MEMORY: DEFAULT_MEMORY}

_Field = tuple[str, str, RawQuantity]
"""The path of a list such as `spec.containers[0].resources.requests`, a resource in it, and what stands there."""

_FEW: Final = 64
"""So many requests of one container are read faster than an earlier answer is found."""
_ENCODE: Final = msgspec.json.Encoder().encode
_DECODE: Final = msgspec.json.Decoder(Pod).decode

T = TypeVar("T")


@final
class Resources(msgspec.Struct, frozen=True):
    """An amount of everything, int64 each: thousandths of a core, bytes, and base units.

    `scalar` has the resources that are counted one by one (see `is_scalar_resource_name`); a name with 0 was named.
    """

    milli_cpu: int = 0
    memory: int = 0
    ephemeral_storage: int = 0
    scalar: Mapping[str, int] = msgspec.field(default_factory=dict)


def assigned_requests(pod: Pod) -> tuple[Resources, int, int]:
    """Returns what the pod takes from its node: requests, and millicores and bytes with defaults (CalculateResource).

    What the kubelet has allocated during an in-place resize counts. The answer is kept for pods with equal containers.
    """
    only = _only_list(pod, use_status=True)
    if only is None or len(only) > _FEW:
        return _kept_assigned_requests(_ENCODE(_without_others(pod)))
    amounts = _naming_the_field(lambda _: _read(only), pod)
    return _resources(amounts), amounts.get(CPU, DEFAULT_MILLI_CPU), amounts.get(MEMORY, DEFAULT_MEMORY)


def filter_requests(pod: Pod) -> Resources:
    """Returns what NodeResourcesFit wants to find free, by spec, from zero up (computePodResourceRequest)."""
    amounts = _naming_the_field(lambda pod: _amounts(pod, use_status=False), pod)
    return _resources({name: max(0, amount) for name, amount in amounts.items()})


def requested_amounts(pod: Pod) -> dict[str, int]:
    """Returns resource -> what the pod requests, with its place among pods: base units, millicores for cpu."""
    requests = filter_requests(pod)
    native = {CPU: requests.milli_cpu, MEMORY: requests.memory, EPHEMERAL_STORAGE: requests.ephemeral_storage, PODS: 1}
    return {**native, **requests.scalar}


def fit_scorer_requests(pod: Pod, resources: Iterable[str]) -> tuple[int, ...]:
    """Returns the base units (millicores for cpu) that NodeResourcesFit's scorer adds (calculatePodResourceRequest).

    It looks neither at pod-level resources nor at the status, and assumes defaults for containers that name none.
    """
    amounts = _naming_the_field(lambda pod: _amounts(pod, use_status=False, pod_level=False, defaults=_DEFAULTS), pod)
    return tuple(amounts.get(resource, 0) for resource in resources)


def balanced_scorer_requests(pod: Pod, resources: Iterable[str]) -> tuple[int, ...]:
    """Returns the base units (millicores for cpu) that NodeResourcesBalancedAllocation adds, without defaults."""
    amounts = _naming_the_field(lambda pod: _amounts(pod, use_status=True), pod)
    return tuple(amounts.get(resource, 0) for resource in resources)


def pod_requests(pod: Pod, *, use_status: bool) -> dict[str, Quantity]:
    """Returns the pod's requests with overhead, and with `use_status` an in-place resize (PodRequests)."""
    return _naming_the_field(lambda pod: sum_requests(pod, quantity_of, use_status=use_status), pod)


def milli_requests(pod: Pod) -> dict[str, int]:
    """Returns thousandths of the pod's requests with overhead; an in-place resize counts."""
    nanos = _naming_the_field(lambda pod: sum_requests(pod, nanos_of, use_status=True), pod)
    if all(0 <= amount < PLAIN_BELOW for amount in nanos.values()):
        return {name: -(-amount // 10**6) for name, amount in nanos.items()}
    return {name: amount.milli_value() for name, amount in pod_requests(pod, use_status=True).items()}


def pod_limits(pod: Pod) -> dict[str, Quantity]:
    """Returns the limits of the whole pod; overhead is added where there is a limit (PodLimits)."""
    return _naming_the_field(lambda pod: sum_limits(pod, quantity_of), pod)


def validate_requests(pod: Pod) -> None:
    """Checks that all requests, limits and overhead are quantities that are not negative; tells the first."""
    # Distinct amounts are few, and the names of their fields are only needed for the error.
    if not all(map(_is_amount, _distinct_amounts(pod.spec))):
        _check(spec_fields(pod))


def allocatable(node: Node) -> tuple[Resources, int]:
    """Returns what the node can give to pods, never negative, and how many pods it takes (NewResource)."""
    if not all(map(_is_amount, node.status.allocatable.values())):
        _check(_list_fields("status.allocatable", node.status.allocatable))
    amounts = _read(node.status.allocatable)
    return _resources(amounts), amounts.get(PODS, 0)


def as_quantity(resource: str, amount: int) -> str:
    """Returns base units (millicores for cpu) as a quantity in its canonical form: `500m`, `64Gi`, `2`."""
    if resource == CPU:
        return Quantity(amount, MILLI, format=DECIMAL_SI).canonical()
    in_bytes = resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith(HUGEPAGES_PREFIX)
    return Quantity(amount, format=BINARY_SI if in_bytes else DECIMAL_SI).canonical()


def in_words(resource: str, quantity: str) -> str:
    """Returns a quantity as people compare it: cpu in cores, `60.1` and not `60100m`; others unchanged."""
    if resource != CPU:
        return quantity
    whole, part = divmod(abs(milli_value_of(quantity)), 1000)
    sign = "-" if quantity.startswith("-") else ""
    return f"{sign}{whole}.{part:03}".rstrip("0") if part else f"{sign}{whole}"


def _naming_the_field(compute: Callable[[Pod], T], pod: Pod) -> T:
    try:
        return compute(pod)
    except QuantityError as exc:
        raise (_first_fault(spec_fields(pod)) or _first_fault(status_fields(pod)) or exc) from exc


def _without_others(pod: Pod) -> Pod:
    spec, status = pod.spec, pod.status
    return Pod(
        spec=PodSpec(
            containers=spec.containers,
            init_containers=spec.init_containers,
            resources=spec.resources,
            overhead=spec.overhead,
        ),
        status=PodStatus(
            conditions=status.conditions,
            container_statuses=status.container_statuses,
            init_container_statuses=status.init_container_statuses,
            allocated_resources=status.allocated_resources,
            resources=status.resources,
        ),
    )


@cached_by_size(1024)
def _kept_assigned_requests(encoded: bytes) -> tuple[Resources, int, int]:
    return _naming_the_field(_assigned_requests, _DECODE(encoded))


def _assigned_requests(pod: Pod) -> tuple[Resources, int, int]:
    amounts = _amounts(pod, use_status=True)
    defaults: Mapping[str, RawQuantity] = _DEFAULTS
    if has_pod_level_requests(pod):
        defaults = {name: raw for name, raw in _DEFAULTS.items() if name not in amounts}
    non_zero = _amounts(pod, use_status=True, defaults=defaults) if defaults else amounts
    return _resources(amounts), non_zero.get(CPU, 0), non_zero.get(MEMORY, 0)


def _amounts(
    pod: Pod, *, use_status: bool, pod_level: bool = True, defaults: Mapping[str, RawQuantity] = NOTHING_ASKED
) -> dict[str, int]:
    """Returns int64 base units, millicores for cpu. The options are those of `sum_requests`."""
    only = _only_list(pod, use_status=use_status)
    if only is not None:
        return _read({**defaults, **only} if defaults else only)
    nanos = sum_requests(pod, nanos_of, use_status=use_status, pod_level=pod_level, defaults=defaults)
    if all(0 <= amount < PLAIN_BELOW for amount in nanos.values()):
        return {name: -(-amount // (10**6 if name == CPU else 10**9)) for name, amount in nanos.items()}
    sums = sum_requests(pod, quantity_of, use_status=use_status, pod_level=pod_level, defaults=defaults)
    return {name: amount.milli_value() if name == CPU else amount.value() for name, amount in sums.items()}


def _read(requests: ResourceList) -> dict[str, int]:
    return {name: milli_value_of(raw) if name == CPU else value_of(raw) for name, raw in requests.items()}


def _only_list(pod: Pod, *, use_status: bool) -> ResourceList | None:
    """Returns the one list of requests of a pod with a single container and nothing else to add."""
    spec = pod.spec
    if len(spec.containers) != 1 or spec.init_containers or spec.resources is not None or spec.overhead:
        return None
    requests = spec.containers[0].resources.requests
    if use_status:
        for status in (*pod.status.container_statuses, *pod.status.init_container_statuses):
            if status.resources is not None and status.resources.requests != requests:
                return None
            if status.resources is not None and status.allocated_resources and status.allocated_resources != requests:
                return None
    return requests


def _resources(amounts: Mapping[str, int]) -> Resources:
    scalar = {name: amount for name, amount in amounts.items() if name not in _NAMED and is_scalar_resource_name(name)}
    return Resources(amounts.get(CPU, 0), amounts.get(MEMORY, 0), amounts.get(EPHEMERAL_STORAGE, 0), scalar)


def spec_fields(pod: Pod) -> Iterator[_Field]:
    yield from _container_fields("spec.containers", pod.spec.containers)
    yield from _container_fields("spec.initContainers", pod.spec.init_containers)
    yield from _requirement_fields("spec.resources", pod.spec.resources)
    yield from _list_fields("spec.overhead", pod.spec.overhead)


def status_fields(pod: Pod) -> Iterator[_Field]:
    yield from _status_fields("status.containerStatuses", pod.status.container_statuses)
    yield from _status_fields("status.initContainerStatuses", pod.status.init_container_statuses)
    yield from _requirement_fields("status.resources", pod.status.resources)
    yield from _list_fields("status.allocatedResources", pod.status.allocated_resources)


def _distinct_amounts(spec: PodSpec) -> set[RawQuantity]:
    amounts = set(spec.overhead.values())
    for resources in (
        *(container.resources for container in (*spec.containers, *spec.init_containers)),
        spec.resources,
    ):
        if resources is not None:
            amounts.update(resources.requests.values(), resources.limits.values())
    return amounts


def _is_amount(raw: RawQuantity) -> bool:
    try:
        return nanos_of(raw) >= 0
    except QuantityError:
        return False


def _check(fields: Iterable[_Field]) -> None:
    """Checks that every field holds a quantity that is not negative; QuantityError names the first that does not."""
    fault = _first_fault(fields, may_be_negative=False)
    if fault is not None:
        raise fault


def _first_fault(fields: Iterable[_Field], *, may_be_negative: bool = True) -> QuantityError | None:
    for path, name, raw in fields:
        try:
            if quantity_of(raw).sign >= 0 or may_be_negative:
                continue
            why = NEGATIVE
        except QuantityError as exc:
            why = str(exc)
        return QuantityError(f"{path}[{_shown(name)}]: {why}")
    return None


def _container_fields(path: str, containers: list[Container]) -> Iterator[_Field]:
    for index, container in enumerate(containers):
        yield from _requirement_fields(f"{path}[{index}].resources", container.resources)


def _status_fields(path: str, statuses: list[ContainerStatus]) -> Iterator[_Field]:
    for index, status in enumerate(statuses):
        yield from _requirement_fields(f"{path}[{index}].resources", status.resources)
        yield from _list_fields(f"{path}[{index}].allocatedResources", status.allocated_resources)


def _requirement_fields(path: str, requirements: ResourceRequirements | None) -> Iterator[_Field]:
    if requirements is not None:
        yield from _list_fields(f"{path}.requests", requirements.requests)
        yield from _list_fields(f"{path}.limits", requirements.limits)


def _list_fields(path: str, resources: ResourceList | None) -> Iterator[_Field]:
    for name, raw in (resources or {}).items():
        yield path, name, raw


def _shown(name: str) -> str:
    """Returns the resource name if it can be one; anything else came from a caller and is not repeated."""
    is_plain = name.isascii() and len(name) <= limits.RESOURCE_NAME and name.replace("-", "").replace(".", "").isalnum()
    return name if is_plain or is_scalar_resource_name(name) else "?"
