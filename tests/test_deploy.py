"""What ships for a cluster asks for what the program does there, and for nothing else."""

from pathlib import Path
from typing import Any

import yaml

from extender.objects.kinds import KINDS

MANIFEST = Path(__file__).parents[1] / "deploy" / "kubernetes" / "extender.yaml"
OBJECTS: dict[str, Any] = {obj["kind"]: obj for obj in yaml.safe_load_all(MANIFEST.read_text())}

WRITTEN = {
    ("", "pods/binding", "create"), ("", "pods", "delete"), ("", "pods/status", "patch"), ("", "persistentvolumes", "patch"),
    ("", "persistentvolumeclaims", "patch"), ("resource.k8s.io", "resourceclaims", "patch"),
    ("resource.k8s.io", "resourceclaims/status", "patch"), ("events.k8s.io", "events", "create"), ("events.k8s.io", "events", "patch"),
    ("coordination.k8s.io", "leases", "get"), ("coordination.k8s.io", "leases", "create"), ("coordination.k8s.io", "leases", "update"),
}  # fmt: skip


def test_the_role_allows_what_is_followed_and_written() -> None:
    allowed = {
        (group, resource, verb)
        for rule in OBJECTS["ClusterRole"]["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }

    followed = {(kind.group, kind.plural, verb) for kind in KINDS for verb in ("get", "list", "watch")}
    assert allowed == followed | WRITTEN


def test_the_api_server_may_be_asked_who_callers_are() -> None:
    bindings = [obj for obj in yaml.safe_load_all(MANIFEST.read_text()) if obj["kind"] == "ClusterRoleBinding"]
    account = OBJECTS["ServiceAccount"]["metadata"]

    assert {binding["roleRef"]["name"] for binding in bindings} == {OBJECTS["ClusterRole"]["metadata"]["name"], "system:auth-delegator"}
    assert all(binding["subjects"] == [{"kind": "ServiceAccount", **account}] for binding in bindings)


def test_the_parts_find_each_other() -> None:
    pod = OBJECTS["Deployment"]["spec"]["template"]
    (container,) = pod["spec"]["containers"]

    assert OBJECTS["Service"]["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    assert OBJECTS["Deployment"]["spec"]["selector"]["matchLabels"] == pod["metadata"]["labels"]
    assert pod["spec"]["serviceAccountName"] == OBJECTS["ServiceAccount"]["metadata"]["name"]
    assert OBJECTS["Service"]["spec"]["ports"][0]["targetPort"] == container["ports"][0]["containerPort"]
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": 8888}
