"""Garbage collection: deletes objects whose owners are gone, with the propagation of the owner's deletion.

An owner is gone when this cluster held it and no longer does, or holds another object of its name. An owner that was
never here (a dump of nodes and pods names ReplicaSets that it does not contain) is taken to exist elsewhere; upstream
would delete its dependents. Pods are also deleted if their node is gone, or if they were deleted before they had a
node. A deleted pod group stays while unfinished pods are in it, a deleted namespace while any object is in it.

Upstream: pkg/controller, garbagecollector/garbagecollector.go, podgc/gc_controller.go, namespace/deletion,
scheduling/podgroupprotection; pkg/controlplane/controller/systemnamespaces.
"""

import asyncio
from collections.abc import Sequence
from enum import Enum, auto
from itertools import islice
from typing import Final, final

from extender.rules.admission.admission_plugins import GROUP_FINALIZER
from extender.rules.api_resources import EVENTS, NAMESPACES, POD_GROUPS
from reprieve.cluster.controllers.cluster_view import Ref, ref_of
from reprieve.cluster.controllers.controller_loop import BURST, SETTLING, Controller, ControllerContext, Steps
from reprieve.cluster.controllers.controller_writes import (
    Create,
    Delete,
    DeleteAll,
    RequeueAfter,
    Update,
    changed_status,
    released,
    unblocking,
    without_finalizer,
)
from reprieve.cluster.controllers.observed_objects import Key, Observed, ObservedNode, ObservedOwner, ObservedPod
from reprieve.cluster.registry.conditions import with_condition
from reprieve.cluster.registry.deletion import FOREGROUND, ORPHAN


class _OwnerState(Enum):
    SOLID = auto()
    DANGLING = auto()
    WAITING = auto()
    """The owner is deleted in the foreground and waits for its dependents."""


@final
class Garbage(Controller):
    """Collects dependents and releases their owners. Keys are Refs."""

    name = "garbage collector"

    def observe(self, old: Observed | None, new: Observed | None) -> None:
        if old is not None and (new is None or old.uid != new.uid):
            for ref in self.cluster.dependents(old.uid):
                self.queue.add(ref)
            self._look_at_owners(old)
        if new is None:
            return
        if (old.owners if old is not None else ()) != new.owners:
            self.queue.add(ref_of(new))
            if old is not None:
                self._look_at_owners(old)
        if new.deleted and (FOREGROUND in new.finalizers or ORPHAN in new.finalizers):
            self.queue.add(ref_of(new))
            for ref in self.cluster.dependents(new.uid):
                self.queue.add(ref)

    def observe_pod(self, old: ObservedPod | None, new: ObservedPod | None) -> None:
        self.observe(old, new)

    def _look_at_owners(self, dependent: Observed) -> None:
        """Looks again at the owners that it had: those that wait for their dependents may have one less now."""
        for reference in dependent.owners:
            owner = self.cluster.owner(dependent, reference.api_version, reference.kind, reference.name)
            if owner is not None and owner.uid == reference.uid and owner.deleted:
                self.queue.add(ref_of(owner))

    def reconcile(self, key: Ref) -> Steps:
        obj = self.cluster.at(key)
        if obj is None:
            return
        if obj.deleted:
            if ORPHAN in obj.finalizers:
                yield from self._orphan(obj)
            elif FOREGROUND in obj.finalizers:
                yield from self._finish(obj)
            return
        yield from self._collect(obj)

    def _orphan(self, owner: Observed) -> Steps:
        dependents = list(islice(self.cluster.dependents(owner.uid).values(), BURST))
        for dependent in dependents:
            yield released(dependent, owner.uid)
        yield RequeueAfter(0) if dependents else without_finalizer(owner, ORPHAN)

    def _finish(self, owner: Observed) -> Steps:
        if not any(_blocks(dependent, owner.uid) for dependent in self.cluster.dependents(owner.uid).values()):
            yield without_finalizer(owner, FOREGROUND)

    def _collect(self, dependent: Observed) -> Steps:
        states = [(owner, self._state(dependent, owner)) for owner in dependent.owners]
        lost = [owner.uid for owner, state in states if state is not _OwnerState.SOLID]
        if not lost:
            return
        if len(lost) < len(states):
            yield released(dependent, *lost)
            return
        waiting = any(state is _OwnerState.WAITING for _, state in states)
        if waiting and any(map(_waits, self.cluster.dependents(dependent.uid).values())):
            # It may be that its owner waits for it and it for its owner.
            yield unblocking(dependent)
        if ORPHAN in dependent.finalizers:
            propagation = "Orphan"
        elif FOREGROUND in dependent.finalizers or (waiting and self.cluster.dependents(dependent.uid)):
            propagation = "Foreground"
        else:
            propagation = "Background"
        yield Delete(dependent, propagation=propagation)

    def _state(self, dependent: Observed, reference: ObservedOwner) -> _OwnerState:
        owner = self.cluster.owner(dependent, reference.api_version, reference.kind, reference.name)
        if owner is None or not reference.uid:
            return _OwnerState.DANGLING if self.cluster.is_gone(reference.uid) else _OwnerState.SOLID
        if owner.uid != reference.uid:
            return _OwnerState.DANGLING
        return _OwnerState.WAITING if _waits(owner) else _OwnerState.SOLID


def _waits(owner: Observed) -> bool:
    return bool(owner.deleted) and FOREGROUND in owner.finalizers


def _blocks(dependent: Observed, uid: str) -> bool:
    return any(owner.uid == uid and owner.block_owner_deletion for owner in dependent.owners)


