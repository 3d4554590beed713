"""New connections get the new certificate; one that cannot be used is told of, and the old one stays."""

import os
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from api.serving.certificate import Certificate
from api.serving.server import Server, make_server
from api.settings.settings import Settings
from reprieve.errors import StartUpError
from tests.kit.certificates import Authority, CertificateFiles, encrypted
from tests.kit.service import serving


@dataclass(frozen=True)
class Rotating:
    """A service, the files that it reads, and certificates to put there."""

    port: int
    certificate: Certificate
    live: CertificateFiles
    first: CertificateFiles
    second: CertificateFiles
    locked: Path
    """The second one's key, with a password."""

    def rotate(self, certificate: bytes, key: bytes) -> None:
        """As by hand, or as the kubelet does it: other files under the same names."""
        for path, content in zip(self.live, (certificate, key), strict=True):
            new = path.with_suffix(".new")
            new.write_bytes(content)
            new.replace(path)

    def put_pair(self, pair: CertificateFiles) -> None:
        self.rotate(pair.certificate.read_bytes(), pair.key.read_bytes())

    def served_certificate(self) -> str:
        return ssl.get_server_certificate(("127.0.0.1", self.port))


@pytest.fixture(scope="module")
def rotating(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rotating]:
    folder = tmp_path_factory.mktemp("certificates")
    authority = Authority(folder, "authority")
    first, second = (authority.sign(name, "IP:127.0.0.1") for name in ("first", "second"))
    live = CertificateFiles(folder / "tls.crt", folder / "tls.key")
    locked = encrypted(second.key, "secret")
    for source, target in zip(first, live, strict=True):
        target.write_bytes(source.read_bytes())
    with serving(schedule=False, tls_cert_file=live.certificate, tls_private_key_file=live.key) as service:
        assert isinstance(service.server, Server) and service.server.certificate is not None
        yield Rotating(service.port, service.server.certificate, live, first, second, locked)


def delete_files(files: Rotating) -> None:
    for path in files.live:
        path.unlink()


BAD: dict[str, tuple[Callable[[Rotating], None], str]] = {
    "garbage": (lambda files: files.rotate(b"garbage", b"garbage"), "no certificate and key in PEM"),
    "nothing in them": (lambda files: files.rotate(b"", b""), "no certificate and key in PEM"),
    "no files": (delete_files, "no such file or directory"),
    "another's key": (
        lambda files: files.rotate(files.second.certificate.read_bytes(), files.first.key.read_bytes()),
        "KEY_VALUES_MISMATCH",
    ),
    "a key with a password": (
        lambda files: files.rotate(files.second.certificate.read_bytes(), files.locked.read_bytes()),
        "the key is encrypted: give one without a password",
    ),
}


@pytest.mark.parametrize(("ruin", "why"), BAD.values(), ids=BAD)
def test_unusable_certificate_is_reported_once_and_the_old_one_stays(
    rotating: Rotating, ruin: Callable[[Rotating], None], why: str, caplog: pytest.LogCaptureFixture
) -> None:
    rotating.put_pair(rotating.first)
    rotating.certificate.renew()
    ruin(rotating)
    rotating.certificate.renew()
    rotating.certificate.renew()

    assert rotating.served_certificate() == rotating.first.certificate.read_text()
    assert [why in record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [True]
    rotating.put_pair(rotating.second)
    rotating.certificate.renew()
    assert rotating.served_certificate() == rotating.second.certificate.read_text()


def test_another_file_of_the_same_age_is_another_certificate(rotating: Rotating) -> None:
    rotating.put_pair(rotating.first)
    rotating.certificate.renew()
    times = [path.stat().st_mtime_ns for path in rotating.live]
    rotating.put_pair(rotating.second)
    for path, time in zip(rotating.live, times, strict=True):
        os.utime(path, ns=(time, time))
    rotating.certificate.renew()

    assert rotating.served_certificate() == rotating.second.certificate.read_text()


def test_files_that_may_not_be_looked_at_do_not_end_the_service(
    rotating: Rotating, caplog: pytest.LogCaptureFixture
) -> None:
    rotating.put_pair(rotating.first)
    rotating.certificate.renew()
    caplog.clear()
    with nobody_may_enter(rotating.live.certificate.parent):
        rotating.certificate.renew()

    assert "permission denied" in caplog.text
    assert rotating.served_certificate() == rotating.first.certificate.read_text()


@contextmanager
def nobody_may_enter(folder: Path) -> Iterator[None]:
    """Root, who may enter everywhere, is somebody else for a moment."""
    is_root, mode = os.geteuid() == 0, folder.stat().st_mode
    folder.chmod(0)
    if is_root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)
        folder.chmod(mode)


def test_encrypted_key_is_refused_at_the_start_without_a_prompt(rotating: Rotating) -> None:
    settings = Settings(tls_cert_file=rotating.second.certificate, tls_private_key_file=rotating.locked)

    with pytest.raises(StartUpError, match="the key is encrypted: give one without a password"):
        make_server(lambda scope, receive, send: None, settings)  # type: ignore[arg-type, return-value]
