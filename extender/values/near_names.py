"""Names that somebody may have meant who wrote one that does not exist."""

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any, Final

from msgspec import inspect

_UNKNOWN: Final = re.compile(r"unknown field `(?P<name>.*?)`(?: - at `\$(?P<path>.*)`)?$", re.DOTALL)
_LONGEST: Final = 253
"""The length of the longest name of an object."""
_ALIKE: Final = 0.8
"""How alike names of objects have to be, of 1; of fields, of which there are few, less does."""


def near_names(name: str, names: Iterable[str], count: int = 1, similarity: float = _ALIKE) -> list[str]:
    """Returns the names that are most like this one. It takes 3 microseconds for each of them."""
    return get_close_matches(name, names, count, similarity) if len(name) <= _LONGEST else []


def did_you_mean(name: str, names: Iterable[str], similarity: float = _ALIKE) -> str:
    """Returns the end of a sentence, `; did you mean NAME?`; empty if no name is near."""
    return "".join(f"; did you mean {near_name}?" for near_name in near_names(name, names, similarity=similarity))


def field_meant(kind: Any, refusal: str) -> str:
    """Returns which field is meant by the unknown one that msgspec's refusal of a value of this type names, as
    `did_you_mean` does.
    """
    match = _UNKNOWN.search(refusal)
    if match is None:
        return ""
    parts: tuple[Any, ...] = (inspect.type_info(kind),)
    for item, member in re.findall(r"(\[)|\.(\w+)", match["path"] or ""):
        inner = _items(parts) if item else (field.type for field in _fields(parts) if field.encode_name == member)
        parts = tuple(inner)
    return did_you_mean(match["name"], [field.encode_name for field in _fields(parts)], 0.5)


def _items(parts: Iterable[Any]) -> Iterator[Any]:
    for part in _choices(parts):
        if isinstance(part, inspect.DictType):
            yield part.value_type
        elif isinstance(part, inspect.ListType | inspect.VarTupleType):
            yield part.item_type


def _fields(parts: Iterable[Any]) -> Iterator[inspect.Field]:
    for part in _choices(parts):
        if isinstance(part, inspect.StructType):
            yield from part.fields


def _choices(parts: Iterable[Any]) -> Iterator[Any]:
    for part in parts:
        yield from part.types if isinstance(part, inspect.UnionType) else (part,)
