"""The functions that find what matches a regular expression.

They use RE2, which takes a time that is linear in the text for any expression, as Go's regexp does, whose syntax it
shares.

Upstream: apiserver/pkg/cel/library, regex.go (v1.36.2).
"""

from functools import lru_cache
from typing import Any, Final

import re2  # type: ignore[import-untyped]

from extender.values.cel.functions import INT, STRING, STRINGS, Function

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
    """The text is no regular expression. The message is that of Go's regexp."""


MOST_MEMORY: Final = 4 << 20
"""The bytes that a compiled expression may take, with the states that it finds out while it searches; then it forgets
them.
"""


@lru_cache(maxsize=8)
def compiled_regex(pattern: str) -> Any:
    """Returns the compiled expression.

    Raises:
        RegexError: it is none.
    """
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MOST_MEMORY
    try:
        return re2.compile(pattern, options)
    except re2.error as exc:
        message = exc.args[0]
        text, colon, part = (
            message.decode(errors="replace") if isinstance(message, bytes) else str(message)
        ).partition(": ")
        raise RegexError(f"error parsing regexp: {_GO_TEXTS.get(text, text)}{f': `{part}`' if colon else ''}") from exc


def _checked(pattern: str) -> Any:
    try:
        return compiled_regex(pattern)
    except RegexError as exc:
        raise RegexError(f"Illegal regex: {exc}") from exc


def _find(text: str, pattern: str) -> str:
    found = _checked(pattern).search(text)
    return found[0] if found is not None else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """Returns the matches one after the other, all of them if the limit is negative."""
    found: list[str] = []
    end = -1
    for match in _checked(pattern).finditer(text):
        if len(found) == limit:
            break
        # Go ignores an empty match where another one has ended.
        if match.end() > match.start() or match.start() != end:
            found.append(match[0])
        end = match.end()
    return found


FUNCTIONS: Final = (
    Function("string_find_string", "find", (STRING, STRING), STRING, _find),
    Function("string_find_all_string", "findAll", (STRING, STRING), STRINGS, _find_all),
    Function("string_find_all_string_int", "findAll", (STRING, STRING, INT), STRINGS, _find_all),
)
