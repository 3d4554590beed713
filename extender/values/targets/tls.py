"""TLS settings for the API server, and SSL contexts of them. A key is never written to disk, and never shown."""

import os
import ssl
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

import msgspec

from extender.values.reasons import InputError


class TlsError(InputError):
    """The certificates cannot be used; the text contains which and why, in one line."""


@final
@dataclass(frozen=True, slots=True)
class Pem:
    """Certificates or a key: the PEM text, or a file with it that is read each time."""

    file: Path | None = None
    text: bytes = field(default=b"", repr=False)

    def read(self) -> bytes:
        """Returns the PEM text. Raises TlsError."""
        if self.file is None:
            return self.text
        try:
            return self.file.read_bytes()
        except OSError as error:
            raise TlsError(f"{self.file} cannot be read: {error.strerror}") from error


@final
@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate (with its chain) and its private key, both PEM."""

    certificate: bytes = field(repr=False)
    key: bytes = field(repr=False)


@final
class TlsMaterial(msgspec.Struct, frozen=True):
    """Everything that an SSL context is made of. Equal material makes equal contexts."""

    ca: bytes | None
    """None for the authorities that the system trusts."""
    key_pair: KeyPair | None
    insecure: bool


@final
class Tls(msgspec.Struct, frozen=True):
    """How to verify the server, and the client certificate."""

    ca: Pem | None = None
    certificate: Pem | None = None
    key: Pem | None = None
    server_name: str | None = None
    """The name that the server's certificate must have, if it is not the host of the URL."""
    insecure: bool = False
    """True to skip the verification of the server's certificate."""

    def read(self, pair: KeyPair | None = None) -> TlsMaterial:
        """Returns the current contents of the files, or `pair` as the client certificate. Raises TlsError."""
        if pair is None and self.certificate is not None and self.key is not None:
            pair = KeyPair(self.certificate.read(), self.key.read())
        return TlsMaterial(self.ca.read() if self.ca is not None else None, pair, self.insecure)


def context(material: TlsMaterial) -> ssl.SSLContext:
    """Returns an SSL context with TLS 1.2 or newer. Raises TlsError for a bad certificate, or another's key."""
    tls_context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls_context.minimum_version = ssl.TLSVersion.TLSv1_2
    tls_context.verify_flags |= (
        ssl.VERIFY_X509_PARTIAL_CHAIN
    )  # as Go: every certificate in the bundle is trusted, even an intermediate
    if material.insecure:
        tls_context.check_hostname = False
        tls_context.verify_mode = ssl.CERT_NONE
    elif material.ca is None:
        tls_context.load_default_certs()
    else:
        _trust(tls_context, material.ca)
    if material.key_pair is not None:
        _show(tls_context, material.key_pair)
    return tls_context


def _trust(tls_context: ssl.SSLContext, ca: bytes) -> None:
    try:
        tls_context.load_verify_locations(cadata=ca.decode("ascii", "ignore"))
    except ssl.SSLError as error:
        raise TlsError(f"the certificate authority is no PEM certificate: {error.reason or error}") from error


def _show(tls_context: ssl.SSLContext, pair: KeyPair) -> None:
    with _in_memory(pair.certificate) as certificate, _in_memory(pair.key) as key:
        try:
            tls_context.load_cert_chain(certificate, key, password=_no_password)
        except ssl.SSLError as error:
            raise TlsError(f"the client certificate and its key cannot be used: {error.reason or error}") from error


def _no_password() -> str:
    # Without this function OpenSSL would prompt on the terminal.
    raise TlsError("the client key is encrypted: give one without a password")


@contextmanager
def _in_memory(pem: bytes) -> Iterator[str]:
    """Yields a private path, on Linux without any disk, with the PEM text: OpenSSL reads keys from files only."""
    if sys.platform != "linux":
        with tempfile.NamedTemporaryFile() as file:
            file.write(pem)
            file.flush()
            yield file.name
        return
    descriptor = os.memfd_create("pem", os.MFD_CLOEXEC)
    try:
        with os.fdopen(descriptor, "wb", closefd=False) as file:
            file.write(pem)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
