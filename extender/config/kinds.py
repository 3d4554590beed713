"""Go's types as far as a configuration holds them: how their values are read from JSON, with Go's words for what does not fit, and written.

Reading knows three sorts of trouble: what stops it at once (a duration that is none), what makes the document unreadable (a member of the
wrong type; the first one is told), and what is only forbidden (unknown and repeated members; all are told).

Upstream: sigs.k8s.io/json, UnmarshalStrict.
"""

import base64
import binascii
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from struct import pack, unpack
from typing import Any, Final

from extender.config.duration import Duration, DurationError
from extender.config.json_text import Json, Number, Object, plain
from extender.objects.field_errors import quoted

MAX_FORBIDDEN: Final = 100
"""No more unknown and repeated members than this are told."""


class WireError(ValueError):
    """The document cannot be read. The message is the one of the Go decoder."""


@dataclass(slots=True)
class Reading:
    """What reading one document has found so far, and where it is."""

    mismatch: str = ""
    forbidden: dict[str, None] = field(default_factory=dict)
    struct: str = ""
    names: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)

    def does_not_fit(self, value: str, go_type: str) -> None:
        """Note a value of the wrong type."""
        if not self.mismatch:
            where = f"Go struct field {self.struct}.{'.'.join(self.names)}" if self.names else "Go value"
            self.mismatch = f"json: cannot unmarshal {value} into {where} of type {go_type}"

    def cannot_use(self, reason: str) -> None:
        """Note a value that has the right type and is wrong all the same."""
        self.mismatch = self.mismatch or reason

    def forbid(self, sort: str, name: str) -> None:
        """Note an unknown or repeated member of the current object."""
        if len(self.forbidden) < MAX_FORBIDDEN:
            path = "".join(self.steps)
            self.forbidden[f"{sort} field {quoted(f'{path}.{name}' if path else name)}"] = None

    @contextmanager
    def member(self, struct: str, name: str) -> Iterator[None]:
        """Inside the member of a struct."""
        outer = self.struct
        self.struct = struct
        self.names.append(name)
        self.steps.append(f".{name}" if self.steps else name)
        yield
        self.steps.pop()
        self.names.pop()
        self.struct = outer

    @contextmanager
    def item(self, index: int) -> Iterator[None]:
        """Inside an item of a list."""
        self.steps.append(f"[{index}]")
        yield
        self.steps.pop()


class Kind(ABC):
    """A Go type: how its values are read and written."""

    def __init__(self, go_type: str, zero: object) -> None:
        self.go_type = go_type
        self.zero = zero

    reads_null = False
    """Whether null is read; everywhere else it is as if the member were not there."""

    @abstractmethod
    def read(self, value: Json, reading: Reading) -> Any:
        """The value, or `zero` after noting in `reading` what is wrong."""

    def write(self, value: Any) -> Any:
        """The value in dicts, lists and scalars."""
        return value


class Scalar(Kind):
    """string, bool, and named types of these."""

    def __init__(self, go_type: str, python_type: type) -> None:
        super().__init__(go_type, python_type())
        self._type = python_type

    def read(self, value: Json, reading: Reading) -> Any:
        """As is."""
        if type(value) is not self._type:
            reading.does_not_fit(named(value), self.go_type)
            return self.zero
        return value


class Integer(Kind):
    """int32 and int64."""

    def __init__(self, go_type: str, maximum: int) -> None:
        super().__init__(go_type, 0)
        self._maximum = maximum

    def read(self, value: Json, reading: Reading) -> int:
        """In plain digits and in range."""
        if isinstance(value, int) and not isinstance(value, bool) and -self._maximum - 1 <= value <= self._maximum:
            return value
        reading.does_not_fit(_literally(value), self.go_type)
        return 0


