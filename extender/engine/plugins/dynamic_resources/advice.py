"""DynamicResources suggests to create missing claims, or to do without claims or extended resources."""

from collections.abc import Iterator, Sequence

from extender.engine import framework as fwk
from extender.engine.framework.advice import listed, with_containers
from extender.values import limits
from extender.values.objects.decoding import replaced
from extender.values.objects.pod import Container


def suggestions(pod: fwk.Pod, snapshot: fwk.Snapshot, backed: Sequence[str]) -> Iterator[fwk.Suggestion]:
    """Yields the pod with the claims that are missing, then without each of its claims and `backed` resources."""
    known = snapshot.objects.resource_claims
    missing = {
        claim.name: claim.resource_claim_name
        for claim in pod.spec.resource_claims
        if claim.resource_claim_name is not None and (pod.namespace, claim.resource_claim_name) not in known
    }
    if missing:
        create = f"create the {listed('ResourceClaim', [*dict.fromkeys(missing.values())])}"
        without = f"do without the {listed('resource claim', [*missing])}"
        yield fwk.Suggestion("other", f"{create}, or {without}", without_resource_claims(pod, *missing))
    for claim in pod.spec.resource_claims[: limits.SUGGESTED_ONE_BY_ONE]:
        text = f"do without the resource claim {claim.name}"
        yield fwk.Suggestion("other", text, without_resource_claims(pod, claim.name))
    for resource in backed[: limits.SUGGESTED_ONE_BY_ONE]:
        text = f"do without the extended resource {resource}"
        yield fwk.Suggestion("other", text, without_extended_resources(pod, resource))


def without_devices(pod: fwk.Pod, backed: Sequence[str]) -> fwk.Suggestion | None:
    """Returns the pod without resource claims and `backed` resources; None if it has neither."""
    names = [claim.name for claim in pod.spec.resource_claims]
    texts = [f"the {listed('resource claim', names)}"] if names else []
    texts += [f"the {listed('extended resource', backed)}"] if backed else []
    if not texts:
        return None
    changed = without_extended_resources(without_resource_claims(pod, *names), *backed)
    return fwk.Suggestion("other", f"do without {' and '.join(texts)}", changed)


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


def without_resource_claims(pod: fwk.Pod, *names: str) -> fwk.Pod:
    """Returns the pod without these resource claims, and without the containers' use of them."""

    def freed(container: Container) -> Container:
        claims = [claim for claim in container.resources.claims if claim.name not in names]
        return replaced(container, resources=replaced(container.resources, claims=claims))

    left = [claim for claim in pod.spec.resource_claims if claim.name not in names]
    return with_containers(pod, freed, resource_claims=left)
