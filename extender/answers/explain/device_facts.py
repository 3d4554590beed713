"""What nodes have of the devices that a pod asks for, and who or what keeps the others from it."""

from collections.abc import Iterator

from extender.answers.explain.advice import Asked, NodeFact
from extender.answers.parts import PodName
from extender.answers.phrases import all_of, plural
from extender.engine.plugins.dynamic_resources.advice import (
    extended_request,
    taint_in_words,
    taints_of,
    unallocated_requests,
)
from extender.engine.plugins.dynamic_resources.device_features import DeviceFeatures
from extender.engine.plugins.dynamic_resources.inventory import DeviceInventory, NodeDevices
from extender.engine.plugins.dynamic_resources.requests import DeviceRequestAlternative
from extender.values.objects.devices import ResourceClaim
from extender.values.objects.extended_resources import backed_resources, device_class_of, extended_resources_of
from extender.values.objects.pod import Pod

_NAMED = 3


def device_facts(question: Asked) -> Iterator[NodeFact]:
    """Yields for each request, and each node near by, how many devices there are and why they do not do."""
    objects = question.snapshot.objects
    gates = question.framework.plugins.advice["DynamicResources"].feature_gates
    inventory = DeviceInventory(objects, DeviceFeatures.of(gates))
    requests = unallocated_requests(question.pod, objects)
    for resource in sorted(backed_resources(frozenset(extended_resources_of(question.pod)), objects.device_classes)):
        device_class = device_class_of(resource, objects.device_classes)
        if device_class is not None:
            requests.append(extended_request(question.pod, resource, device_class))
    for claim in objects.resource_claims.values():
        if claim.status.allocation is not None and claim.status.allocation.node_selector is not None:
            yield from _elsewhere(question.pod, claim)
    for request in requests:
        for node in question.nearest:
            devices = inventory.on(node, request)
            if devices is not None and not (len(requests) > 1 and _is_enough(request, devices)):
                text, pods = _in_words(request, devices, inventory, question.pod)
                yield NodeFact(text, node.name, pods)


def _is_enough(request: DeviceRequestAlternative, devices: NodeDevices) -> bool:
    return devices.free >= (request.count or max(devices.matching, 1))


def _elsewhere(pod: Pod, claim: ResourceClaim) -> Iterator[NodeFact]:
    names = {reference.resource_claim_name for reference in pod.spec.resource_claims}
    names |= {status.resource_claim_name for status in pod.status.resource_claim_statuses}
    if claim.namespace == pod.namespace and claim.name in names and claim.status.allocation is not None:
        selector = claim.status.allocation.node_selector
        terms = selector.node_selector_terms if selector is not None else ()
        every = (requirement for term in terms for requirement in (*term.match_expressions, *term.match_fields))
        where = [f"{requirement.key} {requirement.operator} ({', '.join(requirement.values)})" for requirement in every]
        if where:
            yield NodeFact(f"the claim {claim.name} is allocated where {all_of(where)}")


def _in_words(
    request: DeviceRequestAlternative, devices: NodeDevices, inventory: DeviceInventory, pod: Pod
) -> tuple[str, tuple[PodName, ...]]:
    claim, of_class = request.claim.name, f"of the class {request.device_class.name}"
    who = f"the claim {claim}" if claim else f"the pod, by {request.request},"
    asks = f"{who} asks for {'all' if request.count is None else request.count}"
    for pool in devices.incomplete:
        if not devices.matching:
            return f"the pool {pool} is incomplete: its driver has not published all its slices; {asks}", ()
    if not devices.num_devices:
        return f"no ResourceSlice offers it a device: is the driver for the class running? {asks} {of_class}", ()
    if not devices.of_class:
        return f"{plural(devices.num_devices, 'device')}, none {of_class}; {asks}", ()
    if not devices.matching:
        texts = [selector.cel.expression for selector in request.selectors if selector.cel is not None]
        none = f"but the selectors of {who} match none ({' && '.join(texts)})"
        return f"{plural(devices.of_class, 'device')} {of_class}, {none}", ()
    parts, pods = _obstacles(devices, inventory, pod)
    selected = (
        f" of which {devices.matching} match the selectors of {who}" if devices.matching < devices.of_class else ""
    )
    counts = ", ".join([f"{devices.free} free", *parts])
    text = f"{plural(devices.of_class, 'device')} {of_class}{selected}, {counts}; {asks}"
    if _is_enough(request, devices):
        text += ", so a constraint, a shared counter or another request excludes them"
    return text, pods


def _obstacles(devices: NodeDevices, inventory: DeviceInventory, pod: Pod) -> tuple[list[str], tuple[PodName, ...]]:
    parts: list[str] = []
    pods: list[PodName] = []
    if devices.allocated:
        holders: list[str] = []
        for claim in inventory.holders(devices.allocated):
            users = [
                PodName(namespace=claim.namespace, name=consumer.name, uid=consumer.uid)
                for consumer in claim.status.reserved_for
                if consumer.resource == "pods"
            ]
            # A claim of another namespace is not named: its reader may not be allowed to see it.
            claim_text = f"the claim {claim.name}" if claim.namespace == pod.namespace else "a claim"
            holders.append(f"{claim_text} of {all_of(user.key for user in users[:_NAMED])}" if users else claim_text)
            pods += users[:_NAMED]
        more = f" and {plural(len(holders) - _NAMED, 'other')}" if len(holders) > _NAMED else ""
        parts.append(f"{len(devices.allocated)} held by {', '.join(holders[:_NAMED])}{more}")
    if devices.small:
        parts.append(f"{len(devices.small)} with too little capacity")
    if devices.tainted:
        taints = {taint_in_words(taint): None for offer in devices.tainted for taint in taints_of(offer)}
        parts.append(f"{len(devices.tainted)} tainted ({', '.join(taints)})")
    if devices.incomplete:
        parts.append(f"not counting the incomplete pool {devices.incomplete[0]}")
    return parts, tuple(pods)
