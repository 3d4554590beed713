"""TLS towards an extender: files and inline data made into an SSL context. What is given inline goes before a file.

Upstream: pkg/scheduler/extender.go, makeTransport; client-go/transport, transport.go, TLSConfigFor (v1.36.2).
"""

import ssl
from pathlib import Path

from extender.apiserver.credentials.tls import Pem, Tls, context
from extender.config.extenders import Extender, ExtenderTLSConfig


def trust_of(extender: Extender) -> ssl.SSLContext | None:
    """Whom to trust, and who we are; None without TLS.

    Raises:
        TlsError: a file cannot be read, or is not what it should be; the text says which.
    """
    if not extender.enable_https:
        return None
    config = extender.tls_config or ExtenderTLSConfig()
    tls = Tls(
        ca=_pem(config.ca_file, config.ca_data),
        certificate=_pem(config.cert_file, config.cert_data),
        key=_pem(config.key_file, config.key_data),
        insecure=config.insecure,
    )
    return context(tls.read())


def _pem(file: str, text: bytes) -> Pem | None:
    if text:
        return Pem(text=text)
    return Pem(file=Path(file)) if file else None
