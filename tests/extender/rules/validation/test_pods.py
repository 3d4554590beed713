"""What is refused about a new pod, in upstream's words."""

from typing import Any

import pytest

from extender.rules import api_resources, validation
from tests.kit.tables import cases
from tests.reprieve.cluster.made_objects import made

LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric "
    "character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)


def errors_of(spec, **metadata):
    """What is said of a pod with this spec; one container unless it says otherwise."""
    given: Any = {
        "metadata": {"name": "p", "namespace": "default", **metadata},
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
    }
    return list(map(str, validation.validate_create(api_resources.PODS, made(api_resources.PODS, given))))


def container(**fields):
    return {"containers": [{"name": "c", "image": "i", **fields}]}


def asking(**parts):
    return container(resources=parts)


CLAIMS = [{"name": f"claim-{place}", "resourceClaimName": "any"} for place in range(9)]


def preferring(**term):
    weighted = {"weight": 1, "preference": {}, **term}
    return {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}}}


def requiring(*terms):
    return {
        "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
        }
    }


def spreading(**constraint):
    return {
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", **constraint}
        ]
    }


def test_a_plain_pod_is_fine():
    assert errors_of({}) == []


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        (container(name=""), "spec.containers[0].name: Required value"),
        (container(image=""), "spec.containers[0].image: Required value"),
        (container(name="A"), f'spec.containers[0].name: Invalid value: "A": {LABEL}'),
        (
            container(image=" i"),
            'spec.containers[0].image: Invalid value: " i": must not have leading or trailing whitespace',
        ),
        (
            {"containers": [{"name": "c", "image": "i"}, {"name": "c", "image": "i"}]},
            'spec.containers[1].name: Duplicate value: "c"',
        ),
        ({"initContainers": [{"name": "c", "image": "i"}]}, 'spec.initContainers[0].name: Duplicate value: "c"'),
        (
            {"restartPolicy": "x"},
            'spec.restartPolicy: Unsupported value: "x": supported values: "Always", "OnFailure", "Never"',
        ),
        (container(ports=[{"containerPort": 0}]), "spec.containers[0].ports[0].containerPort: Required value"),
        (
            container(ports=[{"containerPort": 70000}]),
            "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
        ),
        (
            container(ports=[{"containerPort": 1, "hostPort": 2}, {"containerPort": 3, "hostPort": 2}]),
            'spec.containers[0].ports[1].hostPort: Duplicate value: "TCP//2"',
        ),
        (
            container(ports=[{"containerPort": 1, "protocol": "x"}]),
            'spec.containers[0].ports[0].protocol: Unsupported value: "x": supported values: "SCTP", "TCP", "UDP"',
        ),
        ({"volumes": [{"name": "v"}, {"name": "v"}]}, 'spec.volumes[1].name: Duplicate value: "v"'),
        (
            {"volumes": [{"name": "v", "persistentVolumeClaim": {}}]},
            "spec.volumes[0].persistentVolumeClaim.claimName: Required value",
        ),
        (
            {"volumes": [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]},
            "spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type",
        ),
    ],
)
def test_containers_and_volumes(spec, error):
    assert errors_of(spec) == [error]


