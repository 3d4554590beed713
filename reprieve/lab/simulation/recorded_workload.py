"""The pods of a recording, with the nodes, objects and times that they had.

What came from outside is played: nodes and objects, and pods that arrived, were deleted or ended. What the scheduler
did is not, nor what followed from it: where pods went, who was evicted, which volumes and devices they got.
"""

import math
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

from extender.values.config.configuration import ConfigErrors
from extender.values.objects.decoding import DecodeError, replaced
from extender.values.objects.devices import ResourceClaim, ResourceClaimStatus
from extender.values.objects.meta import HasMetadata
from extender.values.objects.pod import Pod, PodStatus
from extender.values.objects.storage import PersistentVolume, PersistentVolumeClaim
from extender.values.reasons import in_one_line
from reprieve.lab import limits
from reprieve.lab.recordings.entries import (
    ObjectGone,
    ObjectPut,
    Ready,
    RecordedAttempt,
    Recording,
    RecordingError,
    RecordingStarted,
    key_of,
    object_of,
)
from reprieve.lab.simulation.scene import Scene
from reprieve.lab.simulation.sent_files import SentFiles
from reprieve.lab.simulation.simulated_cluster import Lifetime
from reprieve.lab.simulation.workload import Workload, WorkloadError

_OF_SCHEDULING: Final = (ResourceClaim, PersistentVolume, PersistentVolumeClaim)
"""Kinds whose objects change because pods are scheduled."""


@final
@dataclass(slots=True)
class _RecordedLife:
    """What became of a pod in the recording."""

    arrived: float | None = None
    """When it was first seen without a node."""
    bound: float | None = None
    ended: float | None = None
    is_evicted: bool = False
    is_deleted: bool = False
    """Whether it was deleted before it was gone; a pod that ended by itself was not."""


