"""What is refused about the kinds other than pods, in upstream's words."""

import copy
from typing import Any

import pytest

from extender.rules import validation
from extender.rules.api_resources import (
    CSI_NODES,
    DEPLOYMENTS,
    DEVICE_CLASSES,
    LEASES,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    PRIORITY_CLASSES,
    REPLICA_SETS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    RESOURCES,
    SERVICES,
    STATEFUL_SETS,
    STORAGE_CLASSES,
)
from extender.rules.validation import workload_rules
from tests.kit.tables import cases
from tests.reprieve.cluster import made_objects

APP = {"matchLabels": {"app": "x"}}
TEMPLATE: dict[str, Any] = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
WORKLOAD = {"selector": APP, "template": TEMPLATE}
NFS = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "nfs": {"server": "s", "path": "/"}}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
SLICE = {"driver": "d.example.com", "nodeName": "n", "pool": {"name": "p", "resourceSliceCount": 1}}


def made(resource, name="x", **fields):
    metadata = {"name": name, "resourceVersion": "1"} | ({"namespace": "default"} if resource.namespaced else {})
    return made_objects.made(resource, {"metadata": metadata, **fields})


def errors_of(resource, name="x", **fields):
    return list(map(str, validation.validate_create(resource, made(resource, name, **fields))))


def errors_of_change(resource, before, after, subresource=""):
    return list(
        map(str, validation.validate_update(resource, made(resource, **after), made(resource, **before), subresource))
    )


@pytest.mark.parametrize(
    ("resource", "fields"),
    [
        (NODES, {}),
        (NAMESPACES, {}),
        (DEPLOYMENTS, {"spec": WORKLOAD}),
        (REPLICA_SETS, {"spec": WORKLOAD}),
        (STATEFUL_SETS, {"spec": WORKLOAD}),
        (SERVICES, {"spec": {"ports": [{"port": 80}]}}),
        (PERSISTENT_VOLUMES, {"spec": NFS}),
        (PERSISTENT_VOLUME_CLAIMS, {"spec": CLAIM}),
        (POD_DISRUPTION_BUDGETS, {"spec": {"minAvailable": "50%", "selector": APP}}),
        (PRIORITY_CLASSES, {"value": 1000}),
        (STORAGE_CLASSES, {"provisioner": "p"}),
        (CSI_NODES, {"spec": {"drivers": [{"name": "d", "nodeID": "n"}]}}),
        (LEASES, {"spec": {"leaseDurationSeconds": 15}}),
        (DEVICE_CLASSES, {"spec": {"selectors": [{"cel": {"expression": "true"}}]}}),
        (DEVICE_CLASSES, {"spec": {"extendedResourceName": "example.com/gpu"}}),
        (RESOURCE_CLAIMS, {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "d"}}]}}}),
        (RESOURCE_SLICES, {"spec": SLICE}),
    ],
)
def test_valid_object_is_accepted_on_create_and_update(resource, fields):
    assert errors_of(resource, **fields) == []
    assert errors_of_change(resource, fields, fields) == []


