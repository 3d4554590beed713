"""Certificates that are valid for a day."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Final, NamedTuple, final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_DAY: Final = timedelta(days=1)
_MINUTE: Final = timedelta(minutes=1)


class CertificateFiles(NamedTuple):
    """A certificate and its key as PEM files."""

    certificate: Path
    key: Path


@final
class Authority:
    """A certificate authority and the certificates that it signs, as files in one folder."""

    def __init__(self, folder: Path, name: str) -> None:
        """Makes the authority's own certificate."""
        self._folder = folder
        self._name = name
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        usage = x509.KeyUsage(
            digital_signature=False, content_commitment=False, key_encipherment=False, data_encipherment=False,
            key_agreement=False, key_cert_sign=True, crl_sign=False, encipher_only=False, decipher_only=False,
        )  # fmt: skip
        builder = (
            self._builder(self._subject, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
        )
        self._own = self._write(name, builder, self._key)

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
        key = ec.generate_private_key(ec.SECP256R1())
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in organizations]
        subject = x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = self._builder(subject, key.public_key())
        if alternative_names:
            names = x509.SubjectAlternativeName([_alternative(text) for text in alternative_names])
            builder = builder.add_extension(names, critical=False)
        else:
            builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        return self._write(f"{self._name}-{name}", builder, key)

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._subject)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _MINUTE)
            .not_valid_after(now + _DAY)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )

    def _write(self, stem: str, builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey) -> CertificateFiles:
        files = CertificateFiles(self._folder / f"{stem}.crt", self._folder / f"{stem}.key")
        files.key.write_bytes(_pem(key, serialization.NoEncryption()))
        signed = builder.sign(self._key, hashes.SHA256())
        files.certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        return files


def encrypted(key: Path, password: str) -> Path:
    """Returns the same key, encrypted with a password."""
    locked = key.with_suffix(".locked")
    loaded = serialization.load_pem_private_key(key.read_bytes(), None)
    assert isinstance(loaded, ec.EllipticCurvePrivateKey)
    locked.write_bytes(_pem(loaded, serialization.BestAvailableEncryption(password.encode())))
    return locked


def _alternative(text: str) -> x509.GeneralName:
    kind, _, value = text.partition(":")
    return x509.IPAddress(ip_address(value)) if kind == "IP" else x509.DNSName(value)


def _pem(key: ec.EllipticCurvePrivateKey, encryption: serialization.KeySerializationEncryption) -> bytes:
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
