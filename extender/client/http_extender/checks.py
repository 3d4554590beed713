"""The validation of extenders before the first call: all errors at once, and what upstream accepts but is unwise.

Upstream looks at none of this: it calls, and fails then. What can never work is refused here; what works is warned of.
"""

import os
from collections.abc import Iterator

from extender.client.http_extender.calling import trust_of, without_password
from extender.values import limits
from extender.values.config.configuration import ConfigErrors, Configuration, Extender, ExtenderTLSConfig
from extender.values.golang.field_errors import INVALID, FieldError, forbidden, invalid, required
from extender.values.targets.target import CredentialsError, environment_proxy
from extender.values.targets.tls import TlsError


def check_extenders(configuration: Configuration) -> None:
    """Checks that every extender of the configuration can be called. Raises ConfigErrors with all reasons."""
    errors: list[FieldError] = []
    for index, extender in enumerate(configuration.extenders):
        errors += _url_errors(f"extenders[{index}].urlPrefix", extender.url_prefix)
        errors += _tls_errors(f"extenders[{index}].tlsConfig", extender)
    if errors:
        raise ConfigErrors(errors, "create")


def warnings_of(extender: Extender) -> Iterator[str]:
    """Yields warnings, member first, about valid settings that slow or expose scheduling."""
    import httpx  # noqa: PLC0415 - most schedulers call no extender, and it takes long to load

    url, tls = httpx.URL(extender.url_prefix), extender.tls_config or ExtenderTLSConfig()
    seconds = extender.http_timeout.seconds
    if seconds < 0:
        yield f"httpTimeout: {extender.http_timeout} means that all scheduling waits for its answer forever"
    elif seconds > limits.EXTENDER_SECONDS:
        yield (
            f"httpTimeout: {extender.http_timeout} is longer than {limits.EXTENDER_SECONDS}s, and all scheduling waits "
            "for its answer"
        )
    if url.userinfo and url.scheme == "http":
        yield "urlPrefix: user and password are sent in clear"
    if url.query or url.fragment:
        yield "urlPrefix: the verb is appended to its query or fragment, not to its path"
    if url.scheme == "http" and extender.enable_https:
        yield "enableHTTPS: has no effect, because urlPrefix begins with http://"
    elif url.scheme == "https" and not tls.has_ca and (extender.enable_https or tls.insecure):
        yield "tlsConfig: without caFile or caData no certificate is verified: any server is trusted"
    if bool(tls.cert_file or tls.cert_data) != bool(tls.key_file or tls.key_data):
        yield "tlsConfig: a certificate needs its key, and a key its certificate: neither is shown to the extender"


def _url_errors(path: str, prefix: str) -> Iterator[FieldError]:
    import httpx  # noqa: PLC0415 - as above

    if not prefix:
        yield required(path)
        return
    try:
        url = httpx.URL(prefix)
    except httpx.InvalidURL as exc:
        yield FieldError(path, INVALID, str(exc))
        return
    if url.scheme not in ("http", "https") or not url.host:
        yield invalid(path, without_password(prefix), "must be a URL with scheme http or https and a host")
        return
    try:
        environment_proxy(prefix, os.environ)
    except CredentialsError as exc:
        yield FieldError(path, INVALID, f"the proxy that the environment names for it cannot be used: {exc}")


def _tls_errors(path: str, extender: Extender) -> Iterator[FieldError]:
    tls = extender.tls_config or ExtenderTLSConfig()
    if tls.has_ca and tls.insecure:
        yield forbidden(f"{path}.insecure", "specifying a root certificates file with the insecure flag is not allowed")
        return
    try:
        trust_of(extender)
    except TlsError as exc:
        yield FieldError(path, INVALID, str(exc))
