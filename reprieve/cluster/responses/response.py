"""An answer as a value, and objects in the form that a caller accepts: plain, as a table, or their metadata only.

Upstream: apiserver/pkg/endpoints/handlers/response.go, asTable; registry/rest/table.go.
"""

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, final

import orjson

from extender.rules import statuses
from extender.rules.api_resources import Object, Resource
from reprieve.cluster.requests.request_info import Form
from reprieve.cluster.responses.tables import (
    OTHERS,
    Ages,
    Layout,
    cluster_tables,
    pod_tables,
    storage_tables,
    workload_tables,
)
from reprieve.cluster.store import stored_objects
from reprieve.cluster.store.list_pages import Page
from reprieve.cluster.store.stored_objects import Stored


@final
@dataclass(frozen=True, slots=True)
class Response:
    """A whole answer. The headers include Content-Type."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@final
@dataclass(frozen=True, slots=True)
class StreamResponse:
    """The answer to a watch: whole events, each ending in a line feed. Closing the iterator ends it."""

    status: int
    chunks: AsyncGenerator[bytes, None]
    headers: Mapping[str, str] = field(default_factory=dict)


@final
@dataclass(frozen=True, slots=True)
class Presenter:
    """Turns objects into the bodies of answers.

    Attributes:
        include_object: the part of the object that comes with each row of a table; empty: the metadata.
        kind: the kind of the objects, if it is not the resource's own.
    """

    resource: Resource
    form: Form
    include_object: str
    now: Callable[[], datetime]
    kind: str = ""

    def one(self, obj: Object) -> bytes:
        if not self.form.shape or obj.get("kind") == "Status":
            return orjson.dumps(obj)
        if self.form.shape == "Table":
            return orjson.dumps(self._table([obj], {"resourceVersion": obj["metadata"].get("resourceVersion", "")}))
        return orjson.dumps(self._partial(obj))

    def listed(self, page: Page) -> bytes:
        """Returns a list. In its plain form it is the stored bytes, joined."""
        resource = self.resource
        if self.form.shape == "Table":
            return orjson.dumps(
                self._table([stored_objects.shown(resource, stored) for stored in page.objects], page.metadata)
            )
        if self.form.shape:
            partial = [self._partial(stored_objects.shown(resource, stored)) for stored in page.objects]
            kind = {"kind": "PartialObjectMetadataList", "apiVersion": self.form.api_version}
            return orjson.dumps({**kind, "metadata": page.metadata, "items": partial})
        head = b'{"kind":"%sList","apiVersion":"%s","metadata":%s,"items":[' % (
            resource.kind.encode(),
            resource.api_version.encode(),
            orjson.dumps(page.metadata),
        )
        items = [stored_objects.item(resource, stored) for stored in page.objects]
        if not items:
            return head + b"]}"
        # Joined in one go: a long list is not copied a second time.
        items[0] = head + items[0]
        items[-1] += b"]}"
        return b",".join(items)

    def event(self) -> Callable[[Stored], bytes]:
        """Returns the encoder for a watch. Only the first table of a watch describes its columns."""
        resource = self.resource
        if not self.form.shape:
            return lambda stored: stored_objects.body(resource, stored)
        if self.form.shape != "Table":
            return lambda stored: orjson.dumps(self._partial(stored_objects.shown(resource, stored)))
        headers = [True]

        def as_table(stored: Stored) -> bytes:
            obj = stored_objects.shown(resource, stored)
            rows = self._table([obj], {"resourceVersion": obj["metadata"]["resourceVersion"]}, headers=headers[0])
            headers[0] = False
            return orjson.dumps(rows)

        return as_table

    def bookmark(self, obj: Object) -> bytes:
        """Returns an object that has only a resourceVersion."""
        if self.form.shape == "Table":
            return orjson.dumps(self._table([], obj["metadata"], headers=False))
        return orjson.dumps(self._partial(obj) if self.form.shape else obj)

    def _partial(self, obj: Object) -> Object:
        return {"kind": "PartialObjectMetadata", "apiVersion": self.form.api_version, "metadata": obj["metadata"]}

    def _table(self, objects: Iterable[Object], metadata: Object, *, headers: bool = True) -> Object:
        included = self.include_object or "Metadata"
        if included not in ("None", "Metadata", "Object"):
            raise statuses.bad_request(f'unrecognized includeObject value: "{included}"')
        rows = table_of(
            self.resource,
            objects,
            include_object=included,
            now=self.now(),
            metadata=metadata,
            headers=headers,
            kind=self.kind,
        )
        return {**rows, "apiVersion": self.form.api_version}


_LAYOUTS: Final[Mapping[str, Layout]] = {
    **cluster_tables.LAYOUTS, **pod_tables.LAYOUTS, **storage_tables.LAYOUTS, **workload_tables.LAYOUTS,
}  # fmt: skip
"""The layouts by kind. Both versions of Event have the same one."""


def table_of(
    resource: Resource,
    objects: Iterable[Object],
    *,
    include_object: str = "Metadata",
    now: datetime,
    metadata: Object | None = None,
    headers: bool = True,
    kind: str = "",
) -> Object:
    """Returns the objects as a Table, with the metadata of the list that they come from.

    Arguments:
        include_object: the part of the object that comes with each row: None, Metadata or Object.
        headers: whether the columns are described; the later events of a watch leave them out.
        kind: the kind of the objects, if it is not the resource's own but that of a subresource, such as `Scale`.
    """
    layout, ages = _LAYOUTS.get(kind or resource.ruled_as, OTHERS), Ages(now)
    rows = []
    for obj in objects:
        row: Object = {"cells": layout.cells(obj, ages)}
        if layout.conditions is not None and (conditions := layout.conditions(obj)):
            row["conditions"] = list(conditions)
        rows.append(row | {"object": _included(obj, include_object)})
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata or {},
        "columnDefinitions": [column.as_object() for column in layout.columns] if headers else None,
        "rows": rows,
    }


def _included(obj: Object, include_object: str) -> Object | None:
    if include_object == "None":
        return None
    if include_object == "Object":
        return obj
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}
