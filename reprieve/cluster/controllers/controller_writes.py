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
    """Replaces an object; it fails if the object has changed since it was observed."""

    target: Observed
    obj: Object
    subresource: str = ""


@final
@dataclass(frozen=True, slots=True)
class Report:
    """Replaces an object without validation and managedFields: ten times cheaper, and done for every bound pod."""

    target: Observed
    obj: Object


@final
@dataclass(frozen=True, slots=True)
class Delete:
    """Deletes this object, but no other of its name; after `grace` seconds, or the object's own grace period."""

    target: Observed
    grace: int | None = None
    propagation: str = "Background"


@final
@dataclass(frozen=True, slots=True)
class DeleteAll:
    """Deletes all objects of a resource in a namespace; controllers do not follow the resource."""

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
    """Performs a write. Deleting an absent object succeeds; raises ApiStatus for other refusals of the API."""
    match write:
        case Create(resource, namespace, obj):
            registry.create(resource, namespace, obj, WriteOptions(manager=author))
        case Update(target, obj, subresource):
            options = WriteOptions(manager=author)
            registry.update(target.resource, target.namespace, target.name, obj, options, subresource=subresource)
        case Report(target, obj):
            registry.report(target.resource, target.namespace, target.name, obj)
        case Delete(target, grace, propagation):
            _delete(registry, target, grace, propagation)
        case DeleteAll(resource, namespace):
            for stored in registry.store.read(resource, namespace):
                registry.delete(resource, stored.namespace, stored.name)


def _delete(registry: ObjectRegistry, target: Observed, grace: int | None, propagation: str) -> None:
    options: Object = {"preconditions": {"uid": target.uid}, "propagationPolicy": propagation}
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    try:
        registry.delete(target.resource, target.namespace, target.name, options)
    except ApiStatus as refusal:
        if refusal.code != 404:
            raise


def adopted(dependent: Observed, owner: Observed) -> Update:
    """Returns the write that makes the owner the controller of a dependent."""
    content = dependent.content()
    references = [ref for ref in content["metadata"].get("ownerReferences") or () if ref.get("uid") != owner.uid]
    content["metadata"]["ownerReferences"] = [*references, controller_reference(owner.content())]
    return Update(dependent, content)


def released(dependent: Observed, *uids: str) -> Update:
    """Returns the write that removes the references to these owners."""
    content = dependent.content()
    references = [ref for ref in content["metadata"].get("ownerReferences") or () if ref.get("uid") not in uids]
    if references:
        content["metadata"]["ownerReferences"] = references
    else:
        content["metadata"].pop("ownerReferences", None)
    return Update(dependent, content)


def unblocking(dependent: Observed) -> Update:
    """Returns the write after which no owner waits for the dependent."""
    content = dependent.content()
    references = content["metadata"].get("ownerReferences") or ()
    content["metadata"]["ownerReferences"] = [{**reference, "blockOwnerDeletion": False} for reference in references]
    return Update(dependent, content)


def without_finalizer(target: Observed, finalizer: str) -> Update:
    content = target.content()
    finalizers = content["metadata"].get("finalizers") or ()
    content["metadata"]["finalizers"] = [name for name in finalizers if name != finalizer]
    return Update(target, content)


def changed_status(target: Observed, content: Object, status: Object) -> Iterator[Update]:
    """Yields the write of a status, unless the object has it already."""
    if status != (content.get("status") or {}):
        yield Update(target, content | {"status": status}, "status")
