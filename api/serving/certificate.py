"""The certificate of the service and those that sign client certificates, read again when their files change."""

import asyncio
import errno
import logging
import os
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal, final

import uvloop
from msgspec.structs import replace
from uvicorn.config import Config

from api.settings.settings import Settings
from extender.values import limits
from extender.values.klog.logger import Logger
from extender.values.klog.setup import escaped
from extender.values.reasons import in_one_line
from reprieve.errors import StartUpError

_LOGGER: Final = logging.getLogger(__name__)
_LOG: Final = Logger(__name__)
_VERSIONS: Final = {"VersionTLS12": ssl.TLSVersion.TLSv1_2, "VersionTLS13": ssl.TLSVersion.TLSv1_3}
_NAME: Final = "kube-scheduler"
_IN_MEMORY: Final = "/dev/shm"  # noqa: S108 - a container has it even if its root file system is read-only


class _EncryptedKeyError(Exception):
    """The key cannot be read without a password."""


@final
class Certificate:
    """A certificate and its key, in two files, and the client CA in a third. State: when they were last changed."""

    def __init__(
        self,
        config: Config,
        certificate: Path,
        key: Path,
        client_ca: Path | None = None,
        min_version: Literal["VersionTLS12", "VersionTLS13"] = "VersionTLS12",
        cipher_suites: Sequence[str] = (),
    ) -> None:
        """Makes the server speak HTTPS. Raises StartUpError for files or suites that will not do."""
        self._files = certificate, key
        self._client_ca = client_ca
        self._changed = self._times()
        try:
            self._load_client_ca(_context())
        except (OSError, ssl.SSLError) as exc:
            raise StartUpError(f"--client-ca-file {client_ca}: {_in_words(exc)}") from exc
        try:
            self._try()
            config.load()
        except (OSError, ssl.SSLError, _EncryptedKeyError) as exc:
            raise StartUpError(
                f"--tls-cert-file {certificate}, --tls-private-key-file {key}: {_in_words(exc)}"
            ) from exc
        if config.ssl is None:
            raise RuntimeError("the server was made without a certificate")
        config.ssl.minimum_version = _VERSIONS[min_version]
        if cipher_suites:
            _choose(config.ssl, cipher_suites)
        # As in Go, a certificate of the file is trusted whether or not it is a root.
        config.ssl.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        self._context = config.ssl

    def renew(self) -> None:
        """Uses what the files hold now for new connections. If it cannot be used, the log says so, and the old
        certificate stays.

        A client CA that was taken out of its file is trusted until the service is started again: OpenSSL forgets none.
        """
        times = self._times()
        if times == self._changed:
            return
        self._changed = times
        try:
            # Tried in a context of its own first: a certificate without its key would replace the old one, and fail
            # every handshake. Files that change between the two loads are seen at the next look.
            self._try()
            self._context.load_cert_chain(*self._files, password=_no_password)
            self._load_client_ca(self._context)
        except (OSError, ssl.SSLError, _EncryptedKeyError) as exc:
            _LOGGER.warning(
                "The new certificate in %s cannot be used, and the old one stays: %s", self._files[0], _in_words(exc)
            )
        else:
            _LOGGER.info("The certificate in %s has changed", self._files[0])

    def _try(self) -> None:
        context = _context()
        context.load_cert_chain(*self._files, password=_no_password)
        self._load_client_ca(context)

    def _load_client_ca(self, context: ssl.SSLContext) -> None:
        if self._client_ca is not None:
            context.load_verify_locations(self._client_ca)

    def _times(self) -> tuple[object, ...]:
        """Returns for each file when it was changed and its identity; None for one that is missing or unreadable."""
        return tuple(map(_version, filter(None, (*self._files, self._client_ca))))


def _choose(context: ssl.SSLContext, suites: Sequence[str]) -> None:
    """Lets callers of TLS 1.2 have these cipher suites only.

    Upstream: component-base/cli/flag/ciphersuites_flag.go, TLSCipherSuites.
    """
    # The names of those of 1.3 are the same for OpenSSL. They are no choice, here as in Go.
    always = {cipher["name"] for cipher in context.get_ciphers() if cipher["protocol"] == "TLSv1.3"}
    chosen = [_cipher(suite) for suite in suites if suite not in always]
    if chosen:
        context.set_ciphers(":".join(chosen))
    else:
        context.minimum_version = ssl.TLSVersion.TLSv1_3


def _cipher(suite: str) -> str:
    """Returns OpenSSL's name of a suite of TLS 1.2: ECDHE-RSA-AES128-SHA for TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA."""
    exchange, _, encryption = suite.removeprefix("TLS_").partition("_WITH_")
    if "CHACHA20" in encryption:
        encryption = "CHACHA20_POLY1305"
    encryption = encryption.replace("AES_", "AES").replace("_CBC", "")
    name = (encryption if exchange == "RSA" else f"{exchange}_{encryption}").replace("_", "-")
    context = _context()
    with suppress(ssl.SSLError):
        context.set_ciphers(name)
    if name not in {cipher["name"] for cipher in context.get_ciphers()}:
        raise StartUpError(f"--tls-cipher-suites: Cipher suite {suite} not supported or doesn't exist")
    return name


def _context() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)


def _version(path: Path) -> object:
    try:
        file_status = path.stat()
    except OSError:
        return None
    return file_status.st_mtime_ns, file_status.st_ino, file_status.st_size


