"""A certificate that the service signs itself, where HTTPS is asked for and none is given.

Nobody can verify it: it is for probes, and for callers who would not look at it. Python takes certificates from files
only, so that without --cert-dir it is in a folder that lasts as long as the process.

Upstream: apiserver/pkg/server/options/serving.go, MaybeDefaultWithSelfSignedCerts; client-go/util/cert/cert.go,
GenerateSelfSignedCertKey (v1.36.2). There an authority is made, too, which signs the certificate and is then forgotten.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from api.fatal_errors import StartUpError
from api.settings.settings import Settings
from extender.values.klog.logger import Logger

_LOG: Final = Logger(__name__)
_NAME: Final = "kube-scheduler"
_IN_MEMORY: Final = "/dev/shm"  # noqa: S108 - a container has it even if its root file system is read-only


@contextmanager
def with_certificate(settings: Settings) -> Iterator[Settings]:
    """Yields the settings with a certificate for a year. Raises StartUpError if it cannot be written."""
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
        yield settings.model_copy(update={"tls_cert_file": pair[0], "tls_private_key_file": pair[1]})


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
