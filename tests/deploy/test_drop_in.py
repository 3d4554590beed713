"""kube-scheduler's manifest starts Reprieve when the image and the command's name are exchanged."""

import re
import socket
import stat
import sys
from pathlib import Path
from typing import Final

import httpx
import pytest
import yaml

from api.cli.flags import FOREIGN
from api.serving.certificate import with_certificate
from api.settings.settings import Settings
from tests.api.in_process import reprieve
from tests.kit.objects import pod
from tests.kit.service import kubeconfig_for, process, serving
from tests.kit.waiting import until

MANIFEST: Final = Path(__file__).with_name("kubeadm-kube-scheduler.yaml")
DEFAULTS: Final = ("--bind-address=0.0.0.0", "--secure-port=10259")
"""What `reprieve-scheduler` says before the flags of a manifest."""

COMMAND: Final = (sys.executable, "-c", "import reprieve; reprieve.schedule()")
"""`reprieve-scheduler` of this checkout."""

FLAGS: Final = Path(__file__).with_name("kube-scheduler-flags.txt").read_text().split()
"""All flags of kube-scheduler 1.36, as manifests have them. Upstream: cmd/kube-scheduler/app/options; apiserver/pkg/server/options, serving.go,
authentication.go, authorization.go; component-base/config/options, compatibility, metrics, logs/api/v1, version/verflag.
"""


@pytest.mark.parametrize("flag", FLAGS)
def test_every_flag_of_kube_scheduler_is_taken_ignored_in_words_or_refused_in_words(flag: str) -> None:
    name = flag.lstrip("-").partition("=")[0]
    done = reprieve("serve", "--schedule", *DEFAULTS, flag, "--write-config-to=/dev/null")

    error = done.stderr.decode()
    if done.returncode:
        assert re.match(rf"reprieve: (.*--{name}\b|configuration \S+: )", error)
    elif name in FOREIGN:
        assert f'"A flag has no effect" flag="--{name}" reason="' in error


@pytest.mark.slow
def test_the_manifest_of_kubeadm_starts(tmp_path: Path) -> None:
    (container,) = yaml.safe_load(MANIFEST.read_text())["spec"]["containers"]
    port, probe = container["ports"][0]["containerPort"], container["readinessProbe"]["httpGet"]
    ready = f"{probe['scheme'].lower()}://{probe['host']}:{port}{probe['path']}"
    with socket.socket() as probe_socket:
        probe_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe_socket.bind((probe["host"], port))
        except OSError:
            pytest.skip(f"another scheduler has port {port}")
    with serving(schedule=False) as cluster:
        kubeconfig = str(kubeconfig_for(cluster.port, tmp_path))
        _, *arguments = (part.replace("/etc/kubernetes/scheduler.conf", kubeconfig) for part in container["command"])
        with process(*arguments, log=tmp_path / "log", program=COMMAND) as started:
            until(lambda: started.poll() is not None or _answers_ok(ready))
            cluster.post("/api/v1/namespaces/default/pods", pod("web", "10m")).raise_for_status()
            path = "/api/v1/namespaces/default/pods/web"
            until(lambda: started.poll() is not None or "nodeName" in cluster.client.get(path).json()["spec"])

            assert started.poll() is None, (tmp_path / "log").read_text()


def test_a_certificate_of_its_own_signing_is_kept_in_its_folder(tmp_path: Path) -> None:
    settings = Settings(secure_port=10259, cert_dir=tmp_path / "new")

    with with_certificate(settings) as first:
        signed = [path.read_bytes() for path in _pair(first)]
    with with_certificate(settings) as second:
        later = [path.read_bytes() for path in _pair(second)]

    assert later == signed
    assert stat.S_IMODE((tmp_path / "new" / "kube-scheduler.key").stat().st_mode) == 0o600


def test_without_a_folder_the_certificate_is_gone_with_the_process() -> None:
    with with_certificate(Settings(secure_port=10259)) as settings:
        pair = _pair(settings)
        assert all(path.exists() for path in pair)

    assert not any(path.exists() for path in pair)


def _pair(settings: Settings) -> tuple[Path, Path]:
    assert settings.tls_cert_file is not None and settings.tls_private_key_file is not None
    return settings.tls_cert_file, settings.tls_private_key_file


def _answers_ok(url: str) -> bool:
    try:
        return httpx.get(url, verify=False, trust_env=False).status_code == 200
    except httpx.TransportError:
        return False
