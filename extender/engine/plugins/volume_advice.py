"""The suggestions of the volume plugins: to create the missing claims, or to drop volumes."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from extender.engine import framework as fwk
from extender.engine.framework.interface import listed
from extender.values import limits
from extender.values.objects.claims import SELECTED_NODE_ANNOTATION, claim_name
from extender.values.objects.decoding import replaced
from extender.values.objects.pod import Volume
from extender.values.objects.storage import PersistentVolumeClaim


class VolumeAdvice(fwk.AdvicePlugin):
    """The advice of the volume plugins, given once whichever of them refuses a pod."""

    def suggest(self, pod: fwk.Pod, rows: fwk.Rows) -> Iterator[fwk.Suggestion]:
        """The pod with the claims that are missing, or promised to no node; without each of its volumes, then all.

        The pod with a claim that is created is evaluated without the volume, since a new claim keeps it from no node.
        """
        volumes, claimless = pod.spec.volumes, _without_claim(pod, rows.snapshot)
        if claimless:
            suggestion = _without(pod, [volume for volume, _ in claimless])
            create = f"create the {listed('PersistentVolumeClaim', [*dict.fromkeys(name for _, name in claimless)])}"
            yield replace(suggestion, text=f"{create}, or {suggestion.text}")
        promised = _promised(pod, rows.snapshot)
        if promised:
            annotation = f"delete the annotation {SELECTED_NODE_ANNOTATION}"
            text = f"{annotation} of the {listed('claim', [claim.metadata.name for claim in promised])}"
            yield fwk.Suggestion("volume", text, pod, tuple(map(_without_promise, promised)))
        for volume in volumes[: limits.SUGGESTED_ONE_BY_ONE]:
            yield _without(pod, [volume])
        if len(volumes) > 1:
            yield _without(pod, volumes)

    def suggest_for_node(self, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Suggestion | None:
        return _without(pod, pod.spec.volumes) if pod.spec.volumes else None


def _without(pod: fwk.Pod, volumes: Sequence[Volume]) -> fwk.Suggestion:
    names = {volume.name for volume in volumes}
    changed = replaced(
        pod, spec=replaced(pod.spec, volumes=[volume for volume in pod.spec.volumes if volume.name not in names])
    )
    return fwk.Suggestion("volume", f"drop the {listed('volume', list(map(_written, volumes)))}", changed)


def _without_claim(pod: fwk.Pod, snapshot: fwk.Snapshot) -> list[tuple[Volume, str]]:
    """Returns the volumes whose claims are missing, and the names of these."""
    claim_names = [
        (volume, claim.claim_name) for volume in pod.spec.volumes if (claim := volume.persistent_volume_claim)
    ]
    return [(volume, name) for volume, name in claim_names if (pod.namespace, name) not in snapshot.objects.pvcs]


def _promised(pod: fwk.Pod, snapshot: fwk.Snapshot) -> list[PersistentVolumeClaim]:
    """Returns the claims whose volumes are to be made for a node that does not exist, where nobody makes them."""
    claims = [snapshot.objects.pvcs.get((pod.namespace, claim_name(pod, volume) or "")) for volume in pod.spec.volumes]
    selected = {id(claim): claim for claim in claims if claim is not None and not claim.spec.volume_name}
    return [
        claim
        for claim in selected.values()
        if (node := claim.metadata.annotations.get(SELECTED_NODE_ANNOTATION)) is not None
        and node not in snapshot.nodes.index
    ]


def _without_promise(claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    annotations = {
        name: value for name, value in claim.metadata.annotations.items() if name != SELECTED_NODE_ANNOTATION
    }
    return replaced(claim, metadata=replaced(claim.metadata, annotations=annotations))


def _written(volume: Volume) -> str:
    claim = volume.persistent_volume_claim
    return volume.name if claim is None else f"{volume.name} (claim {claim.claim_name})"
