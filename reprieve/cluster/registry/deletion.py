"""Deletion: at once, gracefully, or when the finalizers are done.

Upstream: apiserver/pkg/registry/rest/delete.go, BeforeDelete; registry/generic/registry/store.go, Delete;
pkg/registry/core, pod/strategy.go, CheckGracefulDelete; namespace/storage/storage.go, Delete.
"""

from datetime import datetime, timedelta
from typing import Final

from extender.rules.admission import admission_plugins
from extender.rules.api_resources import EVENTS, NAMESPACES, NEW_EVENTS, PODS, REPLICATION_CONTROLLERS, Object, Resource
from extender.values.golang.times import rfc3339
from reprieve.cluster import refusals
from reprieve.cluster.store import stored_objects
from reprieve.cluster.store.object_store import ObjectStore
from reprieve.cluster.store.stored_objects import Stored

ORPHAN: Final = "orphan"
FOREGROUND: Final = "foregroundDeletion"


def delete(store: ObjectStore, resource: Resource, stored: Stored, options: Object, now: datetime) -> Object:
    """Deletes an object, or begins to; returns the answer: its last state, its present one, or a Status.

    The options are a checked metav1.DeleteOptions. Raises ApiStatus if a precondition does not hold.
    """
    admission_plugins.admit_delete(resource, stored.name)
    is_dry_run = bool(options.get("dryRun"))
    obj = stored_objects.shown(resource, stored)
    metadata = obj["metadata"]
    if resource is NAMESPACES and (shown := _begin_to_terminate(store, obj, options, now)) is not None:
        return shown
    # 1. The object must be the one that the caller means.
    _check_preconditions(resource, metadata, options)
    # 2. A pod gets its grace. A second request changes it only if it asks for less.
    grace = _grace(resource, obj, options, now)
    if grace == _PENDING:
        return _outcome(resource, obj)
    # 3. Finalizers keep the object until what they stand for has happened.
    finalizers = _finalizers(resource, metadata.get("finalizers", []), options)
    has_changed = set(finalizers) != set(metadata.get("finalizers", []))
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
    if grace is None:
        if finalizers:
            _mark(metadata, now)
            return _written(store, resource, stored, obj, is_dry_run)
        if has_changed:
            obj = _written(store, resource, stored, obj, is_dry_run)
    else:
        obj = _written(store, resource, stored, obj, is_dry_run)
        if finalizers or grace > 0:
            return obj
    # 4. Nothing keeps the object.
    if is_dry_run:
        return _outcome(resource, obj)
    metadata["resourceVersion"] = str(store.remove(resource, stored.namespace, stored.name).resource_version)
    return _outcome(resource, obj)


def _written(store: ObjectStore, resource: Resource, stored: Stored, obj: Object, is_dry_run: bool) -> Object:
    if not is_dry_run and stored_objects.differs(resource, stored, obj):
        store.put(resource, stored.namespace, stored.name, stored_objects.stored_form(resource, obj))
    return obj


def _outcome(resource: Resource, obj: Object) -> Object:
    if resource.returns_deleted:
        return obj
    metadata = obj["metadata"]
    details = {"name": metadata["name"], "group": resource.group, "kind": resource.plural, "uid": metadata["uid"]}
    return refusals.success(200, details)


def _check_preconditions(resource: Resource, metadata: Object, options: Object) -> None:
    wanted = options.get("preconditions") or {}
    for name, word, doubt in (
        ("uid", "UID", "deleted and then recreated"),
        ("resourceVersion", "ResourceVersion", "modified"),
    ):
        given, found = wanted.get(name), metadata[name]
        if given is not None and given != found:
            why = (
                f"the {word} in the precondition ({given}) does not match the {word} in record ({found}). "
                f"The object might have been {doubt}"
            )
            raise refusals.conflict(resource, metadata["name"], why, kind=resource.kind)


_PENDING: Final = -1


def _grace(resource: Resource, obj: Object, options: Object, now: datetime) -> int | None:
    """Returns the seconds of grace, and notes them in the metadata; None if this kind or state has no grace.

    _PENDING stands for an object that is being deleted already, and no sooner for this request.
    """
    metadata, asked = obj["metadata"], options.get("gracePeriodSeconds")
    if resource is not PODS:
        return None
    if "deletionTimestamp" in metadata:
        left = metadata.get("deletionGracePeriodSeconds")
        if not left:
            return None
        left = max(left, 1)
        if asked is None or asked >= left:
            return _PENDING
        # Only a shorter grace is granted, counted from when the deletion was asked for.
        moment = datetime.fromisoformat(metadata["deletionTimestamp"]) + timedelta(seconds=asked - left)
        if moment < now:
            moment, asked = now, 1 if asked else 0
        metadata["deletionTimestamp"], metadata["deletionGracePeriodSeconds"] = rfc3339(moment), asked
        return int(asked)
    grace = _pod_grace(obj, asked)
    metadata["deletionTimestamp"] = rfc3339(now + timedelta(seconds=grace))
    metadata["deletionGracePeriodSeconds"] = grace
    if metadata.get("generation"):
        metadata["generation"] += 1
    return grace


def _pod_grace(pod: Object, asked: int | None) -> int:
    spec = pod.get("spec") or {}
    if not spec.get("nodeName") or (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
        return 0
    grace = (spec.get("terminationGracePeriodSeconds") or 0) if asked is None else asked
    return 1 if grace < 0 else int(grace)


def _finalizers(resource: Resource, present: list[str], options: Object) -> list[str]:
    """The finalizers, with the one that tells the garbage collector what to do with dependents."""
    kept = [each for each in present if each not in (ORPHAN, FOREGROUND)]
    if resource in (EVENTS, NEW_EVENTS):
        return kept
    if options.get("orphanDependents") is not None:
        return [*kept, ORPHAN] if options["orphanDependents"] else kept
    policy = options.get("propagationPolicy")
    if policy is not None:
        return kept + {"Orphan": [ORPHAN], "Foreground": [FOREGROUND]}.get(policy, [])
    said = [each for each in present if each in (ORPHAN, FOREGROUND)]
    if said:
        return [*kept, said[0]]
    return [*kept, ORPHAN] if resource is REPLICATION_CONTROLLERS else kept


def _mark(metadata: Object, now: datetime) -> None:
    """Upstream: markAsDeleting."""
    given = metadata.get("deletionTimestamp")
    if given is None and metadata.get("generation"):
        metadata["generation"] += 1
    if given is None or datetime.fromisoformat(given) > now:
        metadata["deletionTimestamp"] = rfc3339(now)
    metadata["deletionGracePeriodSeconds"] = 0


def _begin_to_terminate(store: ObjectStore, namespace: Object, options: Object, now: datetime) -> Object | None:
    """The answer while a namespace waits for its finalizers, its own and those of its spec; None once they are done."""
    metadata = namespace["metadata"]
    _check_preconditions(NAMESPACES, metadata, options)
    if "deletionTimestamp" in metadata:
        return namespace if namespace["spec"].get("finalizers") else None
    metadata["deletionTimestamp"] = rfc3339(now)
    namespace["status"]["phase"] = "Terminating"
    finalizers = _finalizers(NAMESPACES, metadata.get("finalizers", []), options)
    if finalizers:
        metadata["finalizers"] = finalizers
    if not options.get("dryRun"):
        store.put(NAMESPACES, "", metadata["name"], namespace)
    return namespace
