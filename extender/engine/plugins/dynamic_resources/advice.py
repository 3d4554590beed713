"""DynamicResources suggests to create or change claims, or to do without claims or extended resources."""

from collections.abc import Iterator, Mapping, Sequence

from extender.engine import framework as fwk
from extender.engine.framework.interface import listed, with_containers
from extender.engine.plugins.dynamic_resources.inventory import DeviceInventory, NodeDevices
from extender.engine.plugins.dynamic_resources.pod_claims import ClaimError, claims_of, each_once
from extender.engine.plugins.dynamic_resources.pools import AllocationError, Offer
from extender.engine.plugins.dynamic_resources.requests import DeviceRequestAlternative, alternatives_of
from extender.values import limits
from extender.values.objects.cluster import ClusterObjects
from extender.values.objects.decoding import replaced
from extender.values.objects.devices import DeviceClass, DeviceTaint, DeviceToleration, ResourceClaim
from extender.values.objects.pod import Container
from extender.values.objects.resource_amounts import requested_amounts


def suggestions(
    pod: fwk.Pod, rows: fwk.Rows, backed: Mapping[str, DeviceClass], inventory: DeviceInventory
) -> Iterator[fwk.Suggestion]:
    """Yields the pod with its missing claims, with changed claims, and without each claim and `backed` resource."""
    claims = rows.snapshot.objects.resource_claims
    claim_names = {
        claim.name: claim.resource_claim_name
        for claim in pod.spec.resource_claims
        if claim.resource_claim_name is not None and (pod.namespace, claim.resource_claim_name) not in claims
    }
    if claim_names:
        create = f"create the {listed('ResourceClaim', [*dict.fromkeys(claim_names.values())])}"
        drop = f"drop the {listed('resource claim', [*claim_names])}"
        yield fwk.Suggestion("other", f"{create}, or {drop}", without_resource_claims(pod, *claim_names))
    nodes = [rows.snapshot.nodes.objects[place] for place in rows.node[: limits.FACT_NODES].tolist()]
    for request in unallocated_requests(pod, rows.snapshot.objects)[: limits.SUGGESTED_ONE_BY_ONE]:
        yield from _changed_requests(
            pod, request, [devices for node in nodes if (devices := inventory.on(node, request))]
        )
    for resource, device_class in [*backed.items()][: limits.SUGGESTED_ONE_BY_ONE]:
        request = extended_request(pod, resource, device_class)
        free = max((devices.free for node in nodes if (devices := inventory.on(node, request))), default=0)
        text = f"ask for {free} of {resource} instead of {request.count}"
        if 0 < free < (request.count or 0) and len(pod.spec.containers) == 1 and not pod.spec.init_containers:
            yield fwk.Suggestion("request", text, _with_extended_resource(pod, resource, free))
    for claim in pod.spec.resource_claims[: limits.SUGGESTED_ONE_BY_ONE]:
        text = f"drop the resource claim {claim.name}"
        yield fwk.Suggestion("other", text, without_resource_claims(pod, claim.name))
    for resource in [*backed][: limits.SUGGESTED_ONE_BY_ONE]:
        text = f"drop the extended resource {resource}"
        yield fwk.Suggestion("other", text, without_extended_resources(pod, resource))


def unallocated_requests(pod: fwk.Pod, objects: ClusterObjects) -> list[DeviceRequestAlternative]:
    """Returns the requests of the pod's claims that have no devices yet, alternatives apart; none if one is invalid."""
    try:
        claims = each_once(claims_of(pod, objects.resource_claims))
        waiting = [claim for claim in claims if claim.status.allocation is None]
        return [
            request
            for claim in waiting
            for alternatives in alternatives_of(claim, objects.device_classes)
            for request in alternatives
        ]
    except (ClaimError, AllocationError):
        return []


def extended_request(pod: fwk.Pod, resource: str, device_class: DeviceClass) -> DeviceRequestAlternative:
    """Returns the pod's request for an extended resource of the class, as a request of an unnamed claim."""
    amount = requested_amounts(pod)[resource]
    return DeviceRequestAlternative(ResourceClaim(), resource, "", device_class, (), amount, False, (), {})


