"""The binding of claims to volumes, and the provisioning of volumes.

There is no storage: a volume of any provisioner is ready at once, and is deleted as its reclaim policy says.

Upstream: pkg/controller/volume/persistentvolume/pv_controller.go.
"""

import bisect
from collections.abc import Iterator, Sequence
from typing import Final, final

from extender.rules.api_resources import (
    CSI_NODES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    Object,
    Resource,
)
from extender.values.objects.claims import (
    BIND_COMPLETED_ANNOTATION,
    BOUND_BY_CONTROLLER_ANNOTATION,
    NO_PROVISIONER,
    SELECTED_NODE_ANNOTATION,
)
from extender.values.workloads.volumes import (
    YES,
    annotated,
    annotations_of,
    bound_claim,
    class_of,
    fits,
    is_for,
    may_hold,
    offered_bytes,
    provisioned,
    waits_for_consumer,
    wanted_bytes,
)
from reprieve.cluster.controllers.controller_loop import SETTLING, Controller, ControllerContext, Steps
from reprieve.cluster.controllers.controller_writes import Create, Delete, Update, changed_status
from reprieve.cluster.controllers.observed_objects import Key, Observed

_CLASS: Final = "/class"
"""The namespace in the keys of classes; no real namespace has such a name."""

_STORAGE_PROVISIONER: Final = "volume.kubernetes.io/storage-provisioner"


@final
class _FreeVolumes:
    """The volumes without a claim, by class and size, and the volumes reserved for claims."""

    def __init__(self) -> None:
        self._by_class: dict[str, list[tuple[int, str]]] = {}
        self._places: dict[str, tuple[str, int]] = {}
        self._reserved: dict[Key, dict[str, None]] = {}
        self._reserved_for: dict[str, Key] = {}

    def put(self, volume: Object) -> None:
        name = volume["metadata"]["name"]
        self.remove(name)
        reference = volume["spec"].get("claimRef")
        if reference:
            key = (reference.get("namespace", ""), reference.get("name", ""))
            self._reserved.setdefault(key, {})[name] = None
            self._reserved_for[name] = key
        elif not volume["metadata"].get("deletionTimestamp"):
            place = class_of(volume), offered_bytes(volume)
            bisect.insort(self._by_class.setdefault(place[0], []), (place[1], name))
            self._places[name] = place

    def remove(self, name: str) -> None:
        place = self._places.pop(name, None)
        if place is not None:
            volumes = self._by_class[place[0]]
            del volumes[bisect.bisect_left(volumes, (place[1], name))]
        key = self._reserved_for.pop(name, None)
        if key is not None:
            del self._reserved[key][name]
            if not self._reserved[key]:
                del self._reserved[key]

    def reserved(self, key: Key) -> Sequence[str]:
        """Returns the volumes whose claimRef names this claim."""
        return list(self._reserved.get(key, ()))

    def large_enough(self, storage_class: str, size: int) -> Iterator[str]:
        """Yields free volumes of the class, the smallest first."""
        volumes = self._by_class.get(storage_class, [])
        for _, name in volumes[bisect.bisect_left(volumes, (size, "")) :]:
            yield name


