"""What DynamicResources suggests: to create the claims that are missing, or to do without claims."""

from collections.abc import Iterator

from extender import framework as fwk
from extender.framework.advice import MAX_ONE_BY_ONE, listed
from extender.objects.decoding import replaced
from extender.objects.pod import Container


def suggestions(pod: fwk.Pod, snapshot: fwk.Snapshot) -> Iterator[fwk.Suggestion]:
    """Yields the pod with the claims that are missing, then without each of its claims."""
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
    for claim in pod.spec.resource_claims[:MAX_ONE_BY_ONE]:
        yield fwk.Suggestion("other", f"do without the resource claim {claim.name}", without_resource_claims(pod, claim.name))


def without_claims(pod: fwk.Pod) -> fwk.Suggestion | None:
    """Returns the pod without resource claims; None if it has none."""
    names = [claim.name for claim in pod.spec.resource_claims]
    if not names:
        return None
    return fwk.Suggestion("other", f"do without the {listed('resource claim', names)}", without_resource_claims(pod, *names))


def without_resource_claims(pod: fwk.Pod, *names: str) -> fwk.Pod:
    """Returns the pod without these resource claims, and without the containers' use of them."""

    def freed(container: Container) -> Container:
        claims = [claim for claim in container.resources.claims if claim.name not in names]
        return replaced(container, resources=replaced(container.resources, claims=claims))

    spec = pod.spec
    return replaced(
        pod,
        spec=replaced(
            spec,
            containers=list(map(freed, spec.containers)),
            init_containers=list(map(freed, spec.init_containers)),
            resource_claims=[claim for claim in spec.resource_claims if claim.name not in names],
        ),
    )
