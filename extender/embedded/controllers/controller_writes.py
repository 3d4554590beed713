"""The writes that controllers ask for, as values, and the function that performs them."""

from dataclasses import dataclass
from typing import final

from extender.embedded import statuses
from extender.embedded.api_resources import Object, Resource
from extender.embedded.controllers.seen_objects import Seen
from extender.embedded.registry.object_registry import ObjectRegistry
from extender.embedded.requests.request_options import WriteOptions
from extender.embedded.statuses import ApiStatus
from extender.workloads.templates import controller_reference


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

    seen: Seen
    obj: Object
    subresource: str = ""


@final
@dataclass(frozen=True, slots=True)
class Report:
    """Replaces an object without validation and managedFields, which is ten times cheaper. Kubelets report on every bound pod so."""

    seen: Seen
    obj: Object


@final
@dataclass(frozen=True, slots=True)
class Delete:
    """Deletes this object, but not another one of the same name.

    Attributes:
        grace: seconds; None: what the object asks for.
        propagation: Background, Foreground or Orphan.
    """

    seen: Seen
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
class LookAgain:
    """Writes nothing; the key is looked at again after this time."""

    seconds: float


Write = Create | Update | Report | Delete | DeleteAll
Step = Write | LookAgain


def perform(registry: ObjectRegistry, write: Write, author: str) -> None:
    """Performs a write in the name of `author`. An object that is to be deleted may be gone already.

    Raises:
        ApiStatus: the API refuses.
    """
    if isinstance(write, Create):
        registry.create(write.resource, write.namespace, write.obj, WriteOptions(manager=author))
        return
    if isinstance(write, DeleteAll):
        for stored in registry.store.read(write.resource, write.namespace):
            registry.delete(write.resource, write.namespace, stored.name)
        return
    seen = write.seen
    if isinstance(write, Report):
        current = registry.store.get(seen.resource, seen.namespace, seen.name)
        if current is None or str(current.resource_version) != write.obj["metadata"]["resourceVersion"]:
            raise statuses.conflict(seen.resource, seen.name)
        registry.replace(seen.resource, current, write.obj)
        return
    if isinstance(write, Update):
        options = WriteOptions(manager=author)
        registry.update(seen.resource, seen.namespace, seen.name, write.obj, options, subresource=write.subresource)
        return
    deletion: Object = {"preconditions": {"uid": seen.uid}, "propagationPolicy": write.propagation}
    if write.grace is not None:
        deletion["gracePeriodSeconds"] = write.grace
    try:
        registry.delete(seen.resource, seen.namespace, seen.name, deletion)
    except ApiStatus as refusal:
        if refusal.code != 404:
            raise


def adopted(seen: Seen, owner: Seen) -> Update:
    """Returns the write that makes an object belong to this owner."""
    content = seen.content()
    references = [each for each in content["metadata"].get("ownerReferences") or () if each.get("uid") != owner.uid]
    content["metadata"]["ownerReferences"] = [*references, controller_reference(owner.content())]
    return Update(seen, content)


def released(seen: Seen, *uids: str) -> Update:
    """Returns the write that removes the references to these owners."""
    content = seen.content()
    references = [each for each in content["metadata"].get("ownerReferences") or () if each.get("uid") not in uids]
    if references:
        content["metadata"]["ownerReferences"] = references
    else:
        content["metadata"].pop("ownerReferences", None)
    return Update(seen, content)
