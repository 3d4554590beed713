"""Certificates for an hour, made by the openssl command."""

import subprocess
from pathlib import Path
from typing import final


@final
class Authority:
    """A certificate authority and what it has signed, as files in one folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        self.certificate = folder / f"{name}.crt"
        self._key = folder / f"{name}.key"
        _openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1",
                 "-subj", f"/CN={name}", "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign",
                 "-keyout", self._key, "-out", self.certificate)  # fmt: skip

    def sign(self, name: str, *alternative_names: str) -> tuple[Path, Path]:
        """A certificate for this common name, and its key."""
        certificate, key, request = (self._folder / f"{self._name}-{name}.{suffix}" for suffix in ("crt", "key", "csr"))
        extensions = self._folder / f"{self._name}-{name}.ext"
        extensions.write_text(f"subjectAltName={','.join(alternative_names)}\n" if alternative_names else "extendedKeyUsage=clientAuth\n")
        _openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={name}",
                 "-keyout", key, "-out", request)  # fmt: skip
        _openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self._key, "-CAcreateserial", "-days", "1",
                 "-extfile", extensions, "-out", certificate)  # fmt: skip
        return certificate, key


def encrypted(key: Path) -> Path:
    """The same key, behind a password."""
    locked = key.with_suffix(".locked")
    _openssl("pkcs8", "-topk8", "-in", key, "-out", locked, "-passout", "pass:canary")
    return locked


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, timeout=60)
