"""Which texts may be names, ports, keys and the like, beyond what label syntax says.

Upstream: apimachinery/pkg/util/validation/validation.go; apimachinery/pkg/api/validation/generic.go (v1.36.2).
"""

import ipaddress
import re
from collections.abc import Callable
from typing import Final

from extender.golang.field_errors import FieldError, invalid
from extender.objects.validation import (
    LABEL_MAX_LENGTH,
    SUBDOMAIN_MAX_LENGTH,
    dns_label_errors,
    max_length_error,
    regex_error,
    subdomain_errors,
)

NameRule = Callable[[str], list[str]]

_DNS_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_DNS_1035_ERROR: Final = regex_error(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character",
    _DNS_1035,
    "my-name",
    "abc-123",
)
_CONFIG_KEY: Final = "[-._a-zA-Z0-9]+"
_CONFIG_KEY_ERROR: Final = regex_error(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'", _CONFIG_KEY, "key.name", "KEY_NAME", "key-name"
)
_PERCENT: Final = "[0-9]+%"
_PERCENT_ERROR: Final = regex_error("a valid percent string must be a numeric string followed by an ending '%'", _PERCENT, "1%", "93%")
_ENV_ERROR: Final = "a valid environment variable name must consist only of printable ASCII characters other than '='"
_C_IDENTIFIER: Final = "[A-Za-z_][A-Za-z0-9_]*"
_C_IDENTIFIER_ERROR: Final = regex_error(
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_'",
    _C_IDENTIFIER,
    "my_name",
    "MY_NAME",
    "MyName",
)
_HEADER: Final = "[-A-Za-z0-9]+"
_HEADER_ERROR: Final = regex_error("a valid HTTP header must consist of alphanumeric characters or '-'", _HEADER, "X-Header-Name")
MAX_PORT: Final = 65535
MAX_PORT_NAME: Final = 15
MAX_ID: Final = (1 << 31) - 1


def dns_1035_errors(value: str) -> list[str]:
    """What is wrong with a name that must be usable as a DNS label of old. Upstream: IsDNS1035Label."""
    errors = [max_length_error(LABEL_MAX_LENGTH)] if len(value) > LABEL_MAX_LENGTH else []
    return errors if re.fullmatch(_DNS_1035, value) else [*errors, _DNS_1035_ERROR]


def name_errors(rule: NameRule, name: str, *, is_prefix: bool = False) -> list[str]:
    """What `rule` says of a name; a prefix may end in a dash, as something follows. Upstream: maskTrailingDash."""
    masked = f"{name[:-2]}a" if is_prefix and len(name) > 1 and name.endswith("-") else name
    return rule(masked)


def config_key_errors(value: str) -> list[str]:
    """What is wrong with the key of a ConfigMap or Secret. Upstream: IsConfigMapKey."""
    errors = [max_length_error(SUBDOMAIN_MAX_LENGTH)] if len(value) > SUBDOMAIN_MAX_LENGTH else []
    if re.fullmatch(_CONFIG_KEY, value) is None:
        errors.append(_CONFIG_KEY_ERROR)
    if value in (".", ".."):
        errors.append(f"must not be '{value}'")
    elif value.startswith(".."):
        errors.append("must not start with '..'")
    return errors


def c_identifier_errors(value: str) -> list[str]:
    """What is wrong with an identifier of the language C. Upstream: IsCIdentifier."""
    return [] if re.fullmatch(_C_IDENTIFIER, value) else [_C_IDENTIFIER_ERROR]


def env_name_errors(value: str) -> list[str]:
    """What is wrong with the name of an environment variable. Upstream: IsRelaxedEnvVarName."""
    errors = [] if value else ["environment variable name must be non-empty"]
    if any(not " " <= character <= "~" or character == "=" for character in value):
        errors.append(_ENV_ERROR)
    return errors


def header_name_errors(value: str) -> list[str]:
    """What is wrong with the name of an HTTP header. Upstream: IsHTTPHeaderName."""
    return [] if re.fullmatch(_HEADER, value) else [_HEADER_ERROR]


def percent_errors(value: str) -> list[str]:
    """What is wrong with a percentage. Upstream: IsValidPercent."""
    return [] if re.fullmatch(_PERCENT, value) else [_PERCENT_ERROR]


def range_error(least: int, largest: int) -> str:
    """What is said of a number that is not between the two. Upstream: InclusiveRangeError."""
    return f"must be between {least} and {largest}, inclusive"


def port_errors(port: int) -> list[str]:
    """What is wrong with a port number. Upstream: IsValidPortNum."""
    return [] if 1 <= port <= MAX_PORT else [range_error(1, MAX_PORT)]


def id_errors(number: int) -> list[str]:
    """What is wrong with a user or group id. Upstream: IsValidUserID, IsValidGroupID."""
    return [] if 0 <= number <= MAX_ID else [range_error(0, MAX_ID)]


def port_name_errors(name: str) -> list[str]:
    """What is wrong with the name of a port. Upstream: IsValidPortName."""
    errors = [max_length_error(MAX_PORT_NAME)] if len(name) > MAX_PORT_NAME else []
    if re.fullmatch("[-a-z0-9]+", name) is None:
        errors.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if re.search("[a-z]", name) is None:
        errors.append("must contain at least one letter (a-z)")
    if "--" in name:
        errors.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        errors.append("must not begin or end with a hyphen")
    return errors


def port_or_name(path: str, port: int | str) -> list[FieldError]:
    """A port by its number or name. Upstream: ValidatePortNumOrName."""
    wrong = port_name_errors(port) if isinstance(port, str) else port_errors(port)
    return [invalid(path, port, error) for error in wrong]


def dns_label(path: str, value: str) -> list[FieldError]:
    """An RFC 1123 label."""
    return [invalid(path, value, error) for error in dns_label_errors(value)]


def subdomain(path: str, value: str) -> list[FieldError]:
    """An RFC 1123 subdomain."""
    return [invalid(path, value, error) for error in subdomain_errors(value)]


def ip(path: str, value: str) -> list[FieldError]:
    """An IP address. Upstream: IsValidIP."""
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return [invalid(path, value, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")]
    return []


def cidr(path: str, value: str) -> list[FieldError]:
    """An IP network. Upstream: IsValidCIDR."""
    try:
        ipaddress.ip_interface(value if "/" in value else "")
    except ValueError:
        return [invalid(path, value, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")]
    return []
