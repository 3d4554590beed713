"""Why a call had no answer, in the words of Go's client: read off the errors of sockets and of TLS that are the cause,
whichever HTTP client made the call.

Upstream: net, dial.go and lookup.go; crypto/tls, alert.go; crypto/x509, verify.go; net/http, transport.go (Go).
"""

import os
import re
import socket
import ssl
from collections.abc import Iterator, Sequence
from typing import Final

from extender.values.reasons import in_one_line

_DIALLED: Final = re.compile(r"Connect call failed \('([^']+)', (\d+)")
"""What event loops say of a connection that was refused, with the address that the name resolved to."""

_ALERT: Final = re.compile(r"(?:SSLV3|TLSV1|TLSV13)_(?:ALERT_)?(\w+)")

_GO_SAYS: Final = {
    "BAD_RECORD_MAC": "bad record MAC",
    "CERTIFICATE_EXPIRED": "expired certificate",
    "CERTIFICATE_REVOKED": "revoked certificate",
    "CERTIFICATE_UNKNOWN": "unknown certificate",
    "DECODE_ERROR": "error decoding message",
    "DECRYPT_ERROR": "error decrypting message",
    "INSUFFICIENT_SECURITY": "insufficient security level",
    "PROTOCOL_VERSION": "protocol version not supported",
    "UNKNOWN_CA": "unknown certificate authority",
}
"""Alerts for which Go does not use the name in the RFC."""

_NOT_TLS: Final = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE")
"""What OpenSSL says of an answer that is no TLS. Go looks whether it is HTTP, which on a port for extenders it is."""

_UNKNOWN_AUTHORITY: Final = (2, 18, 19, 20, 21)
_NOT_VALID_NOW: Final = (9, 10)
_WRONG_NAME: Final = (62, 64)
"""X509_V_ERR of OpenSSL: for a host, and for an IP address."""

Names = Sequence[tuple[str, str]]
"""The alternative names of a certificate: ("DNS", "a") or ("IP Address", "10.0.0.1")."""


def is_wrong_name(failure: BaseException) -> bool:
    """Whether the server's certificate is trusted, but for another name."""
    return any(getattr(cause, "verify_code", None) in _WRONG_NAME for cause in _causes(failure))


def words(failure: BaseException, host: str, port: int, names: Names | None = None) -> str:
    """Returns why there was no answer: `dial tcp 10.0.0.1:80: connect: connection refused`.

    The host is what was dialled; `names` are those of the server's certificate, where it is for another name.
    """
    for cause in reversed(list(_causes(failure))):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"tls: failed to verify certificate: x509: {_distrust(cause, host, names)}"
        if isinstance(cause, ssl.SSLError) and cause.reason:
            return _of_tls(cause.reason)
        if isinstance(cause, socket.gaierror) and cause.errno == socket.EAI_AGAIN:
            return f"dial tcp: lookup {host}: {cause.strerror}"
        if isinstance(cause, socket.gaierror | UnicodeError):
            return f"dial tcp: lookup {host}: no such host"
        if isinstance(cause, ConnectionError) and cause.errno is None:
            return "EOF"
        if isinstance(cause, OSError) and cause.errno is not None:
            dialled = _DIALLED.search(str(cause))
            at = _address(*dialled.groups()) if dialled else _address(host, port)
            is_cut = isinstance(cause, ConnectionResetError | BrokenPipeError)
            return (
                f"{f'read tcp {at}: read' if is_cut else f'dial tcp {at}: connect'}: {os.strerror(cause.errno).lower()}"
            )
    return in_one_line(failure)


def _causes(failure: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = failure
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def _address(host: str, port: int | str) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _of_tls(reason: str) -> str:
    if reason in _NOT_TLS:
        return "http: server gave HTTP response to HTTPS client"
    alert = _ALERT.fullmatch(reason)
    if alert is None:
        return f"tls: {reason.lower().replace('_', ' ')}"
    return f"remote error: tls: {_GO_SAYS.get(alert[1]) or alert[1].lower().replace('_', ' ')}"


def _distrust(cause: ssl.SSLCertVerificationError, host: str, names: Names | None) -> str:
    if cause.verify_code in _UNKNOWN_AUTHORITY:
        return "certificate signed by unknown authority"
    if cause.verify_code in _NOT_VALID_NOW:
        return "certificate has expired or is not yet valid"
    if cause.verify_code not in _WRONG_NAME:
        return cause.verify_message
    if names is None:
        return f"certificate is not valid for {host}"
    is_address = cause.verify_code == _WRONG_NAME[1]
    valid = [name for kind, name in names if kind == ("IP Address" if is_address else "DNS")]
    if valid:
        return f"certificate is valid for {', '.join(valid)}, not {host}"
    if is_address:
        return f"cannot validate certificate for {host} because it doesn't contain any IP SANs"
    return f"certificate is not valid for any names, but wanted to match {host}"
