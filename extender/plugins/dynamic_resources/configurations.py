"""What drivers are told about allocated devices: the opaque configuration of classes and claims, for the requests that it is about.

Upstream: dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go, Allocate (v1.36.2).
"""

from collections.abc import Iterable
from typing import Final

from extender.objects.decoding import replaced
from extender.objects.devices import DeviceAllocationConfiguration, ResourceClaim
from extender.plugins.dynamic_resources.requests import DeviceRequestAlternative

FROM_CLASS: Final = "FromClass"
FROM_CLAIM: Final = "FromClaim"


def configurations(claim: ResourceClaim, chosen: Iterable[DeviceRequestAlternative]) -> list[DeviceAllocationConfiguration]:
    """Those of the classes first, each class once; for all requests alike, none is named.

    Arguments:
        chosen: what devices were found for; of alternatives, the one that was taken.
    """
    wish_of = {wish.request: wish for wish in chosen}
    wishes = [wish_of[request.name] for request in claim.spec.devices.requests if request.name in wish_of]
    requests_of_class: dict[str, list[str]] = {}
    for wish in wishes:
        requests_of_class.setdefault(wish.device_class.metadata.name, []).append(wish.full_name)
    class_of = {wish.device_class.metadata.name: wish.device_class for wish in wishes}
    found = [
        DeviceAllocationConfiguration(source=FROM_CLASS, requests=requests, opaque=config.opaque)
        for name, requests in requests_of_class.items()
        for config in class_of[name].spec.config
    ]
    taken = {name for request in claim.spec.devices.requests for name in _names_of(request.name, wish_of)}
    found += [
        DeviceAllocationConfiguration(source=FROM_CLAIM, requests=config.requests, opaque=config.opaque)
        for config in claim.spec.devices.config
        if not config.requests or not taken.isdisjoint(config.requests)
    ]
    return [replaced(config, requests=[]) if _is_about_all(config.requests, claim, wish_of) else config for config in found]


def _names_of(request: str, wish_of: dict[str, DeviceRequestAlternative]) -> set[str]:
    """How a configuration may name the request: by itself, and by the alternative that was taken."""
    return {request, wish_of[request].full_name} if request in wish_of else {request}


def _is_about_all(requests: list[str], claim: ResourceClaim, wish_of: dict[str, DeviceRequestAlternative]) -> bool:
    return all(not _names_of(request.name, wish_of).isdisjoint(requests) for request in claim.spec.devices.requests)
