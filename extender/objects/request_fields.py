"""The paths of the quantities of an object, so that a refusal can name the field. The quantity itself is never repeated."""

from collections.abc import Iterable, Iterator
from typing import Final

from extender.objects.node import Node, ResourceList
from extender.objects.pod import Container, ContainerStatus, Pod, ResourceRequirements
from extender.objects.quantity import QuantityError, RawQuantity, quantity_of
from extender.objects.resource_names import is_scalar_resource_name

Field = tuple[str, RawQuantity]
"""A field path such as `spec.containers[0].resources.requests[cpu]`, and what stands there."""

NOT_NEGATIVE: Final = "must be greater than or equal to 0"
"""What API validation says of a negative amount. Upstream: apimachinery/pkg/api/validation/generic.go, IsNegativeErrorMsg."""

_LONGEST_SHOWN: Final = 320


def spec_fields(pod: Pod) -> Iterator[Field]:
    """Yields requests, limits and overhead of the pod's spec."""
    yield from _container_fields("spec.containers", pod.spec.containers)
    yield from _container_fields("spec.initContainers", pod.spec.init_containers)
    yield from _requirement_fields("spec.resources", pod.spec.resources)
    yield from _list_fields("spec.overhead", pod.spec.overhead)


def status_fields(pod: Pod) -> Iterator[Field]:
    """Yields what the kubelet reports as allocated and running."""
    yield from _status_fields("status.containerStatuses", pod.status.container_statuses)
    yield from _status_fields("status.initContainerStatuses", pod.status.init_container_statuses)
    yield from _requirement_fields("status.resources", pod.status.resources)
    yield from _list_fields("status.allocatedResources", pod.status.allocated_resources)


def allocatable_fields(node: Node) -> Iterator[Field]:
    """Yields the allocatable amounts of the node."""
    return _list_fields("status.allocatable", node.status.allocatable)


def check(fields: Iterable[Field]) -> None:
    """Checks that every field holds a quantity that is not negative.

    Raises:
        QuantityError: it names the first field where that is not so.
    """
    for path, raw in fields:
        try:
            negative = quantity_of(raw).sign < 0
        except QuantityError as exc:
            raise QuantityError(f"{path}: {exc}") from exc
        if negative:
            raise QuantityError(f"{path}: {NOT_NEGATIVE}")


def first_unreadable(fields: Iterable[Field]) -> QuantityError | None:
    """Returns the error that names the first field without a quantity; None if all have one."""
    for path, raw in fields:
        try:
            quantity_of(raw)
        except QuantityError as exc:
            return QuantityError(f"{path}: {exc}")
    return None


def _container_fields(path: str, containers: list[Container]) -> Iterator[Field]:
    for index, container in enumerate(containers):
        yield from _requirement_fields(f"{path}[{index}].resources", container.resources)


def _status_fields(path: str, statuses: list[ContainerStatus]) -> Iterator[Field]:
    for index, status in enumerate(statuses):
        yield from _requirement_fields(f"{path}[{index}].resources", status.resources)
        yield from _list_fields(f"{path}[{index}].allocatedResources", status.allocated_resources)


def _requirement_fields(path: str, requirements: ResourceRequirements | None) -> Iterator[Field]:
    if requirements is not None:
        yield from _list_fields(f"{path}.requests", requirements.requests)
        yield from _list_fields(f"{path}.limits", requirements.limits)


def _list_fields(path: str, resources: ResourceList | None) -> Iterator[Field]:
    for name, raw in (resources or {}).items():
        yield f"{path}[{_shown(name)}]", raw


def _shown(name: str) -> str:
    """Returns the resource name if it can be one; anything else came from a caller and is not repeated."""
    is_plain = name.isascii() and len(name) <= _LONGEST_SHOWN and name.replace("-", "").replace(".", "").isalnum()
    return name if is_plain or is_scalar_resource_name(name) else "?"
