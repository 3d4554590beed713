"""What the API fills in."""

import pytest

from extender.rules import api_resources
from tests.kit.tables import cases
from tests.reprieve.cluster.made_objects import defaulted


def pod(**spec):
    return defaulted(api_resources.PODS, {"spec": {"containers": [{"name": "c", "image": "i:1"}], **spec}})["spec"]


def test_a_bare_pod():
    assert pod() == {
        "containers": [
            {
                "name": "c",
                "image": "i:1",
                "imagePullPolicy": "IfNotPresent",
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "resources": {},
            }
        ],
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
        "enableServiceLinks": True,
    }


def test_defaults_do_not_overwrite():
    assert (
        pod(terminationGracePeriodSeconds=0, restartPolicy="Never", enableServiceLinks=False).items()
        >= {"terminationGracePeriodSeconds": 0, "restartPolicy": "Never", "enableServiceLinks": False}.items()
    )


def test_requests_of_a_pod_default_to_its_limits():
    spec = pod(
        containers=[{"name": "c", "resources": {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}}]
    )

    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}


def test_templates_keep_their_requests_and_service_links():
    """What is filled in for pods only is not filled in for the pods of a workload before they exist."""
    container = {"name": "c", "resources": {"limits": {"cpu": "2"}}}

    spec = defaulted(api_resources.DEPLOYMENTS, {"spec": {"template": {"spec": {"containers": [container]}}}})["spec"][
        "template"
    ]["spec"]

    assert spec["containers"][0]["resources"] == {"limits": {"cpu": "2"}}
    assert "enableServiceLinks" not in spec
    assert spec["restartPolicy"] == "Always"


def test_ports_volumes_and_probes():
    spec = pod(
        hostNetwork=True,
        containers=[{"name": "c", "ports": [{"containerPort": 80}], "livenessProbe": {"httpGet": {"port": 80}}}],
        volumes=[{"name": "e"}, {"name": "s", "secret": {"secretName": "x"}}, {"name": "h", "hostPath": {"path": "/"}}],
    )

    container = spec["containers"][0]
    assert container["ports"] == [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]
    assert container["livenessProbe"] == {
        "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    assert spec["volumes"] == [
        {"name": "e", "emptyDir": {}},
        {"name": "s", "secret": {"secretName": "x", "defaultMode": 420}},
        {"name": "h", "hostPath": {"path": "/", "type": ""}},
    ]


def test_amounts_finer_than_a_thousandth_are_rounded_up():
    spec = pod(containers=[{"name": "c", "resources": {"requests": {"cpu": "100u"}}}])

    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "1m"}


def test_requests_of_a_pod_come_from_its_containers_and_then_from_its_limits():
    containers = [
        {"name": "c", "resources": {"requests": {"cpu": "1"}}},
        {"name": "d", "resources": {"requests": {"cpu": "500m"}}},
    ]

    spec = pod(containers=containers, resources={"limits": {"cpu": "4", "memory": "1Gi"}})

    assert spec["resources"] == {"limits": {"cpu": "4", "memory": "1Gi"}, "requests": {"cpu": "1500m", "memory": "1Gi"}}


def test_init_containers_count_by_the_largest_and_with_the_sidecars_before_them():
    init = [
        {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}},
        {"name": "i", "resources": {"requests": {"cpu": "3"}}},
    ]
    containers = [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]

    spec = pod(initContainers=init, containers=containers, resources={"limits": {"cpu": "8"}})

    assert spec["resources"]["requests"] == {"cpu": "4"}


def test_both_names_of_the_service_account_are_filled_in():
    assert pod(serviceAccountName="a")["serviceAccount"] == "a"
    assert pod(serviceAccount="b")["serviceAccountName"] == "b"


def test_allocatable_defaults_to_capacity():
    node = defaulted(api_resources.NODES, {"status": {"capacity": {"cpu": "4"}}})

    assert node["status"]["allocatable"] == {"cpu": "4"}


@cases(
    "resource, partial, spec",
    (
        "Deployment",
        api_resources.DEPLOYMENTS,
        {},
        {
            "replicas": 1,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
            "revisionHistoryLimit": 10,
            "progressDeadlineSeconds": 600,
        },
    ),
    (
        "as set",
        api_resources.DEPLOYMENTS,
        {"replicas": 0, "strategy": {"type": "Recreate"}},
        {"replicas": 0, "strategy": {"type": "Recreate"}},
    ),
    (
        "StatefulSet",
        api_resources.STATEFUL_SETS,
        {},
        {
            "replicas": 1,
            "podManagementPolicy": "OrderedReady",
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
        },
    ),
    ("ReplicationController", api_resources.REPLICATION_CONTROLLERS, {}, {"replicas": 1}),
    ("PersistentVolumeClaim", api_resources.PERSISTENT_VOLUME_CLAIMS, {}, {"volumeMode": "Filesystem"}),
    (
        "Service",
        api_resources.SERVICES,
        {"ports": [{"port": 80}]},
        {"type": "ClusterIP", "sessionAffinity": "None", "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}]},
    ),
    (
        "ResourceClaim",
        api_resources.RESOURCE_CLAIMS,
        {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "d"}}]}},
        {
            "devices": {
                "requests": [
                    {"name": "r", "exactly": {"deviceClassName": "d", "allocationMode": "ExactCount", "count": 1}}
                ]
            }
        },
    ),
)
def test_defaults_of_other_kinds_are_filled_in(resource, partial, spec):
    completed = defaulted(resource, {"spec": partial})["spec"]

    assert {name: completed[name] for name in spec} == spec


def test_kinds_without_a_spec():
    assert defaulted(api_resources.PRIORITY_CLASSES, {"value": 1})["preemptionPolicy"] == "PreemptLowerPriority"
    assert defaulted(api_resources.STORAGE_CLASSES, {})["volumeBindingMode"] == "Immediate"


def test_defaulting_twice_changes_nothing():
    once = defaulted(
        api_resources.PODS,
        {"spec": {"containers": [{"name": "c", "ports": [{"containerPort": 1}]}], "volumes": [{"name": "v"}]}},
    )

    assert defaulted(api_resources.PODS, once) == once


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1", "IfNotPresent"),
        ("localhost:5000/nginx", "Always"),
        ("localhost:5000/nginx:2", "IfNotPresent"),
        (f"nginx@sha256:{'a' * 64}", "IfNotPresent"),
        ("Not An Image", "IfNotPresent"),
        ("", "IfNotPresent"),
    ],
)
def test_images_are_pulled_anew_when_their_tag_may_move(image, policy):
    assert pod(containers=[{"name": "c", "image": image}])["containers"][0]["imagePullPolicy"] == policy