def _changed_requests(
    pod: fwk.Pod, request: DeviceRequestAlternative, devices: Sequence[NodeDevices]
) -> Iterator[fwk.Suggestion]:
    """Yields the claim with the number of devices that a node has free, and with tolerations of device taints."""
    name, free = request.claim.name, max((node_devices.free for node_devices in devices), default=0)
    if request.subrequest or request.has_admin_access or not devices:
        return
    if request.count is not None and 0 < free < request.count:
        fewer = _with_request(request, count=free)
        text = f"ask for {free} of the class {request.device_class.name} instead of {request.count} in the claim {name}"
        yield fwk.Suggestion("request", text, pod, (fewer,))
    tainted = {taint: None for node_devices in devices for offer in node_devices.tainted for taint in taints_of(offer)}
    if tainted:
        tolerations = [
            DeviceToleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect)
            for taint in tainted
        ]
        text = f"tolerate the {listed('device taint', [*map(taint_in_words, tainted)])} in the claim {name}"
        changed = _with_request(request, tolerations=[*request.tolerations, *tolerations])
        yield fwk.Suggestion("toleration", text, pod, (changed,))


def taints_of(offer: Offer) -> list[DeviceTaint]:
    """Returns the taints that keep claims from the device."""
    return [taint for taint in offer.device.taints if taint.effect in ("NoSchedule", "NoExecute")]


def taint_in_words(taint: DeviceTaint) -> str:
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def _with_request(alternative: DeviceRequestAlternative, **changes: object) -> ResourceClaim:
    claim, devices = alternative.claim, alternative.claim.spec.devices
    requests = [
        replaced(request, exactly=replaced(request.exactly, **changes))
        if request.name == alternative.request and request.exactly is not None
        else request
        for request in devices.requests
    ]
    return replaced(claim, spec=replaced(claim.spec, devices=replaced(devices, requests=requests)))


def without_devices(pod: fwk.Pod, backed: Sequence[str]) -> fwk.Suggestion | None:
    """Returns the pod without resource claims and `backed` resources; None if it has neither."""
    names = [claim.name for claim in pod.spec.resource_claims]
    texts = [f"the {listed('resource claim', names)}"] if names else []
    texts += [f"the {listed('extended resource', backed)}"] if backed else []
    if not texts:
        return None
    changed = without_extended_resources(without_resource_claims(pod, *names), *backed)
    return fwk.Suggestion("other", f"drop {' and '.join(texts)}", changed)


def without_extended_resources(pod: fwk.Pod, *resources: str) -> fwk.Pod:
    """Returns the pod whose containers do not request these resources."""

    def freed(container: Container) -> Container:
        resources_of = container.resources
        requests, limits = (
            {name: amount for name, amount in amounts.items() if name not in resources}
            for amounts in (resources_of.requests, resources_of.limits)
        )
        return replaced(container, resources=replaced(resources_of, requests=requests, limits=limits))

    return with_containers(pod, freed)


def _with_extended_resource(pod: fwk.Pod, resource: str, amount: int) -> fwk.Pod:
    """Returns the pod, of one container, that requests this amount of the resource."""

    def changed(container: Container) -> Container:
        amounts = container.resources
        requests, limits = ({**quantities, resource: str(amount)} for quantities in (amounts.requests, amounts.limits))
        return replaced(container, resources=replaced(amounts, requests=requests, limits=limits))

    return with_containers(pod, changed)


def without_resource_claims(pod: fwk.Pod, *names: str) -> fwk.Pod:
    """Returns the pod without these resource claims, and without the containers' use of them."""

    def freed(container: Container) -> Container:
        claims = [claim for claim in container.resources.claims if claim.name not in names]
        return replaced(container, resources=replaced(container.resources, claims=claims))

    claims = [claim for claim in pod.spec.resource_claims if claim.name not in names]
    return with_containers(pod, freed, resource_claims=claims)
