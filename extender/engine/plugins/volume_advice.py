"""What the plugins that look at volumes suggest: to create the claims that are missing, or to do without volumes."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from extender.engine import framework as fwk
from extender.engine.framework.advice import listed
from extender.values import limits
from extender.values.objects.decoding import replaced
from extender.values.objects.pod import Volume


class VolumeAdvice(fwk.AdvicePlugin):
    """The advice that these plugins have in common; whichever of them refuses a pod, it is given once."""

    def suggest(self, pod: fwk.Pod, rows: fwk.Rows) -> Iterator[fwk.Suggestion]:
        """The pod with the claims that are missing; without each of its volumes, then without all of them.

        The pod with a claim that is created is evaluated without the volume, since a new claim keeps it from no node.
        """
        volumes, missing = pod.spec.volumes, _without_claim(pod, rows.snapshot)
        if missing:
            claims = [
                volume.persistent_volume_claim.claim_name
                for volume in missing
                if volume.persistent_volume_claim is not None
            ]
            without = _without(pod, missing)
            yield replace(
                without,
                text=f"create the {listed('PersistentVolumeClaim', [*dict.fromkeys(claims)])}, or {without.text}",
            )
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
    return fwk.Suggestion("volume", f"do without the {listed('volume', list(map(_written, volumes)))}", changed)


def _without_claim(pod: fwk.Pod, snapshot: fwk.Snapshot) -> list[Volume]:
    known = snapshot.objects.pvcs
    return [
        volume
        for volume in pod.spec.volumes
        if volume.persistent_volume_claim is not None
        and (pod.namespace, volume.persistent_volume_claim.claim_name) not in known
    ]


def _written(volume: Volume) -> str:
    claim = volume.persistent_volume_claim
    return volume.name if claim is None else f"{volume.name} (claim {claim.claim_name})"