def _no_password() -> str:
    # Without this OpenSSL would ask at the terminal, and everything would wait for an answer.
    raise _EncryptedKeyError("the key is encrypted: give one without a password")


def _in_words(exc: Exception) -> str:
    if isinstance(exc, ssl.SSLError):
        return escaped(exc.reason or f"no certificate and key in PEM: {exc}")
    return escaped(in_one_line(exc) if isinstance(exc, OSError) else str(exc))


_SECONDS_WITHOUT_DESCRIPTORS: Final = 0.1


@final
class TlsListener:
    """Accepts the connections of a socket. It has what uvicorn uses of an asyncio.Server."""

    def __init__(
        self, protocol_factory: Callable[[], asyncio.BaseProtocol], listening: socket.socket, context: ssl.SSLContext
    ) -> None:
        self.sockets: Final = (listening,)
        self._make_protocol: Final = protocol_factory
        self._context: Final = context
        self._handshakes: Final[dict[asyncio.Task[None], None]] = {}
        listening.setblocking(False)
        self._accepting: Final = asyncio.create_task(self._accept(), name="accept HTTPS connections")

    def close(self) -> None:
        """Accepts no more connections, and breaks handshakes off."""
        self._accepting.cancel()
        for task in [*self._handshakes]:
            task.cancel()

    async def wait_closed(self) -> None:
        """Waits until nothing is accepted any more."""
        await asyncio.wait([self._accepting, *self._handshakes])
        self.sockets[0].close()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(self.sockets[0])
            except OSError as exc:
                if exc.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    await asyncio.sleep(_SECONDS_WITHOUT_DESCRIPTORS)
                continue  # or the caller is gone already
            if len(self._handshakes) >= limits.HANDSHAKES:
                oldest = next(iter(self._handshakes))
                oldest.cancel()
                del self._handshakes[oldest]
            task = asyncio.create_task(self._shake_hands(connection), name="TLS handshake")
            self._handshakes[task] = None
            task.add_done_callback(lambda done: self._handshakes.pop(done, None))

    async def _shake_hands(self, connection: socket.socket) -> None:
        # A caller that is no TLS client, or goes: uvloop closes the connection.
        with suppress(OSError, TimeoutError):
            await asyncio.get_running_loop().connect_accepted_socket(
                self._make_protocol, connection, ssl=self._context, ssl_handshake_timeout=limits.HANDSHAKE_SECONDS
            )


class Loop(uvloop.Loop):
    """The event loop of the service."""

    async def create_server(
        self, protocol_factory: Callable[[], asyncio.BaseProtocol], *args: Any, **kwargs: Any
    ) -> Any:
        """Returns as uvloop's; with TLS, a `TlsListener` on the socket `sock`, or else on `host` and `port`."""
        context = kwargs.get("ssl")
        if context is None:
            return await super().create_server(protocol_factory, *args, **kwargs)
        listening: socket.socket | None = kwargs.get("sock")
        if listening is None:
            family = socket.AF_INET6 if ":" in kwargs["host"] else socket.AF_INET
            listening = socket.create_server((kwargs["host"], kwargs["port"]), family=family)
        listening.listen(kwargs["backlog"])
        return TlsListener(protocol_factory, listening, context)


@contextmanager
def with_certificate(settings: Settings) -> Iterator[Settings]:
    """Yields the settings with a certificate that the service signs itself for a year, where HTTPS has none.

    Nobody can verify it: it is for probes, and for callers who would not look at it. Python takes certificates from
    files only, so that without --cert-dir it is in a folder that lasts as long as the process. Raises StartUpError if
    it cannot be written.

    Upstream: apiserver/pkg/server/options/serving.go, MaybeDefaultWithSelfSignedCerts; client-go/util/cert/cert.go,
    GenerateSelfSignedCertKey. There an authority is made, too, which signs the certificate and is then forgotten.
    """
    if not settings.secure_port or settings.tls_cert_file is not None:
        yield settings
        return
    with ExitStack() as ours:
        try:
            in_memory = _IN_MEMORY if os.access(_IN_MEMORY, os.W_OK) else None
            folder = settings.cert_dir or Path(ours.enter_context(TemporaryDirectory(dir=in_memory)))
            pair = [folder / f"{_NAME}.{kind}" for kind in ("crt", "key")]
            if not all(path.exists() for path in pair):
                _write(pair, settings.host)
        except OSError as exc:
            raise StartUpError(f"--secure-port: no certificate can be written: {exc}; give another --cert-dir") from exc
        yield replace(settings, tls_cert_file=pair[0], tls_private_key_file=pair[1])


def _write(pair: list[Path], host: str) -> None:
    # Loaded here, because it takes longer than all of HTTP.
    from cryptography import x509  # noqa: PLC0415
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    names: list[x509.GeneralName] = [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]
    try:
        names.append(x509.IPAddress(ip_address(host)))
    except ValueError:
        names.append(x509.DNSName(host))
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, f"localhost@{int(now.timestamp())}")])
    certificate = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=365))
        .add_extension(x509.SubjectAlternativeName(list(dict.fromkeys(names))), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    contents = (
        certificate.public_bytes(pem),
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )
    for path, content, mode in zip(pair, contents, (0o644, 0o600), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, mode), "wb") as file:
            file.write(content)
    _LOG.info(0, "Generated self-signed cert", file=str(pair[0]))
