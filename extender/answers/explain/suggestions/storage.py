"""Creating the claims that are missing, or doing without volumes or devices."""

from collections.abc import Iterator
from dataclasses import replace

from extender.answers.explain.relaxed_pods import without_resource_claims, without_volumes
from extender.answers.explain.suggestions.situation import MAX_OF_A_SORT, Situation, Suggestion, listed
from extender.objects.pod import Pod, Volume


def fewer_volumes(situation: Situation) -> Iterator[Suggestion]:
    """With the claims that are missing; without each of the volumes, then without all.

    A claim that is still to be created keeps the pod from nowhere: it is tried without the volume.
    """
    volumes, missing = situation.pod.spec.volumes, _without_claim(situation)
    if missing:
        claims = [volume.persistent_volume_claim.claim_name for volume in missing if volume.persistent_volume_claim is not None]
        without = _without_volumes(situation.pod, missing)
        yield replace(without, text=f"create the {listed('PersistentVolumeClaim', [*dict.fromkeys(claims)])}, or {without.text}")
    for volume in volumes[:MAX_OF_A_SORT]:
        yield _without_volumes(situation.pod, [volume])
    if len(volumes) > 1:
        yield _without_volumes(situation.pod, volumes)


def no_volumes(situation: Situation, place: int) -> Suggestion | None:
    """Without any, whichever the node."""
    volumes = situation.pod.spec.volumes
    return _without_volumes(situation.pod, volumes) if volumes else None


def _without_volumes(pod: Pod, volumes: list[Volume]) -> Suggestion:
    return Suggestion("volume", f"do without the {listed('volume', list(map(_volume, volumes)))}", without_volumes(pod, volumes))


def _without_claim(situation: Situation) -> list[Volume]:
    """The volumes whose claims nobody has created."""
    pod, known = situation.pod, situation.snapshot.objects.pvcs
    return [
        volume
        for volume in pod.spec.volumes
        if volume.persistent_volume_claim is not None and (pod.namespace, volume.persistent_volume_claim.claim_name) not in known
    ]


def _volume(volume: Volume) -> str:
    claim = volume.persistent_volume_claim
    return volume.name if claim is None else f"{volume.name} (claim {claim.claim_name})"


def fewer_resource_claims(situation: Situation) -> Iterator[Suggestion]:
    """With those that are missing; without each of them."""
    pod, known = situation.pod, situation.snapshot.objects.resource_claims
    missing = {
        claim.name: claim.resource_claim_name
        for claim in pod.spec.resource_claims
        if claim.resource_claim_name is not None and (pod.namespace, claim.resource_claim_name) not in known
    }
    if missing:
        create = f"create the {listed('ResourceClaim', [*dict.fromkeys(missing.values())])}"
        without = f"do without the {listed('resource claim', [*missing])}"
        yield Suggestion("other", f"{create}, or {without}", without_resource_claims(pod, *missing))
    for claim in pod.spec.resource_claims[:MAX_OF_A_SORT]:
        changed = without_resource_claims(situation.pod, claim.name)
        yield Suggestion("other", f"do without the resource claim {claim.name}", changed)


def no_resource_claims(situation: Situation, place: int) -> Suggestion | None:
    """Without any, whichever the node."""
    names = [claim.name for claim in situation.pod.spec.resource_claims]
    if not names:
        return None
    return Suggestion("other", f"do without the {listed('resource claim', names)}", without_resource_claims(situation.pod, *names))
