"""Each manifest runs the service as its mode says, over TLS only, with the least that it needs."""

import re
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import yaml

from extender.testing.certificates import Authority, can_make_certificates
from tests.api.in_process import ROOT
from tests.api.serving import serving
from tests.api.test_following import eventually, free_port, kubeconfig_for
from tests.deploy.shipped import FOLDER, shipped
from tools.generate_manifests import CALLER, LEASE, MODES, NAMESPACE, manifest

each_mode: Final = pytest.mark.parametrize("mode", MODES)


def one(kind: str, mode: str) -> dict[str, Any]:
    """The one object of a kind in a manifest."""
    (found,) = (obj for obj in shipped(mode) if obj["kind"] == kind)
    return found


def pod_spec(mode: str) -> dict[str, Any]:
    spec: dict[str, Any] = one("Deployment", mode)["spec"]["template"]["spec"]
    return spec


def container(mode: str) -> dict[str, Any]:
    (found,) = pod_spec(mode)["containers"]
    return dict(found)


@each_mode
def test_the_files_are_what_the_code_generates(mode: str) -> None:
    """
    `make docs` writes them.
    """
    assert (FOLDER / f"{mode}.yaml").read_text() == manifest(mode)


@each_mode
def test_the_parts_find_each_other(mode: str) -> None:
    name = f"reprieve-{mode}"
    template = one("Deployment", mode)["spec"]["template"]
    volumes = {volume["name"]: volume for volume in pod_spec(mode)["volumes"]}
    mounts = {mount["name"]: mount["mountPath"] for mount in container(mode)["volumeMounts"]}
    (port,) = container(mode)["ports"]

    assert {(obj["metadata"]["name"], obj["metadata"].get("namespace", NAMESPACE)) for obj in shipped(mode)} == {
        (name, NAMESPACE),
        (f"{name}-auth-delegator", NAMESPACE),
    }
    assert pod_spec(mode)["serviceAccountName"] == one("ServiceAccount", mode)["metadata"]["name"]
    assert template["metadata"]["labels"] == {"app": name} == one("Service", mode)["spec"]["selector"]
    for kind in ("Deployment", "PodDisruptionBudget"):
        assert one(kind, mode)["spec"]["selector"] == {"matchLabels": {"app": name}}
    assert one("NetworkPolicy", mode)["spec"]["podSelector"] == {"matchLabels": {"app": name}}
    assert one("NetworkPolicy", mode)["spec"]["ingress"] == [{"ports": [{"port": port["containerPort"], "protocol": "TCP"}]}]
    assert [(each["port"], each["targetPort"]) for each in one("Service", mode)["spec"]["ports"]] == [(443, port["name"])]
    assert mounts.keys() == volumes.keys()
    assert all(arg.partition("=")[2].startswith(tuple(mounts.values())) for arg in container(mode)["args"] if "=/" in arg)


@each_mode
def test_a_container_may_do_nothing_but_serve(mode: str) -> None:
    """
    As the Pod Security Standard "restricted" asks, and the root file system cannot be written.
    """
    assert pod_spec(mode)["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "runAsGroup": 65532,
        "fsGroup": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert container(mode)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }


@each_mode
def test_the_memory_limit_is_twice_what_a_large_cluster_was_measured_to_take(mode: str) -> None:
    figures = (ROOT / "docs" / "figures.md").read_text()
    (peak,) = re.findall(r"5,000 nodes and 150,000 pods(?:.*\n)+? +the whole extender: .* peak (\d+) MiB", figures)

    assert container(mode)["resources"]["limits"] == {"memory": "1Gi"}
    assert 2 * int(peak) <= 1024


def test_the_lease_is_the_one_of_the_role() -> None:
    configuration = yaml.safe_load(one("ConfigMap", "scheduler")["data"]["config.yaml"])

    assert configuration["leaderElection"] == {"leaderElect": True, "resourceName": LEASE, "resourceNamespace": NAMESPACE}


@pytest.mark.skipif(not can_make_certificates(), reason="openssl makes the certificates")
@each_mode
def test_the_service_answers_over_tls_only_and_knows_its_callers(mode: str, tmp_path: Path) -> None:
    """
    A process with the arguments of the manifest, which finds in some folder what is mounted in a pod.
    """
    authority = Authority(tmp_path, "cluster")
    with serving(schedule=False) as cluster, running(mode, authority, cluster.port, tmp_path) as (process, port):
        context = ssl.create_default_context(cafile=authority.certificate)
        with httpx.Client(base_url=f"https://localhost:{port}", verify=context, trust_env=False) as people:
            eventually(lambda: _answers(people, "/readyz", process))
            probes = [container(mode)[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")]

            assert {probe["scheme"] for probe in probes} == {"HTTPS"}
            assert [people.get(probe["path"]).status_code for probe in probes] == [200, 200, 200]
            # Only the probes are for everyone, and the verbs for kube-scheduler's certificate.
            assert [people.get("/metrics").status_code, people.post("/extender/filter", json={}).status_code] == [401, 401]
            context.load_cert_chain(*authority.sign(CALLER))
            scheduler = httpx.post(f"https://localhost:{port}/extender/filter", json={}, verify=context, trust_env=False)
            assert (scheduler.status_code, scheduler.json()["reason"]) == (400, "BadRequest")
            with pytest.raises(httpx.TransportError):
                httpx.get(f"http://localhost:{port}/livez", headers={"Authorization": "Bearer canary"}, trust_env=False)


@contextmanager
def running(mode: str, authority: Authority, cluster: int, folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The process, and its port. It follows the cluster at a port of this machine."""
    port, mounted = free_port(), {}
    for volume in pod_spec(mode)["volumes"]:
        (folder / volume["name"]).mkdir()
        mounted[volume["name"]] = folder / volume["name"]
    certificate = authority.sign("service", "DNS:localhost")
    certificate.certificate.rename(mounted["tls"] / "tls.crt")
    certificate.key.rename(mounted["tls"] / "tls.key")
    shutil.copy(authority.certificate, mounted["clients"] / "ca.crt")
    if "config" in mounted:
        (mounted["config"] / "config.yaml").write_text(one("ConfigMap", mode)["data"]["config.yaml"])
    command = [sys.executable, "-m", "api.cli", *container(mode)["args"], "--host=127.0.0.1", "--access=reviewed", f"--port={port}"]
    for mount in container(mode)["volumeMounts"]:
        command = [part.replace(mount["mountPath"], str(mounted[mount["name"]])) for part in command]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([*command, "--kubeconfig", str(kubeconfig_for(cluster, folder))], stderr=log, cwd=ROOT)
    try:
        yield process, port
    finally:
        process.terminate()
        process.wait(30)


def _answers(people: httpx.Client, path: str, process: subprocess.Popen[bytes]) -> bool:
    assert process.poll() is None
    try:
        return people.get(path).status_code == 200
    except httpx.TransportError:
        return False