@final
class RecordedWorkload(Workload):
    """A recording that is played. Making it raises WorkloadError if the file is none."""

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self._path, self._files = path, SentFiles([path])
        self._from, self._until = 0.0, math.inf
        self._open()

    def _open(self) -> None:
        try:
            self._recording = Recording(self._files.at(self._path))
            self.own_configuration = self._recording.configuration
        except (RecordingError, ConfigErrors) as exc:
            raise WorkloadError(in_one_line(exc)) from exc

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_recording", "own_configuration")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._open()

    def half(self, *, is_later: bool) -> Workload:
        """Returns the time until half of the pods had arrived, or the time from then on: what ran then, runs."""
        try:
            lives, ready = self._lives()
        except RecordingError as exc:
            raise WorkloadError(f"{self.name}: {exc}") from exc
        arrivals = sorted(life.arrived for life in lives.values() if life.arrived is not None)
        if arrivals and not any(life.ended and life.arrived is not None for life in lives.values()):
            raise WorkloadError(
                f"{self.name}: no pod that arrives in it ends, so that it does not say how long pods run: give a "
                "longer recording, or a dump of the cluster, whose pods are placed anew"
            )
        middle = max(arrivals[len(arrivals) // 2], ready) if arrivals else ready
        half = copy(self)
        half.name = f"{self.name}, {'from' if is_later else 'until'} {middle:g} s"
        half._from, half._until = (middle, math.inf) if is_later else (0.0, middle)
        return half

    async def play(self, scene: Scene) -> None:
        try:
            lives, ready = self._lives()
            began = max(ready, self._from)
            scene.expect_pods(
                sum(
                    life.arrived is not None and began <= max(life.arrived, ready) < self._until
                    for life in lives.values()
                )
            )
            await _Playing(scene, lives, began, self._until).play(self._recording)
        except (RecordingError, DecodeError) as exc:
            raise WorkloadError(f"{self.name}: {exc}") from exc

    def _lives(self) -> tuple[dict[str, _RecordedLife], float]:
        """Returns the life of each pod by UID, and the time of the first decision."""
        lives: dict[str, _RecordedLife] = {}
        names: dict[tuple[str, str, str], str] = {}
        ready: float | None = None
        for entry in self._recording.entries():
            match entry:
                case ObjectPut(kind="Pod"):
                    meta, spec = entry.object.get("metadata", {}), entry.object.get("spec", {})
                    uid = names[key_of("Pod", meta.get("namespace", ""), meta.get("name", ""))] = meta.get("uid", "")
                    life = lives.setdefault(uid, _RecordedLife())
                    life.is_deleted |= bool(meta.get("deletionTimestamp"))
                    if not spec.get("nodeName"):
                        life.arrived = entry.seconds if life.arrived is None else life.arrived
                    elif life.bound is None:
                        life.bound = entry.seconds
                    if len(lives) > limits.WORKLOAD_PODS:
                        raise WorkloadError(f"{self.name}: more than {limits.WORKLOAD_PODS} pods")
                case ObjectGone(kind="Pod"):
                    uid = names.get(key_of("Pod", entry.namespace, entry.name), "")
                    lives.setdefault(uid, _RecordedLife()).ended = entry.seconds
                case RecordedAttempt():
                    ready = entry.seconds if ready is None else ready
                    for uid in entry.victims if entry.seconds >= self._from else ():
                        lives.setdefault(uid, _RecordedLife()).is_evicted = True
        return lives, ready or 0.0


@final
class _Playing:
    """State: the objects of the recording by name, the arriving pods, and those that had a node at first."""

    def __init__(self, scene: Scene, lives: dict[str, _RecordedLife], began: float, until: float) -> None:
        self._scene = scene
        self._lives = lives
        self._began = began
        self._until = until
        self._objects: dict[tuple[str, str, str], HasMetadata] = {}
        self._waiting: dict[str, Pod] = {}
        self._placed_before: set[str] = set()

    async def play(self, recording: Recording) -> None:
        for entry in recording.entries():
            if isinstance(entry, RecordingStarted | Ready):
                continue
            if entry.seconds >= self._until:
                break
            if entry.seconds >= self._began:
                # Whatever was known before the first attempt was there from the beginning.
                self._arrive()
                await self._scene.sleep_until(entry.seconds - self._began)
            if isinstance(entry, ObjectPut):
                obj = object_of(entry)
                if obj is not None:
                    self._put(key_of(entry.kind, obj.metadata.namespace, obj.metadata.name), obj)
            elif isinstance(entry, ObjectGone):
                self._gone(key_of(entry.kind, entry.namespace, entry.name))
        self._arrive()

    def _arrive(self) -> None:
        """Lets pods arrive that were there before anything was decided, once nodes and objects are."""
        waiting, self._waiting = self._waiting, {}
        for pod in waiting.values():
            self._create(pod)

    def _create(self, pod: Pod) -> None:
        life = self._lives[pod.uid]
        ran = None
        if life.ended is not None and life.bound is not None and not (life.is_deleted or life.is_evicted):
            ran = life.ended - life.bound
        metadata = replaced(pod.metadata, deletion_timestamp=None)
        fresh = replaced(pod, metadata=metadata, status=PodStatus(phase="Pending"))
        self._scene.create_pods([fresh], Lifetime(runs_for=ran))

    def _put(self, key: tuple[str, str, str], new: HasMetadata) -> None:
        old = self._objects.get(key)
        self._objects[key] = new
        if isinstance(new, Pod):
            self._pod_put(old if isinstance(old, Pod) else None, new)
        elif not isinstance(new, _OF_SCHEDULING) or self._scene.now() == 0:
            self._scene.put(new)
        elif old is None and not (isinstance(new, PersistentVolume) and new.spec.claim_ref is not None):
            self._scene.put(replaced(new, status=ResourceClaimStatus()) if isinstance(new, ResourceClaim) else new)

    def _pod_put(self, old: Pod | None, new: Pod) -> None:
        cluster = self._scene.cluster
        if old is None or old.uid != new.uid:
            if old is not None:
                cluster.remove(old)
            if new.spec.node_name:
                self._placed_before.add(new.uid)
                cluster.put(new)
            elif self._scene.now() == 0:
                self._waiting[new.uid] = new
            else:
                self._create(new)
            return
        if new.uid in self._waiting:
            self._waiting[new.uid] = new
            if new.spec.node_name:
                self._placed_before.add(new.uid)
                cluster.put(self._waiting.pop(new.uid))
            return
        current = cluster.find(Pod, new.name, new.namespace)
        if current is None or current.uid != new.uid:
            return
        if new.is_terminating and not old.is_terminating:
            if not self._lives[new.uid].is_evicted:
                metadata = replaced(current.metadata, deletion_timestamp=new.metadata.deletion_timestamp)
                cluster.put(replaced(current, metadata=metadata))
        elif current.spec.node_name:
            return
        elif new.labels != old.labels or new.spec.scheduling_gates != old.spec.scheduling_gates:
            spec = replaced(current.spec, scheduling_gates=new.spec.scheduling_gates)
            cluster.put(replaced(current, metadata=replaced(current.metadata, labels=new.labels), spec=spec))

    def _gone(self, key: tuple[str, str, str]) -> None:
        old = self._objects.pop(key, None)
        if not isinstance(old, Pod):
            if old is not None:
                self._scene.cluster.remove(old)
            return
        life, current = self._lives[old.uid], self._scene.cluster.find(Pod, old.name, old.namespace)
        self._waiting.pop(old.uid, None)
        # One that ended by itself runs as long as it did, from when it gets a node now.
        ends_by_itself = life.bound is not None and not life.is_deleted and old.uid not in self._placed_before
        if current is not None and current.uid == old.uid and not life.is_evicted and not ends_by_itself:
            self._scene.cluster.remove(current)