@cases(
    "spec",
    ("a probe without a handler", container(livenessProbe={})),
    ("a probe of an init container", {"initContainers": [{"name": "a", "image": "i", "readinessProbe": {"exec": {}}}]}),
    ("an environment variable", container(env=[{"name": "a=b", "valueFrom": {}}])),
    ("a mount of a volume that is not there", container(volumeMounts=[{"name": "v", "mountPath": "/"}])),
    ("a security context of a container", container(securityContext={"runAsUser": -1})),
    ("sysctls", {"securityContext": {"sysctls": [{"name": "a", "value": "b"}, {"name": "a", "value": "c"}]}}),
    ("no name server", {"dnsPolicy": "None"}),
    ("an alias of a host", {"hostAliases": [{"ip": "x"}]}),
    ("a path of the node", {"volumes": [{"name": "v", "hostPath": {"path": ""}}]}),
    ("when images are pulled", container(imagePullPolicy="x")),
)
def test_fields_that_scheduling_does_not_read_are_not_validated(spec):
    """A real API server refuses each of these: a known difference."""
    assert errors_of(spec) == []


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        (
            asking(requests={"cpu": "2"}, limits={"cpu": "1"}),
            'spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
        ),
        (
            asking(requests={"cpu": "-1"}),
            'spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0',
        ),
        (
            asking(requests={"example.com/gpu": "1"}),
            "spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources",
        ),
        (
            asking(requests={"example.com/gpu": "1"}, limits={"example.com/gpu": "2"}),
            'spec.containers[0].resources.requests: Invalid value: "1": must be equal to example.com/gpu limit of 2',
        ),
        (
            asking(requests={"hugepages-2Mi": "2Mi"}, limits={"hugepages-2Mi": "2Mi"}),
            "spec.containers[0].resources: Forbidden: HugePages require cpu or memory",
        ),
        (
            asking(claims=[{"name": "x"}]),
            'spec.containers[0].resources.claims[0]: Not found: "x": must be one of the names in '
            "pod.spec.resourceClaims which is empty",
        ),
        (
            {**asking(claims=[{"name": "x"}]), "resourceClaims": CLAIMS[:2]},
            'spec.containers[0].resources.claims[0]: Not found: "x": must be one of the names in '
            "pod.spec.resourceClaims: claim-0, claim-1",
        ),
        pytest.param(
            {**asking(claims=[{"name": "x"}]), "resourceClaims": CLAIMS},
            'spec.containers[0].resources.claims[0]: Not found: "x": must be one of the names in '
            "pod.spec.resourceClaims",
            id="many names are not listed, because each of many errors would list them",
        ),
        (
            {"resourceClaims": [{"name": "a"}]},
            "spec.resourceClaims[0]: Invalid value: "
            '{"Name":"a","ResourceClaimName":null,"ResourceClaimTemplateName":null}: '
            "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
        ),
    ],
)
def test_amounts_and_claims(spec, error):
    assert errors_of(spec) == [error]


def test_a_pod_asks_for_what_its_containers_need():
    spec = asking(requests={"cpu": "2"}, limits={"cpu": "4"}) | {
        "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "3"}}
    }

    assert errors_of(spec) == [
        'spec.resources.requests[cpu]: Invalid value: "1": must be greater than or equal to aggregate container '
        "requests of 2",
        'spec.resources.containers[0][cpu].limits: Invalid value: "4": must be less than or equal to pod limits of 3',
    ]


def test_a_resource_without_a_domain_is_named_twice():
    """Two rules find it, and both say so."""
    assert errors_of(asking(limits={"foo": "1"})) == [
        'spec.containers[0].resources.limits[foo]: Invalid value: "foo": must be a standard resource type or fully '
        "qualified",
        'spec.containers[0].resources.limits[foo]: Invalid value: "foo": must be a standard resource for containers',
        'spec.containers[0].resources.requests[foo]: Invalid value: "foo": must be a standard resource type or fully '
        "qualified",
        'spec.containers[0].resources.requests[foo]: Invalid value: "foo": must be a standard resource for containers',
    ]


