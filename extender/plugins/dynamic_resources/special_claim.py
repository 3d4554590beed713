"""The special claim: one claim for all the extended resources of a pod that device classes back. The scheduler makes it and deletes it.

What it requests depends on the node, because a device plugin of the node may offer some of the resources. Until the pod is bound the claim
exists in memory only, under a name that no claim can have.

Upstream: framework/plugins/dynamicresources/extendeddynamicresources.go, findExtendedResourceClaim, preFilterExtendedResources,
createRequestsAndMappings, createResourceRequestAndMappings, partitionContainerIndices (v1.36.2).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, final

from extender.objects.decoding import replaced
from extender.objects.devices import DeviceClaim, DeviceRequest, ExactDeviceRequest, ResourceClaim, ResourceClaimSpec
from extender.objects.meta import ObjectMeta, OwnerReference
from extender.objects.pod import Container, ContainerExtendedResourceRequest, Pod
from extender.objects.quantity import nanos_of
from extender.plugins.dynamic_resources.allocated_state import NANO
from extender.plugins.dynamic_resources.requests import EXACT_COUNT

ANNOTATION: Final = "resource.kubernetes.io/extended-resource-claim"
NAME_IN_MEMORY: Final = "<extended-resources>"


def special_claim_of(pod: Pod, claims: Iterable[ResourceClaim]) -> ResourceClaim | None:
    """Returns the special claim that an earlier attempt made for the pod."""
    for claim in claims:
        if claim.metadata.annotations.get(ANNOTATION) == "true":
            for owner in claim.metadata.owner_references:
                if owner.uid == pod.uid and owner.name == pod.name and owner.controller:
                    return claim
    return None


def new_special_claim(pod: Pod, uid: str) -> ResourceClaim:
    """Returns a special claim in memory, without requests.

    Arguments:
        uid: for as long as the API server has given it none.
    """
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod.name, uid=pod.uid, controller=True)
    meta = ObjectMeta(name=NAME_IN_MEMORY, namespace=pod.namespace, uid=uid, annotations={ANNOTATION: "true"}, owner_references=[owner])
    return ResourceClaim(metadata=meta)


def is_in_memory(claim: ResourceClaim) -> bool:
    """Returns whether it is a special claim that was not written yet."""
    return claim.metadata.name == NAME_IN_MEMORY


def with_requests(claim: ResourceClaim, requests: list[DeviceRequest]) -> ResourceClaim:
    """Returns the special claim as a node needs it."""
    return replaced(claim, spec=ResourceClaimSpec(devices=DeviceClaim(requests=requests)))


@final
@dataclass(slots=True)
class _OfResource:
    """The device requests for one resource, and the requests that each container uses."""

    resource: str
    device_class: str
    requests: list[DeviceRequest] = field(default_factory=list)
    mappings: list[ContainerExtendedResourceRequest] = field(default_factory=list)

    def add_long_lived(self, containers: Sequence[Container], places: Iterable[int]) -> Mapping[int, DeviceRequest]:
        """Adds a request for each container that runs as long as the pod. Returns them by the container's place."""
        made = {}
        for place in places:
            wanted = _count(containers[place], self.resource)
            if wanted:
                made[place] = self._request(containers[place], place, wanted)
                self.mappings.append(self._mapping(containers[place], made[place].name))
        self.requests += made.values()
        return made

    def add_short_lived(self, containers: Sequence[Container], places: Iterable[int], later: Mapping[int, DeviceRequest]) -> None:
        """Adds one request for what init containers need beyond the devices of the containers that start after them.

        They run one after the other, so that the largest request is enough for all of them.

        Arguments:
            later: the requests of long-lived containers by place.
        """
        largest: DeviceRequest | None = None
        own: set[str] = set()
        mappings: list[ContainerExtendedResourceRequest] = []
        for place in places:
            container, wanted = containers[place], _count(containers[place], self.resource)
            for request in (later[other] for other in sorted(later) if other >= place):
                if wanted <= 0:
                    break
                wanted -= _exact(request).count
                mappings.append(self._mapping(container, request.name))
            if wanted > 0:
                request = self._request(container, place, wanted)
                own.add(request.name)
                mappings.append(self._mapping(container, request.name))
                if largest is None or _exact(largest).count < wanted:
                    largest = request
        if largest is not None:
            self.requests.append(largest)
            mappings = [replaced(each, request_name=largest.name) if each.request_name in own else each for each in mappings]
        self.mappings += mappings

    def _request(self, container: Container, place: int, count: int) -> DeviceRequest:
        number = sorted(container.resources.requests).index(self.resource)
        exactly = ExactDeviceRequest(device_class_name=self.device_class, allocation_mode=EXACT_COUNT, count=count)
        return DeviceRequest(name=f"container-{place}-request-{number}", exactly=exactly)

    def _mapping(self, container: Container, request: str) -> ContainerExtendedResourceRequest:
        return ContainerExtendedResourceRequest(container_name=container.name, resource_name=self.resource, request_name=request)


def requests_and_mappings(pod: Pod, resources: Mapping[str, str]) -> tuple[list[DeviceRequest], list[ContainerExtendedResourceRequest]]:
    """Returns the device requests for the pod's extended resources by name, and which of them each container uses.

    Containers are numbered with the init containers first. Requests for resources are numbered by name among all those of a container.

    Arguments:
        resources: extended resource -> the name of the device class that backs it.
    """
    containers = [*pod.spec.init_containers, *pod.spec.containers]
    num_init = len(pod.spec.init_containers)
    short_lived = [place for place in range(num_init) if not containers[place].is_sidecar]
    long_lived = [place for place in range(len(containers)) if place >= num_init or containers[place].is_sidecar]
    requests: list[DeviceRequest] = []
    mappings: list[ContainerExtendedResourceRequest] = []
    for resource in sorted(resources):
        found = _OfResource(resource, resources[resource])
        found.add_short_lived(containers, short_lived, found.add_long_lived(containers, long_lived))
        requests += found.requests
        mappings += found.mappings
    return sorted(requests, key=lambda request: request.name), mappings


def _count(container: Container, resource: str) -> int:
    """Returns how many the container requests; 0 for an amount that is no whole number."""
    nanos = nanos_of(container.resources.requests.get(resource, 0))
    return 0 if nanos % NANO else nanos // NANO


def _exact(request: DeviceRequest) -> ExactDeviceRequest:
    """Returns the inner part of a request that was made here.

    Raises:
        ValueError: the request was not made here.
    """
    if request.exactly is None:
        raise ValueError(f"request {request.name} has alternatives")
    return request.exactly
