"""Names as the API server lets them be: checked before they go into a look-up, an answer, a URL or a log.

Upstream: apimachinery, util/validation, validation.go, IsDNS1123Subdomain and IsDNS1123Label.
"""

import re
from collections.abc import Sequence
from typing import Final

from api.refusals import Refusal

MAX_NAME: Final = 253
MAX_LABEL: Final = 63
MAX_UID: Final = 128

_LABEL: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
NAME_PATTERN: Final = rf"{_LABEL}(?:\.{_LABEL})*"
"""A DNS-1123 subdomain."""

LABEL_PATTERN: Final = _LABEL
"""A DNS-1123 label."""

UID_PATTERN: Final = r"[A-Za-z0-9](?:[-A-Za-z0-9._:]*[A-Za-z0-9])?"

MAX_SEEN: Final = 2**17
_seen: Final[set[str]] = set()
"""Names that were found good. Thousands of the same come with every call, so each is matched once."""

_NAME: Final = re.compile(NAME_PATTERN)
_LABEL_ONLY: Final = re.compile(LABEL_PATTERN)
_UID: Final = re.compile(UID_PATTERN)


def is_name(text: str) -> bool:
    """Whether the text is a DNS-1123 subdomain."""
    return len(text) <= MAX_NAME and _NAME.fullmatch(text) is not None


def is_namespace(text: str) -> bool:
    """Whether the text is a DNS-1123 label."""
    return len(text) <= MAX_LABEL and _LABEL_ONLY.fullmatch(text) is not None


def is_uid(text: str) -> bool:
    """Whether the text can be the UID of an object."""
    return len(text) <= MAX_UID and _UID.fullmatch(text) is not None


def check_names(what: str, names: Sequence[str]) -> None:
    """Nothing happens unless one of the names cannot be the name of a node.

    Raises:
        Refusal: 400, with the place of the first such name.
    """
    if _seen.issuperset(names):
        return
    for place, name in enumerate(names):
        if not is_name(name):
            raise Refusal(400, f"{what}[{place}] is not the name of a node")
    if len(_seen) > MAX_SEEN:
        _seen.clear()
    _seen.update(names)
