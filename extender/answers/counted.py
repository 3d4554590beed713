"""Of what it is counted how many fit: a pod as it would be created now, out of a pod, or of what makes pods."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, final

from extender.cache.cluster import Cluster
from extender.workloads.expansion import WORKLOADS

_NAMELESS: Final = "one-more"
"""What a pod is called, and a number, of which only the kind matters."""
_OF_ITS_LIFE: Final = ("uid", "deletionTimestamp", "generateName")
_KINDS: Final = frozenset(kind for _, kind in WORKLOADS)


class NotCountedError(ValueError):
    """It is neither a pod nor makes pods; the message says what it is."""


@final
@dataclass(frozen=True, slots=True)
class Counted:
    """A pod to be created, under a name that is free."""

    pod: dict[str, Any]
    called: str
    """Its own name, or that of what makes it; empty if it has none."""
    notes: tuple[str, ...] = ()
    """What was taken for granted."""

    def in_its_own_words(self, message: str) -> str:
        """What is said of the pod, said of the name that somebody has written."""
        return message.replace(self.pod["metadata"]["name"], self.called)


def counted(obj: Mapping[str, Any], around: Cluster) -> Counted:
    """The pod, or one of those that a workload makes; it may be written down as one that runs.

    Raises:
        NotCountedError: no pods come of it.
    """
    kind, name = obj.get("kind", "Pod"), _member(obj, "metadata").get("name")
    called = name if isinstance(name, str) else ""
    notes: tuple[str, ...] = ()
    if kind in _KINDS:
        notes = (f"pods of the template of {kind} {called} are counted, whatever it says of their number",)
        if _member(obj, "spec").get("volumeClaimTemplates"):
            notes = (*notes, "the volumes that it claims for each of them are left aside")
        obj = _pod_of(obj, kind)
    elif kind != "Pod":
        raise NotCountedError(f"pods are counted, not objects of kind {kind!r:.100}")
    taken = {known.name for pods in (around.pending.values(), around.cache.pods) for known in pods}
    name = next(name for number in count() if (name := f"{_NAMELESS}-{number}") not in taken)
    metadata = {key: value for key, value in _member(obj, "metadata").items() if key not in _OF_ITS_LIFE}
    spec = obj.get("spec")
    wanted = {key: value for key, value in spec.items() if key != "nodeName"} if isinstance(spec, Mapping) else spec
    pod = {"apiVersion": "v1", **obj, "kind": "Pod", "metadata": {**metadata, "name": name}, "spec": wanted, "status": {}}
    return Counted(pod, called, notes)


def _pod_of(workload: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The pod template, in the namespace of the workload. Volumes that a StatefulSet would claim are empty ones here."""
    spec = _member(workload, "spec")
    if kind == "CronJob":
        spec = _member(_member(spec, "jobTemplate"), "spec")
    template, namespace = _member(spec, "template"), _member(workload, "metadata").get("namespace")
    metadata = {key: value for key, value in _member(template, "metadata").items() if key in ("labels", "annotations")}
    pod_spec = template.get("spec")
    claims = spec.get("volumeClaimTemplates")
    if isinstance(pod_spec, Mapping) and isinstance(claims, list):
        empty: list[Any] = [{"name": _member(claim, "metadata").get("name"), "emptyDir": {}} for claim in claims if isinstance(claim, dict)]
        pod_spec = {**pod_spec, "volumes": [*(pod_spec.get("volumes") or ()), *empty]}
    return {"metadata": metadata | ({"namespace": namespace} if namespace else {}), "spec": pod_spec}


def _member(obj: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = obj.get(name)
    return found if isinstance(found, Mapping) else {}