@pytest.mark.parametrize(
    ("resource", "fields", "error"),
    [
        (
            NODES,
            {"spec": {"taints": [{"key": "a", "effect": "x"}]}},
            'metadata.taints[0].effect: Unsupported value: "x": supported values: "NoSchedule", '
            '"PreferNoSchedule", "NoExecute"',
        ),
        (
            NODES,
            {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoSchedule"}]}},
            'metadata.taints[1]: Duplicate value: {"Key":"a","Value":"","Effect":"NoSchedule","TimeAdded":null}: '
            "taints must be unique by key and effect pair",
        ),
        (
            NODES,
            {"status": {"capacity": {"pods": "1.5"}, "allocatable": {"pods": "1"}}},
            'status.capacity.pods: Invalid value: "1500m": must be an integer',
        ),
        (
            DEPLOYMENTS,
            {"spec": {"template": TEMPLATE, "selector": {}}},
            "spec.selector: Invalid value: {}: empty selector is invalid for deployment",
        ),
        (
            DEPLOYMENTS,
            {"spec": {**WORKLOAD, "replicas": -1}},
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            DEPLOYMENTS,
            {"spec": {**WORKLOAD, "strategy": {"type": "Recreate", "rollingUpdate": {}}}},
            "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'",
        ),
        (
            REPLICA_SETS,
            {
                "spec": {
                    "selector": APP,
                    "template": {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}},
                }
            },
            'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
        ),
        (
            SERVICES,
            {"spec": {"selector": {"app": "-"}}},
            'spec.selector: Invalid value: "-": a valid label must be an empty string or consist of alphanumeric '
            "characters, '-', "
            "'_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  "
            "or '12345', regex "
            "used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
        ),
        (
            POD_DISRUPTION_BUDGETS,
            {"spec": {"minAvailable": 1, "maxUnavailable": "1%"}},
            "spec: Invalid value: "
            '{"MinAvailable":1,"Selector":null,"MaxUnavailable":"1%","UnhealthyPodEvictionPolicy":null}: '
            "minAvailable and maxUnavailable cannot be both set",
        ),
        (
            POD_DISRUPTION_BUDGETS,
            {"spec": {"maxUnavailable": "101%"}},
            'spec.maxUnavailable: Invalid value: "101%": must not be greater than 100%',
        ),
        (
            PRIORITY_CLASSES,
            {"value": 1000000001},
            "value: Forbidden: maximum allowed value of a user defined priority is 1000000000",
        ),
        (STORAGE_CLASSES, {}, "provisioner: Required value"),
        (
            LEASES,
            {"spec": {"leaseDurationSeconds": 0}},
            "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
        ),
        (
            RESOURCE_CLAIMS,
            {"spec": {"devices": {"requests": [{"name": "r"}]}}},
            "spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required",
        ),
        (
            RESOURCE_CLAIMS,
            {"spec": {"devices": {"requests": [{"name": "r", "exactly": {}}]}}},
            "spec.devices.requests[0].exactly.deviceClassName: Required value",
        ),
        (DEVICE_CLASSES, {"spec": {"selectors": [{}]}}, "spec.selectors[0].cel: Required value"),
        (
            DEVICE_CLASSES,
            {"spec": {"extendedResourceName": "gpu"}},
            'spec.extendedResourceName: Invalid value: "gpu": a name must be a domain-prefixed path, such as '
            "'example.com/my-prop'",
        ),
        (
            DEVICE_CLASSES,
            {"spec": {"extendedResourceName": "deviceclass.resource.kubernetes.io/gpu"}},
            'spec.extendedResourceName: Invalid value: "deviceclass.resource.kubernetes.io/gpu": must not have '
            '"kubernetes.io/" domain',
        ),
        (
            DEVICE_CLASSES,
            {"spec": {"extendedResourceName": "requests.example.com/gpu"}},
            'spec.extendedResourceName: Invalid value: "requests.example.com/gpu": must not have "requests." prefix',
        ),
        (
            RESOURCE_SLICES,
            {"spec": {name: value for name, value in SLICE.items() if name != "nodeName"}},
            "spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` "
            "is required",
        ),
    ],
)
def test_invalid_field_is_refused(resource, fields, error):
    assert errors_of(resource, **fields) == [error]


@pytest.mark.parametrize(
    ("resource", "fields", "errors"),
    [
        (
            DEPLOYMENTS,
            {"spec": {"template": TEMPLATE}},
            [
                "spec.selector: Required value",
                'spec.template.metadata.labels: Invalid value: {"app":"x"}: `selector` does not match template '
                "`labels`",
            ],
        ),
        (
            PERSISTENT_VOLUMES,
            {"spec": {}},
            [
                "spec.accessModes: Required value",
                "spec.capacity: Required value",
                "spec: Required value: must specify a volume type",
            ],
        ),
        (
            PERSISTENT_VOLUME_CLAIMS,
            {"spec": {}},
            [
                "spec.accessModes: Required value: at least 1 access mode is required",
                "spec.resources[storage]: Required value",
            ],
        ),
    ],
)
def test_every_invalid_field_is_named(resource, fields, errors):
    assert errors_of(resource, **fields) == errors


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("system-mine", 1, "system-mine is not a known system priority class"),
        ("system-node-critical", 1, "value of system-node-critical PriorityClass must be 2000001000"),
    ],
)
def test_names_of_the_system_are_its_own(name, value, error):
    prefix = (
        "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: "
    )

    assert errors_of(PRIORITY_CLASSES, name, value=value) == [prefix + error]


def test_services_have_stricter_names():
    assert errors_of(SERVICES, "1a", spec={"ports": [{"port": 80}]})[0].startswith(
        'metadata.name: Invalid value: "1a": a DNS-1035 label'
    )


@pytest.mark.parametrize(
    ("resource", "before", "after", "error"),
    [
        (
            NODES,
            {"spec": {"providerID": "a"}},
            {"spec": {"providerID": "b"}},
            'spec.providerID: Forbidden: node updates may not change providerID except from "" to valid',
        ),
        (
            NODES,
            {"spec": {"podCIDR": "10.0.0.0/24"}},
            {"spec": {"podCIDR": "10.0.1.0/24"}},
            'spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid',
        ),
        (
            DEPLOYMENTS,
            {"spec": {"selector": {"matchLabels": {"app": "y"}}, "template": TEMPLATE}},
            {"spec": WORKLOAD},
            'spec.selector: Invalid value: {"matchLabels":{"app":"x"}}: field is immutable',
        ),
        (
            STATEFUL_SETS,
            {"spec": {**WORKLOAD, "serviceName": "a"}},
            {"spec": {**WORKLOAD, "serviceName": "b", "replicas": 3}},
            "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', "
            "'template', 'updateStrategy', "
            "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
        ),
        (PRIORITY_CLASSES, {"value": 1}, {"value": 2}, "value: Forbidden: may not be changed in an update."),
        (
            PRIORITY_CLASSES,
            {"value": 1},
            {"value": 1, "preemptionPolicy": "Never"},
            'preemptionPolicy: Invalid value: "Never": field is immutable',
        ),
        (
            STORAGE_CLASSES,
            {"provisioner": "a"},
            {"provisioner": "b"},
            "provisioner: Forbidden: updates to provisioner are forbidden.",
        ),
        (
            PERSISTENT_VOLUMES,
            {"spec": NFS},
            {"spec": {**NFS, "nfs": {"server": "t", "path": "/"}}},
            "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation",
        ),
        (
            PERSISTENT_VOLUME_CLAIMS,
            {"spec": CLAIM},
            {"spec": {**CLAIM, "accessModes": ["ReadWriteMany"]}},
            "spec: Forbidden: spec is immutable after creation except resources.requests and "
            "volumeAttributesClassName for bound "
            "claims\n",
        ),
    ],
)
def test_immutable_field_is_refused_when_changed(resource, before, after, error):
    assert errors_of_change(resource, before, after) == [error]


