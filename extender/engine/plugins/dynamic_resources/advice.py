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
    """Yields the pod with the claims that are missing, then with changed ones, then without each of its claims and
    `backed` resources.
    """
    known = rows.snapshot.objects.resource_claims
    missing = {
        claim.name: claim.resource_claim_name
        for claim in pod.spec.resource_claims
        if claim.resource_claim_name is not None and (pod.namespace, claim.resource_claim_name) not in known
    }
    if missing:
        create = f"create the {listed('ResourceClaim', [*dict.fromkeys(missing.values())])}"
        without = f"drop the {listed('resource claim', [*missing])}"
        yield fwk.Suggestion("other", f"{create}, or {without}", without_resource_claims(pod, *missing))
    nodes = [rows.snapshot.nodes.objects[place] for place in rows.node[: limits.FACT_NODES].tolist()]
    for wanted in unallocated_requests(pod, rows.snapshot.objects)[: limits.SUGGESTED_ONE_BY_ONE]:
        yield from _changed_requests(pod, wanted, [found for node in nodes if (found := inventory.on(node, wanted))])
    for resource, device_class in [*backed.items()][: limits.SUGGESTED_ONE_BY_ONE]:
        asked = extended_request(pod, resource, device_class)
        most = max((found.free for node in nodes if (found := inventory.on(node, asked))), default=0)
        text = f"ask for {most} of {resource} instead of {asked.count}"
        if 0 < most < (asked.count or 0) and len(pod.spec.containers) == 1 and not pod.spec.init_containers:
            yield fwk.Suggestion("request", text, _with_extended_resource(pod, resource, most))
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
        return [one for claim in waiting for each in alternatives_of(claim, objects.device_classes) for one in each]
    except (ClaimError, AllocationError):
        return []


def extended_request(pod: fwk.Pod, resource: str, device_class: DeviceClass) -> DeviceRequestAlternative:
    """Returns the pod's request for an extended resource that the class backs, as one of a claim that has no name."""
    amount = requested_amounts(pod)[resource]
    return DeviceRequestAlternative(ResourceClaim(), resource, "", device_class, (), amount, False, (), {})


def _changed_requests(
    pod: fwk.Pod, wanted: DeviceRequestAlternative, devices: Sequence[NodeDevices]
) -> Iterator[fwk.Suggestion]:
    """Yields the claim that asks for as many devices as a node has free, and that which tolerates a device's taints."""
    name, free = wanted.claim.name, max((each.free for each in devices), default=0)
    if wanted.subrequest or wanted.has_admin_access or not devices:
        return
    if wanted.count is not None and 0 < free < wanted.count:
        fewer = _with_request(wanted, count=free)
        text = f"ask for {free} of the class {wanted.device_class.name} instead of {wanted.count} in the claim {name}"
        yield fwk.Suggestion("request", text, pod, (fewer,))
    tainted = {taint: None for each in devices for offer in each.tainted for taint in taints_of(offer)}
    if tainted:
        tolerations = [
            DeviceToleration(key=each.key, operator="Equal", value=each.value, effect=each.effect) for each in tainted
        ]
        text = f"tolerate the {listed('device taint', [*map(taint_in_words, tainted)])} in the claim {name}"
        changed = _with_request(wanted, tolerations=[*wanted.tolerations, *tolerations])
        yield fwk.Suggestion("toleration", text, pod, (changed,))


def taints_of(offer: Offer) -> list[DeviceTaint]:
    """Returns the taints that keep claims from the device."""
    return [taint for taint in offer.device.taints if taint.effect in ("NoSchedule", "NoExecute")]


def taint_in_words(taint: DeviceTaint) -> str:
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def _with_request(wanted: DeviceRequestAlternative, **changes: object) -> ResourceClaim:
    claim, devices = wanted.claim, wanted.claim.spec.devices
    requests = [
        replaced(each, exactly=replaced(each.exactly, **changes))
        if each.name == wanted.request and each.exactly is not None
        else each
        for each in devices.requests
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
        wanted = container.resources
        requests, limits = (
            {name: amount for name, amount in amounts.items() if name not in resources}
            for amounts in (wanted.requests, wanted.limits)
        )
        return replaced(container, resources=replaced(wanted, requests=requests, limits=limits))

    return with_containers(pod, freed)


def _with_extended_resource(pod: fwk.Pod, resource: str, amount: int) -> fwk.Pod:
    """Returns the pod, of one container, that requests this amount of the resource."""

    def changed(container: Container) -> Container:
        amounts = container.resources
        requests, limits = ({**each, resource: str(amount)} for each in (amounts.requests, amounts.limits))
        return replaced(container, resources=replaced(amounts, requests=requests, limits=limits))

    return with_containers(pod, changed)


def without_resource_claims(pod: fwk.Pod, *names: str) -> fwk.Pod:
    """Returns the pod without these resource claims, and without the containers' use of them."""

    def freed(container: Container) -> Container:
        claims = [claim for claim in container.resources.claims if claim.name not in names]
        return replaced(container, resources=replaced(container.resources, claims=claims))

    left = [claim for claim in pod.spec.resource_claims if claim.name not in names]
    return with_containers(pod, freed, resource_claims=left)
