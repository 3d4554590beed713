"""What an API type says of its fields: how they are read, merged, owned and described.

Reading, strategic merge, field ownership, server-side apply and OpenAPI all walk these values; nothing in here knows a kind.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal, final


@final
class Kind(Enum):
    """What a JSON scalar stands for."""

    STRING = "string"
    BOOL = "bool"
    INT32 = "int32"
    INT64 = "int64"
    UINT32 = "uint32"
    FLOAT64 = "float64"
    BYTES = "[]uint8"
    """Base64 in JSON."""
    QUANTITY = "resource.Quantity"
    TIME = "v1.Time"
    """RFC 3339 with whole seconds, in UTC when written."""
    MICRO_TIME = "v1.MicroTime"
    """RFC 3339 with six digits of a second."""
    DURATION = "v1.Duration"
    INT_OR_STRING = "intstr.IntOrString"


BOUNDS: Final[Mapping[Kind, tuple[int, int]]] = {
    Kind.INT32: (-(1 << 31), (1 << 31) - 1),
    Kind.INT64: (-(1 << 63), (1 << 63) - 1),
    Kind.UINT32: (0, (1 << 32) - 1),
}
"""The least and the largest number of the integer kinds."""


@final
class Presence(Enum):
    """What is written of a field that is empty."""

    OMIT = "omit"
    """Nothing: an empty text, list or map, zero and false are as good as absent."""
    KEEP = "keep"
    """What was given, even if it is empty; nothing if nothing was."""
    ZERO = "zero"
    """The empty value of its type: 0, "", {}, with the fields of a Struct filled in likewise."""
    NULL = "null"
    """null."""


@final
@dataclass(frozen=True, slots=True)
class Scalar:
    """A text, number, truth value or one of Kubernetes' own."""

    kind: Kind
    go_type: str = ""
    """What Go calls it in an error if it is a named type, such as `v1.RestartPolicy`."""


@final
@dataclass(frozen=True, slots=True)
class Preserve:
    """Anything goes; nobody looks inside. Owned and applied as one value."""

    go_type: str = "runtime.RawExtension"


@final
@dataclass(frozen=True, slots=True)
class ListOf:
    """A list. `keys` are the fields that tell the items of a `map` list apart."""

    item: "Type"
    list_type: Literal["atomic", "set", "map"] = "atomic"
    keys: tuple[str, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class MapOf:
    """An object with any text as key."""

    value: "Type"
    atomic: bool = False
    go_type: str = ""
    """As for a Scalar: `v1.ResourceList`."""


@final
@dataclass(frozen=True, slots=True)
class Field:
    """One field of a Struct.

    Attributes:
        patch_key: what strategic merge tells the items of this list apart by.
        patch_strategy: `merge`, `replace`, `retainKeys`, `merge,retainKeys` or empty.
        required: OpenAPI calls it required.
        default: what OpenAPI says and server-side apply assumes for an absent key of a list item; None: no default.
        protobuf: its number; numbers of messages that JSON does not show stand before it. Empty: it is in no message.
    """

    type: "Type"
    patch_key: str | None = None
    patch_strategy: str = ""
    required: bool = False
    presence: Presence = Presence.OMIT
    default: str | int | bool | None = None
    protobuf: tuple[int, ...] = ()


@final
@dataclass(frozen=True, slots=True, eq=False)
class Struct:
    """An object with known fields, in the order in which they are written. Compared by identity.

    Attributes:
        name: as OpenAPI calls it: `io.k8s.api.core.v1.Pod`.
        fields: by JSON name.
        atomic: owned and applied as one value.
    """

    name: str
    fields: Mapping[str, Field]
    atomic: bool = False

    @property
    def short_name(self) -> str:
        """The name without its package: `Pod`."""
        return self.name.rpartition(".")[2]


Type = Scalar | Preserve | ListOf | MapOf | Struct
