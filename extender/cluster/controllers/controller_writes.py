"""The writes that controllers ask for, as values, and the function that performs them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import orjson

from extender.cluster.api_resources import Object, Resource
from extender.cluster.controllers.seen_objects import Seen
from extender.cluster.registry.object_registry import ObjectRegistry
from extender.cluster.requests.request_options import WriteOptions
from extender.cluster.statuses import ApiStatus
from extender.values.workloads.templates import controller_reference


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
    """Replaces an object without validation and managedFields, which is ten times cheaper. Kubelets report on every
    bound pod so.

    Attributes:
        changed: returns the object as it is to be, given a copy of it as it was seen. May be called in a thread.
    """

    seen: Seen
    changed: Callable[[Object], Object]


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


@final
@dataclass(frozen=True, slots=True)
class Looked:
    """Writes nothing; says how many pods were looked at, so that other tasks get their turn between two parts of
    many.
    """

    pods: int


Write = Create | Update | Report | Delete | DeleteAll
Step = Write | LookAgain | Looked


def perform(registry: ObjectRegistry, write: Create | Update | Report | Delete, author: str) -> None:
    """Performs a write in the name of `author`. An object that is to be deleted may be gone already.

    Raises:
        ApiStatus: the API refuses.
    """
    if isinstance(write, Create):
        registry.create(write.resource, write.namespace, write.obj, WriteOptions(manager=author))
        return
    seen = write.seen
    if isinstance(write, Report):
        registry.report(seen.resource, seen.namespace, seen.name, write.changed(seen.content()))
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


def num_bytes(write: Create | Update | Report | Delete) -> int:
    """Returns how long what is read and validated for a write is about. To delete something takes no longer if it is
    long.
    """
    if isinstance(write, Create):
        return len(orjson.dumps(write.obj))
    return len(write.seen.raw) if isinstance(write, Update | Report) else 0


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
