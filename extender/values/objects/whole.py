"""Pods and nodes that remember all that their API server says of them.

Scheduling reads a part of an object, and only that is decoded and kept. Extenders of the configuration may read more:
environment variables and mounts of a pod, nodeInfo and addresses of a node.

Upstream: pkg/scheduler/scheduler.go, NewInformerFactory, which drops managedFields alone.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw

from extender.values.objects.kinds import NODES, PODS, WatchedKind, kind_of
from extender.values.objects.meta import HasMetadata
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod

T = TypeVar("T", bound=HasMetadata)

_ENCODE: Final = msgspec.json.Encoder(order="deterministic").encode
_MEMBERS: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_WRITTEN: Final = "written"


# No field, so that it is neither compared, nor encoded, nor copied to an object with other fields.
class _WholePod(Pod, frozen=True, gc=True, dict=True):
    pass


class _WholeNode(Node, frozen=True, gc=True, dict=True):
    pass


_WHOLE: Final[Mapping[WatchedKind[Any], Any]] = {PODS: _WholePod, NODES: _WholeNode}


def whole(obj: T, document: bytes | Raw) -> T:
    """Returns the object, which remembers its JSON, `written`; a copy of it with other fields does not."""
    members = _MEMBERS(document)
    metadata = _MEMBERS(members["metadata"])
    metadata.pop("managedFields", None)
    members.pop("kind", None)
    members.pop("apiVersion", None)
    remembering: T = _WHOLE[kind_of(obj)](*(getattr(obj, field) for field in obj.__struct_fields__))
    remembering.__dict__[_WRITTEN] = Raw(_ENCODE(members | {"metadata": Raw(_ENCODE(metadata))}))
    return remembering


def in_full(obj: HasMetadata) -> Raw:
    """Returns the JSON that the object remembers, or the fields that it has."""
    remembered: Raw | None = getattr(obj, "__dict__", {}).get(_WRITTEN)
    return Raw(_ENCODE(obj)) if remembered is None else remembered
