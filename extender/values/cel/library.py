"""All functions that Kubernetes adds to CEL for device selectors. Those of lists, regular expressions and named formats
are in here, the others in `addresses` and `quantities`.

What cannot be returned has no overload here: sums, minima and maxima of lists of durations, timestamps and unsigned
integers. Regular expressions are RE2's, which takes a time that is linear in the text for any expression, as Go's
regexp does, whose syntax it shares.

Upstream: apiserver/pkg/cel/environment/base.go; library, lists.go, regex.go, format.go;
kube-openapi/pkg/validation/strfmt. Of its libraries, those for authorization have no values here that they could be
used on, as upstream; sets, the further list functions and macros with two variables come with cel-expr-python.
"""

import itertools
import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from functools import lru_cache, partial, reduce
from typing import Any, Final

import re2  # type: ignore[import-untyped]
from cel_expr_python import cel  # type: ignore[import-untyped]  # it has stubs, but does not say so (py.typed)

from extender.values import limits
from extender.values.cel import addresses, quantities
from extender.values.cel.functions import BOOL, BYTES, DOUBLE, INT, STRING, STRINGS, CelType, Function, type_name
from extender.values.golang.int64 import MAX_INT64, MIN_INT64
from extender.values.golang.urls import UrlError, parse_request_uri
from extender.values.objects import name_syntax

_ANY: Final = CelType(cel.Type.DYN, cel.Type.DYN, object)
_NO_OVERLOAD: Final = "no such overload"
_ORDERED: Final = (bool, int, float, str, bytearray, timedelta, datetime)


def _list_of(element: Any) -> CelType:
    return CelType(cel.Type.List(element), cel.Type.LIST, list)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _before(one: Any, other: Any) -> bool:
    """Returns whether the one is less than the other. Numbers of different types are comparable."""
    if type(one) is not type(other) and not (_is_number(one) and _is_number(other)):
        raise TypeError(_NO_OVERLOAD)
    if not isinstance(one, _ORDERED) or (isinstance(one, bytearray) and type_name(bytes(one)) is not None):
        raise TypeError(_NO_OVERLOAD)
    return bool(one < other)


def _equal(one: Any, other: Any) -> bool:
    return (isinstance(one, bool) == isinstance(other, bool)) and bool(one == other)


def _is_sorted(items: list[Any]) -> bool:
    return not any(_before(later, earlier) for earlier, later in itertools.pairwise(items))


def _sum(items: list[Any]) -> int | float:
    total = 0
    for item in items:
        if not _is_number(item):
            raise TypeError(_NO_OVERLOAD)
        total += item
        if isinstance(total, int) and not MIN_INT64 <= total <= MAX_INT64:
            raise ValueError("integer overflow")
    return total


def _extreme(name: str, is_better: Callable[[Any, Any], bool]) -> Callable[[list[Any]], object]:
    def call(items: list[Any]) -> object:
        if not items:
            raise ValueError(f"{name} called on empty list")
        best = reduce(lambda best, item: item if is_better(item, best) else best, items)
        return bytes(best) if isinstance(best, bytearray) else best

    return call


def _index_of(items: list[Any], sought: Any) -> int:
    return next((place for place, item in enumerate(items) if _equal(item, sought)), -1)


def _last_index_of(items: list[Any], sought: Any) -> int:
    return next((place for place in range(len(items) - 1, -1, -1) if _equal(items[place], sought)), -1)


_RETURNED: Final = {"int": INT, "double": DOUBLE, "bool": BOOL, "string": STRING, "bytes": BYTES}
_COMPARABLE: Final = {
    **{name: kind.declared for name, kind in _RETURNED.items()},
    "uint": cel.Type.UINT,
    "duration": cel.Type.DURATION,
    "timestamp": cel.Type.TIMESTAMP,
}
_EXTREMES: Final = {"min": _extreme("min", _before), "max": _extreme("max", lambda one, other: _before(other, one))}

