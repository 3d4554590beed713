"""The functions of IP addresses, networks and URLs.

Upstream: apiserver/pkg/cel/library, ip.go, cidr.go, urls.go.
"""

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final

from extender.values.cel.functions import BOOL, INT, STRING, STRINGS_BY_NAME, CelType, Function, accepts
from extender.values.golang.ip_addresses import Address, AddressError, Prefix, parse_address, parse_prefix
from extender.values.golang.quoting import quoted
from extender.values.golang.urls import Url, UrlError, parse, parse_request_uri, text_of

IP: Final = CelType.of_kubernetes("net.IP", ip_address)
CIDR: Final = CelType.of_kubernetes("net.CIDR", parse_prefix)

_MAPPED: Final = IPv6Network("::ffff:0:0/96")
_BROADCAST: Final = IPv4Address("255.255.255.255")


def _ip(text: str) -> Address:
    """Returns the address, or raises for one that Kubernetes does not accept (parseIPAddr)."""
    try:
        address, zone = parse_address(text)
    except AddressError as exc:
        raise AddressError(f"IP Address {quoted(text)} parse error during conversion from string: {exc}") from exc
    if zone:
        raise AddressError(f"IP address {quoted(text)} with zone value is not allowed")
    if address in _MAPPED:
        raise AddressError(f"IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return address


def _cidr(text: str) -> Prefix:
    """Upstream: stringToCIDR, parseCIDR, both of which say what failed."""
    failed = "network address parse error during conversion from string: "
    try:
        prefix = parse_prefix(text)
    except AddressError as exc:
        raise AddressError(f"{failed}{failed}{exc}") from exc
    if prefix.address in _MAPPED:
        raise AddressError(f"{failed}IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return prefix


def _is_link_local_multicast(address: Address) -> bool:
    if isinstance(address, IPv6Address):
        return address.packed[0] == 0xFF and address.packed[1] & 0x0F == 0x02
    return address.packed[:3] == b"\xe0\x00\x00"


def _is_global_unicast(address: Address) -> bool:
    is_special = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not is_special and address != _BROADCAST


def _contains_cidr(outer: Prefix, inner: Prefix) -> bool:
    return outer.bits <= inner.bits and outer.contains(inner.address)


URL: Final = CelType.of_kubernetes("kubernetes.URL", parse)


def _url(text: str) -> Url:
    """Returns an absolute URL or path, with a fragment if it has one."""
    try:
        parse_request_uri(text)
        return parse(text)
    except UrlError as exc:
        raise UrlError(f"URL parse error during conversion from string: {exc}") from exc


FUNCTIONS: Final = (
    Function("string_to_ip", "ip", (STRING,), IP, _ip, is_member=False),
    Function("is_ip", "isIP", (STRING,), BOOL, accepts(_ip), is_member=False),
    Function(
        "ip_is_canonical", "ip.isCanonical", (STRING,), BOOL, lambda text: str(_ip(text)) == text, is_member=False
    ),
    Function("ip_family", "family", (IP,), INT, lambda address: address.version),
    Function("ip_is_unspecified", "isUnspecified", (IP,), BOOL, lambda address: address.is_unspecified),
    Function("ip_is_loopback", "isLoopback", (IP,), BOOL, lambda address: address.is_loopback),
    Function("ip_is_link_local_multicast", "isLinkLocalMulticast", (IP,), BOOL, _is_link_local_multicast),
    Function("ip_is_link_local_unicast", "isLinkLocalUnicast", (IP,), BOOL, lambda address: address.is_link_local),
    Function("ip_is_global_unicast", "isGlobalUnicast", (IP,), BOOL, _is_global_unicast),
    Function("ip_to_string", "string", (IP,), STRING, str, is_member=False),
    Function("string_to_cidr", "cidr", (STRING,), CIDR, _cidr, is_member=False),
    Function("is_cidr", "isCIDR", (STRING,), BOOL, accepts(_cidr), is_member=False),
    Function("cidr_contains_ip_ip", "containsIP", (CIDR, IP), BOOL, Prefix.contains),
    Function(
        "cidr_contains_ip_string", "containsIP", (CIDR, STRING), BOOL, lambda prefix, text: prefix.contains(_ip(text))
    ),
    Function("cidr_contains_cidr", "containsCIDR", (CIDR, CIDR), BOOL, _contains_cidr),
    Function(
        "cidr_contains_cidr_string",
        "containsCIDR",
        (CIDR, STRING),
        BOOL,
        lambda prefix, text: _contains_cidr(prefix, _cidr(text)),
    ),
    Function("cidr_ip", "ip", (CIDR,), IP, lambda prefix: prefix.address),
    Function("cidr_prefix_length", "prefixLength", (CIDR,), INT, lambda prefix: prefix.bits),
    Function("cidr_masked", "masked", (CIDR,), CIDR, Prefix.masked),
    Function("cidr_to_string", "string", (CIDR,), STRING, str, is_member=False),
    Function("string_to_url", "url", (STRING,), URL, _url, is_member=False),
    Function("is_url_string", "isURL", (STRING,), BOOL, accepts(parse_request_uri), is_member=False),
    Function("url_get_scheme", "getScheme", (URL,), STRING, lambda url: url.scheme),
    Function("url_get_host", "getHost", (URL,), STRING, lambda url: text_of(url.host)),
    Function("url_get_hostname", "getHostname", (URL,), STRING, lambda url: text_of(url.hostname())),
    Function("url_get_port", "getPort", (URL,), STRING, Url.port),
    Function("url_get_escaped_path", "getEscapedPath", (URL,), STRING, Url.escaped_path),
    Function("url_get_query", "getQuery", (URL,), STRINGS_BY_NAME, Url.values),
)
