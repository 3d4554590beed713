"""What a recording leaves out. What decisions depend on stays: amounts, selectors, taints, topology."""

import secrets
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final, Literal, final

import msgspec

from extender.values.objects.kinds import kind_of
from extender.values.objects.meta import HasMetadata

Redacts = Literal["nothing", "annotations", "names"]
"""What is left out: nothing; annotations of applications; those, and the names of what runs."""

_OF_SYSTEM: Final = (".kubernetes.io", ".k8s.io", "kubernetes.io", "k8s.io", "reprieve.dev")
"""The ends of the domains whose annotations say something about scheduling."""
_NAMES: Final = frozenset(
    {
        "name",
        "namespace",
        "namespaces",
        "claimName",
        "volumeName",
        "resourceClaimName",
        "resourceClaimTemplateName",
        "persistentVolumeName",
    }
)
"""Fields whose texts name pods, owners, namespaces, volumes and claims."""
_LABELS: Final = frozenset({"labels", "matchLabels", "selector"})
_KEPT: Final = frozenset(
    {
        "nodeSelector",
        "nodeSelectorTerms",
        "nodeAffinity",
        "tolerations",
        "resources",
        "containers",
        "initContainers",
        "containerStatuses",
        "initContainerStatuses",
        "schedulingGates",
        "devices",
        "driver",
    }
)
"""Fields within which no name is replaced: they speak of nodes and devices, or name nothing outside of a pod."""
_HARDWARE: Final = frozenset(
    {"Node", "CSINode", "StorageClass", "CSIDriver", "PriorityClass", "DeviceClass", "DeviceTaintRule", "ResourceSlice"}
)
"""Kinds whose names say what hardware and software a cluster has."""


@final
class Redaction:
    """Removes from objects what must not be recorded. State: the key of the replacing names."""

    def __init__(self, redacts: Redacts) -> None:
        self.redacts: Final = redacts
        self._key = secrets.token_bytes(16)

    @property
    def hides_names(self) -> bool:
        """Whether names are replaced, so that texts of the scheduler are left out, too."""
        return self.redacts == "names"

    def hides_names_of(self, kind: str) -> bool:
        """Whether the names of objects of this kind are replaced. Nodes keep theirs."""
        return self.hides_names and kind not in _HARDWARE

    def of(self, obj: HasMetadata) -> Any:
        if self.redacts == "nothing":
            return obj
        meta = obj.metadata
        annotations = {
            name: text for name, text in meta.annotations.items() if name.partition("/")[0].endswith(_OF_SYSTEM)
        }
        if len(annotations) < len(meta.annotations):
            obj = msgspec.structs.replace(obj, metadata=msgspec.structs.replace(meta, annotations=annotations))
        if not self.hides_names_of(kind_of(obj).name):
            return obj
        return self._hidden(msgspec.to_builtins(obj), "")

    def name(self, text: str) -> str:
        """Returns the replacement of a name, the same in all recordings of this process."""
        if not self.hides_names or not text:
            return text
        return f"x{blake2b(text.encode(), key=self._key, digest_size=6).hexdigest()}"

    def pod_name(self, key: str) -> str:
        """Returns the replacement of namespace/name."""
        return "/".join(map(self.name, key.split("/", 1)))

    def _hidden(self, value: Any, field: str) -> Any:
        if field in _KEPT:
            return value
        if isinstance(value, str):
            return self.name(value) if field in _NAMES else value
        if field == "conditions":
            return [{**condition, "message": ""} for condition in value]
        if isinstance(value, list):
            return [self._hidden(member, field) for member in value]
        if not isinstance(value, Mapping):
            return value
        if field == "disruptedPods":
            return {self.name(pod): since for pod, since in value.items()}
        if field in _LABELS and all(isinstance(member, str) for member in value.values()):
            return {name: self.name(text) for name, text in value.items()}
        if "operator" in value and "key" in value:
            # A requirement of a label selector. Those of nodes are within fields that are kept.
            return {**value, "values": [self.name(text) for text in value.get("values", [])]}
        return {name: self._hidden(member, name) for name, member in value.items()}
