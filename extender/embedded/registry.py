"""What may be done with objects: read, create, update, delete; over plain JSON values.

This is the door for whoever lives in the same process; `kube_api` is the one for requests. Both leave the same traces.

Upstream: apiserver/pkg/registry/generic/registry/store.go (v1.36.2).
"""

import random
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final, final

from extender.embedded import statuses
from extender.embedded.resources import Object, Resource
from extender.embedded.store import Store, Stored
from extender.embedded.subscription import Subscription, shown

NAME_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Without vowels, so that no word comes out. Upstream: apimachinery/pkg/util/rand."""
MAX_GENERATED_BASE: Final = 58


def timestamp(moment: datetime) -> str:
    """As a metav1.Time is written."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@final
class Registry:
    """The objects of a Store under the rules of the API.

    Arguments:
        now: the wall clock, for the timestamps that people read.
        rng: where uids and generated names come from.
    """

    def __init__(self, store: Store, *, now: Callable[[], datetime], rng: random.Random) -> None:
        self.store: Final = store
        self.now: Final = now
        self.rng: Final = rng

    def get(self, resource: Resource, namespace: str, name: str) -> Object:
        """The object; ApiStatus 404 if there is none."""
        return shown(resource, self._stored(resource, namespace, name))

    def list(self, resource: Resource, namespace: str | None = None) -> list[Object]:
        """The objects, of one namespace or of all."""
        return [shown(resource, stored) for stored in self.store.read(resource, namespace or "")]

    def create(self, resource: Resource, namespace: str, obj: Object) -> Object:
        """Store a new object; as it was stored."""
        obj = {"kind": resource.kind, "apiVersion": resource.api_version, **obj}
        metadata = obj["metadata"] = dict(obj.get("metadata") or {})
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = self._generated_name(metadata["generateName"])
        if resource.namespaced:
            metadata["namespace"] = namespace
        name = metadata["name"]
        if self.store.get(resource, namespace, name) is not None:
            raise statuses.already_exists(resource, name)
        metadata["uid"] = str(uuid.UUID(int=self.rng.getrandbits(128), version=4))
        metadata["creationTimestamp"] = timestamp(self.now())
        self.store.put(resource, namespace, name, obj)
        return obj

    def update(self, resource: Resource, namespace: str, name: str, obj: Object) -> Object:
        """Replace an object; as it was stored."""
        old = self._stored(resource, namespace, name)
        wanted = obj["metadata"].get("resourceVersion")
        if wanted and wanted != str(old.resource_version):
            raise statuses.conflict(resource, name)
        self.store.put(resource, namespace, name, obj)
        return obj

    def delete(self, resource: Resource, namespace: str, name: str) -> Object:
        """Remove an object; its last state."""
        self._stored(resource, namespace, name)
        return shown(resource, self.store.remove(resource, namespace, name))

    def subscribe(self, resources: Sequence[Resource]) -> Subscription:
        """The changes of these kinds from now on."""
        return Subscription(self.store, resources)

    def _stored(self, resource: Resource, namespace: str, name: str) -> Stored:
        stored = self.store.get(resource, namespace, name)
        if stored is None:
            raise statuses.not_found(resource, name)
        return stored

    def _generated_name(self, base: str) -> str:
        return base[:MAX_GENERATED_BASE] + "".join(self.rng.choice(NAME_ALPHABET) for _ in range(5))
