"""Doing without volumes or devices."""

from collections.abc import Iterator

from extender.answers.relaxed_pods import without_resource_claims, without_volumes
from extender.answers.suggestions.situation import MAX_OF_A_SORT, Situation, Suggestion, listed
from extender.objects.pod import Pod, Volume


def fewer_volumes(situation: Situation) -> Iterator[Suggestion]:
    """Without each of the volumes, then without all."""
    volumes = situation.pod.spec.volumes
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


def _volume(volume: Volume) -> str:
    claim = volume.persistent_volume_claim
    return volume.name if claim is None else f"{volume.name} (claim {claim.claim_name})"


def fewer_resource_claims(situation: Situation) -> Iterator[Suggestion]:
    """Without each of the resource claims."""
    for claim in situation.pod.spec.resource_claims[:MAX_OF_A_SORT]:
        changed = without_resource_claims(situation.pod, claim.name)
        yield Suggestion("other", f"do without the resource claim {claim.name}", changed)


def no_resource_claims(situation: Situation, place: int) -> Suggestion | None:
    """Without any, whichever the node."""
    names = [claim.name for claim in situation.pod.spec.resource_claims]
    if not names:
        return None
    return Suggestion("other", f"do without the {listed('resource claim', names)}", without_resource_claims(situation.pod, *names))