OF_LISTS: Final = (
    *(
        Function(f"list_{name}_is_sorted_bool", "isSorted", (_list_of(kind),), BOOL, _is_sorted)
        for name, kind in _COMPARABLE.items()
    ),
    *(
        Function(f"list_{name}_sum_{name}", "sum", (_list_of(_RETURNED[name].declared),), _RETURNED[name], _sum)
        for name in ("int", "double")
    ),
    *(
        Function(f"list_{name}_{which}_{name}", which, (_list_of(kind.declared),), kind, extreme)
        for which, extreme in _EXTREMES.items()
        for name, kind in _RETURNED.items()
    ),
    Function("list_a_index_of_int", "indexOf", (_list_of(cel.Type.DYN), _ANY), INT, _index_of),
    Function("list_a_last_index_of_int", "lastIndexOf", (_list_of(cel.Type.DYN), _ANY), INT, _last_index_of),
)


_GO_TEXTS: Final = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}
"""RE2's text -> Go's, where they differ."""


class RegexError(ValueError):
    """The text is no regular expression. The message has the words of Go's regexp."""


@lru_cache(maxsize=8)
def compiled_regex(pattern: str) -> Any:
    """Returns the compiled expression. Raises RegexError if it is none."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = limits.REGEX_MEMORY
    try:
        return re2.compile(pattern, options)
    except re2.error as exc:
        message = exc.args[0]
        text, colon, part = (
            message.decode(errors="replace") if isinstance(message, bytes) else str(message)
        ).partition(": ")
        words = _GO_TEXTS.get(text, text) + (f": `{part}`" if colon else "")
        raise RegexError(f"Illegal regex: error parsing regexp: {words}") from exc


def _find(text: str, pattern: str) -> str:
    match = compiled_regex(pattern).search(text)
    return match[0] if match is not None else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """Returns the matches one after the other, all of them if the limit is negative."""
    matches: list[str] = []
    end = -1
    for match in compiled_regex(pattern).finditer(text):
        if len(matches) == limit:
            break
        # Go ignores an empty match where another one has ended.
        if match.end() > match.start() or match.start() != end:
            matches.append(match[0])
        end = match.end()
    return matches


_OF_REGEXES: Final = (
    Function("string_find_string", "find", (STRING, STRING), STRING, _find),
    Function("string_find_all_string", "findAll", (STRING, STRING), STRINGS, _find_all),
    Function("string_find_all_string_int", "findAll", (STRING, STRING, INT), STRINGS, _find_all),
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
    match = _TIME.fullmatch(rest[0]) if rest and _is_date(day) else None
    return match is not None and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


FORMATS: Final[dict[str, Validate]] = {
    "dns1123Label": name_syntax.dns_label_errors,
    "dns1123Subdomain": name_syntax.subdomain_errors,
    "dns1035Label": name_syntax.dns_1035_errors,
    "qualifiedName": name_syntax.label_key_errors,
    "dns1123LabelPrefix": partial(_prefix, name_syntax.dns_label_errors),
    "dns1123SubdomainPrefix": partial(_prefix, name_syntax.subdomain_errors),
    "dns1035LabelPrefix": partial(_prefix, name_syntax.dns_1035_errors),
    "labelValue": name_syntax.label_value_errors,
    "uri": _uri,
    "uuid": partial(_pattern, _UUID, "does not match the UUID format"),
    "byte": partial(_pattern, _BASE64, "invalid base64"),
    "date": lambda text: [] if _is_date(text) else ["invalid date"],
    "datetime": lambda text: [] if _is_datetime(text) else ["invalid datetime"],
}

FORMAT: Final = CelType.of_kubernetes("kubernetes.NamedFormat", str)
"""The name of a format."""

_OF_FORMATS: Final = (
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


FUNCTIONS: Final[tuple[Function, ...]] = (
    *quantities.FUNCTIONS,
    *addresses.FUNCTIONS,
    *_OF_FORMATS,
    *_OF_REGEXES,
    *OF_LISTS,
)

UNSAFE: Final = frozenset(function.id for function in FUNCTIONS if not function.is_safe)
"""The ids of those that only the worker process may call."""