def test_a_claim_is_named_after_its_requests_as_often_as_it_has_them():
    claims = [{"name": "claim-0", "request": "a"}, {"name": "claim-0", "request": "b"}, {"name": "claim-0"}]

    errors = errors_of({**asking(claims=claims), "resourceClaims": CLAIMS})

    assert errors == ['spec.containers[0].resources.claims[2]: Duplicate value: "claim-0"'] * 2


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        (
            {"tolerations": [{"operator": "Equal"}]},
            'spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists when `key` is empty, which '
            'means "match all '
            'values and all keys"',
        ),
        (
            {"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]},
            "spec.tolerations[0].operator: Invalid value: \"b\": value must be empty when `operator` is 'Exists'",
        ),
        (
            {"tolerations": [{"key": "a", "operator": "x"}]},
            'spec.tolerations[0].operator: Unsupported value: "x": supported values: "Equal", "Exists"',
        ),
        (
            {"tolerations": [{"key": "a", "effect": "NoSchedule", "tolerationSeconds": 1}]},
            "spec.tolerations[0].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when "
            "`tolerationSeconds` is set",
        ),
        (
            requiring(),
            "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required "
            "value: "
            "must have at least one node selector term",
        ),
        (
            requiring({"matchExpressions": [{"key": "a", "operator": "In"}]}),
            "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values: "
            "Required value: must be specified when `operator` is 'In' or 'NotIn'",
        ),
        (
            preferring(weight=101),
            "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 101: "
            "must be in the range 1-100",
        ),
        (
            spreading(maxSkew=0),
            "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
        ),
        (spreading(topologyKey=""), "spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty"),
        (
            spreading(whenUnsatisfiable="x"),
            'spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "x": supported values: '
            '"DoNotSchedule", '
            '"ScheduleAnyway"',
        ),
        (
            spreading(whenUnsatisfiable="ScheduleAnyway", minDomains=1),
            "spec.topologySpreadConstraints[0].minDomains: Invalid value: 1: can only use minDomains if "
            "whenUnsatisfiable=DoNotSchedule, "
            "not ScheduleAnyway",
        ),
        (
            spreading(labelSelector={"matchLabels": {"app": "x"}}, matchLabelKeys=["app"]),
            'spec.topologySpreadConstraints[0].matchLabelKeys[0]: Invalid value: "app": exists in both matchLabelKeys '
            "and labelSelector",
        ),
        ({"schedulingGates": [{"name": "a"}, {"name": "a"}]}, 'spec.schedulingGates[1]: Duplicate value: "a"'),
        (
            {"schedulingGates": [{"name": "a"}], "nodeName": "n"},
            "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared",
        ),
        (
            {"activeDeadlineSeconds": 0},
            "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive",
        ),
        (
            {"preemptionPolicy": "x"},
            'spec.preemptionPolicy: Unsupported value: "x": supported values: "PreemptLowerPriority", "Never"',
        ),
    ],
)
def test_scheduling(spec, error):
    assert errors_of(spec, labels={"app": "x"}) == [error]


def test_affinity_term_without_topology_key_has_three_errors():
    term: dict[str, Any] = {"labelSelector": {}}

    errors = errors_of({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}})

    path = "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey"
    assert errors[0] == f"{path}: Required value: can not be empty"
    assert errors[1] == f'{path}: Invalid value: "": name part must be non-empty'
    assert len(errors) == 3


@pytest.mark.parametrize(
    ("metadata", "start"),
    [
        (
            {"labels": {"a b": "c"}},
            'metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters',
        ),
        (
            {"labels": {"a": "-"}},
            'metadata.labels: Invalid value: "-": a valid label must be an empty string or consist of',
        ),
        ({"annotations": {"A/B/C": ""}}, 'metadata.annotations: Invalid value: "A/B/C": a valid label key'),
        ({"annotations": {"a": "x" * 262144}}, "metadata.annotations: Too long: may not be more than 262144 bytes"),
        ({"name": "a" * 254}, f'metadata.name: Invalid value: "{"a" * 254}": must be no more than 253 bytes'),
        (
            {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x"}]},
            'metadata.ownerReferences.uid: Invalid value: "": must not',
        ),
        ({"finalizers": ["a b"]}, 'metadata.finalizers: Invalid value: "a b": name part must consist of'),
    ],
)
def test_metadata(metadata, start):
    (error,) = errors_of({}, **metadata)

    assert error.startswith(start)


def test_a_base_for_names_may_end_in_a_dash():
    assert errors_of({}, generateName="web-") == []
    assert errors_of({}, generateName="Web-")[0].startswith(
        'metadata.generateName: Invalid value: "Web-": a lowercase RFC 1123 subdomain'
    )


def test_target_of_a_binding_must_be_a_node():
    def said(target):
        return list(
            map(str, validation.validate_create(api_resources.BINDINGS, {"metadata": {"name": "p"}, "target": target}))
        )

    assert said({"kind": "Node", "name": "n"}) == []
    assert said({"kind": "Pod"}) == [
        'target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"',
        "target.name: Required value",
    ]
