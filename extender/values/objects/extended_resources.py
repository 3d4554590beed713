"""Extended resources that device classes back: pods request them like any other, and get devices for them.

Upstream: pkg/scheduler/util/utils.go, IsDRAExtendedResourceName;
dynamic-resource-allocation/deviceclass/extendedresourcecache.
"""

from collections.abc import Iterable
from itertools import chain
from operator import attrgetter
from typing import Final

from extender.values.objects.cluster import ClusterObjects, GroupedTable
from extender.values.objects.devices import DeviceClass, ResourceClaim
from extender.values.objects.pod import Pod
from extender.values.objects.resource_amounts import filter_requests
from extender.values.objects.resource_names import is_extended_resource_name

DEVICE_CLASS_PREFIX: Final = "deviceclass.resource.kubernetes.io/"
"""A request for an extended resource with this prefix is a request for devices of the class named after the slash."""

SPECIAL_CLAIM_ANNOTATION: Final = "resource.kubernetes.io/extended-resource-claim"
"""Marks the claim that the scheduler makes for the extended resources of a pod."""

DeviceClasses = GroupedTable[str, DeviceClass, str]
"""Device classes by name, grouped by the extended resource that they name."""

NO_DEVICE_CLASSES: Final = ClusterObjects().device_classes
"""What backs extended resources while the feature is off."""


def device_class_of(resource: str, classes: DeviceClasses) -> DeviceClass | None:
    """Returns the class that backs an extended resource, by its name or because it names the resource, if any.

    Of several the newest does, and of equally new ones the first by name.
    """
    if resource.startswith(DEVICE_CLASS_PREFIX):
        return classes.get(resource.removeprefix(DEVICE_CLASS_PREFIX))
    named_by = classes.group(resource)
    if not named_by:
        return None
    by_name = sorted(named_by.values(), key=attrgetter("name"))
    return max(by_name, key=lambda device_class: device_class.metadata.creation_timestamp or "")


def backed_resources(resources: frozenset[str], classes: DeviceClasses) -> frozenset[str]:
    """Returns those of the resources that a class backs. A pod may request thousands that none does."""
    resource_names = (name for name in classes.groups() if not name.startswith(DEVICE_CLASS_PREFIX))
    return resources.intersection(chain(resource_names, (f"{DEVICE_CLASS_PREFIX}{name}" for name in classes)))


def special_claim_of(pod: Pod, claims: Iterable[ResourceClaim]) -> ResourceClaim | None:
    """Returns the special claim that an earlier attempt made for the pod."""
    for claim in claims:
        if claim.metadata.annotations.get(SPECIAL_CLAIM_ANNOTATION) == "true":
            for owner in claim.metadata.owner_references:
                if owner.uid == pod.uid and owner.name == pod.name and owner.controller:
                    return claim
    return None


def extended_resources_of(pod: Pod) -> tuple[str, ...]:
    """Returns requested extended resources, implicit ones included. Raises QuantityError."""
    requested = (name for name, amount in filter_requests(pod).scalar.items() if amount)
    return tuple(name for name in requested if name.startswith(DEVICE_CLASS_PREFIX) or is_extended_resource_name(name))
