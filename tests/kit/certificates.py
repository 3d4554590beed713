"""Certificates that are valid for a day, made by the openssl command because Python can only read certificates."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple, final

_NEW_KEY: Final = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


class CertificateFiles(NamedTuple):
    """A certificate and its key as PEM files."""

    certificate: Path
    key: Path


def can_make_certificates() -> bool:
    """Returns whether the openssl command exists."""
    return shutil.which("openssl") is not None


@final
class Authority:
    """A certificate authority and the certificates that it signs, as files in one folder."""

    def __init__(self, folder: Path, name: str) -> None:
        """Makes the authority's own certificate.

        Raises:
            subprocess.CalledProcessError: openssl failed.
        """
        self._folder = folder
        self._name = name
        self._own = CertificateFiles(folder / f"{name}.crt", folder / f"{name}.key")
        extensions = ("-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign")
        files = ("-keyout", self._own.key, "-out", self._own.certificate)
        _openssl("req", "-x509", *_NEW_KEY, "-days", "1", "-subj", f"/CN={name}", *extensions, *files)

    @property
    def certificate(self) -> Path:
        """The certificate that others have to trust."""
        return self._own.certificate

    def sign(self, name: str, *alternative_names: str, organizations: Sequence[str] = ()) -> CertificateFiles:
        """Returns a certificate for this common name.

        Arguments:
            alternative_names: such as `IP:127.0.0.1` and `DNS:kubernetes.default`, for a server; none for a client.
            organizations: the groups of a client.
        """
        stem = self._folder / f"{self._name}-{name}"
        made = CertificateFiles(stem.with_suffix(".crt"), stem.with_suffix(".key"))
        request, extensions = stem.with_suffix(".csr"), stem.with_suffix(".ext")
        extensions.write_text(
            f"subjectAltName={','.join(alternative_names)}\n" if alternative_names else "extendedKeyUsage=clientAuth\n"
        )
        subject = "".join(f"/O={each}" for each in organizations) + f"/CN={name}"
        _openssl("req", *_NEW_KEY, "-subj", subject, "-keyout", made.key, "-out", request)
        signer = ("-CA", self._own.certificate, "-CAkey", self._own.key, "-CAcreateserial")
        _openssl(
            "x509", "-req", "-in", request, *signer, "-days", "1", "-extfile", extensions, "-out", made.certificate
        )
        return made


def encrypted(key: Path, password: str) -> Path:
    """Returns the same key, encrypted with a password."""
    locked = key.with_suffix(".locked")
    _openssl("pkcs8", "-topk8", "-in", key, "-out", locked, "-passout", f"pass:{password}")
    return locked


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, timeout=60)
