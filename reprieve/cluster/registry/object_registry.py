"""What may be done with objects, as JSON values, under the rules of the API: read, create, update, patch, delete.

Callers in the same process use the registry; requests reach it through `kube_api`.

Upstream: apiserver/pkg/registry/generic/registry/store.go; endpoints/handlers.
"""

import copy
import random
import uuid
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final, final

import orjson

from extender.rules import statuses, validation
from extender.rules.admission import admission_plugins, strategies
from extender.rules.admission.defaults import set_defaults
from extender.rules.api_resources import NAMESPACES, TOKEN_REVIEWS, Object, Resource
from extender.rules.creation import admit, refuse_invalid
from extender.rules.schema import api_types
from extender.rules.validation.pod_group_rules import drop_group_fields
from extender.values.config.feature_gates import DEFAULT_FEATURES, FeatureGates
from extender.values.golang.times import rfc3339
from reprieve.cluster import refusals
from reprieve.cluster.patches import managed_fields
from reprieve.cluster.patches.patch_types import APPLY, Patch
from reprieve.cluster.registry import deletion
from reprieve.cluster.requests import request_bodies
from reprieve.cluster.requests.request_options import WriteOptions
from reprieve.cluster.store import stored_objects
from reprieve.cluster.store.custom_resources import custom_resources
from reprieve.cluster.store.object_store import ObjectStore
from reprieve.cluster.store.stored_objects import Stored

