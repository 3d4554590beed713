"""A metav1.Table of objects.

Upstream: apiserver/pkg/endpoints/handlers/response.go, asTable; pkg/printers/storage; registry/rest/table.go (v1.36.2).
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, Literal

from extender.embedded.resources import Object, Resource
from extender.embedded.tables import cluster, events, pods, scheduling, storage, workloads
from extender.embedded.tables.ages import Ages
from extender.embedded.tables.layout import NAME, Column, Layout, name_of

IncludeObject = Literal["None", "Metadata", "Object"]
"""What comes with each row: nothing, the metadata, or the whole object."""


def _created_at(obj: Object, ages: Ages) -> list[Any]:
    del ages
    return [name_of(obj), obj["metadata"].get("creationTimestamp")]


_OTHERS: Final = Layout((NAME, Column("Created At", "When the object was created.", "date")), _created_at)

LAYOUTS: Final[Mapping[str, Layout]] = {
    "CSIDriver": storage.CSI_DRIVERS,
    "CSINode": storage.CSI_NODES,
    "CSIStorageCapacity": storage.CSI_STORAGE_CAPACITIES,
    "Deployment": workloads.DEPLOYMENTS,
    "DeviceClass": scheduling.ONLY_AGE,
    "Event": events.EVENTS,
    "Lease": cluster.LEASES,
    "Namespace": cluster.NAMESPACES,
    "Node": cluster.NODES,
    "PersistentVolume": storage.PERSISTENT_VOLUMES,
    "PersistentVolumeClaim": storage.PERSISTENT_VOLUME_CLAIMS,
    "Pod": pods.PODS,
    "PodDisruptionBudget": scheduling.POD_DISRUPTION_BUDGETS,
    "PriorityClass": scheduling.PRIORITY_CLASSES,
    "ReplicaSet": workloads.REPLICA_SETS,
    "ReplicationController": workloads.REPLICATION_CONTROLLERS,
    "ResourceClaim": scheduling.RESOURCE_CLAIMS,
    "ResourceClaimTemplate": scheduling.ONLY_AGE,
    "ResourceSlice": scheduling.RESOURCE_SLICES,
    "Scale": workloads.SCALES,
    "Service": workloads.SERVICES,
    "StatefulSet": workloads.STATEFUL_SETS,
    "StorageClass": storage.STORAGE_CLASSES,
    "VolumeAttachment": storage.VOLUME_ATTACHMENTS,
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
