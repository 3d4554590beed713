"""TLS handshakes that do not come to an end: strangers begin them, and keep nobody from being answered."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from extender.values import limits
from tests.kit.certificates import Authority
from tests.kit.service import Service, serving

MOST, SECONDS = 8, 0.5
BEGINNING = bytes.fromhex("160301020001")
"""The first bytes of a handshake."""


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    Authority(folder, "authority").sign("service", "IP:127.0.0.1")
    return folder


@pytest.fixture
def service(authority: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setattr(limits, "HANDSHAKES", MOST)
    certificate, key = (authority / f"authority-service.{kind}" for kind in ("crt", "key"))
    with serving(schedule=False, tls_cert_file=certificate, tls_private_key_file=key) as running:
        yield running


def livez(service: Service, authority: Path) -> int:
    trusted = ssl.create_default_context(cafile=str(authority / "authority.crt"))
    return httpx.get(f"https://127.0.0.1:{service.port}/livez", verify=trusted, trust_env=False).status_code


def begun(service: Service, callers: ExitStack) -> socket.socket:
    caller = callers.enter_context(socket.create_connection(("127.0.0.1", service.port), timeout=10))
    caller.sendall(BEGINNING)
    return caller


def is_closed(caller: socket.socket) -> bool:
    try:
        return not caller.recv(1)
    except ConnectionResetError:
        return True


def test_the_oldest_handshake_gives_way_to_one_too_many(
    service: Service, authority: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "HANDSHAKE_SECONDS", 3600.0)
    with ExitStack() as callers:
        first, *_ = [begun(service, callers) for _ in range(3 * MOST)]

        assert is_closed(first)
        assert livez(service, authority) == 200


def test_a_handshake_that_takes_too_long_is_broken_off(
    service: Service, authority: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "HANDSHAKE_SECONDS", SECONDS)
    with ExitStack() as callers:
        assert is_closed(begun(service, callers))
        assert livez(service, authority) == 200


def test_connection_without_a_handshake_is_closed(service: Service, authority: Path) -> None:
    with socket.create_connection(("127.0.0.1", service.port), timeout=10) as caller:
        caller.sendall(b"GET /livez HTTP/1.1\r\n\r\n")
        while not is_closed(caller):
            pass

    assert livez(service, authority) == 200