QUARANTINE: Final = 40.0
"""The seconds for which a node is missing before its pods are deleted; it may register again (quarantineTime)."""


@final
class PodGarbage(Controller):
    """Deletes lost pods. Keys are ("", node) for nodes that are missing, and those of pods."""

    name = "pod garbage collector"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._missing: dict[str, float] = {}
        """The times of the loop since which nodes that have pods are missing."""

    def observe(self, old: Observed | None, new: Observed | None) -> None:
        if isinstance(new, ObservedNode):
            self._missing.pop(new.name, None)
        elif new is None and isinstance(old, ObservedNode):
            self._miss(old.name)

    def observe_pod(self, old: ObservedPod | None, new: ObservedPod | None) -> None:
        if new is None:
            return
        if not new.node:
            if new.deleted and new.grace:
                self.queue.add(new.key)
        elif new.node not in self._missing and self.cluster.node(new.node) is None:
            self._miss(new.node)

    def _miss(self, node: str) -> None:
        if self.cluster.pods_on(node):
            self._missing.setdefault(node, asyncio.get_running_loop().time())
            self.queue.add_after(("", node), QUARANTINE)

    def reconcile(self, key: Key) -> Steps:
        if key[0]:
            pod = self.cluster.pods.get(key)
            if pod is not None and pod.deleted and pod.grace and not pod.node:
                yield Delete(pod, grace=0)
            return
        since = self._missing.get(key[1])
        if since is None or self.cluster.node(key[1]) is not None:
            return
        remaining = since + QUARANTINE - asyncio.get_running_loop().time()
        if remaining > 0:
            yield RequeueAfter(remaining)
            return
        pods = [pod for pod in self.cluster.pods_on(key[1]).values() if not (pod.deleted and pod.grace == 0)]
        if not pods:
            del self._missing[key[1]]
            return
        yield from self._delete(pods[:BURST])
        yield RequeueAfter(0)

    def _delete(self, pods: Sequence[ObservedPod]) -> Steps:
        for pod in pods:
            if pod.is_finished or pod.is_victim:
                yield Delete(pod, grace=0)
                continue
            content = pod.content()
            status = dict(content.get("status") or {})
            target = {
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "DeletionByPodGC",
                "message": "PodGC: node no longer exists",
            }
            conditions = with_condition(status.get("conditions"), target, self.now())
            yield from changed_status(pod, content, {**status, "phase": "Failed", "conditions": conditions})
            yield Delete(pod, grace=0)


@final
class PodGroupProtection(Controller):
    """Removes the finalizer of deleted groups without unfinished pods. State: the unfinished pods of each group."""

    name = "pod group protection"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._members: dict[Key, set[Key]] = {}

    def observe(self, old: Observed | None, new: Observed | None) -> None:
        if new is not None and new.resource is POD_GROUPS and new.deleted:
            self.queue.add(new.key)

    def observe_pod(self, old: ObservedPod | None, new: ObservedPod | None) -> None:
        for pod in (old, new):
            if pod is None or not pod.group:
                continue
            key = (pod.namespace, pod.group)
            members = self._members.setdefault(key, set())
            if pod is new and not pod.is_finished:
                members.add(pod.key)
            else:
                members.discard(pod.key)
            if not members:
                del self._members[key]
                self.queue.add(key)

    def reconcile(self, key: Key) -> Steps:
        group = self.cluster.get(POD_GROUPS, *key)
        if group is None or not group.deleted or GROUP_FINALIZER not in group.finalizers or key in self._members:
            return
        yield without_finalizer(group, GROUP_FINALIZER)


SYSTEM_NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")
_NAMESPACE_FINALIZER: Final = "kubernetes"


@final
class Namespaces(Controller):
    """Controls namespaces. Keys are ("", namespace)."""

    name = "namespace"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._ending: set[str] = set()
        for name in SYSTEM_NAMESPACES:
            self.queue.add(("", name))

    def observe(self, old: Observed | None, new: Observed | None) -> None:
        obj = new or old
        if obj is None:
            return
        if obj.resource is NAMESPACES:
            if new is not None and new.deleted:
                self._ending.add(new.name)
                self.queue.add(new.key)
            elif new is None:
                self._ending.discard(obj.name)
                if obj.name in SYSTEM_NAMESPACES:
                    self.queue.add(obj.key)
        elif obj.namespace in self._ending:
            self.queue.add_after(("", obj.namespace), SETTLING)

    def observe_pod(self, old: ObservedPod | None, new: ObservedPod | None) -> None:
        self.observe(old, new)

    def reconcile(self, key: Key) -> Steps:
        name = key[1]
        namespace = self.cluster.get(NAMESPACES, "", name)
        if namespace is None:
            if name in SYSTEM_NAMESPACES:
                yield Create(NAMESPACES, "", {"metadata": {"name": name}})
            return
        if not namespace.deleted:
            return
        contents = self.cluster.in_namespace(name)
        doomed = list(islice((member for member in contents.values() if not member.deleted), BURST))
        for member in doomed:
            yield Delete(member)
        if doomed:
            yield RequeueAfter(0)
        if contents:
            return
        yield DeleteAll(EVENTS, name)
        content = namespace.content()
        finalizers = content["spec"].get("finalizers") or []
        if _NAMESPACE_FINALIZER in finalizers:
            content["spec"]["finalizers"] = [finalizer for finalizer in finalizers if finalizer != _NAMESPACE_FINALIZER]
            yield Update(namespace, content, "finalize")
