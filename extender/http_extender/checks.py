"""The validation of extenders before the first call: all errors at once.

Upstream validates none of this. Where HTTPS is enabled without a certificate authority it does not verify certificates; here that requires
`insecure: true`.
"""

from collections.abc import Iterator
from typing import Final

import httpx

from extender.apiserver.credentials.tls import TlsError
from extender.config.configuration import ConfigErrors, Configuration, Extender, ExtenderTLSConfig
from extender.golang.field_errors import INVALID, FieldError, forbidden, invalid, required
from extender.http_extender.calling import trust_of

MAX_TIMEOUT_SECONDS: Final = 30
"""Upstream has no limit; but scheduling waits for an extender."""


def check_extenders(configuration: Configuration) -> None:
    """Checks that every extender of the configuration can be called.

    Raises:
        ConfigErrors: one cannot be called; contains every reason.
    """
    errors = [error for index, extender in enumerate(configuration.extenders) for error in _errors(f"extenders[{index}]", extender)]
    if errors:
        raise ConfigErrors(errors, "create")


def _errors(path: str, extender: Extender) -> Iterator[FieldError]:
    yield from _url_errors(f"{path}.urlPrefix", extender)
    if not 0 < extender.http_timeout.seconds <= MAX_TIMEOUT_SECONDS:
        detail = f"must be greater than 0 and at most {MAX_TIMEOUT_SECONDS}s"
        yield invalid(f"{path}.httpTimeout", str(extender.http_timeout), detail)
    if extender.enable_https:
        yield from _tls_errors(f"{path}.tlsConfig", extender)


def _url_errors(path: str, extender: Extender) -> Iterator[FieldError]:
    if not extender.url_prefix:
        yield required(path)
        return
    try:
        url = httpx.URL(extender.url_prefix)
    except httpx.InvalidURL as exc:
        yield FieldError(path, INVALID, str(exc))
        return
    if url.userinfo:
        # The value is not repeated: it holds a password.
        yield forbidden(path, "user and password would be sent unencrypted, and logged")
        return
    if url.scheme not in ("http", "https") or not url.host:
        yield invalid(path, extender.url_prefix, "must be a URL with scheme http or https and a host")
        return
    if url.fragment or url.query:
        yield invalid(path, extender.url_prefix, "must have no query and no fragment")
    if (url.scheme == "https") != extender.enable_https:
        yield invalid(path, extender.url_prefix, "must have scheme https if enableHTTPS is true, and http if it is not")


def _tls_errors(path: str, extender: Extender) -> Iterator[FieldError]:
    tls = extender.tls_config or ExtenderTLSConfig()
    if not tls.has_ca and not tls.insecure:
        yield required(f"{path}.caFile", "set caFile or caData, or insecure: true to skip the verification of the server")
        return
    if tls.has_ca and tls.insecure:
        yield forbidden(f"{path}.insecure", "specifying a root certificates file with the insecure flag is not allowed")
        return
    if bool(tls.cert_file or tls.cert_data) != bool(tls.key_file or tls.key_data):
        yield required(path, "a certificate needs its key, and a key its certificate")
        return
    try:
        trust_of(extender)
    except TlsError as exc:
        yield FieldError(path, INVALID, str(exc))
