"""The templates of scheduler_perf workloads: manifests with an index in them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, final

import orjson

from extender.values.golang.json import plain
from extender.values.golang.yaml import YamlError, read_yaml
from extender.values.objects.decoding import DecodeError, convert, replaced
from extender.values.objects.devices import ResourceClaim
from extender.values.objects.kinds import kind_of
from extender.values.objects.meta import HasMetadata, Object, ObjectMeta
from extender.values.objects.pod import PersistentVolumeClaimVolumeSource, Pod, Volume
from extender.values.objects.storage import ObjectReference, PersistentVolume, PersistentVolumeClaim
from reprieve.lab import limits
from reprieve.lab.simulation.prototypes import Prototypes, named
from reprieve.lab.simulation.scene import Scene
from reprieve.lab.simulation.sent_files import SentFiles
from reprieve.lab.simulation.simulated_cluster import Lifetime
from reprieve.lab.simulation.storage_writes import bound
from reprieve.lab.simulation.text_template import TemplateError, Value, is_constant, rendered
from reprieve.lab.simulation.workload import WorkloadError, lines_of

DEFAULT_GRACE: Final = 30.0
"""Seconds that a pod takes to stop unless its manifest says otherwise."""
_FREE_NAMES: Final = frozenset(
    {
        "labels",
        "annotations",
        "matchLabels",
        "nodeSelector",
        "selector",
        "requests",
        "limits",
        "capacity",
        "allocatable",
        "counters",
    }
)
"""Fields whose members have names that the user chooses."""


@final
class TemplateFile:
    """A template, read."""

    def __init__(self, path: Path, place: Path | None = None) -> None:
        """`path` is the name in errors; the file lies at `place`, if given."""
        self._path = path
        self._text = "".join(lines_of(place or path, limits.WORKLOAD_TEMPLATE_BYTES))
        self._constant = self._read(self._text) if is_constant(self._text) else None

    def manifest(self, values: Mapping[str, Value]) -> Object:
        """Returns the manifest with the values in it; it must not be changed. Raises WorkloadError."""
        if self._constant is not None:
            return self._constant
        try:
            return self._read(rendered(self._text, values))
        except TemplateError as exc:
            raise WorkloadError(f"{self._path}: the template {exc}") from exc

    def _read(self, text: str) -> Object:
        try:
            value = plain(read_yaml(text).value)
        except YamlError as exc:
            raise WorkloadError(f"{self._path}: {exc}") from exc
        if not isinstance(value, dict) or not isinstance(value.get("metadata", {}), dict | None):
            raise WorkloadError(f"{self._path}: this is not a manifest")
        return {**_in_camel_case(value), "metadata": value.get("metadata") or {}}


def _in_camel_case(value: Any) -> Any:
    """The value with fields as an API server writes them: upstream's readers take `Effect` for `effect`."""
    if isinstance(value, list):
        return [_in_camel_case(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name[:1].lower() + name[1:] if name.isalpha() else name: member
        if name in _FREE_NAMES
        else _in_camel_case(member)
        for name, member in value.items()
    }


@final
class Templates:
    """The files of a workload. State: the templates, read and admitted."""

    def __init__(self, folder: Path, sent_files: SentFiles, *, has_binding_conditions: bool = False) -> None:
        self._folder = folder
        self._sent_files = sent_files
        self._has_binding_conditions = has_binding_conditions
        self._files: dict[str, TemplateFile] = {}
        self.prototypes: Final = Prototypes()
        self._claiming: dict[str, Pod] = {}
        self.num_volumes = 0
        """The number of admitted templates of volumes and their claims."""
        self._updates = 0

    def source(self, path: str) -> TemplateFile:
        """Returns the template at a path, relative to the workload's file."""
        template = self._files.get(path)
        if template is None:
            full = self._folder / path
            template = self._files[path] = TemplateFile(full, self._sent_files.at(full))
        return template

    def create(
        self, scene: Scene, path: str, namespace: str, values: Mapping[str, Value], *, is_update: bool = False
    ) -> None:
        manifest = self.source(path).manifest(values)
        name = str(
            manifest["metadata"].get("name") or f"{manifest['metadata'].get('generateName', 'any-')}{values['Index']}"
        )
        if is_update:
            self._updates += 1
        metadata: dict[str, Any] = {**manifest["metadata"], "name": f"update-{self._updates}" if is_update else name}
        if namespace:
            metadata["namespace"] = namespace
        instance = {**manifest, "metadata": metadata}
        if manifest.get("kind") == "ResourceClaimTemplate":
            self._claim_template(scene, instance, path)
            return
        obj = self.prototypes.admitted(instance, str(self._folder / path))
        if obj is None:
            return
        if is_update:
            obj = _updated(scene, named(obj, name), path)
        if isinstance(obj, Pod) and not is_update:
            scene.create_pods([obj])
        else:
            scene.put(obj)

    def churned(self, path: str, name: str, namespace: str) -> HasMetadata | None:
        """Returns a new object of a template under the name, not created yet."""
        manifest = self.source(path).manifest({})
        metadata = {**manifest["metadata"], "name": name}
        if self.prototypes.is_namespaced(manifest):
            metadata["namespace"] = namespace
        return self.prototypes.admitted({**manifest, "metadata": metadata}, str(self._folder / path))

    def claiming_pod(self, namespace: str) -> Pod:
        """Returns an empty pod, to take a claim."""
        if namespace not in self._claiming:
            spec = {"containers": [{"name": "main", "image": "pause"}]}
            manifest = {"metadata": {"namespace": namespace}, "spec": spec}
            self._claiming[namespace] = self.prototypes.pod(manifest, "a pod for a claim")
        return self._claiming[namespace]

    def device_slice(self, driver: str, node: str, number: int) -> HasMetadata:
        """Returns the slice with so many equal devices of a node. Upstream: dra.go, resourceSlice."""
        # Upstream's API server drops these fields for workloads without the feature gate.
        prepared = {
            "bindsToNode": True,
            "bindingConditions": ["DeviceAttached"],
            "bindingFailureConditions": ["AttachmentFailed"],
        }
        devices = [
            {
                "name": f"instance-{place}",
                "attributes": {
                    "model": {"string": "A100"},
                    "family": {"string": "GPU"},
                    "driverVersion": {"version": "1.2.3"},
                    "dra.example.com/numa": {"int": place},
                },
                "capacity": {"memory": {"value": "1Gi"}},
                **(prepared if self._has_binding_conditions else {}),
            }
            for place in range(number)
        ]
        pool = {"name": node, "resourceSliceCount": 1}
        spec = {"driver": driver, "nodeName": node, "pool": pool, "devices": devices}
        manifest = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": node},
            "spec": spec,
        }
        resource_slice = self.prototypes.admitted(manifest, f"createResourceDriver for {node}")
        if resource_slice is None:
            raise WorkloadError("createResourceDriver: slices are not supported")
        return resource_slice

    def _claim_template(self, scene: Scene, manifest: Object, path: str) -> None:
        template = self.prototypes.complete(manifest, str(self._folder / path))
        spec = template.get("spec") or {}
        metadata = spec.get("metadata") or {}
        claim = {
            "metadata": {part: metadata.get(part) or {} for part in ("labels", "annotations")},
            "spec": spec.get("spec") or {},
        }
        try:
            typed = convert(ResourceClaim, claim)
        except DecodeError as exc:
            raise WorkloadError(f"{self._folder / path}: {exc}") from exc
        scene.cluster.claim_templates[
            str(manifest["metadata"].get("namespace") or "default"), str(manifest["metadata"]["name"])
        ] = typed


