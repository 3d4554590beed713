"""What a field of the settings declares: its type, default and help, and how an operator gives it."""

import enum
import re
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, final, get_args, get_origin

from msgspec import Meta, Struct, ValidationError, convert
from msgspec.structs import FieldInfo, fields

from extender.values.golang.times import Duration

MIB: Final = 2**20


@final
class Group(enum.Enum):
    """Settings that belong together in the help and in docs/flags.md. The value is the heading."""

    OURS = "Reprieve's own flags"
    KUBE_SCHEDULER = "Flags of kube-scheduler"
    ENVIRONMENT = "Environment only"


@final
@dataclass(frozen=True, slots=True)
class Option:
    """How an operator gives a setting: the flag has dashes in the field's name, the environment variable capitals."""

    group: Group = Group.OURS
    unset: str = ""
    """What holds while the setting is not given, if the default is None."""
    also: tuple[str, ...] = ()
    """Further flags of the same meaning."""
    configures: tuple[str, ...] = ()
    """Path of the field of the configuration that the setting is written over."""
    yields_to_file: bool = False
    """Whether a configuration file wins over the setting, as it does for kube-scheduler's deprecated flags."""


@final
@dataclass(frozen=True, slots=True)
class Declaration:
    """A field of the settings as the environment, the flags and the documentation need it."""

    name: str
    type: type
    """bool, int, float, Path, or str for whatever is parsed from text."""
    default: Any
    help: str
    """One sentence, without its full stop."""
    option: Option
    bounded: Any
    """The type with its bounds."""

    def read(self, value: object) -> Any:
        """Returns what a value or its text stands for. Raises ValueError."""
        plain = _plain(self.bounded)
        if plain is Duration:
            return Duration.parse(value) if isinstance(value, str) else value
        try:
            return convert(value, self.bounded, strict=False, dec_hook=lambda kind, text: kind(text))
        except ValidationError as exc:
            raise ValueError(f"must be {_in_words(self.bounded)}") from exc

    @property
    def variable(self) -> str:
        return f"REPRIEVE_{self.name.upper()}"

    @property
    def flag(self) -> str:
        """The flag, whether or not there is one: messages name settings so."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def default_in_words(self) -> str:
        """What holds while the setting is not given; empty if that goes without saying."""
        if self.default is None:
            return self.option.unset
        if isinstance(self.default, bool):
            return str(self.default).lower()
        is_large = isinstance(self.default, int) and self.default >= MIB
        return f"{self.default}, {self.default // MIB} MiB" if is_large else str(self.default)


def _plain(bounded: Any) -> Any:
    return get_args(bounded)[0] if get_origin(bounded) is Annotated else bounded


def _in_words(bounded: Any) -> str:
    plain = _plain(bounded)
    if get_origin(plain) is Literal:
        return f"one of {', '.join(get_args(plain))}"
    words = {bool: "true or false", int: "a whole number", float: "a number"}.get(plain, "text")
    for meta in (item for item in get_args(bounded) if isinstance(item, Meta)):
        limits = {"at least": meta.ge, "above": meta.gt, "at most": meta.le}
        words += "".join(f", {word} {limit}" for word, limit in limits.items() if limit is not None)
    return words


_DOCSTRING_OF_FIELD: Final = re.compile(r'^    (\w+): (?:.*\n)+?    """([^"]*)"""$', re.MULTILINE)


def declared(settings: type[Struct], source: str) -> dict[str, Declaration]:
    """Returns the declarations of all fields by name, in their order, with the docstrings that the source has below
    them.
    """
    docstrings = dict(_DOCSTRING_OF_FIELD.findall(source))
    return {field.name: _declaration(field, docstrings[field.name]) for field in fields(settings)}


def _declaration(field: FieldInfo, docstring: str) -> Declaration:
    [option] = [item for item in get_args(field.type) if isinstance(item, Option)]
    words = " ".join(docstring.split()).removesuffix(".")
    text = words + ("; ignored with --config" if option.yields_to_file else "")
    bounded = field.type
    if get_origin(get_args(bounded)[0]) in (Union, UnionType):  # of itself and None
        bounded = next(member for member in get_args(get_args(bounded)[0]) if member is not NoneType)
    kind = _plain(bounded) if _plain(bounded) in (bool, int, float, Path) else str
    return Declaration(field.name, kind, field.default, text, option, bounded)
