"""Callers with client certificates: kube-scheduler with the tlsConfig of an extender, kubectl, and what is said of
files that do not do.
"""

import asyncio
import os
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.app import create_app
from api.serving.server import Server, make_server
from api.settings.settings import Settings, read_settings
from api.starting import prepare
from extender.client.http_extender import HTTPExtender
from extender.engine.framework import ExtenderError
from extender.testing import make_node, make_pod
from extender.values.config.configuration import Extender, ExtenderTLSConfig
from reprieve.errors import StartUpError
from tests.api.in_process import reprieve
from tests.kit.certificates import Authority, CertificateFiles
from tests.kit.ports import free_port
from tests.kit.service import Service, process, serving, serving_app
from tests.kit.tables import cases
from tests.kit.waiting import DEADLINE, until

SCHEDULER = "system:kube-scheduler"
NAME = "reprieve.kube-system.svc"


@dataclass(frozen=True)
class Files:
    authority: Path
    server: CertificateFiles
    scheduler: CertificateFiles
    other: CertificateFiles


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    authority = Authority(tmp_path_factory.mktemp("certificates"), "authority")
    server = authority.sign("server", "IP:127.0.0.1", f"DNS:{NAME}")
    return Files(authority.certificate, server, authority.sign(SCHEDULER), authority.sign("other"))


def guarded(files: Files, trusted: Path) -> AbstractContextManager[Service]:
    certificate, key = files.server
    return serving(
        schedule=False, access="reviewed", tls_cert_file=certificate, tls_private_key_file=key, client_ca_file=trusted,
        client_allowed_names=SCHEDULER,
    )  # fmt: skip


@pytest.fixture(scope="module")
def service(files: Files) -> Iterator[Service]:
    """The embedded cluster, for the scheduler's certificate only."""
    with guarded(files, files.authority) as service:
        yield service


# kube-scheduler.


def filtered(service: Service, files: Files, certificate: CertificateFiles | None) -> list[str]:
    """The nodes that pass, as the scheduler asks with this tlsConfig; the server's certificate is checked for its
    name.
    """
    tls = ExtenderTLSConfig(
        ca_file=str(files.authority),
        server_name=NAME,
        cert_file=str(certificate.certificate) if certificate else "",
        key_file=str(certificate.key) if certificate else "",
    )
    url = f"https://127.0.0.1:{service.port}/extender"
    config = Extender(url_prefix=url, filter_verb="filter", enable_https=True, tls_config=tls, node_cache_capable=True)

    async def ask() -> list[str]:
        extender = HTTPExtender(config)
        try:
            nodes = [make_node(name).obj() for name in ("node-a1", "node-a2")]
            return [node.name for node in (await extender.filter(make_pod("new").obj(), nodes)).nodes]
        finally:
            await extender.aclose()
            await asyncio.sleep(0.1)  # until TLS has said goodbye

    return asyncio.run(ask())


def test_a_scheduler_with_the_tls_config_of_an_extender_is_answered(service: Service, files: Files) -> None:
    assert filtered(service, files, files.scheduler)


@pytest.mark.parametrize(("certificate", "code"), [("none", 401), ("other", 403)])
def test_missing_certificate_or_one_of_another_name_is_refused(
    service: Service, files: Files, certificate: str, code: int
) -> None:
    with pytest.raises(ExtenderError, match=f"code {code}"):
        filtered(service, files, getattr(files, certificate, None))


# kubectl, whose TLS is that of kube-scheduler: client-go's.


def kubectl(service: Service, files: Files, *arguments: str, certificate: CertificateFiles | None, home: Path) -> str:
    tls = ["--certificate-authority", str(files.authority), "--tls-server-name", NAME]
    if certificate is not None:
        tls += ["--client-certificate", str(certificate.certificate), "--client-key", str(certificate.key)]
    command = ["kubectl", "--server", f"https://127.0.0.1:{service.port}", *tls, *arguments]
    environment = {"HOME": str(home), "PATH": os.environ["PATH"], "KUBECONFIG": str(home / "none")}
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        env=environment,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_go_s_tls_presents_the_certificate(service: Service, files: Files, tmp_path: Path) -> None:
    certificates = {"allowed": files.scheduler, "other": files.other, "none": None}
    nodes = ("get", "nodes", "-o", "name")
    read = {
        name: kubectl(service, files, *nodes, certificate=certificate, home=tmp_path)
        for name, certificate in certificates.items()
    }
    metrics = kubectl(service, files, "get", "--raw", "/metrics", certificate=files.scheduler, home=tmp_path)

    assert "node/node-a1" in read["allowed"]
    assert 'user "other" is not among --client-allowed-names' in read["other"]
    assert "Please enter Username" in read["none"], "as kubectl does when it is not known"
    assert "node-a1" not in read["other"] + read["none"]
    assert "reprieve_reflector_synced" in metrics


# uvicorn without `reprieve serve`.


