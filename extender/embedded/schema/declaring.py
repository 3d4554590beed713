"""Short words in which the declarations of the kinds are written: `"port": zero(INT32, "Port on the host.")`."""

from typing import Final, TypedDict, Unpack

from extender.embedded.schema.types import QUANTITY, STRING, Field, Kind, ListOf, MapOf, Presence, Scalar, Type


class _More(TypedDict, total=False):
    patch_key: str
    patch_strategy: str
    required: bool
    default: str | int | bool


def omit(of: Type, description: str = "", **more: Unpack[_More]) -> Field:
    """A field that is not written when it is empty. Upstream: a value with `omitempty`."""
    return Field(of, description, presence=Presence.OMIT, **more)


def keep(of: Type, description: str = "", **more: Unpack[_More]) -> Field:
    """A field that is written whenever it was given. Upstream: a pointer with `omitempty`."""
    return Field(of, description, presence=Presence.KEEP, **more)


def zero(of: Type, description: str = "", **more: Unpack[_More]) -> Field:
    """A field that is always written, if need be with the empty value. Upstream: no `omitempty`, or a struct by value."""
    return Field(of, description, presence=Presence.ZERO, **more)


def null(of: Type, description: str = "", **more: Unpack[_More]) -> Field:
    """A field that is always written, if need be as null. Upstream: a list, map, pointer or time without `omitempty`."""
    return Field(of, description, presence=Presence.NULL, **more)


def named(go_type: str, *values: str) -> Scalar:
    """A text with a type of its own in Go, and the values that the API documents for it."""
    return Scalar(Kind.STRING, go_type, values)


def map_list(item: Type, *keys: str) -> ListOf:
    """A list whose items are told apart by `keys`."""
    return ListOf(item, "map", keys)


def set_of(item: Type) -> ListOf:
    """A list of different values."""
    return ListOf(item, "set")


TYPE_META: Final = {
    "kind": omit(STRING, "What kind of object this is. Cannot be updated."),
    "apiVersion": omit(STRING, "The group and version of the schema that this object follows."),
}
RESOURCE_LIST: Final = MapOf(QUANTITY, go_type="v1.ResourceList")
