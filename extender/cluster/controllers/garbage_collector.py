"""Garbage collection: objects whose owners are gone are deleted, in the way that the deletion of the owner asked for.

An owner is gone when this cluster has held it and does not any more, or holds another object of its name. An owner that
was never here (a dump of nodes and pods names ReplicaSets that it does not contain) is taken to exist elsewhere;
upstream would delete its dependents.

Upstream: pkg/controller/garbagecollector/garbagecollector.go (v1.36.2).
"""

from collections.abc import Sequence
from enum import Enum, auto
from itertools import islice
from typing import Final, final

from extender.cluster.api_resources import RESOURCES
from extender.cluster.controllers.cluster_view import Ref, ref_of
from extender.cluster.controllers.controller_loop import BURST, Controller, Steps
from extender.cluster.controllers.controller_writes import Delete, RequeueAfter, Update, released
from extender.cluster.controllers.observed_objects import Observed, ObservedOwner, ObservedPod

FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"
_BY_STORAGE: Final = {each.stored_as: each for each in RESOURCES}


class _OwnerState(Enum):
    SOLID = auto()
    DANGLING = auto()
    WAITING = auto()
    """The owner is deleted in the foreground and waits for its dependents."""


@final
class Garbage(Controller):
    """Collects objects that own or are owned. Keys are Refs."""

    name = "garbage collector"

    def observe(self, old: Observed | None, new: Observed | None) -> None:
        if new is None:
            if old is not None:
                self._look_around(old)
            return
        if old is not None and old.uid != new.uid:
            self._look_around(old)
        if new.owners and (old is None or old.owners != new.owners):
            self.queue.add(ref_of(new))
        if new.deleted and (FOREGROUND in new.finalizers or ORPHAN in new.finalizers):
            self.queue.add(ref_of(new))
            for ref in self.cluster.dependents(new.uid):
                self.queue.add(ref)

    def observe_pod(self, old: ObservedPod | None, new: ObservedPod | None) -> None:
        self.observe(old, new)

    def _look_around(self, gone: Observed) -> None:
        for ref in self.cluster.dependents(gone.uid):
            self.queue.add(ref)
        # An owner that waits for its dependents has one less.
        for owner in gone.owners:
            seen = self.cluster.owner(gone, owner.api_version, owner.kind, owner.name)
            if seen is not None and seen.uid == owner.uid and seen.deleted:
                self.queue.add(ref_of(seen))

    def reconcile(self, key: Ref) -> Steps:
        resource = _BY_STORAGE[key[0]]
        seen = self.cluster.get(resource, key[1], key[2])
        if seen is None:
            return
        if seen.deleted:
            if ORPHAN in seen.finalizers:
                yield from self._orphan(seen)
            elif FOREGROUND in seen.finalizers:
                yield from self._finish(seen)
            return
        yield from self._collect(seen)

    def _orphan(self, seen: Observed) -> Steps:
        dependents = list(islice(self.cluster.dependents(seen.uid).values(), BURST))
        for dependent in dependents:
            yield released(dependent, seen.uid)
        yield RequeueAfter(0) if dependents else _without_finalizer(seen, ORPHAN)

    def _finish(self, seen: Observed) -> Steps:
        dependents = list(self.cluster.dependents(seen.uid).values())
        if not any(_blocks(each, seen.uid) for each in dependents):
            yield _without_finalizer(seen, FOREGROUND)
            return
        for each in dependents:
            if not each.deleted:
                self.queue.add(ref_of(each))

    def _collect(self, seen: Observed) -> Steps:
        states = [(owner, self._state(seen, owner)) for owner in seen.owners]
        lost = [owner.uid for owner, state in states if state is not _OwnerState.SOLID]
        if not lost:
            return
        if len(lost) < len(states):
            yield released(seen, *lost)
            return
        waiting = any(state is _OwnerState.WAITING for _, state in states)
        if ORPHAN in seen.finalizers:
            propagation = "Orphan"
        elif FOREGROUND in seen.finalizers or (waiting and self.cluster.dependents(seen.uid)):
            propagation = "Foreground"
        else:
            propagation = "Background"
        yield Delete(seen, propagation=propagation)

    def _state(self, seen: Observed, owner: ObservedOwner) -> _OwnerState:
        there = self.cluster.owner(seen, owner.api_version, owner.kind, owner.name)
        if there is None or not owner.uid:
            return _OwnerState.DANGLING if self.cluster.is_gone(owner.uid) else _OwnerState.SOLID
        if there.uid != owner.uid:
            return _OwnerState.DANGLING
        return _OwnerState.WAITING if there.deleted and FOREGROUND in there.finalizers else _OwnerState.SOLID


def _blocks(dependent: Observed, uid: str) -> bool:
    return any(owner.uid == uid and owner.block_owner_deletion for owner in dependent.owners)


def _without_finalizer(seen: Observed, finalizer: str) -> Update:
    content = seen.content()
    kept: Sequence[str] = [each for each in content["metadata"].get("finalizers") or () if each != finalizer]
    content["metadata"]["finalizers"] = kept
    return Update(seen, content)
