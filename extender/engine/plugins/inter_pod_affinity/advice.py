"""The pod without required terms of its pod affinity and anti-affinity."""

from collections.abc import Iterator
from typing import Any

from extender.engine import framework as fwk
from extender.values import limits
from extender.values.objects.decoding import replaced
from extender.values.objects.pod import Affinity, PodAffinity


def suggestions(pod: fwk.Pod) -> Iterator[fwk.Suggestion]:
    """Yields the pod without each required term, then without all of them."""
    near, apart = _stanzas(pod)
    for at, term in enumerate(near.required[: limits.SUGGESTED_ONE_BY_ONE]):
        yield fwk.Suggestion(
            "affinity", f"drop the required pod affinity over {term.topology_key}", without_pod_affinity(pod, at)
        )
    for at, term in enumerate(apart.required[: limits.SUGGESTED_ONE_BY_ONE]):
        text = f"drop the required pod anti-affinity over {term.topology_key}"
        yield fwk.Suggestion("affinity", text, without_pod_anti_affinity(pod, at))
    if len(near.required) + len(apart.required) > 1 and (all_of_them := without_requirements(pod)) is not None:
        yield all_of_them


def without_requirements(pod: fwk.Pod) -> fwk.Suggestion | None:
    """Returns the pod without any required term; None if it has none."""
    near, apart = _stanzas(pod)
    named = [*(["pod affinity"] if near.required else []), *(["pod anti-affinity"] if apart.required else [])]
    changed = without_pod_anti_affinity(without_pod_affinity(pod))
    return fwk.Suggestion("affinity", f"drop the required {' and '.join(named)}", changed) if named else None


def without_pod_affinity(pod: fwk.Pod, *places: int) -> fwk.Pod:
    """Returns the pod without these of its required pod affinity terms; without places, without all of them."""
    stanza = (pod.spec.affinity or Affinity()).pod_affinity
    return pod if stanza is None else _with_affinity(pod, pod_affinity=_without_terms(stanza, places))


def without_pod_anti_affinity(pod: fwk.Pod, *places: int) -> fwk.Pod:
    """Returns the pod without these of its required pod anti-affinity terms; without places, without all of them."""
    stanza = (pod.spec.affinity or Affinity()).pod_anti_affinity
    return pod if stanza is None else _with_affinity(pod, pod_anti_affinity=_without_terms(stanza, places))


def _stanzas(pod: fwk.Pod) -> tuple[PodAffinity, PodAffinity]:
    affinity = pod.spec.affinity or Affinity()
    return affinity.pod_affinity or PodAffinity(), affinity.pod_anti_affinity or PodAffinity()


def _without_terms(stanza: PodAffinity, places: tuple[int, ...]) -> PodAffinity:
    left = [term for place, term in enumerate(stanza.required) if places and place not in places]
    return replaced(stanza, required=left)


def _with_affinity(pod: fwk.Pod, **changes: Any) -> fwk.Pod:
    return replaced(pod, spec=replaced(pod.spec, affinity=replaced(pod.spec.affinity or Affinity(), **changes)))
