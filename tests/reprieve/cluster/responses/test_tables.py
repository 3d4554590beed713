"""Every kind has its table, as kubectl prints it."""

from datetime import UTC, datetime

import pytest

from extender.rules import api_resources
from reprieve.cluster.responses.response import table_of
from tests.kit.tables import cases

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
METADATA = {"name": "x", "creationTimestamp": "2026-11-20T11:50:00Z"}
TEMPLATE = {"template": {"spec": {"containers": [{"name": "a", "image": "i:1"}, {"name": "b", "image": "i:2"}]}}}
SELECTOR = {"matchLabels": {"b": "c"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["z", "y"]}]}


def printed(resource, obj, **more):
    """Column by column what is in the row of one object."""
    table = table_of(resource, [{"metadata": METADATA, **obj}], now=NOW, **more)
    (row,) = table["rows"]
    return dict(zip((column["name"] for column in table["columnDefinitions"]), row["cells"], strict=True))


@cases(
    "resource, obj, cells",
    (
        "node",
        api_resources.NODES,
        {
            "metadata": METADATA | {"labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "spot"}},
            "spec": {"unschedulable": True},
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}],
                "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
                "nodeInfo": {"kubeletVersion": "v1.36.2", "osImage": "Linux"},
            },
        },
        {
            "Status": "Ready,SchedulingDisabled",
            "Roles": "spot,worker",
            "Version": "v1.36.2",
            "Internal-IP": "10.0.0.1",
            "External-IP": "<none>",
            "OS-Image": "Linux",
            "Kernel-Version": "<unknown>",
            "Container-Runtime": "<unknown>",
        },
    ),
    ("namespace", api_resources.NAMESPACES, {"status": {"phase": "Active"}}, {"Status": "Active"}),
    ("lease", api_resources.LEASES, {"spec": {"holderIdentity": "h"}}, {"Holder": "h"}),
    (
        "deployment",
        api_resources.DEPLOYMENTS,
        {
            "spec": {"replicas": 3, "selector": SELECTOR, **TEMPLATE},
            "status": {"readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 1},
        },
        {
            "Ready": "1/3",
            "Up-to-date": 2,
            "Available": 1,
            "Containers": "a,b",
            "Images": "i:1,i:2",
            "Selector": "a in (y,z),b=c",
        },
    ),
    (
        "replica set",
        api_resources.REPLICA_SETS,
        {"spec": {"replicas": 3, **TEMPLATE}, "status": {"replicas": 2, "readyReplicas": 1}},
        {"Desired": 3, "Current": 2, "Ready": 1, "Containers": "a,b", "Images": "i:1,i:2", "Selector": "<none>"},
    ),
    (
        "replication controller",
        api_resources.REPLICATION_CONTROLLERS,
        {"spec": {"replicas": 1, "selector": {"b": "c", "a": "d"}}, "status": {"replicas": 0}},
        {"Desired": 1, "Current": 0, "Ready": 0, "Containers": "", "Images": "", "Selector": "a=d,b=c"},
    ),
    (
        "stateful set",
        api_resources.STATEFUL_SETS,
        {"spec": {"replicas": 2, **TEMPLATE}},
        {"Ready": "0/2", "Containers": "a,b", "Images": "i:1,i:2"},
    ),
    (
        "service",
        api_resources.SERVICES,
        {
            "spec": {
                "type": "NodePort",
                "clusterIPs": ["10.1.1.1"],
                "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}],
                "selector": {"a": "b"},
            }
        },
        {
            "Type": "NodePort",
            "Cluster-IP": "10.1.1.1",
            "External-IP": "<none>",
            "Port(s)": "80:30080/TCP,53/UDP",
            "Selector": "a=b",
        },
    ),
    (
        "persistent volume",
        api_resources.PERSISTENT_VOLUMES,
        {
            "spec": {
                "capacity": {"storage": "5Gi"},
                "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Retain",
                "claimRef": {"namespace": "ns", "name": "c"},
                "storageClassName": "fast",
                "volumeMode": "Block",
            },
            "status": {"phase": "Bound"},
        },
        {
            "Capacity": "5Gi",
            "Access Modes": "RWO,RWX",
            "Reclaim Policy": "Retain",
            "Status": "Bound",
            "Claim": "ns/c",
            "StorageClass": "fast",
            "VolumeAttributesClass": "<unset>",
            "Reason": "",
            "VolumeMode": "Block",
        },
    ),
    (
        "claim that goes",
        api_resources.PERSISTENT_VOLUME_CLAIMS,
        {
            "metadata": METADATA | {"deletionTimestamp": "2026-11-20T12:00:00Z"},
            "spec": {"volumeName": "v", "storageClassName": "fast"},
            "status": {"phase": "Bound", "capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOncePod"]},
        },
        {
            "Status": "Terminating",
            "Volume": "v",
            "Capacity": "5Gi",
            "Access Modes": "RWOP",
            "StorageClass": "fast",
            "VolumeAttributesClass": "<unset>",
            "VolumeMode": "<unset>",
        },
    ),
    (
        "claim that waits",
        api_resources.PERSISTENT_VOLUME_CLAIMS,
        {
            "metadata": METADATA | {"annotations": {"volume.beta.kubernetes.io/storage-class": "old"}},
            "spec": {"volumeMode": "Filesystem"},
            "status": {"phase": "Pending"},
        },
        {
            "Status": "Pending",
            "Volume": "",
            "Capacity": "",
            "Access Modes": "",
            "StorageClass": "old",
            "VolumeAttributesClass": "<unset>",
            "VolumeMode": "Filesystem",
        },
    ),
    (
        "storage class",
        api_resources.STORAGE_CLASSES,
        {
            "metadata": METADATA | {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
            "provisioner": "p",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
        {
            "Name": "x (default)",
            "Provisioner": "p",
            "ReclaimPolicy": "Delete",
            "VolumeBindingMode": "WaitForFirstConsumer",
            "AllowVolumeExpansion": False,
        },
    ),
    ("CSI node", api_resources.CSI_NODES, {"spec": {"drivers": [{}, {}]}}, {"Drivers": 2}),
    (
        "CSI driver",
        api_resources.CSI_DRIVERS,
        {"spec": {"attachRequired": False, "volumeLifecycleModes": ["Persistent", "Ephemeral"]}},
        {
            "AttachRequired": False,
            "PodInfoOnMount": False,
            "StorageCapacity": False,
            "TokenRequests": "<unset>",
            "RequiresRepublish": False,
            "Modes": "Persistent,Ephemeral",
        },
    ),
    (
        "volume attachment",
        api_resources.VOLUME_ATTACHMENTS,
        {
            "spec": {"attacher": "a", "source": {"persistentVolumeName": "v"}, "nodeName": "n"},
            "status": {"attached": True},
        },
        {"Attacher": "a", "PV": "v", "Node": "n", "Attached": True},
    ),
    (
        "disruption budget",
        api_resources.POD_DISRUPTION_BUDGETS,
        {"spec": {"maxUnavailable": "25%"}, "status": {"disruptionsAllowed": 1}},
        {"Min Available": "N/A", "Max Unavailable": "25%", "Allowed Disruptions": 1},
    ),
    (
        "priority class",
        api_resources.PRIORITY_CLASSES,
        {"value": 7, "preemptionPolicy": "Never"},
        {"Value": 7, "Global-Default": False, "PreemptionPolicy": "Never"},
    ),
    (
        "resource claim",
        api_resources.RESOURCE_CLAIMS,
        {"status": {"allocation": {}, "reservedFor": [{}]}},
        {"State": "allocated,reserved"},
    ),
    ("resource claim that waits", api_resources.RESOURCE_CLAIMS, {}, {"State": "pending"}),
    (
        "resource claim that goes",
        api_resources.RESOURCE_CLAIMS,
        {"metadata": METADATA | {"deletionTimestamp": "2026-11-20T12:00:00Z"}},
        {"State": "deleted"},
    ),
    ("resource claim template", api_resources.RESOURCE_CLAIM_TEMPLATES, {}, {}),
    ("device class", api_resources.DEVICE_CLASSES, {"metadata": {"name": "x"}}, {"Age": "<unknown>"}),
    (
        "resource slice",
        api_resources.RESOURCE_SLICES,
        {"spec": {"nodeName": "n", "driver": "d", "pool": {"name": "p"}}},
        {"Node": "n", "Driver": "d", "Pool": "p"},
    ),
)
def test_table_cells_of_each_kind_are_printed_as_kubectl_shows_them(resource, obj, cells):
    assert printed(resource, obj) == {"Name": "x", "Age": "10m"} | cells


@cases(
    "resource, obj, cells",
    (
        "CSI storage capacity",
        api_resources.CSI_STORAGE_CAPACITIES,
        {"storageClassName": "fast"},
        {"StorageClassName": "fast", "Capacity": "<unset>"},
    ),
    (
        "event",
        api_resources.EVENTS,
        {
            "involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "spec.containers{c}"},
            "type": "Warning",
            "reason": "FailedScheduling",
            "message": "no room\n",
            "source": {"component": "s"},
            "firstTimestamp": "2026-11-20T11:00:00Z",
            "lastTimestamp": "2026-11-20T11:59:00Z",
            "count": 3,
        },
        {
            "Last Observed": "60s",
            "Type": "Warning",
            "Reason": "FailedScheduling",
            "Object": "pod/p",
            "Subobject": "spec.containers{c}",
            "Source": "s",
            "Message": "no room",
            "First Observed": "60m",
            "Count": 3,
        },
    ),
    (
        "event, the new face",
        api_resources.NEW_EVENTS,
        {
            "regarding": {"kind": "Pod"},
            "type": "Normal",
            "reason": "Scheduled",
            "note": "there",
            "reportingController": "s",
            "reportingInstance": "s-1",
            "eventTime": "2026-11-20T11:59:00.000000Z",
        },
        {
            "Last Observed": "60s",
            "Type": "Normal",
            "Reason": "Scheduled",
            "Object": "pod",
            "Subobject": "",
            "Source": "s, s-1",
            "Message": "there",
            "First Observed": "60s",
            "Count": 1,
        },
    ),
)
def test_table_of_some_kinds_has_no_age(resource, obj, cells):
    assert printed(resource, obj) == {"Name": "x"} | cells


@cases(
    "spec, status, address",
    ("given", {"type": "ClusterIP", "externalIPs": ["1.1.1.1", "2.2.2.2"]}, {}, "1.1.1.1,2.2.2.2"),
    ("not balanced yet", {"type": "LoadBalancer"}, {}, "<pending>"),
    (
        "balanced",
        {"type": "LoadBalancer", "externalIPs": ["1.1.1.1"]},
        {"loadBalancer": {"ingress": [{"ip": "9.9.9.9"}, {"hostname": "h"}]}},
        "9.9.9.9,h,1.1.1.1",
    ),
    ("elsewhere", {"type": "ExternalName", "externalName": "example.com"}, {}, "example.com"),
    ("of no known type", {}, {}, "<unknown>"),
)
def test_external_ip_of_a_service_is_taken_from_spec_or_load_balancer(spec, status, address):
    assert printed(api_resources.SERVICES, {"spec": spec, "status": status})["External-IP"] == address


@pytest.mark.parametrize(
    ("conditions", "status"),
    [
        ([], "Unknown"),
        ([{"type": "Ready", "status": "Unknown"}], "NotReady"),
        ([{"type": "Ready", "status": "True"}], "Ready"),
    ],
)
def test_status_of_a_node_row_comes_from_its_ready_condition(conditions, status):
    assert printed(api_resources.NODES, {"status": {"conditions": conditions}})["Status"] == status


def test_an_event_that_goes_on_tells_when_it_was_seen_last():
    series = {
        "series": {"count": 4, "lastObservedTime": "2026-11-20T11:59:50.000000Z"},
        "eventTime": "2026-11-20T11:00:00.000000Z",
    }

    cells = printed(api_resources.NEW_EVENTS, series)

    assert (cells["Last Observed"], cells["First Observed"], cells["Count"]) == ("10s", "60m", 4)


def test_a_subresource_may_be_of_another_kind():
    scale = {"spec": {"replicas": 3}, "status": {"replicas": 2}}

    cells = printed(api_resources.DEPLOYMENTS, scale, kind="Scale")

    assert cells == {"Name": "x", "Desired": 3, "Available": 2, "Age": "10m"}


@pytest.mark.parametrize(
    ("include_object", "included"),
    [
        ("None", None),
        ("Metadata", {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": METADATA}),
        ("Object", {"kind": "Lease", "metadata": METADATA}),
    ],
)
def test_the_caller_chooses_what_comes_with_a_row(include_object, included):
    table = table_of(
        api_resources.LEASES, [{"kind": "Lease", "metadata": METADATA}], now=NOW, include_object=include_object
    )

    assert table["rows"] == [{"cells": ["x", "", "10m"], "object": included}]


def test_a_table_is_a_list_with_columns():
    table = table_of(api_resources.LEASES, [], now=NOW, metadata={"resourceVersion": "7"})

    assert table == {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": "7"},
        "columnDefinitions": [
            {
                "name": "Name",
                "type": "string",
                "format": "name",
                "description": table["columnDefinitions"][0]["description"],
                "priority": 0,
            },
            {"name": "Holder", "type": "string", "format": "", "description": "Who holds the lease.", "priority": 0},
            {
                "name": "Age",
                "type": "string",
                "format": "",
                "description": "The time since the object was created.",
                "priority": 0,
            },
        ],
        "rows": [],
    }


def test_later_tables_of_a_watch_have_no_columns():
    assert table_of(api_resources.LEASES, [], now=NOW, headers=False)["columnDefinitions"] is None
