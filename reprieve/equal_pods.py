"""Pods as objects that are equal but for their names: an API server is asked about the first of them alone."""

import re
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, final

import msgspec

from extender.engine.cache.cluster import Cluster
from extender.values.objects.decoding import replaced
from extender.values.objects.pod import Pod

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
"""Names that no rule refuses; others are looked at one by one."""
_OWN_CLAIMS: Final = (b'"resourceClaims":', b'"ephemeral":', b'"nodeName":')
"""Parts that no two pods share: each gets claims of its own, or meets a kubelet."""
_UIDS: Final = uuid.UUID("5d7b6e0a-61c5-4c5e-8d0a-2f3f1c1c8b57")


@final
@dataclass(frozen=True, slots=True)
class EqualPods:
    """Objects to create, and which pods are copies of others."""

    firsts: Sequence[Mapping[str, Any]]
    """The objects without the copies of earlier ones."""
    order: Sequence[str] = ()
    """namespace/name of all pods, as they were given; empty where there are no copies."""
    copies: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """namespace/name -> that of the first one, and the UID that was given, or an empty text."""

    def made(self, pods: Sequence[Pod]) -> list[Pod]:
        """Returns the pods with their copies, as they were given; the first ones were created as `pods`."""
        by_key = {pod.key: pod for pod in pods}
        for key, (first, uid) in self.copies.items():
            if (model := by_key.get(first)) is not None:
                new_uid = uid or str(uuid.uuid5(_UIDS, f"{model.uid}/{key}"))
                metadata = replaced(model.metadata, name=key.partition("/")[2], uid=new_uid)
                by_key[key] = replaced(model, metadata=metadata)
        return [by_key[key] for key in self.order if key in by_key] if self.copies else [*pods]


def without_copies(objects: Sequence[Mapping[str, Any]], cluster: Cluster) -> EqualPods:
    """Finds copies if all objects are pods: workloads may make pods of the same names."""
    if len(objects) < 2 or any(obj.get("kind") != "Pod" for obj in objects):
        return EqualPods(objects)
    metas = [obj.get("metadata") for obj in objects]
    if not all(isinstance(meta, dict) for meta in metas):
        return EqualPods(objects)
    keys = [f"{meta.get('namespace') or 'default'}/{meta.get('name')}" for meta in metas if isinstance(meta, dict)]
    uids = Counter(str(meta.get("uid")) for meta in metas if isinstance(meta, dict) and meta.get("uid"))
    if len(set(keys)) < len(keys):
        return EqualPods(objects)
    first_of: dict[bytes, str] = {}
    firsts, copies = [], dict[str, tuple[str, str]]()
    for obj, metadata, key in zip(objects, metas, keys, strict=True):
        uid = (metadata or {}).get("uid") or ""
        content = _content(obj, metadata or {})
        is_free = cluster.named(key) is None and (not uid or (uids[str(uid)] == 1 and not _has(cluster, uid)))
        first = first_of.setdefault(content, key) if content and is_free else key
        if first == key:
            firsts.append(obj)
        else:
            copies[key] = first, uid
    return EqualPods(firsts, keys, copies)


def _has(cluster: Cluster, uid: str) -> bool:
    return uid in cluster.pending or cluster.cache.pod(uid) is not None


def _content(obj: Mapping[str, Any], metadata: Mapping[str, Any]) -> bytes:
    """Returns the same text for pods that differ only in name; an empty one for a pod that has no copies."""
    name, uid = metadata.get("name"), metadata.get("uid") or ""
    if not isinstance(name, str) or not isinstance(uid, str) or _NAME.fullmatch(name) is None:
        return b""
    compared = {part: value for part, value in metadata.items() if part not in ("name", "uid")}
    try:
        content = msgspec.json.encode(({**obj, "metadata": compared}, bool(uid)))
    except (TypeError, ValueError, RecursionError):
        return b""  # who creates it says why
    return b"" if any(part in content for part in _OWN_CLAIMS) else content