def test_the_volume_of_an_unbound_claim_may_be_named():
    assert errors_of_change(PERSISTENT_VOLUME_CLAIMS, {"spec": CLAIM}, {"spec": {**CLAIM, "volumeName": "v"}}) == []


def test_a_bound_claim_may_grow():
    old, new = made(PERSISTENT_VOLUME_CLAIMS, spec=CLAIM), made(PERSISTENT_VOLUME_CLAIMS, spec=CLAIM)
    for claim in (old, new):
        claim["status"] = {"phase": "Bound", "capacity": {"storage": "1Gi"}}
    new["spec"]["resources"]["requests"]["storage"] = "2Gi"

    assert validation.validate_update(PERSISTENT_VOLUME_CLAIMS, new, old) == []


def test_an_allocation_stays():
    devices = {"requests": [{"name": "r", "exactly": {"deviceClassName": "d"}}]}
    old = made(RESOURCE_CLAIMS, spec={"devices": devices})
    result = {"request": "r", "driver": "d", "pool": "p", "device": "x"}
    allocated = copy.deepcopy(old) | {"status": {"allocation": {"devices": {"results": [result]}}}}
    moved = copy.deepcopy(old) | {"status": {"allocation": {"devices": {"results": [{**result, "device": "y"}]}}}}

    assert validation.validate_update(RESOURCE_CLAIMS, allocated, old, "status") == []
    assert [error.field for error in validation.validate_update(RESOURCE_CLAIMS, moved, allocated, "status")] == [
        "status.allocation"
    ]


def test_a_scale_is_not_negative():
    scale = {"metadata": {"name": "x", "namespace": "default"}, "spec": {"replicas": -1}}

    assert list(map(str, workload_rules.validate_scale(scale))) == [
        "spec.replicas: Invalid value: -1: must be greater than or equal to 0"
    ]


def test_every_stored_kind_is_judged():
    """A name that no kind allows is refused by all of them but core/v1's events, as upstream."""
    lenient = {
        (resource.group, resource.kind)
        for resource in RESOURCES
        if resource.is_stored and not any(error.startswith("metadata.name") for error in errors_of(resource, "%"))
    }

    assert lenient == {("", "Event")}


def test_more_available_replicas_than_ready_ones_are_refused():
    old, new = made(REPLICA_SETS, spec=WORKLOAD), made(REPLICA_SETS, spec=WORKLOAD)
    new["status"] = {"replicas": 2, "readyReplicas": 1, "availableReplicas": 2}

    errors = list(map(str, validation.validate_update(REPLICA_SETS, new, old, "status")))

    assert errors == ["status.availableReplicas: Invalid value: 2: cannot be greater than readyReplicas"]


def test_more_ready_replicas_than_replicas_are_refused():
    old, new = made(REPLICA_SETS, spec=WORKLOAD), made(REPLICA_SETS, spec=WORKLOAD)
    new["status"] = {"replicas": 1, "readyReplicas": 2}

    errors = list(map(str, validation.validate_update(REPLICA_SETS, new, old, "status")))

    assert errors == ["status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas"]


def near(key, zone="a"):
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": [zone]}]}]
    return {"spec": {**NFS, "nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}}


@cases(
    "after, is_refused",
    ("as it was", near("failure-domain.beta.kubernetes.io/zone"), False),
    ("the name of today", near("topology.kubernetes.io/zone"), False),
    ("the name of something else", near("topology.kubernetes.io/region"), True),
    ("the name of today, and another zone", near("topology.kubernetes.io/zone", "b"), True),
    ("nothing any more", {"spec": NFS}, True),
)
def test_node_affinity_of_a_volume_may_change_only_to_current_label_names(after, is_refused):
    errors = errors_of_change(PERSISTENT_VOLUMES, near("failure-domain.beta.kubernetes.io/zone"), after)

    assert any("nodeAffinity" in error and "field is immutable" in error for error in errors) is is_refused
    assert len(errors) == is_refused
