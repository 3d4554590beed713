"""The syntax of names, label keys and label values, with upstream's sentences for what is wrong.

Every function returns upstream's sentences, none when the value is fine. Lengths count bytes of UTF-8.

Upstream: apimachinery/pkg/api/validate/content, kube.go, dns.go, errors.go.
"""

import re
from typing import Final

LABEL_MAX_LENGTH: Final = 63
SUBDOMAIN_MAX_LENGTH: Final = 253

_NAME: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE: Final = f"({_NAME})?"
DNS_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN: Final = rf"{DNS_LABEL}(\.{DNS_LABEL})*"
_DNS_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"

_NAME_PATTERN: Final = re.compile(_NAME)
_VALUE_PATTERN: Final = re.compile(_VALUE)
_DNS_LABEL_PATTERN: Final = re.compile(DNS_LABEL)
_SUBDOMAIN_PATTERN: Final = re.compile(SUBDOMAIN)
_KEY_PATTERN: Final = re.compile(
    rf"(?:{SUBDOMAIN}/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{{0,{LABEL_MAX_LENGTH - 2}}}[A-Za-z0-9])?"
)
"""A label key without a fault, but for the length of its subdomain."""
_DNS_1035_PATTERN: Final = re.compile(_DNS_1035)


def regex_error(sentence: str, pattern: str, *examples: str) -> str:
    """Returns the sentence followed by examples and by the pattern, punctuated as upstream does it."""
    if not examples:
        return f"{sentence} (regex used for validation is '{pattern}')"
    listed = " or ".join(f"'{example}', " for example in examples)
    return f"{sentence} (e.g. {listed}regex used for validation is '{pattern}')"


def max_length_error(length: int) -> str:
    return f"must be no more than {length} bytes"


_NAME_ERROR: Final = regex_error(
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
    _NAME,
    "MyName",
    "my.name",
    "123-abc",
)
_VALUE_ERROR: Final = regex_error(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character",
    _VALUE,
    "MyValue",
    "my_value",
    "12345",
)
_DNS_LABEL_ERROR: Final = regex_error(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character",
    DNS_LABEL,
    "my-name",
    "123-abc",
)
_DNS_1035_ERROR: Final = regex_error(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character",
    _DNS_1035,
    "my-name",
    "abc-123",
)
_SUBDOMAIN_ERROR: Final = regex_error(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character",
    SUBDOMAIN,
    "example.com",
)
_KEY_ERROR: Final = (
    f"a valid label key {_NAME_ERROR} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
)


def label_key_errors(key: str) -> list[str]:
    """Returns the errors of a label key: at most 63 bytes, perhaps after `subdomain/` (IsQualifiedName)."""
    if _KEY_PATTERN.fullmatch(key) is not None and key.find("/") <= SUBDOMAIN_MAX_LENGTH:
        return []
    prefix, slash, name = key.partition("/")
    if "/" in name:
        return [_KEY_ERROR]
    errors = []
    if not slash:
        name = prefix
    elif not prefix:
        errors.append("prefix part must be non-empty")
    else:
        errors += [f"prefix part {error}" for error in subdomain_errors(prefix)]
    if not name:
        errors.append("name part must be non-empty")
    errors += [f"name part {error}" for error in _too_long(name, LABEL_MAX_LENGTH)]
    if _NAME_PATTERN.fullmatch(name) is None:
        errors.append(f"name part {_NAME_ERROR}")
    return errors


def label_value_errors(value: str) -> list[str]:
    """Returns the errors of a label value: empty, or a name of at most 63 bytes. Upstream: IsLabelValue."""
    errors = _too_long(value, LABEL_MAX_LENGTH)
    return errors if _VALUE_PATTERN.fullmatch(value) else [*errors, _VALUE_ERROR]


def dns_label_errors(value: str) -> list[str]:
    """Returns the errors of an RFC 1123 label, such as a namespace. Upstream: IsDNS1123Label."""
    errors = _too_long(value, LABEL_MAX_LENGTH)
    if _DNS_LABEL_PATTERN.fullmatch(value) is None:
        errors.append("must not contain dots" if _SUBDOMAIN_PATTERN.fullmatch(value) else _DNS_LABEL_ERROR)
    return errors


def dns_1035_errors(value: str) -> list[str]:
    """Returns the errors of an RFC 1035 label, such as a service's name. Upstream: IsDNS1035Label."""
    errors = _too_long(value, LABEL_MAX_LENGTH)
    return errors if _DNS_1035_PATTERN.fullmatch(value) else [*errors, _DNS_1035_ERROR]


def subdomain_errors(value: str) -> list[str]:
    """Returns the errors of an RFC 1123 subdomain, such as a pod or node name. Upstream: IsDNS1123Subdomain."""
    errors = _too_long(value, SUBDOMAIN_MAX_LENGTH)
    return errors if _SUBDOMAIN_PATTERN.fullmatch(value) else [*errors, _SUBDOMAIN_ERROR]


def _too_long(text: str, max_length: int) -> list[str]:
    length = len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))
    return [max_length_error(max_length)] if length > max_length else []
