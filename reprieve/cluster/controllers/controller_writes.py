"""The writes that controllers ask for, as values, and the function that performs them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from extender.rules.api_resources import Object, Resource
from extender.rules.statuses import ApiStatus
from extender.values.workloads.templates import controller_reference
from reprieve.cluster.controllers.observed_objects import Observed
from reprieve.cluster.registry.object_registry import ObjectRegistry
from reprieve.cluster.requests.request_options import WriteOptions


@final
@dataclass(frozen=True, slots=True)
class Create:
    """Creates an object with a name or a generateName."""

    resource: Resource
    namespace: str
    obj: Object


@final
@dataclass(frozen=True, slots=True)
class Update:
    """Replaces an object; it fails if the object has changed since it was seen."""

    seen: Observed
    obj: Object
    subresource: str = ""


@final
@dataclass(frozen=True, slots=True)
class Report:
    """Replaces an object without validation and managedFields: ten times cheaper, and needed for every bound pod."""

    seen: Observed
    obj: Object


@final
@dataclass(frozen=True, slots=True)
class Delete:
    """Deletes this object, but not another one of the same name; after `grace` seconds, or as long as it asks for."""

    seen: Observed
    grace: int | None = None
    propagation: str = "Background"


@final
@dataclass(frozen=True, slots=True)
class DeleteAll:
    """Deletes every object of a namespace, of a resource that controllers do not follow."""

    resource: Resource
    namespace: str


@final
@dataclass(frozen=True, slots=True)
class RequeueAfter:
    """Writes nothing; the key is looked at again after this time."""

    seconds: float


Write = Create | Update | Report | Delete | DeleteAll
Step = Write | RequeueAfter


def perform(registry: ObjectRegistry, write: Write, author: str) -> None:
    """Performs a write; an object to be deleted may be gone already. Raises ApiStatus if the API refuses."""
    match write:
        case Create(resource, namespace, obj):
            registry.create(resource, namespace, obj, WriteOptions(manager=author))
        case Update(seen, obj, subresource):
            options = WriteOptions(manager=author)
            registry.update(seen.resource, seen.namespace, seen.name, obj, options, subresource=subresource)
        case Report(seen, obj):
            registry.report(seen.resource, seen.namespace, seen.name, obj)
        case Delete(seen, grace, propagation):
            _delete(registry, seen, grace, propagation)
        case DeleteAll(resource, namespace):
            for stored in registry.store.read(resource, namespace):
                registry.delete(resource, stored.namespace, stored.name)


def _delete(registry: ObjectRegistry, seen: Observed, grace: int | None, propagation: str) -> None:
    options: Object = {"preconditions": {"uid": seen.uid}, "propagationPolicy": propagation}
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    try:
        registry.delete(seen.resource, seen.namespace, seen.name, options)
    except ApiStatus as refusal:
        if refusal.code != 404:
            raise


def adopted(seen: Observed, owner: Observed) -> Update:
    """Returns the write that makes an object belong to this owner."""
    content = seen.content()
    references = [each for each in content["metadata"].get("ownerReferences") or () if each.get("uid") != owner.uid]
    content["metadata"]["ownerReferences"] = [*references, controller_reference(owner.content())]
    return Update(seen, content)


def released(seen: Observed, *uids: str) -> Update:
    """Returns the write that removes the references to these owners."""
    content = seen.content()
    references = [each for each in content["metadata"].get("ownerReferences") or () if each.get("uid") not in uids]
    if references:
        content["metadata"]["ownerReferences"] = references
    else:
        content["metadata"].pop("ownerReferences", None)
    return Update(seen, content)


def without_finalizer(seen: Observed, finalizer: str) -> Update:
    content = seen.content()
    finalizers = content["metadata"].get("finalizers") or ()
    content["metadata"]["finalizers"] = [each for each in finalizers if each != finalizer]
    return Update(seen, content)


def changed_status(seen: Observed, content: Object, status: Object) -> Iterator[Update]:
    """Yields the write of a status, unless the object has it already."""
    if status != (content.get("status") or {}):
        yield Update(seen, content | {"status": status}, "status")
