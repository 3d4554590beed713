"""The special claim, for all the extended resources of a pod that device classes back, made and deleted here.

What it requests depends on the node, because a device plugin of the node may offer some of the resources. Until the pod
is bound the claim exists in memory only, under a name that no claim can have.

Upstream: framework/plugins/dynamicresources/extendeddynamicresources.go, findExtendedResourceClaim,
preFilterExtendedResources, createRequestsAndMappings, createResourceRequestAndMappings, partitionContainerIndices.
"""

import operator
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final, final

from extender.engine.plugins.dynamic_resources.allocated_state import NANO
from extender.engine.plugins.dynamic_resources.requests import EXACT_COUNT
from extender.engine.plugins.dynamic_resources.search import CLAIM_RESULTS
from extender.values.objects.decoding import replaced
from extender.values.objects.devices import (
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
)
from extender.values.objects.extended_resources import SPECIAL_CLAIM_ANNOTATION
from extender.values.objects.meta import ObjectMeta, OwnerReference
from extender.values.objects.pod import Container, ContainerExtendedResourceRequest, Pod
from extender.values.objects.quantity import RawQuantity, nanos_of

NAME_IN_MEMORY: Final = "<extended-resources>"


def new_special_claim(pod: Pod, uid: str) -> ResourceClaim:
    """Returns a special claim in memory, without requests, with a UID of its own until the API server gives it one."""
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod.name, uid=pod.uid, controller=True)
    meta = ObjectMeta(
        name=NAME_IN_MEMORY,
        namespace=pod.namespace,
        uid=uid,
        annotations={SPECIAL_CLAIM_ANNOTATION: "true"},
        owner_references=[owner],
    )
    return ResourceClaim(metadata=meta)


def is_in_memory(claim: ResourceClaim) -> bool:
    """True for a special claim that was not written yet."""
    return claim.metadata.name == NAME_IN_MEMORY


@final
@dataclass(slots=True, eq=False)
class _OfResource:
    """The device requests for one resource, and the requests that each container uses."""

    resource: str
    device_class: str
    containers: Sequence[Container]
    counts: Mapping[int, int]
    """The place of a container -> the number it requests, in ascending order."""
    requests: list[DeviceRequest] = field(default_factory=list)
    mappings: list[ContainerExtendedResourceRequest] = field(default_factory=list)

    def add(self, num_init: int) -> None:
        """Adds a request for each container as long-lived as the pod, and what other init containers need more."""
        counts = self.counts
        short_lived = dict.fromkeys(
            place for place in counts if place < num_init and not self.containers[place].is_sidecar
        )
        starts = [place for place in counts if place not in short_lived]
        # The devices of the first long-lived container and all later ones, of the second and all later ones, and so on.
        later = [*accumulate((counts[place] for place in reversed(starts)), initial=0)][::-1]
        most_missing = max((counts[place] - later[bisect_left(starts, place)] for place in short_lived), default=0)
        total = later[0] + max(most_missing, 0)
        if total > CLAIM_RESULTS:
            # So many devices cannot be allocated, and nobody will read who would use them.
            self.requests.append(self._request(self._name(next(iter(counts))), total))
            return
        long_lived = {place: self._request(self._name(place), counts[place]) for place in starts}
        self.mappings += [self._mapping(place, request.name) for place, request in long_lived.items()]
        self.requests += long_lived.values()
        self._add_short_lived([*short_lived], long_lived, later)

    def _add_short_lived(
        self, places: Sequence[int], long_lived: Mapping[int, DeviceRequest], later: Sequence[int]
    ) -> None:
        """Adds one request for what init containers need beyond the devices of the containers that start after them.

        They run one after the other, so that the largest request is enough for all of them.
        """
        starts = list(long_lived)
        largest = (0, "")
        names: set[str] = set()
        mappings: list[ContainerExtendedResourceRequest] = []
        for place in places:
            first, uncovered = bisect_left(starts, place), self.counts[place]
            for start in starts[first:]:
                if uncovered <= 0:
                    break
                uncovered -= self.counts[start]
                mappings.append(self._mapping(place, long_lived[start].name))
            shortage = self.counts[place] - later[first]
            if shortage > 0:
                name = self._name(place)
                names.add(name)
                mappings.append(self._mapping(place, name))
                largest = max(largest, (shortage, name), key=operator.itemgetter(0))
        if names:
            count, name = largest
            self.requests.append(self._request(name, count))
            mappings = [
                replaced(mapping, request_name=name) if mapping.request_name in names else mapping
                for mapping in mappings
            ]
        self.mappings += mappings

    def _request(self, name: str, count: int) -> DeviceRequest:
        exactly = ExactDeviceRequest(device_class_name=self.device_class, allocation_mode=EXACT_COUNT, count=count)
        return DeviceRequest(name=name, exactly=exactly)

    def _name(self, place: int) -> str:
        number = sorted(self.containers[place].resources.requests).index(self.resource)
        return f"container-{place}-request-{number}"

    def _mapping(self, place: int, request: str) -> ContainerExtendedResourceRequest:
        name = self.containers[place].name
        return ContainerExtendedResourceRequest(container_name=name, resource_name=self.resource, request_name=request)


def requests_and_mappings(
    pod: Pod, resources: Mapping[str, str]
) -> tuple[list[DeviceRequest], list[ContainerExtendedResourceRequest]]:
    """Returns the device requests for extended resources, given their classes, and which of them each container uses.

    Containers are numbered with the init containers first. Requests for resources are numbered by name among all those
    of a container.
    """
    containers = [*pod.spec.init_containers, *pod.spec.containers]
    counts: dict[str, dict[int, int]] = {resource: {} for resource in sorted(resources)}
    for place, container in enumerate(containers):
        for resource, amount in container.resources.requests.items():
            count = _count(amount) if resource in counts else 0
            if count > 0:
                counts[resource][place] = count
    requests: list[DeviceRequest] = []
    mappings: list[ContainerExtendedResourceRequest] = []
    for resource, of_containers in counts.items():
        of_resource = _OfResource(resource, resources[resource], containers, of_containers)
        of_resource.add(len(pod.spec.init_containers))
        requests += of_resource.requests
        mappings += of_resource.mappings
    return sorted(requests, key=lambda request: request.name), mappings


def _count(amount: RawQuantity) -> int:
    """Returns the amount; 0 if it is not a whole number."""
    nanos = nanos_of(amount)
    return 0 if nanos % NANO else nanos // NANO
