"""The HTTP proxy for a server: the one that the kubeconfig names, or that of the environment."""

import ipaddress
from collections.abc import Mapping
from urllib.parse import SplitResult, urlsplit

from extender.values.targets.target import CredentialsError


def check_proxy(url: str) -> str:
    """Returns the URL if it is one of a proxy that can be used.

    Raises CredentialsError for others, such as SOCKS, quoting only the scheme: a URL may contain a password.
    """
    try:
        parts = urlsplit(url)
        usable = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable:
        raise CredentialsError("proxy-url is no URL with a host: write http://host:port")
    if parts.scheme not in ("http", "https"):
        raise CredentialsError(f"proxy-url: a {parts.scheme} proxy is not supported: only http and https are")
    return url


def environment_proxy(server: str, environ: Mapping[str, str]) -> str | None:
    """Returns the proxy that HTTPS_PROXY, HTTP_PROXY and NO_PROXY (also in lower case) name for a server.

    Upstream: golang.org/x/net/http/httpproxy, which client-go uses when no proxy-url is set.
    """
    parts = urlsplit(server)
    host = parts.hostname or ""
    proxy = environ.get(f"{parts.scheme}_proxy".upper()) or environ.get(f"{parts.scheme}_proxy")
    if not proxy or _is_loopback(host):
        return None
    exceptions = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
    if any(_is_excepted(parts, exception.strip().lower()) for exception in exceptions.split(",")):
        return None
    return check_proxy(proxy if "://" in proxy else f"http://{proxy}")


def _is_loopback(host: str) -> bool:
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _is_excepted(server: SplitResult, exception: str) -> bool:
    if exception in ("", "*"):
        return exception == "*"
    host = (server.hostname or "").lower()
    if "/" in exception:
        address = _address(host)
        try:
            return address is not None and address in ipaddress.ip_network(exception, strict=False)
        except ValueError:
            return False
    name, port = exception, ""
    if exception.count(":") == 1:
        name, _, port = exception.partition(":")
    if port and port != str(server.port or (443 if server.scheme == "https" else 80)):
        return False
    address = _address(name.strip("[]"))
    if address is not None:
        return address == _address(host)
    suffix = name.removeprefix("*")
    return host.endswith(suffix) if suffix.startswith(".") else host == suffix or host.endswith(f".{suffix}")


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
