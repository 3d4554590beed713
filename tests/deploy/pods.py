"""Starts the Reprieve container of a manifest as a process of this machine, with what its pod would mount in
folders.
"""

import re
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx

from tests.deploy.manifests import Object, container, one, pod_spec
from tests.kit.certificates import Authority
from tests.kit.ports import free_port
from tests.kit.service import PROGRAM, kubeconfig_for, process
from tests.kit.waiting import DEADLINE

HOST: Final = "reprieve.kube-system.svc"


@dataclass(frozen=True)
class RunningPod:
    """The process of a pod's Reprieve container, and where things of the container are on this machine."""

    process: "subprocess.Popen[bytes]"
    port: int
    objects: Sequence[Object]
    folders: dict[str, Path]
    """Path in the container -> folder of this machine."""

    def placed(self, text: str) -> str:
        """A text of the manifest with the paths and the port of this machine."""
        return _placed(text, self.folders, self.port)

    def passes(self, kind: str) -> bool:
        """Performs a probe as the kubelet does. It checks no certificates."""
        probe = container(self.objects)[f"{kind}Probe"]
        if "exec" in probe:
            program, *arguments = map(self.placed, probe["exec"]["command"])
            (url,) = re.findall(r"http://[^']+", arguments[-1])
            assert program == "python"
            # A process for each look would take longer than the service does to start.
            return self._answers(url) and not subprocess.run([sys.executable, *arguments], check=False).returncode
        get = probe["httpGet"]
        return self._answers(
            f"{get.get('scheme', 'HTTP').lower()}://{get.get('host', '127.0.0.1')}:{self.port}{get['path']}"
        )

    def _answers(self, url: str) -> bool:
        try:
            return httpx.get(url, verify=False, trust_env=False).status_code < 400
        except httpx.TransportError:
            assert self.process.poll() is None, "the process has ended"
            return False


@contextmanager
def running(
    objects: Sequence[Object],
    cluster: int,
    folder: Path,
    authority: Authority | None = None,
    program: Sequence[str | Path] = PROGRAM,
) -> Iterator[RunningPod]:
    """The process, until the end of the block. It follows the cluster at a port of this machine.

    Arguments:
        program: the image's entry point.
        authority: signs the certificate, if the manifest mounts one, for the name of the Service as well as this
            machine's.
    """
    port = free_port()
    volumes = {volume["name"]: _volume(volume, objects, folder, authority) for volume in pod_spec(objects)["volumes"]}
    folders = {mount["mountPath"]: volumes[mount["name"]] for mount in container(objects)["volumeMounts"]}
    arguments = [_placed(part, folders, port) for part in container(objects)["args"]]
    # In a cluster it listens to all; here it is to behave the same on loopback.
    if "--host=0.0.0.0" in arguments:
        arguments += ["--host=127.0.0.1", "--access=reviewed"]
    arguments += ["--kubeconfig", str(kubeconfig_for(cluster, folder))]
    with process(*arguments, log=folder / "log", program=program) as started:
        yield RunningPod(started, port, objects, folders)


def is_ready(port: int, process: "subprocess.Popen[bytes]") -> bool:
    assert process.poll() is None
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz", trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


def client(
    pod: RunningPod, authority: Authority | None = None, certificate: tuple[str | Path, str | Path] | None = None
) -> httpx.Client:
    """A client that checks the certificate, and shows its own if it has one."""
    if authority is None:
        return httpx.Client(base_url=f"http://127.0.0.1:{pod.port}", trust_env=False, timeout=DEADLINE)
    context = ssl.create_default_context(cafile=authority.certificate)
    if certificate is not None:
        context.load_cert_chain(*certificate)
    return httpx.Client(base_url=f"https://localhost:{pod.port}", verify=context, trust_env=False, timeout=DEADLINE)


def _placed(text: str, folders: dict[str, Path], port: int) -> str:
    for path, folder in folders.items():
        text = text.replace(path, str(folder))
    return text.replace("8888", str(port))


def _volume(volume: Object, objects: Iterable[Object], folder: Path, authority: Authority | None) -> Path:
    """What a pod finds in one of its volumes."""
    place = folder / str(volume["name"])
    place.mkdir()
    if "secret" in volume:
        assert authority is not None
        certificate = authority.sign("reprieve", "DNS:localhost", f"DNS:{HOST}")
        shutil.copy(certificate.certificate, place / "tls.crt")
        shutil.copy(certificate.key, place / "tls.key")
        shutil.copy(authority.certificate, place / "ca.crt")
    elif volume["name"] == "clients":
        assert authority is not None
        (item,) = volume["configMap"]["items"]
        shutil.copy(authority.certificate, place / item["path"])
    else:
        config_map = one("ConfigMap", objects)
        assert volume["configMap"]["name"] == config_map["metadata"]["name"]
        for name, text in config_map["data"].items():
            (place / name).write_text(text)
    return place
