"""Each manifest runs the service as its words say, over TLS or on loopback only, with the least that it needs."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import yaml

from tests.api.in_process import ROOT
from tests.deploy.manifests import container, one, pod_spec, shipped
from tests.deploy.pods import client, running
from tests.kit.certificates import Authority
from tests.kit.service import serving
from tests.kit.waiting import until
from tools.render_manifests import IMAGE, NAMESPACE, VARIANTS

each_variant: Final = pytest.mark.parametrize("variant", VARIANTS)
SELECTOR: Final = {"app.kubernetes.io/name": "reprieve", "app.kubernetes.io/instance": "reprieve"}


def containers(variant: str) -> Sequence[dict[str, Any]]:
    specs: Sequence[dict[str, Any]] = pod_spec(shipped(variant))["containers"]
    return specs


@each_variant
def test_the_parts_find_each_other(variant: str) -> None:
    objects = shipped(variant)
    spec, ours = pod_spec(objects), container(objects)
    mounts = {mount["name"]: mount["mountPath"] for mount in ours["volumeMounts"]}
    (port,) = ours["ports"]

    assert all(obj["metadata"]["name"].startswith("reprieve") for obj in objects)
    assert all(obj["metadata"].get("namespace", NAMESPACE) == NAMESPACE for obj in objects)
    assert spec["serviceAccountName"] == one("ServiceAccount", objects)["metadata"]["name"]
    assert one("Deployment", objects)["spec"]["template"]["metadata"]["labels"] == SELECTOR
    for obj in objects:
        if obj["kind"] in ("Deployment", "PodDisruptionBudget"):
            assert obj["spec"]["selector"] == {"matchLabels": SELECTOR}
        if obj["kind"] == "Service":
            assert obj["spec"]["selector"] == SELECTOR
            assert [(entry["port"], entry["targetPort"]) for entry in obj["spec"]["ports"]] == [(443, port["name"])]
        if obj["kind"] == "NetworkPolicy":
            assert obj["spec"]["podSelector"] == {"matchLabels": SELECTOR}
    assert mounts.keys() == {volume["name"] for volume in spec["volumes"]}
    assert all(arg.partition("=")[2].startswith(tuple(mounts.values())) for arg in ours["args"] if "=/" in arg)
    (image,) = yaml.safe_load((ROOT / "deploy" / "kubernetes" / variant / "kustomization.yaml").read_text())["images"]
    assert ours["image"] == f"{image['name']}:{image['newTag']}"
    assert image["name"] == IMAGE


@each_variant
def test_a_container_may_do_nothing_but_serve(variant: str) -> None:
    """As the Pod Security Standard "restricted" asks but for the scheduler's host network, and the root file system
    cannot be written.
    """
    assert pod_spec(shipped(variant))["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "runAsGroup": 65532,
        "fsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    for container_spec in containers(variant):
        assert container_spec["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        }
    assert pod_spec(shipped(variant)).get("hostNetwork", False) == (variant == "scheduler")


@each_variant
def test_the_memory_limit_is_twice_what_a_large_cluster_was_measured_to_take(variant: str) -> None:
    figures = (ROOT / "docs" / "figures.md").read_text()
    (peak,) = re.findall(r"5,000 nodes and 150,000 pods(?:.*\n)+? +the whole extender: .* peak (\d+) MiB", figures)

    assert container(shipped(variant))["resources"]["limits"]["memory"] == "1Gi"
    assert 2 * int(peak) <= 1024


@each_variant
def test_no_container_may_fill_the_disk_of_its_node(variant: str) -> None:
    resources = [container_spec["resources"] for container_spec in containers(variant)]

    assert {amounts["limits"]["ephemeral-storage"] for amounts in resources} == {"512Mi"}
    assert {amounts["requests"]["ephemeral-storage"] for amounts in resources} == {"64Mi"}


@each_variant
def test_service_on_the_network_uses_tls(variant: str) -> None:
    args = container(shipped(variant))["args"]

    assert (
        ("--host=0.0.0.0" in args)
        == ("--tls-cert-file=/etc/reprieve/tls/tls.crt" in args)
        == variant.startswith("service")
    )
    assert ("--host=127.0.0.1" in args) != ("--host=0.0.0.0" in args)


@each_variant
def test_the_profiles_are_those_that_the_readme_advises(variant: str) -> None:
    """Beside kube-scheduler's own, only one's own plugins run; a scheduler runs all of them."""
    configuration = yaml.safe_load(one("ConfigMap", shipped(variant))["data"]["config.yaml"])
    (profile,) = configuration["profiles"]
    runs_alone = "--schedule" in container(shipped(variant))["args"]

    assert runs_alone == (variant in ("scheduler", "second-scheduler"))
    assert ("plugins" not in profile) == runs_alone
    if not runs_alone:
        assert profile["plugins"]["multiPoint"] == {
            "disabled": [{"name": "*"}],
            "enabled": [{"name": "PrioritySort"}, {"name": "DefaultBinder"}],
        }
    has_own_name = variant in ("second-scheduler", "sidecar")
    assert profile["schedulerName"] == ("reprieve" if has_own_name else "default-scheduler")


@pytest.mark.slow
@pytest.mark.parametrize("variant", [name for name in VARIANTS if not name.startswith("service")])
def test_on_loopback_the_service_is_for_its_pod_alone(variant: str, tmp_path: Path) -> None:
    """A process with the arguments of the manifest, which finds in some folder what is mounted in a pod; its probes are
    performed as given.
    """
    objects = shipped(variant)
    with serving(schedule=False) as cluster, running(objects, cluster.port, tmp_path) as pod, client(pod) as inside:
        until(lambda: pod.passes("startup"))
        until(lambda: pod.passes("readiness"))

        assert pod.passes("liveness")
        assert inside.get("/metrics").status_code == 200
        assert inside.post("/extender/filter", json={}).status_code == 400


@pytest.mark.slow
@pytest.mark.parametrize("variant", [name for name in VARIANTS if name.startswith("service")])
def test_the_service_answers_over_tls_only_and_knows_its_callers(variant: str, tmp_path: Path) -> None:
    objects = shipped(variant)
    authority = Authority(tmp_path, "cluster")
    with serving(schedule=False) as cluster, running(objects, cluster.port, tmp_path, authority) as pod:
        until(lambda: pod.passes("startup"))
        until(lambda: pod.passes("readiness"))
        assert pod.passes("liveness")
        with client(pod, authority) as people:
            # Only the probes are for everyone, and the verbs for kube-scheduler's certificate.
            assert [people.get("/metrics").status_code, people.post("/extender/filter", json={}).status_code] == [
                401,
                401,
            ]
        with client(pod, authority, authority.sign("system:kube-scheduler")) as scheduler:
            refused = scheduler.post("/extender/filter", json={})
            assert (refused.status_code, refused.json()["reason"]) == (400, "BadRequest")
            bound = scheduler.post("/extender/bind", json={}).status_code
            assert bound == (400 if variant == "service-with-bind" else 404)
        with pytest.raises(httpx.TransportError):
            httpx.get(f"http://localhost:{pod.port}/livez", headers={"Authorization": "Bearer canary"}, trust_env=False)
