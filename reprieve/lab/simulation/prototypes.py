"""Manifests as an API server keeps them: completed, or refused in its words. One is admitted once for many pods."""

import copy
from collections.abc import Callable
from typing import Any, Final, TypeVar, final

from extender.assembly.backend import empty_api_server
from extender.client.informers.keeping import keeper_of
from extender.values.objects.decoding import DecodeError, convert, replaced
from extender.values.objects.kinds import KINDS, PODS, WatchedKind
from extender.values.objects.meta import HasMetadata, Object
from extender.values.objects.pod import Pod
from reprieve.lab.simulation.workload import WorkloadError

H = TypeVar("H", bound=HasMetadata)

_SAME_FORM: Final = {"resource.k8s.io/v1beta2": "resource.k8s.io/v1"}
"""Versions whose objects are kept in another version, with the same fields."""
_SAME_FORM_OF: Final = {"DeviceTaintRule": {"resource.k8s.io/v1alpha3": "resource.k8s.io/v1beta2"}}
"""The same for kinds that have no later version."""
_KIND_OF_NAME: Final[dict[str, WatchedKind[Any]]] = {kind.name: kind for kind in KINDS}


@final
class Prototypes:
    """State: the objects that were admitted, because others name them: priority classes, namespaces.

    What admits raises WorkloadError, naming the place `where` the manifest is, if the API server would refuse it.
    """

    def __init__(self) -> None:
        self._registry = empty_api_server()
        self._keepers: dict[str, Callable[[Any], Any]] = {}
        self._number = 0

    def admitted(self, manifest: Object, where: str) -> HasMetadata | None:
        """Returns the object; None if scheduling does not look at objects of its kind."""
        obj = self.complete(manifest, where)
        kind = _KIND_OF_NAME.get(obj["kind"])
        if kind is None:
            return None
        try:
            typed: HasMetadata = convert(kind.type, obj)
        except DecodeError as exc:
            raise WorkloadError(f"{where}: {exc}") from exc
        keep = self._keepers.setdefault(kind.name, keeper_of(kind))
        stored: HasMetadata = keep(typed)
        return replaced(stored, metadata=replaced(stored.metadata, uid="", creation_timestamp=None))

    def pod(self, manifest: Object, where: str) -> Pod:
        """Returns the pod of a manifest that may lack a name. Its name is to be replaced."""
        self._number += 1
        metadata = {**_mapping(manifest.get("metadata")), "name": f"prototype-{self._number}"}
        metadata.pop("generateName", None)
        pod = self.admitted({"apiVersion": "v1", "kind": "Pod", **manifest, "metadata": metadata}, where)
        if not isinstance(pod, Pod):
            raise WorkloadError(f"{where}: a manifest of kind {str(manifest.get('kind'))!r:.60} is no {PODS.name}")
        return pod

    def is_namespaced(self, manifest: Object) -> bool | None:
        """Returns whether objects of the manifest's kind are in namespaces; None if they are not kept."""
        return self._registry.is_namespaced(str(_version_of(manifest)), str(manifest.get("kind")))

    def complete(self, manifest: Object, where: str) -> Object:
        """Returns the manifest as an API server would keep it."""
        kind = str(manifest.get("kind") or "")
        obj = copy.deepcopy({**manifest, "apiVersion": _version_of(manifest) or self._registry.api_version_of(kind)})
        metadata = _mapping(obj.get("metadata"))
        is_namespaced = self.is_namespaced(obj)
        if is_namespaced is None:
            raise WorkloadError(f"{where}: kind {kind!r:.60} of {str(obj['apiVersion'])!r:.60} is not supported")
        obj["metadata"] = metadata
        why = self._registry.why_undecodable(obj)
        refusals = [why] if why else self._registry.create([obj])
        if refusals:
            raise WorkloadError(f"{where}: {refusals[0]}")
        namespace = str(metadata.get("namespace") or "default") if is_namespaced else ""
        stored = self._registry.get(kind, namespace, str(metadata.get("name")))
        if stored is None:
            raise WorkloadError(f"{where}: kind {kind!r:.60} is not supported")
        return {"apiVersion": obj["apiVersion"], "kind": kind, **stored}


def named(obj: H, name: str, namespace: str | None = None) -> H:
    """Returns the object under another name; the copies of one object share everything else."""
    changes = {"name": name} if namespace is None else {"name": name, "namespace": namespace}
    return replaced(obj, metadata=replaced(obj.metadata, **changes))


def _version_of(manifest: Object) -> Any:
    version = manifest.get("apiVersion")
    if not isinstance(version, str):
        return version
    return _SAME_FORM_OF.get(str(manifest.get("kind")), _SAME_FORM).get(version, version)


def _mapping(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, dict) else {}
