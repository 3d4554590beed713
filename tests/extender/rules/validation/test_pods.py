"""What is not refused about a new pod; the refusals are in `refusals.yaml`."""

from typing import Any

from extender.rules import api_resources, validation
from tests.kit.tables import cases
from tests.reprieve.cluster.made_objects import made


def errors_of(spec, **metadata):
    """What is said of a pod with this spec; one container unless it says otherwise."""
    manifest: Any = {
        "metadata": {"name": "p", "namespace": "default", **metadata},
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
    }
    return list(map(str, validation.validate_create(api_resources.PODS, made(api_resources.PODS, manifest))))


def container(**fields):
    return {"containers": [{"name": "c", "image": "i", **fields}]}


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


def test_many_names_of_claims_are_not_listed():
    """Each of many errors would list them."""
    spec = container(resources={"claims": [{"name": "x"}]}) | {
        "resourceClaims": [{"name": f"claim-{place}", "resourceClaimName": "any"} for place in range(9)]
    }

    assert errors_of(spec) == [
        'spec.containers[0].resources.claims[0]: Not found: "x": must be one of the names in pod.spec.resourceClaims'
    ]


def test_a_base_for_names_may_end_in_a_dash():
    assert errors_of({}, generateName="web-") == []