def _updated(scene: Scene, obj: HasMetadata, path: str) -> HasMetadata:
    kind = kind_of(obj)
    old = scene.cluster.find(kind.type, obj.name, obj.metadata.namespace)
    if old is None:
        raise WorkloadError(f"updateAny: {path}: there is no {kind.name} {obj.name}")
    obj = replaced(obj, metadata=replaced(obj.metadata, uid=old.metadata.uid))
    if isinstance(obj, Pod) and isinstance(old, Pod):
        return replaced(obj, spec=replaced(obj.spec, node_name=old.spec.node_name), status=old.status)
    return obj


@final
class PodSource:
    """Pods of a template, with volumes of templates."""

    def __init__(self, templates: Templates, path: str, volume_path: str | None, claim_path: str | None) -> None:
        if not path:
            raise WorkloadError("createPods: there is neither a podTemplatePath nor a defaultPodTemplatePath")
        if (volume_path is None) != (claim_path is None):
            raise WorkloadError("createPods: templates of a volume and of its claim belong together")
        self._templates = templates
        self._path = path
        self._volume_path = volume_path
        self._claim_path = claim_path
        self._shapes: dict[bytes, tuple[Pod, Lifetime]] = {}
        self._volumes: tuple[PersistentVolume, PersistentVolumeClaim] | None = None

    def made(
        self, namespace: str, name: str, values: Mapping[str, Value]
    ) -> tuple[Pod, tuple[HasMetadata, ...], Lifetime]:
        """Returns another pod, the objects that it needs, and how long it takes to stop."""
        manifest = self._templates.source(self._path).manifest(values)
        # Pods that differ in their names only share a prototype.
        metadata = {
            key: value
            for key, value in manifest["metadata"].items()
            if key not in ("name", "generateName", "namespace")
        }
        instance = {**manifest, "metadata": {**metadata, "namespace": namespace}}
        shape = orjson.dumps(instance)
        pod_and_lifetime = self._shapes.get(shape)
        if pod_and_lifetime is None:
            grace = (manifest.get("spec") or {}).get("terminationGracePeriodSeconds", DEFAULT_GRACE)
            pod_and_lifetime = self._shapes[shape] = (
                self._templates.prototypes.pod(instance, self._path),
                Lifetime(None, float(grace)),
            )
        pod, lifetime = pod_and_lifetime
        own_name = manifest["metadata"].get("name")
        # A name without the index would be that of all pods.
        pod = named(pod, str(own_name) if own_name and str(values.get("Index")) in str(own_name) else name, namespace)
        if self._volume_path is None or self._claim_path is None:
            return pod, (), lifetime
        volume, claim = self._bound_volume(self._volume_path, self._claim_path, namespace, name)
        source = Volume(name="vol", persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=claim.name))
        return replaced(pod, spec=replaced(pod.spec, volumes=[*pod.spec.volumes, source])), (volume, claim), lifetime

    def _bound_volume(
        self, volume_path: str, claim_path: str, namespace: str, name: str
    ) -> tuple[PersistentVolume, PersistentVolumeClaim]:
        """A volume and a claim, bound to each other. Upstream: util.go, getCustomVolumeFactory; runners.go."""
        if self._volumes is None:
            self._volumes = (
                self._admitted(volume_path, PersistentVolume, ""),
                self._admitted(claim_path, PersistentVolumeClaim, namespace),
            )
        volume, claim = self._volumes
        volume_name, claim_name = f"{namespace}-pv-{name}", f"pvc-{name}"
        spec = volume.spec
        if spec.csi is not None:
            spec = replaced(spec, csi=replaced(spec.csi, volume_handle=volume_name))
        if spec.aws_elastic_block_store is not None:
            spec = replaced(spec, aws_elastic_block_store=replaced(spec.aws_elastic_block_store, volume_id=volume_name))
        reference = ObjectReference(
            api_version="v1", kind="PersistentVolumeClaim", namespace=namespace, name=claim_name
        )
        volume = replaced(
            named(volume, volume_name),
            spec=replaced(spec, claim_ref=reference),
            status=replaced(volume.status, phase="Bound"),
        )
        return volume, bound(named(claim, claim_name, namespace), volume_name)

    def _admitted(self, path: str, kind: type[Any], namespace: str) -> Any:
        manifest = self._templates.source(path).manifest({})
        self._templates.num_volumes += 1
        metadata = {**manifest["metadata"], "name": f"prototype-{self._templates.num_volumes}"}
        if namespace:
            metadata["namespace"] = namespace
        prototype = self._templates.prototypes.admitted({**manifest, "metadata": metadata}, path)
        if not isinstance(prototype, kind):
            raise WorkloadError(f"{path}: this is no {kind.__name__}")
        return replaced(
            prototype,
            metadata=ObjectMeta(
                name=prototype.name, labels=prototype.labels, annotations=prototype.metadata.annotations
            ),
        )
