"""Objects as the tables that kubectl prints, by upstream's rules. Nothing is selected or sorted here.

Upstream: apiserver/pkg/endpoints/handlers/response.go, asTable; pkg/printers/storage; registry/rest/table.go (v1.36.2).
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final, Literal

from extender.cluster.api_resources import Object, Resource
from extender.cluster.responses.tables import cluster_tables, pod_tables, storage_tables, workload_tables
from extender.cluster.responses.tables.layout import NAME, Ages, Column, Layout, field

IncludeObject = Literal["None", "Metadata", "Object"]
"""The part of the object that comes with each row."""


_OTHERS: Final = Layout(
    (NAME, Column("Created At", "When the object was created.", field("metadata.creationTimestamp", None), "date"))
)

LAYOUTS: Final[Mapping[str, Layout]] = {
    **cluster_tables.LAYOUTS, **pod_tables.LAYOUTS, **storage_tables.LAYOUTS, **workload_tables.LAYOUTS,
}  # fmt: skip
"""The layouts by kind. Both versions of Event have the same one."""


def table_of(
    resource: Resource,
    objects: Iterable[Object],
    *,
    include_object: IncludeObject = "Metadata",
    now: datetime,
    metadata: Object | None = None,
    headers: bool = True,
    kind: str = "",
) -> Object:
    """Returns the objects as a Table, with the metadata of the list that they come from.

    Arguments:
        headers: whether the columns are described; the later events of a watch leave them out.
        kind: the kind of the objects, if it is not the resource's own but that of a subresource, such as `Scale`.
    """
    layout, ages = LAYOUTS.get(kind or resource.ruled_as, _OTHERS), Ages(now)
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


def _included(obj: Object, include_object: IncludeObject) -> Object | None:
    if include_object == "None":
        return None
    if include_object == "Object":
        return obj
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}
