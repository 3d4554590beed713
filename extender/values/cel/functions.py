"""The contract of the functions that Kubernetes adds to CEL: their types, and how values are carried at run time.

cel-expr-python can check values of custom types, but not carry them at run time. So every expression is checked against
the types that upstream declares, and then runs with bytes in their place, their carriers: `kubernetes.Quantity:` and a
text, for instance, which are equal exactly if the values are. Functions take and return Python values; their `CelType`s
tell how these are carried.

Beware: the library ends the process when it converts an optional in a list, a map or dyn to Python. A function with
such a parameter is never called outside of the worker process (`Function.is_safe`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, final

from cel_expr_python import cel  # type: ignore[import-untyped]  # it has stubs, but does not say so (py.typed)

NOT_OF_TYPE: Final = object()

Carrier = bytes
"""A value of a type of Kubernetes in a running expression."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class CelType:
    """The type of a parameter or a result."""

    declared: Any
    """The cel.Type that expressions are checked against."""
    carried: Any
    """The cel.Type in a running expression."""
    python: type
    """The type of an argument of the function, if it has no carrier."""
    prefix: bytes = b""
    """Begins every carrier; empty for a type that needs none."""
    read: Callable[[str], Any] = str
    """Returns the value of the text in a carrier."""

    @staticmethod
    def of_kubernetes(name: str, read: Callable[[str], Any]) -> "CelType":
        """Returns a type, of upstream's name, whose values have carriers; `read` returns that whose str is the text."""
        return CelType(cel.Type.AbstractType(name), cel.Type.BYTES, bytes, f"{name}:".encode(), read)

    @staticmethod
    def optional(inner: "CelType") -> "CelType":
        """Returns the type of a result that may be absent: an empty list, or no bytes; see `checked_expression`.

        It is declared as dyn, because the library takes an optional that is declared for some other type.
        """
        return CelType(cel.Type.DYN, inner.carried, inner.python, inner.prefix, inner.read)

    def value(self, argument: Any) -> Any:
        """Returns the Python value of an argument; NOT_OF_TYPE if it is of another type."""
        if not self.prefix:
            return argument if self.python is object or type(argument) is self.python else NOT_OF_TYPE
        return (
            self.read(argument.removeprefix(self.prefix).decode()) if argument.startswith(self.prefix) else NOT_OF_TYPE
        )

    def carrier(self, value: Any) -> Any:
        if not self.prefix:
            return value
        return b"" if value is None else self.prefix + str(value).encode()


STRING: Final = CelType(cel.Type.STRING, cel.Type.STRING, str)
BOOL: Final = CelType(cel.Type.BOOL, cel.Type.BOOL, bool)
INT: Final = CelType(cel.Type.INT, cel.Type.INT, int)
DOUBLE: Final = CelType(cel.Type.DOUBLE, cel.Type.DOUBLE, float)
BYTES: Final = CelType(cel.Type.BYTES, cel.Type.BYTES, bytearray)
STRINGS: Final = CelType(cel.Type.List(cel.Type.STRING), cel.Type.LIST, list)
STRINGS_BY_NAME: Final = CelType(cel.Type.Map(cel.Type.STRING, cel.Type.List(cel.Type.STRING)), cel.Type.MAP, dict)


@final
@dataclass(frozen=True, slots=True)
class Function:
    """One overload of a function, under upstream's id."""

    id: str
    name: str
    parameters: tuple[CelType, ...]
    result: CelType
    call: Callable[..., object]
    is_member: bool = True

    @property
    def is_safe(self) -> bool:
        """Whether only scalars are converted to call it."""
        return not any(kind.carried in (cel.Type.LIST, cel.Type.MAP, cel.Type.DYN) for kind in self.parameters)


def accepts(read: Callable[..., object]) -> Callable[..., bool]:
    """Returns whether the function takes arguments without ValueError, as a function of them."""

    def is_accepted(*arguments: object) -> bool:
        try:
            read(*arguments)
        except ValueError:
            return False
        return True

    return is_accepted


def type_name(carrier: Carrier) -> str | None:
    """Returns the name of the type that the bytes carry a value of; None if they carry none."""
    name, colon, _ = carrier.partition(b":")
    return name.decode() if colon and (name.startswith((b"kubernetes.", b"net."))) else None


def as_json(carrier: Carrier) -> object:
    """Returns a carrier in a form that `json.dumps` writes, as its `default`."""
    return {"": carrier.decode()}


def of_json(document: dict[str, Any]) -> object:
    """Returns a carrier written by `as_json`, or else the document itself; an `object_hook` of `json.loads`."""
    return document[""].encode() if document.keys() == {""} and isinstance(document[""], str) else document
