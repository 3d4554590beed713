"""The result of an allocation as an API object, its configuration for drivers, and its score.

Upstream: dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go, Allocate,
createNodeSelector; framework/plugins/dynamicresources/dynamicresources.go, computeScore.
"""

from collections.abc import Iterable, Sequence
from typing import Final, final

import msgspec

from extender.engine.plugins.dynamic_resources.allocated_state import NANO, Amounts, short_name
from extender.engine.plugins.dynamic_resources.pools import AllocationError, Offer
from extender.engine.plugins.dynamic_resources.requests import DeviceRequestAlternative
from extender.values.objects.decoding import replaced
from extender.values.objects.devices import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from extender.values.objects.meta import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from extender.values.objects.node import Node
from extender.values.objects.node_selectors import NAME_FIELD

FROM_CLASS: Final = "FromClass"
FROM_CLAIM: Final = "FromClaim"


def configurations(
    claim: ResourceClaim, chosen: Iterable[DeviceRequestAlternative]
) -> list[DeviceAllocationConfiguration]:
    """Returns the configuration of the chosen alternatives' classes, each once, then that of the claim.

    One that applies to all requests names none.
    """
    chosen_by_request = {one.request: one for one in chosen}
    alternatives = [
        chosen_by_request[request.name] for request in claim.spec.devices.requests if request.name in chosen_by_request
    ]
    requests_of_class: dict[str, list[str]] = {}
    for alternative in alternatives:
        requests_of_class.setdefault(alternative.device_class.metadata.name, []).append(alternative.full_name)
    class_of = {alternative.device_class.metadata.name: alternative.device_class for alternative in alternatives}
    selected = [
        DeviceAllocationConfiguration(source=FROM_CLASS, requests=requests, opaque=config.opaque)
        for name, requests in requests_of_class.items()
        for config in class_of[name].spec.config
    ]
    request_names = {
        name for request in claim.spec.devices.requests for name in _names_of(request.name, chosen_by_request)
    }
    selected += [
        DeviceAllocationConfiguration(source=FROM_CLAIM, requests=config.requests, opaque=config.opaque)
        for config in claim.spec.devices.config
        if not config.requests or not request_names.isdisjoint(config.requests)
    ]
    return [
        replaced(config, requests=[]) if _is_about_all(config.requests, claim, chosen_by_request) else config
        for config in selected
    ]


def _names_of(request: str, chosen_by_request: dict[str, DeviceRequestAlternative]) -> set[str]:
    return {request, chosen_by_request[request].full_name} if request in chosen_by_request else {request}


def _is_about_all(
    requests: list[str], claim: ResourceClaim, chosen_by_request: dict[str, DeviceRequestAlternative]
) -> bool:
    return all(
        not _names_of(request.name, chosen_by_request).isdisjoint(requests) for request in claim.spec.devices.requests
    )


REQUEST_ALTERNATIVES: Final = 8
"""Upstream: resourceapi.FirstAvailableDeviceRequestMaxSize."""
NOT_SHARED_YET: Final = ""
"""The share id of a device that was found but not reserved."""


@final
class Pick(msgspec.Struct, frozen=True):
    """A device for a request, and the capacity that it consumes of a shared one."""

    alternative: DeviceRequestAlternative
    offer: Offer
    consumed: Amounts


def allocation_result(claim: ResourceClaim, picks: Sequence[Pick], node: Node) -> AllocationResult:
    """Returns the claim's allocation on the node; AllocationError if a slice's node selector is malformed."""
    return AllocationResult(
        devices=DeviceAllocationResult(
            results=[_result(pick) for pick in picks],
            config=configurations(claim, (pick.alternative for pick in picks)),
        ),
        node_selector=_node_selector(claim, [pick.offer for pick in picks], node),
    )


def lists_alternatives(claim: ResourceClaim) -> bool:
    """Returns whether a request of the claim lists alternatives. Other claims score nothing."""
    return any(request.exactly is None for request in claim.spec.devices.requests)


def score(claim: ResourceClaim, allocation: AllocationResult) -> int:
    """Returns a higher score for subrequests that come earlier in the lists of their requests."""
    chosen = {result.request for result in allocation.devices.results}
    return sum(
        REQUEST_ALTERNATIVES - rank
        for request in claim.spec.devices.requests
        if request.exactly is None
        for rank, alternative in enumerate(request.first_available)
        if f"{request.name}/{alternative.name}" in chosen
    )


def _result(pick: Pick) -> DeviceRequestAllocationResult:
    alternative, device = pick.alternative, pick.offer.device
    return DeviceRequestAllocationResult(
        request=alternative.full_name,
        driver=pick.offer.id.driver,
        pool=pick.offer.id.pool,
        device=pick.offer.id.device,
        admin_access=True if alternative.has_admin_access else None,
        tolerations=list(alternative.tolerations),
        binding_conditions=device.binding_conditions,
        binding_failure_conditions=device.binding_failure_conditions,
        share_id=NOT_SHARED_YET if device.allow_multiple_allocations else None,
        consumed_capacity={
            name: _quantity(pick.consumed[short_name(name, pick.offer.id.driver)])
            for name in (device.capacity if pick.consumed else ())
        },
    )


def _quantity(nanos: int) -> str:
    for unit, suffix in ((NANO, ""), (NANO // 1000, "m"), (1000, "u")):
        if nanos % unit == 0:
            return f"{nanos // unit}{suffix}"
    return f"{nanos}n"


def _node_selector(claim: ResourceClaim, offers: Iterable[Offer], node: Node) -> NodeSelector | None:
    """Returns a selector for the nodes that can use all the devices; None for all nodes."""
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for offer in offers:
        where = offer.device if offer.slice.spec.per_device_node_selection else offer.slice.spec
        if where.node_name is not None or offer.device.binds_to_node:
            by_name = NodeSelectorRequirement(key=NAME_FIELD, operator="In", values=[node.name])
            return NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=[by_name])])
        terms = where.node_selector.node_selector_terms if where.node_selector is not None else []
        if len(terms) > 1:
            raise AllocationError(
                f"create NodeSelector for claim {claim.metadata.name}: unsupported ResourceSlice.NodeSelector with "
                f"{len(terms)} terms"
            )
        for term in terms:
            _add_new(fields, term.match_fields)
            _add_new(expressions, term.match_expressions)
    if not fields and not expressions:
        return None
    return NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=fields, match_expressions=expressions)])


def _add_new(to: list[NodeSelectorRequirement], requirements: Iterable[NodeSelectorRequirement]) -> None:
    for requirement in requirements:
        same = (requirement.key, requirement.operator, frozenset(requirement.values))
        if all(same != (other.key, other.operator, frozenset(other.values)) for other in to):
            to.append(requirement)
