"""What makes an extender's address or TLS settings useless, although kube-scheduler takes them and fails with the first pod."""

from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import urlsplit

from extender.config.duration import Duration
from extender.config.errors import FieldError, invalid, required
from extender.config.extenders import Extender, ExtenderTLSConfig
from extender.objects.field_errors import child, index

LONGEST_TIMEOUT: Final = Duration.of(30)
_NONE: Final = Duration()


def check_extenders_strictly(extenders: Iterable[Extender]) -> list[FieldError]:
    """Every such error. Upstream has no part in this: none of these texts is one of its own."""
    return [error for position, extender in enumerate(extenders) for error in _extender(index("extenders", position), extender)]


def _extender(path: str, extender: Extender) -> Iterator[FieldError]:
    yield from _url(child(path, "urlPrefix"), extender)
    if not _NONE < extender.http_timeout <= LONGEST_TIMEOUT:
        yield invalid(child(path, "httpTimeout"), str(extender.http_timeout), f"must be greater than 0s and at most {LONGEST_TIMEOUT}")
    tls, tls_path = extender.tls_config or ExtenderTLSConfig(), child(path, "tlsConfig")
    if extender.enable_https and not tls.has_ca and not tls.insecure:
        yield required(tls_path, "name a CA for HTTPS, or say `insecure: true`")
    if bool(tls.cert_data or tls.cert_file) != bool(tls.key_data or tls.key_file):
        yield required(tls_path, "a certificate and its key go together")


def _url(path: str, extender: Extender) -> Iterator[FieldError]:
    prefix = extender.url_prefix
    if not prefix:
        yield required(path, "where is the extender?")
        return
    try:
        url = urlsplit(prefix)
        host, has_user = url.hostname, url.username is not None or url.password is not None
    except ValueError as exc:
        yield invalid(path, prefix, f"is no URL: {exc}")
        return
    if has_user or url.fragment or url.query:
        # The address is not repeated here, since it may hold a password.
        yield FieldError(path, "Invalid value: must not have a user, a query or a fragment")
    elif url.scheme not in ("http", "https") or not host:
        yield invalid(path, prefix, "must be an http or https URL with a host")
    elif (url.scheme == "https") != extender.enable_https:
        yield invalid(path, prefix, "https goes with `enableHTTPS: true`, http without it")
