"""A metav1.Table of objects.

Upstream: apiserver/pkg/endpoints/handlers/response.go, asTable; pkg/printers/storage; registry/rest/table.go (v1.36.2).
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, Literal

from extender.embedded.api_resources import Object, Resource
from extender.embedded.responses.tables import cluster_tables, pod_tables, storage_tables, workload_tables
from extender.embedded.responses.tables.layout import NAME, Ages, Column, Layout, name_of

IncludeObject = Literal["None", "Metadata", "Object"]
"""What comes with each row: nothing, the metadata, or the whole object."""


def _created_at(obj: Object, ages: Ages) -> list[Any]:
    del ages
    return [name_of(obj), obj["metadata"].get("creationTimestamp")]


_OTHERS: Final = Layout((NAME, Column("Created At", "When the object was created.", "date")), _created_at)

LAYOUTS: Final[Mapping[str, Layout]] = {
    "CSIDriver": storage_tables.CSI_DRIVERS,
    "CSINode": storage_tables.CSI_NODES,
    "CSIStorageCapacity": storage_tables.CSI_STORAGE_CAPACITIES,
    "Deployment": workload_tables.DEPLOYMENTS,
    "DeviceClass": cluster_tables.ONLY_AGE,
    "Event": cluster_tables.EVENTS,
    "Lease": cluster_tables.LEASES,
    "Namespace": cluster_tables.NAMESPACES,
    "Node": cluster_tables.NODES,
    "PersistentVolume": storage_tables.PERSISTENT_VOLUMES,
    "PersistentVolumeClaim": storage_tables.PERSISTENT_VOLUME_CLAIMS,
    "Pod": pod_tables.PODS,
    "PodDisruptionBudget": cluster_tables.POD_DISRUPTION_BUDGETS,
    "PriorityClass": cluster_tables.PRIORITY_CLASSES,
    "ReplicaSet": workload_tables.REPLICA_SETS,
    "ReplicationController": workload_tables.REPLICATION_CONTROLLERS,
    "ResourceClaim": cluster_tables.RESOURCE_CLAIMS,
    "ResourceClaimTemplate": cluster_tables.ONLY_AGE,
    "ResourceSlice": cluster_tables.RESOURCE_SLICES,
    "Scale": workload_tables.SCALES,
    "Service": workload_tables.SERVICES,
    "StatefulSet": workload_tables.STATEFUL_SETS,
    "StorageClass": storage_tables.STORAGE_CLASSES,
    "VolumeAttachment": storage_tables.VOLUME_ATTACHMENTS,
}
"""By kind. Kinds of one name in two groups are two faces of the same objects."""


def table(
    resource: Resource,
    objects: Iterable[Object],
    *,
    include_object: IncludeObject = "Metadata",
    now: datetime,
    metadata: Object | None = None,
    headers: bool = True,
    kind: str = "",
) -> Object:
    """The objects as a Table.

    Arguments:
        metadata: of the list that the objects come from, with its resourceVersion.
        headers: False in all but the first event of a watch: the columns are known by then.
        kind: where the objects are not of the resource's own kind: those of a subresource, such as `Scale`.
    """
    layout, ages = LAYOUTS.get(kind or resource.kind, _OTHERS), Ages(now)
    rows = []
    for obj in objects:
        row: Object = {"cells": layout.cells(obj, ages)}
        conditions = layout.conditions(obj)
        if conditions:
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
