"""What the plugins that look at volumes suggest: to create the claims that are missing, or to do without volumes."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from extender.engine import framework as fwk
from extender.engine.framework.interface import listed
from extender.values import limits
from extender.values.objects.claims import SELECTED_NODE_ANNOTATION, claim_name
from extender.values.objects.decoding import replaced
from extender.values.objects.pod import Volume
from extender.values.objects.storage import PersistentVolumeClaim


class VolumeAdvice(fwk.AdvicePlugin):
    """The advice that these plugins have in common; whichever of them refuses a pod, it is given once."""

    def suggest(self, pod: fwk.Pod, rows: fwk.Rows) -> Iterator[fwk.Suggestion]:
        """The pod with the claims that are missing, or promised to no node; without each of its volumes, then all.

        The pod with a claim that is created is evaluated without the volume, since a new claim keeps it from no node.
        """
        volumes, missing = pod.spec.volumes, _without_claim(pod, rows.snapshot)
        if missing:
            without = _without(pod, [volume for volume, _ in missing])
            create = f"create the {listed('PersistentVolumeClaim', [*dict.fromkeys(name for _, name in missing)])}"
            yield replace(without, text=f"{create}, or {without.text}")
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
    gone = {volume.name for volume in volumes}
    changed = replaced(
        pod, spec=replaced(pod.spec, volumes=[volume for volume in pod.spec.volumes if volume.name not in gone])
    )
    return fwk.Suggestion("volume", f"drop the {listed('volume', list(map(_written, volumes)))}", changed)


def _without_claim(pod: fwk.Pod, snapshot: fwk.Snapshot) -> list[tuple[Volume, str]]:
    """Returns the volumes whose claims are missing, and the names of these."""
    named = [(volume, claim.claim_name) for volume in pod.spec.volumes if (claim := volume.persistent_volume_claim)]
    return [(volume, name) for volume, name in named if (pod.namespace, name) not in snapshot.objects.pvcs]


def _promised(pod: fwk.Pod, snapshot: fwk.Snapshot) -> list[PersistentVolumeClaim]:
    """Returns the claims whose volumes are to be made for a node that does not exist, where nobody makes them."""
    claims = [snapshot.objects.pvcs.get((pod.namespace, claim_name(pod, each) or "")) for each in pod.spec.volumes]
    selected = {id(claim): claim for claim in claims if claim is not None and not claim.spec.volume_name}
    return [
        claim
        for claim in selected.values()
        if (node := claim.metadata.annotations.get(SELECTED_NODE_ANNOTATION)) is not None
        and node not in snapshot.nodes.index
    ]


def _without_promise(claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    left = {name: value for name, value in claim.metadata.annotations.items() if name != SELECTED_NODE_ANNOTATION}
    return replaced(claim, metadata=replaced(claim.metadata, annotations=left))


def _written(volume: Volume) -> str:
    claim = volume.persistent_volume_claim
    return volume.name if claim is None else f"{volume.name} (claim {claim.claim_name})"
