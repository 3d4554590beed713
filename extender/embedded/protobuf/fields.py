"""How the tables in `numbers` are written: the fields of a message by name, each with its number."""

from collections.abc import Mapping

Numbers = Mapping[int, "str | Numbers"]
"""By number the JSON name of a field, or the fields of a message that JSON does not show: they stand one level higher there."""


def numbered(hidden: Mapping[int, Numbers] | None = None, /, **numbers: int) -> Numbers:
    """The fields of a message.

    Arguments:
        hidden: by number those of messages that JSON does not show.
        numbers: by JSON name the numbers of all others.

    Raises:
        ValueError: a number is there twice.
    """
    fields: dict[int, str | Numbers] = dict(hidden or {})
    for name, number in numbers.items():
        if number in fields:
            raise ValueError(f"{name}: number {number} is there twice")
        fields[number] = name
    return fields


def in_package(package: str, /, **messages: Numbers) -> dict[str, Numbers]:
    """The messages of a package by the names that OpenAPI has for them."""
    return {f"{package}.{name}": fields for name, fields in messages.items()}
