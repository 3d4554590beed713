"""Fields that no API server knows: misspelt ones, as a rule. What our schema knows, it knows completely."""

from collections.abc import Mapping
from typing import Any, Final

from extender.embedded import schema
from extender.embedded.schema.declaring import omit
from extender.embedded.schema.pods import POD_TEMPLATE_SPEC
from extender.embedded.schema.types import Struct

_KNOWS_ITS_PODS: Final = Struct("Workload", {"spec": omit(Struct("Spec", {"template": omit(POD_TEMPLATE_SPEC)}))})
_MAKES_JOBS: Final = Struct("Workload", {"spec": omit(Struct("Spec", {"jobTemplate": omit(_KNOWS_ITS_PODS)}))})
_AS_FAR_AS_KNOWN: Final[Mapping[tuple[str, str], tuple[Struct, tuple[str, ...]]]] = {
    ("apps/v1", "DaemonSet"): (_KNOWS_ITS_PODS, ("spec", "template")),
    ("batch/v1", "Job"): (_KNOWS_ITS_PODS, ("spec", "template")),
    ("batch/v1", "CronJob"): (_MAKES_JOBS, ("spec", "jobTemplate", "spec", "template")),
}
"""Kinds that our own API does not serve -> which part of them is known, and where it is."""


def unknown_fields(obj: Mapping[str, Any]) -> str:
    """What a strict API server says of the fields that it does not know; empty if it has nothing to say.

    An object that was read from a server has the fields that one knows: a newer one has more of them.
    """
    metadata = obj["metadata"]
    if metadata.get("resourceVersion") or (metadata.get("uid") and metadata.get("creationTimestamp")):
        return ""
    group, _, version = str(obj["apiVersion"]).rpartition("/")
    known, raw = schema.KINDS.get((group, version, str(obj["kind"]))), obj
    if known is None:
        known, way = _AS_FAR_AS_KNOWN.get((str(obj["apiVersion"]), str(obj["kind"])), (None, ()))
        raw = _only(obj, way)
    if known is None:
        return ""
    try:
        _, problems = schema.read_as(known, raw)
    except schema.WrongType:
        return ""  # told by whoever takes it in
    return f"strict decoding error: {', '.join(problems)}" if problems else ""


def _only(obj: Any, way: tuple[str, ...]) -> Any:
    """The object with nothing in it but what is at the end of the way."""
    if not way:
        return obj
    member = obj.get(way[0]) if isinstance(obj, Mapping) else None
    return {} if member is None else {way[0]: _only(member, way[1:])}