class Float32(Kind):
    """float32. It is kept as the shortest decimal that means the same float32."""

    def __init__(self) -> None:
        super().__init__("float32", 0.0)

    def read(self, value: Json, reading: Reading) -> float:
        """Any number that a float32 can hold."""
        number = None
        if isinstance(value, int | float) and not isinstance(value, bool) and not math.isinf(value):
            number = _shortest_float32(float(value))
        if number is None:
            reading.does_not_fit(_literally(value), self.go_type)
            return 0.0
        return number

    def write(self, value: float) -> float:
        """Whole numbers without a point."""
        return int(value) if value == int(value) else value


class DurationKind(Kind):
    """metav1.Duration; with `or_null`, a pointer to one."""

    def __init__(self, *, or_null: bool) -> None:
        super().__init__("v1.Duration", Duration())
        self.reads_null = not or_null

    def read(self, value: Json, reading: Reading) -> Duration:
        """From a string. Anything else ends the reading, as upstream's own decoder of durations does."""
        if value is not None and not isinstance(value, str):
            raise WireError(f"json: cannot unmarshal {named(value)} into Go value of type string")
        try:
            return Duration.parse(value or "")
        except DurationError as exc:
            raise WireError(str(exc)) from exc

    def write(self, value: Duration) -> str:
        """As Go prints it."""
        return str(value)


class Bytes(Kind):
    """[]byte, in base64."""

    def __init__(self) -> None:
        super().__init__("[]uint8", b"")

    def read(self, value: Json, reading: Reading) -> bytes:
        """Decoded."""
        if not isinstance(value, str):
            reading.does_not_fit(named(value), self.go_type)
            return b""
        try:
            return base64.b64decode(value.replace("\r", "").replace("\n", ""), validate=True)
        except (binascii.Error, ValueError) as exc:
            reading.cannot_use(f"illegal base64 data: {exc}")
            return b""

    def write(self, value: bytes) -> str:
        """Encoded."""
        return base64.b64encode(value).decode()


class Raw(Kind):
    """runtime.RawExtension: kept as it is, to be read later."""

    def __init__(self) -> None:
        super().__init__("runtime.RawExtension", None)

    def read(self, value: Json, reading: Reading) -> Json:
        """As is."""
        return value

    def write(self, value: Json) -> object:
        """As it was."""
        return plain(value)


class MapOfStrings(Kind):
    """map[string]string."""

    def __init__(self) -> None:
        super().__init__("map[string]string", {})

    def read(self, value: Json, reading: Reading) -> dict[str, str]:
        """A dict."""
        if not isinstance(value, Object):
            reading.does_not_fit(named(value), self.go_type)
            return {}
        found: dict[str, str] = {}
        for key, member in value.members:
            if key in found:
                reading.forbid("duplicate", key)
            found[key] = STRING.read(member, reading) if member is not None else ""
        return found


def named(value: Json) -> str:
    """What Go calls the JSON type of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "object" if isinstance(value, Object) else "array"


def _literally(value: Json) -> str:
    """The same, but numbers with their digits."""
    if isinstance(value, Number):
        return f"number {value.text}"
    return f"number {value}" if isinstance(value, int) and not isinstance(value, bool) else named(value)


def _shortest_float32(number: float) -> float | None:
    """The shortest decimal that means the same float32; None if there is none."""
    try:
        narrow: float = unpack("<f", pack("<f", number))[0]
    except OverflowError:
        return None
    shorter = (float(f"{narrow:.{digits}g}") for digits in range(1, 9))
    return next((decimal for decimal in shorter if unpack("<f", pack("<f", decimal))[0] == narrow), narrow)


STRING: Final = Scalar("string", str)
BOOL: Final = Scalar("bool", bool)
INT32: Final = Integer("int32", 2**31 - 1)
INT64: Final = Integer("int64", 2**63 - 1)
FLOAT32: Final = Float32()
DURATION: Final = DurationKind(or_null=False)
DURATION_OR_NULL: Final = DurationKind(or_null=True)
BYTES: Final = Bytes()
RAW: Final = Raw()
MAP_OF_STRINGS: Final = MapOfStrings()
