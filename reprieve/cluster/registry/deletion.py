"""Deletes objects: at once, after a grace period, or when the finalizers are done.

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
    """Deletes an object, or marks it as being deleted; returns its last state, its present one, or a Status.

    The options are a checked metav1.DeleteOptions. Raises ApiStatus if a precondition does not hold.
    """
    admission_plugins.admit_delete(resource, stored.name)
    is_dry_run = bool(options.get("dryRun"))
    obj = stored_objects.shown(resource, stored)
    metadata = obj["metadata"]
    if resource is NAMESPACES and (namespace := _begin_to_terminate(store, obj, options, now)) is not None:
        return namespace
    # 1. The object must be the one that the caller means.
    _check_preconditions(resource, metadata, options)
    # 2. A pod gets its grace. A second request changes it only if it asks for less.
    grace = _grace(resource, obj, options, now)
    if grace == _PENDING:
        return _outcome(resource, obj)
    # 3. Finalizers keep the object until their owners have removed them.
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
    preconditions = options.get("preconditions") or {}
    for name, word, doubt in (
        ("uid", "UID", "deleted and then recreated"),
        ("resourceVersion", "ResourceVersion", "modified"),
    ):
        expected, actual = preconditions.get(name), metadata[name]
        if expected is not None and expected != actual:
            why = (
                f"the {word} in the precondition ({expected}) does not match the {word} in record ({actual}). "
                f"The object might have been {doubt}"
            )
            raise refusals.conflict(resource, metadata["name"], why, kind=resource.kind)


_PENDING: Final = -1


def _grace(resource: Resource, obj: Object, options: Object, now: datetime) -> int | None:
    """Returns the seconds of grace, and writes them into the metadata; None if this kind or state has no grace.

    Returns _PENDING if the object is already being deleted and this request does not make it sooner.
    """
    metadata, seconds = obj["metadata"], options.get("gracePeriodSeconds")
    if resource is not PODS:
        return None
    if "deletionTimestamp" in metadata:
        remaining = metadata.get("deletionGracePeriodSeconds")
        if not remaining:
            return None
        remaining = max(remaining, 1)
        if seconds is None or seconds >= remaining:
            return _PENDING
        # Only a shorter grace is granted, counted from the first request.
        moment = datetime.fromisoformat(metadata["deletionTimestamp"]) + timedelta(seconds=seconds - remaining)
        if moment < now:
            moment, seconds = now, 1 if seconds else 0
        metadata["deletionTimestamp"], metadata["deletionGracePeriodSeconds"] = rfc3339(moment), seconds
        return int(seconds)
    grace = _pod_grace(obj, seconds)
    metadata["deletionTimestamp"] = rfc3339(now + timedelta(seconds=grace))
    metadata["deletionGracePeriodSeconds"] = grace
    if metadata.get("generation"):
        metadata["generation"] += 1
    return grace


def _pod_grace(pod: Object, seconds: int | None) -> int:
    spec = pod.get("spec") or {}
    if not spec.get("nodeName") or (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
        return 0
    grace = (spec.get("terminationGracePeriodSeconds") or 0) if seconds is None else seconds
    return 1 if grace < 0 else int(grace)


def _finalizers(resource: Resource, present: list[str], options: Object) -> list[str]:
    """Returns the finalizers, with the one that tells the garbage collector what to do with dependents."""
    remaining = [finalizer for finalizer in present if finalizer not in (ORPHAN, FOREGROUND)]
    if resource in (EVENTS, NEW_EVENTS):
        return remaining
    if options.get("orphanDependents") is not None:
        return [*remaining, ORPHAN] if options["orphanDependents"] else remaining
    policy = options.get("propagationPolicy")
    if policy is not None:
        return remaining + {"Orphan": [ORPHAN], "Foreground": [FOREGROUND]}.get(policy, [])
    policies = [finalizer for finalizer in present if finalizer in (ORPHAN, FOREGROUND)]
    if policies:
        return [*remaining, policies[0]]
    return [*remaining, ORPHAN] if resource is REPLICATION_CONTROLLERS else remaining


def _mark(metadata: Object, now: datetime) -> None:
    """Upstream: markAsDeleting."""
    deadline = metadata.get("deletionTimestamp")
    if deadline is None and metadata.get("generation"):
        metadata["generation"] += 1
    if deadline is None or datetime.fromisoformat(deadline) > now:
        metadata["deletionTimestamp"] = rfc3339(now)
    metadata["deletionGracePeriodSeconds"] = 0


def _begin_to_terminate(store: ObjectStore, namespace: Object, options: Object, now: datetime) -> Object | None:
    """Returns the namespace while finalizers of its metadata or spec are left; None once they are done."""
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
