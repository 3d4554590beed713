"""What a field of the settings declares: its type, default and help, and how an operator gives it."""

import enum
import re
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union, final, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

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


def _plain_type(annotation: Any) -> type:
    if get_origin(annotation) in (Union, UnionType):
        annotation = next(member for member in get_args(annotation) if member is not NoneType)
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return annotation if annotation in (bool, int, float, Path) else str


_DOCSTRING_OF_FIELD: Final = re.compile(r'^    (\w+): (?:.*\n)+?    """([^"]*)"""$', re.MULTILINE)


def declared(settings: type[BaseModel], source: str) -> dict[str, Declaration]:
    """Returns the declarations of all fields by name, in their order, with the docstrings that the source has below
    them; pydantic would read all of it as Python.
    """
    docstrings = dict(_DOCSTRING_OF_FIELD.findall(source))
    return {name: _declaration(name, field, docstrings[name]) for name, field in settings.model_fields.items()}


def _declaration(name: str, field: FieldInfo, docstring: str) -> Declaration:
    [option] = [item for item in field.metadata if isinstance(item, Option)]
    words = " ".join(docstring.split()).removesuffix(".")
    text = words + ("; ignored with --config" if option.yields_to_file else "")
    return Declaration(name, _plain_type(field.annotation), field.default, text, option)