@final
class Volumes(Controller):
    """Binds volumes and claims. Keys are ("", volume), those of claims, and (_CLASS, class) for a class's claims."""

    name = "persistent volume binder"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._free: Final = _FreeVolumes()
        self._unbound: dict[str, dict[Key, None]] = {}
        """The claims without a volume, by class."""

    def observe(self, old: Observed | None, new: Observed | None) -> None:
        obj = new or old
        if obj is None:
            return
        if obj.resource is PERSISTENT_VOLUMES:
            self._observe_volume(old, new)
        elif obj.resource is PERSISTENT_VOLUME_CLAIMS:
            if old is not None:
                self._unbound.get(class_of(old.content()), {}).pop(old.key, None)
                for name in (old.content()["spec"].get("volumeName"), *self._free.reserved(old.key)):
                    if name:
                        self.queue.add(("", name))
            if new is not None:
                content = new.content()
                if not content["spec"].get("volumeName"):
                    self._unbound.setdefault(class_of(content), {})[new.key] = None
                self.queue.add(new.key)
        elif obj.resource is STORAGE_CLASSES:
            self.queue.add_after((_CLASS, obj.name), SETTLING)

    def _observe_volume(self, old: Observed | None, new: Observed | None) -> None:
        if new is None:
            if old is not None:
                self._free.remove(old.name)
                self._claim_of(old.content())
            return
        content = new.content()
        self._free.put(content)
        self.queue.add(new.key)
        if not self._claim_of(content):
            self.queue.add_after((_CLASS, class_of(content)), SETTLING)

    def _claim_of(self, volume: Object) -> bool:
        reference = volume["spec"].get("claimRef")
        if reference:
            self.queue.add((reference.get("namespace", ""), reference.get("name", "")))
        return bool(reference)

    def reconcile(self, key: Key) -> Steps:
        if key[0] == _CLASS:
            for claim in self._unbound.get(key[1], ()):
                self.queue.add(claim)
        elif key[0]:
            observed_claim = self.cluster.get(PERSISTENT_VOLUME_CLAIMS, *key)
            if observed_claim is not None and not observed_claim.deleted:
                yield from self._sync_claim(observed_claim, observed_claim.content())
        else:
            observed_volume = self.cluster.get(PERSISTENT_VOLUMES, *key)
            if observed_volume is not None and not observed_volume.deleted:
                yield from self._sync_volume(observed_volume, observed_volume.content())

    def _sync_volume(self, observed_volume: Observed, volume: Object) -> Steps:
        reference = volume["spec"].get("claimRef") or {}
        phase = "Available"
        if reference.get("uid"):
            claim = self.cluster.get(
                PERSISTENT_VOLUME_CLAIMS, reference.get("namespace", ""), reference.get("name", "")
            )
            lost = claim is None or claim.uid != reference["uid"]
            phase = "Released" if lost else "Bound"
            if lost and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
                yield Delete(observed_volume)
                return
        yield from _with_phase(observed_volume, volume, phase)

    def _sync_claim(self, observed_claim: Observed, claim: Object) -> Steps:
        name = claim["spec"].get("volumeName")
        if name:
            yield from self._bind(observed_claim, claim, name)
            return
        storage_class = self._content(STORAGE_CLASSES, class_of(claim))
        waits = waits_for_consumer(storage_class)
        volume_name = next(self._matching(claim, only_reserved=waits), None)
        if volume_name is not None:
            yield from self._bind(observed_claim, claim, volume_name)
            return
        may_provision = storage_class is not None and storage_class.get("provisioner") != NO_PROVISIONER
        selected = annotations_of(claim).get(SELECTED_NODE_ANNOTATION)
        if storage_class is not None and may_provision and (selected or not waits):
            yield from self._provision(observed_claim, claim, storage_class, selected)
        else:
            yield from _with_phase(observed_claim, claim, "Pending")

    def _matching(self, claim: Object, *, only_reserved: bool) -> Iterator[str]:
        for name in self._free.reserved((claim["metadata"]["namespace"], claim["metadata"]["name"])):
            volume = self._content(PERSISTENT_VOLUMES, name)
            if volume is not None and is_for(volume, claim) and may_hold(volume, claim):
                yield name
        if not only_reserved:
            for name in self._free.large_enough(class_of(claim), wanted_bytes(claim)):
                volume = self._content(PERSISTENT_VOLUMES, name)
                if volume is not None and fits(volume, claim):
                    yield name

    def _provision(self, observed_claim: Observed, claim: Object, storage_class: Object, selected: str | None) -> Steps:
        provisioner = storage_class["provisioner"]
        if annotations_of(claim).get(_STORAGE_PROVISIONER) != provisioner:
            annotations = {**annotations_of(claim), _STORAGE_PROVISIONER: provisioner}
            yield Update(observed_claim, {**claim, "metadata": {**claim["metadata"], "annotations": annotations}})
            return
        node = self._content(NODES, selected) if selected else None
        drivers = (self._content(CSI_NODES, selected) or {}).get("spec", {}).get("drivers") if selected else None
        keys = next((driver.get("topologyKeys") for driver in drivers or () if driver.get("name") == provisioner), None)
        yield Create(PERSISTENT_VOLUMES, "", provisioned(claim, storage_class, node, keys or ()))

    def _bind(self, observed_claim: Observed, claim: Object, name: str) -> Steps:
        """Yields the next step of a binding: the volume's claimRef, the claim's volumeName, or its status (bind)."""
        observed_volume = self.cluster.get(PERSISTENT_VOLUMES, "", name)
        volume = observed_volume.content() if observed_volume is not None else None
        free = volume is not None and not volume["spec"].get("claimRef")
        if observed_volume is None or volume is None or not (free or is_for(volume, claim)):
            was_bound = BIND_COMPLETED_ANNOTATION in annotations_of(claim)
            yield from _with_phase(observed_claim, claim, "Lost" if was_bound else "Pending")
        elif free or not volume["spec"]["claimRef"].get("uid"):
            yield Update(observed_volume, _bound_volume(volume, claim))
        elif claim["spec"].get("volumeName") != name or BIND_COMPLETED_ANNOTATION not in annotations_of(claim):
            yield Update(observed_claim, bound_claim(claim, volume))
        else:
            yield from changed_status(observed_claim, claim, _bound_claim_status(claim, volume))

    def _content(self, resource: Resource, name: str) -> Object | None:
        obj = self.cluster.get(resource, "", name)
        return obj.content() if obj is not None else None


def _with_phase(obj: Observed, content: Object, phase: str) -> Steps:
    yield from changed_status(obj, content, {**(content.get("status") or {}), "phase": phase})


def _bound_volume(volume: Object, claim: Object) -> Object:
    spec, metadata = dict(volume["spec"]), claim["metadata"]
    ours = not spec.get("claimRef")
    spec["claimRef"] = {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "resourceVersion": metadata["resourceVersion"],
    }
    return annotated(volume, {BOUND_BY_CONTROLLER_ANNOTATION: YES} if ours else {}) | {"spec": spec}


def _bound_claim_status(claim: Object, volume: Object) -> Object:
    spec = volume["spec"]
    return {
        **(claim.get("status") or {}),
        "phase": "Bound",
        **({"accessModes": spec["accessModes"]} if spec.get("accessModes") else {}),
        **({"capacity": spec["capacity"]} if spec.get("capacity") else {}),
    }