@pytest.mark.slow
def test_uvicorn_alone_passes_certificates_on(files: Files) -> None:
    port = free_port()
    settings = {"REPRIEVE_ACCESS": "reviewed", "REPRIEVE_CLIENT_ALLOWED_NAMES": SCHEDULER, "REPRIEVE_SCHEDULE": "false"}
    uvicorn = (sys.executable, "-m", "uvicorn", "api.main:app", "--port", str(port))
    tls: dict[str, str | Path] = {
        "--ssl-certfile": files.server.certificate,
        "--ssl-keyfile": files.server.key,
        "--ssl-ca-certs": files.authority,
        "--ssl-cert-reqs": "1",
    }
    log = files.authority.parent / "uvicorn.log"
    with process(*chain(*tls.items()), log=log, program=uvicorn, environment=settings):
        until(lambda: status(port, files, None, "/readyz") == 200)
        statuses = [status(port, files, pair, "/metrics") for pair in (files.scheduler, files.other, None)]

    assert statuses == [200, 403, 401]


def status(port: int, files: Files, certificate: CertificateFiles | None, path: str) -> int:
    """0 if nobody is there."""
    try:
        return status_of(port, files, certificate, path)
    except httpx.ConnectError:
        return 0


def status_of(port: int, files: Files, certificate: CertificateFiles | None, path: str) -> int:
    context = ssl.create_default_context(cafile=str(files.authority))
    if certificate is not None:
        context.load_cert_chain(*certificate)
    return httpx.get(f"https://127.0.0.1:{port}{path}", verify=context, trust_env=False, timeout=10).status_code


# Files and flags.


def test_another_authority_counts_once_its_certificate_is_in_the_file(files: Files, tmp_path: Path) -> None:
    second = Authority(tmp_path, "second")
    caller = second.sign(SCHEDULER)
    trusted = tmp_path / "trusted.crt"
    trusted.write_bytes(files.authority.read_bytes())
    with guarded(files, trusted) as service:
        with pytest.raises(httpx.TransportError):
            status_of(service.port, files, caller, "/metrics")
        time.sleep(0.01)
        trusted.write_bytes(files.authority.read_bytes() + second.certificate.read_bytes())
        assert isinstance(service.server, Server) and service.server.certificate is not None
        service.server.certificate.renew()

        assert status_of(service.port, files, caller, "/metrics") == 200


@cases(
    "content, why",
    ("missing", None, "no such file or directory"),
    ("empty", b"", "NO_CERTIFICATE_OR_CRL_FOUND"),
    ("garbage", b"-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n", ""),
)
def test_unreadable_client_ca_is_reported_at_the_start(
    files: Files, tmp_path: Path, content: bytes | None, why: str
) -> None:
    path = tmp_path / "ca.crt"
    if content is not None:
        path.write_bytes(content)
    settings = Settings(
        tls_cert_file=files.server.certificate, tls_private_key_file=files.server.key, client_ca_file=path
    )

    with pytest.raises(StartUpError) as refused:
        make_server(lambda *_: None, settings)  # type: ignore[arg-type]

    assert str(refused.value).startswith(f"--client-ca-file {path}: ")
    assert why in str(refused.value)


def test_client_certificates_need_https() -> None:
    with pytest.raises(StartUpError, match=r"^--client-ca-file: client certificates need HTTPS"):
        read_settings({}, client_ca_file="ca.crt")


def test_names_without_an_authority_are_refused() -> None:
    done = reprieve("serve", "--client-allowed-names", "x")

    assert done.returncode == 2
    assert done.stderr.decode().startswith("reprieve: --client-allowed-names: ")


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ({"host": "0.0.0.0"}, "--host 0.0.0.0"),
        ({"host": "::"}, "--host ::"),
        ({"access": "reviewed"}, "--access reviewed"),
    ],
)
def test_embedded_cluster_is_closed_off_this_machine_unless_it_is_opened(settings: dict[str, Any], where: str) -> None:
    """There is no API server that knows callers, so that somebody has to say whom to let in."""
    with pytest.raises(StartUpError) as refused:
        prepare(Settings(**settings))

    assert str(refused.value) == (
        f"{where}: callers of the embedded cluster are known by client certificates only; "
        "give --client-ca-file and --client-allowed-names, or let everyone in with --access open "
        "(in a container: -e REPRIEVE_ACCESS=open)"
    )
    prepare(Settings(**settings | {"access": "open"}))
    prepare(Settings(**settings | {"client_allowed_names": "x"}))


def test_a_service_that_listens_elsewhere_than_its_settings_say_is_guarded_there() -> None:
    """As with `uvicorn api.main:app --host 0.0.0.0`: only callers over loopback are let in without a question."""
    everywhere, believed = Settings(host="0.0.0.0", port=0, schedule=False), Settings(port=0, schedule=False)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing: tells by which address this machine would
        address = probe.getsockname()[0]
    with serving_app(create_app(believed), everywhere) as service:
        statuses = [
            httpx.get(f"http://{host}:{service.port}/metrics", trust_env=False).status_code
            for host in ("127.0.0.1", address)
        ]

    assert statuses == [200, 401]
