"""The functions of named formats.

Upstream: apiserver/pkg/cel/library, format.go; kube-openapi/pkg/validation/strfmt (v1.36.2).
"""

import re
from collections.abc import Callable
from datetime import date
from functools import partial
from typing import Final

from extender.values.cel.functions import STRING, STRINGS, CelType, Function
from extender.values.golang.urls import UrlError, parse_request_uri
from extender.values.objects.name_syntax import (
    dns_1035_errors,
    dns_label_errors,
    label_key_errors,
    label_value_errors,
    subdomain_errors,
)

Validate = Callable[[str], list[str]]
"""Returns what is wrong with a text."""

# None of these patterns can match a text in more than one way, so that matching takes no longer than reading it.
_UUID: Final = re.compile("[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}", re.ASCII)
_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})", re.ASCII)
_DATE: Final = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME: Final = re.compile("([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})")


def _prefix(validate: Validate, text: str) -> list[str]:
    """A prefix of names may end in a dash. Upstream: maskTrailingDash."""
    return validate(f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text)


def _uri(text: str) -> list[str]:
    try:
        parse_request_uri(text)
    except UrlError as exc:
        return [str(exc)]
    return []


def _pattern(pattern: re.Pattern[str], error: str, text: str) -> list[str]:
    return [] if pattern.fullmatch(text) else [error]


def _is_date(text: str) -> bool:
    if _DATE.fullmatch(text) is None:
        return False
    try:
        # Go knows a year 0, which is a leap year.
        date.fromisoformat(text.replace("0000", "0400", 1) if text.startswith("0000") else text)
    except ValueError:
        return False
    return True


def _is_datetime(text: str) -> bool:
    """Upstream: strfmt, IsDateTime. What follows a second T is not looked at."""
    day, *rest = text.lower().split("t")
    found = _TIME.fullmatch(rest[0]) if rest and _is_date(day) else None
    return found is not None and found[1] <= "23" and found[2] <= "59" and found[3] <= "59"


FORMATS: Final[dict[str, Validate]] = {
    "dns1123Label": dns_label_errors,
    "dns1123Subdomain": subdomain_errors,
    "dns1035Label": dns_1035_errors,
    "qualifiedName": label_key_errors,
    "dns1123LabelPrefix": partial(_prefix, dns_label_errors),
    "dns1123SubdomainPrefix": partial(_prefix, subdomain_errors),
    "dns1035LabelPrefix": partial(_prefix, dns_1035_errors),
    "labelValue": label_value_errors,
    "uri": _uri,
    "uuid": partial(_pattern, _UUID, "does not match the UUID format"),
    "byte": partial(_pattern, _BASE64, "invalid base64"),
    "date": lambda text: [] if _is_date(text) else ["invalid date"],
    "datetime": lambda text: [] if _is_datetime(text) else ["invalid datetime"],
}

FORMAT: Final = CelType.of_kubernetes("kubernetes.NamedFormat", str)
"""The name of a format."""

FUNCTIONS: Final = (
    Function(
        "format-named",
        "format.named",
        (STRING,),
        CelType.optional(FORMAT),
        lambda name: name if name in FORMATS else None,
        is_member=False,
    ),
    Function(
        "format-validate",
        "validate",
        (FORMAT, STRING),
        CelType.optional(STRINGS),
        lambda name, text: FORMATS[name](text),
    ),
    *(
        Function(f"format.{name}", f"format.{name}", (), FORMAT, partial(str, name), is_member=False)
        for name in FORMATS
    ),
)