NAME_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""The letters of generated names; without vowels they spell no words. Upstream: apimachinery/pkg/util/rand."""
_NAME_LENGTH: Final = 63
_RANDOM_LENGTH: Final = 5
GENERATE_ATTEMPTS: Final = 8

_USER: Final = {"username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"]}
_SYSTEM_FIELDS: Final = ("creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")


@final
class ObjectRegistry:
    """Applies the rules of the API to the objects of an ObjectStore. `rng` draws uids and generated names."""

    def __init__(
        self,
        store: ObjectStore,
        *,
        now: Callable[[], datetime],
        rng: random.Random,
        features: FeatureGates = DEFAULT_FEATURES,
    ) -> None:
        self.store: Final = store
        self.now: Final = now
        self.rng: Final = rng
        self.features: Final = features

    def get(self, resource: Resource, namespace: str, name: str) -> Object:
        """Returns an object. Raises ApiStatus 404 if it does not exist."""
        return stored_objects.shown(resource, self.stored(resource, namespace, name))

    def list(self, resource: Resource, namespace: str | None = None) -> "list[Object]":
        return [stored_objects.shown(resource, stored) for stored in self.store.read(resource, namespace or "")]

    def find(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """Returns a copy of an object, as `Lookup`."""
        stored = self.store.get(resource, namespace, name)
        return None if stored is None else stored.decoded()

    def objects(self, resource: Resource) -> Iterator[Object]:
        """Yields copies of all objects of a resource, as `Lookup`."""
        return (stored.decoded() for stored in self.store.read(resource))

    def keep(self, resource: Resource, namespace: str, name: str, obj: Object) -> None:
        """Stores an object as it is, as `SeededCluster`."""
        self.store.put(resource, namespace, name, stored_objects.stored_form(resource, obj))

    def custom_resources(self) -> Sequence[Resource]:
        return custom_resources(self.store)

    def create(self, resource: Resource, namespace: str, obj: Object, options: WriteOptions | None = None) -> Object:
        """Stores a new object; returns it as it was stored. Raises ApiStatus if it is refused.

        `obj` is not changed; its kind and apiVersion may be missing.
        """
        write = options or WriteOptions()
        new = _read(resource, obj, write)
        if not resource.is_stored:
            return _reviewed(resource, new)
        _wipe(new["metadata"])
        _place(resource, namespace, new["metadata"])
        _drop_duplicate_owners(new["metadata"], write)
        self._own(resource, None, new, write)
        return self._create(resource, namespace, new, write)

    def update(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        obj: Object,
        options: WriteOptions | None = None,
        *,
        subresource: str = "",
        owned_as: str = "",
    ) -> Object:
        """Replaces an object or a subresource; returns it as it was stored.

        `obj` is not changed; its resourceVersion, if any, is that of the object it was made from. `owned_as` is the
        subresource that managedFields name, if it is not `subresource`. Raises ApiStatus 409 if the object has changed
        since, and another ApiStatus if the update is refused.
        """
        write = options or WriteOptions()
        new = _read(resource, obj, write)
        _place(resource, namespace, new["metadata"])
        _check_name(new["metadata"], namespace, name)
        _drop_duplicate_owners(new["metadata"], write)
        stored = self.store.get(resource, namespace, name)
        uid = new["metadata"].get("uid")
        if stored is None:
            # A caller who sends a uid means to replace that object, never to create one.
            if uid or subresource or not resource.created_by_update:
                raise statuses.not_found(resource, name)
            _wipe(new["metadata"])
            write.created = True
            self._own(resource, None, new, write)
            return self._create(resource, namespace, new, write)
        old = stored_objects.shown(resource, stored)
        if uid and uid != old["metadata"]["uid"]:
            raise refusals.wrong_object(resource, stored.key, name, "UID", uid, old["metadata"]["uid"])
        self._own(resource, old, new, write, owned_as or subresource)
        return self._replace(resource, stored, old, new, write, subresource)

    def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        patch: Patch,
        options: WriteOptions | None = None,
        *,
        subresource: str = "",
    ) -> Object:
        """Patches an object or a subresource; returns it as it was stored. Raises ApiStatus if the patch is refused.

        Server-side apply creates an object that does not exist.
        """
        write = options or WriteOptions()
        stored = self.store.get(resource, namespace, name)
        if stored is None and (patch.type != APPLY or subresource):
            raise statuses.not_found(resource, name)
        old = None if stored is None else stored_objects.shown(resource, stored)
        # Apply computes the owners itself, from what is applied; the other types from what they changed.
        if patch.type == APPLY:
            new = patch.applied(resource, old, write, subresource, self.now())
            set_defaults(resource, new)
        else:
            patched = patch.of(api_types.type_of(resource), old or {})
            new = patch.read(resource, patched, write)
            set_defaults(resource, new)
            self._own(resource, old, new, write, subresource)
        _place(resource, namespace, new["metadata"])
        if stored is None or old is None:
            # Only apply creates. A caller who sends a uid means an object that no longer exists.
            if new["metadata"].get("uid"):
                why = (
                    f"uid mismatch: the provided object specified uid {new['metadata']['uid']}, and no existing object "
                    "was found"
                )
                raise refusals.conflict(resource, name, why)
            _check_name(new["metadata"], namespace, name)
            _wipe(new["metadata"])
            write.created = True
            return self._create(resource, namespace, new, write)
        _check_name(new["metadata"], namespace, name)
        return self._replace(resource, stored, old, new, write, subresource)

    def delete(self, resource: Resource, namespace: str, name: str, options: Object | None = None) -> Object:
        """Deletes an object as `deletion.delete`. Raises ApiStatus if it does not exist, or as there."""
        return deletion.delete(self.store, resource, self.stored(resource, namespace, name), options or {}, self.now())

    def report(self, resource: Resource, namespace: str, name: str, new: Object) -> Object:
        """Replaces an object as `replace` does. Raises ApiStatus 409 if it has changed since `new` was made of it."""
        stored = self.store.get(resource, namespace, name)
        if stored is None or str(stored.resource_version) != new["metadata"]["resourceVersion"]:
            raise refusals.conflict(resource, name)
        return self.replace(resource, stored, new)

    def replace(self, resource: Resource, stored: Stored, new: Object, *, dry_run: bool = False) -> Object:
        """Writes a change that the API itself made, without validation and managedFields; returns it as stored."""
        if not dry_run:
            self.store.put(resource, stored.namespace, stored.name, stored_objects.stored_form(resource, new))
        return stored_objects.typed(resource, new)

    def stored(self, resource: Resource, namespace: str, name: str) -> Stored:
        """Returns an object as it is stored. Raises ApiStatus 404 if it does not exist."""
        stored = self.store.get(resource, namespace, name)
        if stored is None:
            raise statuses.not_found(resource, name)
        return stored

    def _own(
        self, resource: Resource, old: Object | None, new: Object, write: WriteOptions, subresource: str = ""
    ) -> None:
        owned = managed_fields.updated(
            resource, old, new, manager=write.manager, subresource=subresource, now=self.now()
        )
        if owned:
            new["metadata"]["managedFields"] = owned
        else:
            new["metadata"].pop("managedFields", None)

    def _create(self, resource: Resource, namespace: str, obj: Object, write: WriteOptions) -> Object:
        def identify(metadata: Object) -> None:
            metadata["uid"] = self.new_uid()
            metadata["creationTimestamp"] = rfc3339(self.now())
            if metadata.get("generateName") and not metadata.get("name"):
                metadata["name"] = self._free_name(resource, namespace, metadata["generateName"])

        admit(self, resource, namespace, obj, self.features, identify)
        metadata = obj["metadata"]
        name = metadata.get("name", "")
        if resource.is_inert:
            write.warnings.append(f"nothing acts on {resource.qualified} in this cluster: the object is only stored")
        existing = self.store.get(resource, namespace, name)
        if metadata.get("resourceVersion") not in (None, "", "0"):
            raise statuses.ApiStatus(500, "", "resourceVersion should not be set on objects to be created")
        metadata.pop("resourceVersion", None)
        if existing is not None:
            error = refusals.generate_name_conflict if metadata.get("generateName") else statuses.already_exists
            refusal = error(resource, name)
            if "deletionTimestamp" in existing.decoded()["metadata"]:
                message = f"object is being deleted: {refusal.message}"
                refusal = statuses.ApiStatus(refusal.code, refusal.reason, message, refusal.details, refusal.headers)
            raise refusal
        if not write.dry_run:
            self.store.put(resource, namespace, name, stored_objects.stored_form(resource, obj))
        return stored_objects.typed(resource, obj)

    def _replace(
        self, resource: Resource, stored: Stored, old: Object, new: Object, write: WriteOptions, subresource: str
    ) -> Object:
        metadata, former = new["metadata"], old["metadata"]
        drop_group_fields(resource, new, old, self.features)
        admission_plugins.admit_update(self, resource, new, old, subresource)
        _check_version(resource, metadata, stored)
        strategies.drop_disabled(resource, new, old, self.features)
        strategies.prepare_for_update(resource, new, old, subresource)
        metadata["uid"] = metadata.get("uid") or former["uid"]
        metadata["creationTimestamp"] = former["creationTimestamp"]
        for name in ("deletionTimestamp", "deletionGracePeriodSeconds"):
            if name in former:
                metadata[name] = former[name]
            else:
                metadata.pop(name, None)
        metadata["resourceVersion"] = former["resourceVersion"]
        errors = validation.validate_update(resource, new, old, subresource)
        refuse_invalid(resource, stored.name, [*errors, *validation.behind_gates(new, old, self.features)])
        # Upstream: IgnoreManagedFieldsTimestampsTransformer.
        if _without_times(old) == _without_times(new):
            return stored_objects.typed(resource, old)
        if _is_done(resource, old, new):
            if not write.dry_run:
                self.store.remove(resource, stored.namespace, stored.name)
            return stored_objects.typed(resource, new)
        return self.replace(resource, stored, new, dry_run=write.dry_run)

    def new_uid(self) -> str:
        return str(uuid.UUID(int=self.rng.getrandbits(128), version=4))

    def _free_name(self, resource: Resource, namespace: str, base: str) -> str:
        name = ""
        for _ in range(GENERATE_ATTEMPTS):
            name = base[: _NAME_LENGTH - _RANDOM_LENGTH]
            name += "".join(self.rng.choice(NAME_ALPHABET) for _ in range(_RANDOM_LENGTH))
            if self.store.get(resource, namespace, name) is None:
                break
        return name


def _read(resource: Resource, obj: Any, write: WriteOptions) -> Object:
    new = request_bodies.read(api_types.type_of(resource), obj, write, resource.kind, resource.version)
    set_defaults(resource, new)
    return new


def _wipe(metadata: Object) -> None:
    for name in _SYSTEM_FIELDS:
        metadata.pop(name, None)


def _place(resource: Resource, namespace: str, metadata: Object) -> None:
    """Puts the object into the namespace of the request. Upstream: EnsureObjectNamespaceMatchesRequestNamespace."""
    if not resource.namespaced:
        metadata.pop("namespace", None)
    elif metadata.get("namespace") and metadata["namespace"] != namespace:
        raise statuses.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    else:
        metadata["namespace"] = namespace


def _check_name(metadata: Object, namespace: str, name: str) -> None:
    if not metadata.get("name"):
        raise statuses.bad_request(
            f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )
    if metadata["name"] != name:
        raise statuses.bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})"
        )


def _check_version(resource: Resource, metadata: Object, stored: Stored) -> None:
    version = metadata.get("resourceVersion") or "0"
    if version == "0":
        if resource.needs_version:
            raise refusals.version_required(resource, stored.name)
    elif version != str(stored.resource_version):
        raise refusals.conflict(resource, stored.name)


def _drop_duplicate_owners(metadata: Object, write: WriteOptions) -> None:
    """Upstream: handlers/rest.go, dedupOwnerReferencesAndAddWarning."""
    owners = metadata.get("ownerReferences") or []
    unique: dict[bytes, Object] = {}
    # The fields of an owner are in the order of its type, so that equal owners have equal JSON.
    dropped = [
        str(owner.get("uid", "")) for owner in owners if unique.setdefault(orjson.dumps(owner), owner) is not owner
    ]
    if dropped:
        metadata["ownerReferences"] = list(unique.values())
        write.warnings.append(
            f".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, "
            "and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
            f"{', '.join(dropped)}"
        )


def _without_times(obj: Object) -> Object:
    entries = obj["metadata"].get("managedFields") or ()
    timeless = [{name: value for name, value in entry.items() if name != "time"} for entry in entries]
    untyped = {name: value for name, value in obj.items() if name not in ("kind", "apiVersion")}
    return untyped | {"metadata": {**obj["metadata"], "managedFields": timeless}}


def _is_done(resource: Resource, old: Object, new: Object) -> bool:
    """Returns whether this removes the last finalizer of an object being deleted (ShouldDeleteDuringUpdate)."""
    if new["metadata"].get("finalizers") or "deletionTimestamp" not in old["metadata"]:
        return False
    if resource is NAMESPACES and new["spec"].get("finalizers"):
        return False
    return not old["metadata"].get("deletionGracePeriodSeconds")


def _reviewed(resource: Resource, review: Object) -> Object:
    """Returns a review with its status: every caller is the administrator and may do everything."""
    status: Object = {"allowed": True}
    if resource is TOKEN_REVIEWS:
        status = {"authenticated": True, "user": copy.deepcopy(_USER)}
        if audiences := review["spec"].get("audiences"):
            status["audiences"] = audiences
    return {**review, "kind": resource.kind, "apiVersion": resource.api_version, "status": status}
