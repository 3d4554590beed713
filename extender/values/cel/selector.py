"""CelSelector: a compiled device selector.

Upstream: dynamic-resource-allocation/cel, compile.go, cache.go.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, final

from cel_expr_python import cel  # type: ignore[import-untyped]  # it has stubs, but does not say so (py.typed)

from extender.values import limits
from extender.values.cel import environment
from extender.values.cel.checked_expression import linked
from extender.values.cel.cost import Size, work_of
from extender.values.cel.errors import CelError, CompileError
from extender.values.cel.functions import type_name
from extender.values.cel.library import UNSAFE
from extender.values.cel.quantities import QUANTITY, SEMVER, Semver, SemverError
from extender.values.objects.devices import Device, DeviceAttribute
from extender.values.objects.quantity import QuantityError, quantity_of

CACHE_SIZE: Final = 256
"""The number of compiled expressions kept; clusters have fewer device classes."""

DEVICE_ELEMENTS: Final = 64
DEVICE_CHARACTERS: Final = 8192
"""The size of the largest valid device: 32 attributes and capacities with names and values of bounded length."""

CHEAP_CHARACTERS: Final = 1024
CHEAP_WORK: Final = 60_000
"""The length and the work of expressions that compile in a few milliseconds and run in about one."""

_MAP_INSERT: Final = b"cel.@mapInsert"
"""The library compiles calls of it, but does not have it."""

COST_EXCEEDED: Final = "operation cancelled: actual cost limit exceeded"

Variables = dict[str, Any]

_CHECKING: Final = environment.checking_environment()
_RUNNING: Final = environment.running_environment()

_STATUS_AROUND: Final = re.compile(r"([A-Z_]+): (?P<text>.*?)(?: \[\1\])?", re.DOTALL)
_MISSING_KEY: Final = re.compile(r'Key not found in map : (?P<quote>"?)(?P<key>.*)(?P=quote)', re.DOTALL)
_NO_CONVERSION: Final = {
    "string": ": unsupported native conversion from string to 'bool'",
    "int": ": unsupported type conversion from 'int' to bool",
}
_TYPE_NAME: Final = re.compile(r"\b[A-Z]+\b")


@final
@dataclass(frozen=True, slots=True)
class Facts:
    """The facts about a device that expressions can use."""

    variables: Variables
    """By name."""
    size: int
    """The number of characters in all names and values."""


@final
class CelSelector:
    """A compiled expression. It keeps nothing of the devices that it evaluates."""

    __slots__ = ("_program", "_serialized", "_work_by_size")

    def __init__(self, serialized: bytes) -> None:
        self._program = _RUNNING.deserialize(serialized)
        self._serialized = serialized
        self._work_by_size: dict[int, int] = {}

    @property
    def is_safe(self) -> bool:
        """Whether this process may evaluate it. An optional in an argument of some functions ends the process."""
        return not any(identifier.encode() in self._serialized for identifier in UNSAFE)

    @property
    def work(self) -> int:
        """The bound on the work for any valid device; see `extender.values.cel.cost`."""
        return self._work(DEVICE_CHARACTERS)

    def matches(self, facts: Facts) -> bool:
        """True if the device with these facts matches. Raises CelError if it fails or costs too much."""
        if self._work(max(facts.size, DEVICE_CHARACTERS)) > limits.EXPRESSION_WORK:
            raise CelError(COST_EXCEEDED)
        variables = facts.variables
        for _ in range(DEVICE_ELEMENTS):
            result = self._evaluated(variables)
            if isinstance(result, bool):
                return result
            # Upstream's maps return an empty map for an unknown domain, though it is not "in" them. Here such a domain
            # is missing at first, and is added when the expression fails because of it.
            variables = _with_domain(variables, result)
        raise CelError(COST_EXCEEDED)

    def _evaluated(self, variables: Variables) -> bool | str:
        try:
            value = self._program.eval(data=variables)
        except RuntimeError as exc:
            raise CelError(_without_status(str(exc))) from exc
        kind = value.type()
        if kind == cel.Type.BOOL:
            return bool(value.value())
        if kind != cel.Type.ERROR:
            name = (type_name(value.value()) if kind == cel.Type.BYTES else None) or _type_name(kind)
            raise CelError(f"CEL result of type {name} could not be converted to bool{_NO_CONVERSION.get(name, '')}")
        try:
            text = _without_status(str(value.value()))
        except TypeError as exc:
            # The library takes an optional for an error, and cannot convert it.
            raise CelError("CEL result of type optional_type could not be converted to bool") from exc
        # A key that a map lacks may be a domain; the caller then adds it and evaluates again.
        match = _MISSING_KEY.fullmatch(text)
        if match is None:
            raise CelError(_upstream_text(text))
        key = match["key"]
        if key in variables[environment.ATTRIBUTES] and key in variables[environment.CAPACITY]:
            raise CelError(f"no such key: {key}")
        return key

    def _work(self, size: int) -> int:
        """Returns the bound for devices of this size, by powers of two, so that ordinary devices share one result."""
        size_class = size.bit_length()
        work = self._work_by_size.get(size_class)
        if work is None:
            largest = Size(max(DEVICE_ELEMENTS, size if size > DEVICE_CHARACTERS else 0), 1 << size_class)
            sizes = dict.fromkeys((environment.DRIVER, environment.ATTRIBUTES, environment.CAPACITY), largest)
            work = self._work_by_size[size_class] = work_of(self._serialized, sizes)
        return work


@lru_cache(maxsize=CACHE_SIZE)
def compiled(expression: str) -> CelSelector:
    """Returns the compiled expression. Raises CompileError if it is invalid, or does not return a bool."""
    try:
        checked = _CHECKING.compile(expression)
        kind = checked.return_type()
        if kind not in (cel.Type.BOOL, cel.Type.DYN):
            raise CompileError(f"must evaluate to bool or the unknown type, not {_type_name(kind)}")
        serialized = linked(checked.serialize())
        if _MAP_INSERT in serialized:
            raise CompileError("compilation failed: the macros transformMap and transformMapEntry are not supported")
        return CelSelector(serialized)
    except RuntimeError as exc:
        raise CompileError(f"compilation failed: {_without_status(str(exc))}") from exc
    except TypeError as exc:
        # The library rejects text with half a surrogate pair.
        raise CompileError("compilation failed: the expression is no valid Unicode") from exc


def facts_of(driver: str, device: Device) -> Facts:
    """Returns the facts about a device. Names without a domain are in the driver's. Raises CelError."""
    attributes: dict[str, dict[str, object]] = {}
    for name, attribute in device.attributes.items():
        domain, identifier = _qualified(name, driver)
        attributes.setdefault(domain, {})[identifier] = _attribute_value(name, attribute)
    capacities: dict[str, dict[str, object]] = {}
    for name, capacity in device.capacity.items():
        domain, identifier = _qualified(name, driver)
        try:
            capacities.setdefault(domain, {})[identifier] = QUANTITY.carrier(quantity_of(capacity.value).nanos())
        except QuantityError as exc:
            raise CelError(f"capacity {name}: {exc}") from exc
    variables: Variables = {
        environment.DRIVER: driver,
        environment.MULTIPLE_ALLOCATIONS: bool(device.allow_multiple_allocations),
        environment.ATTRIBUTES: attributes,
        environment.CAPACITY: capacities,
    }
    return Facts(variables, _size_of(variables))


def _attribute_value(name: str, attribute: DeviceAttribute) -> object:
    """Upstream: compile.go, getAttributeValue."""
    for value in (attribute.int_value, attribute.bool_value, attribute.string):
        if value is not None:
            return value
    if attribute.version is None:
        raise CelError(f"attribute {name}: unsupported attribute value")
    try:
        return SEMVER.carrier(Semver.parse(attribute.version))
    except SemverError as exc:
        raise CelError(f"attribute {name}: parse semantic version: {exc}") from exc


def _qualified(name: str, driver: str) -> tuple[str, str]:
    domain, slash, identifier = name.partition("/")
    return (domain, identifier) if slash else (driver, name)


def _with_domain(variables: Variables, domain: str) -> Variables:
    extended = dict(variables)
    for variable in (environment.ATTRIBUTES, environment.CAPACITY):
        extended[variable] = {domain: {}, **variables[variable]}
    return extended


def _size_of(variables: Variables) -> int:
    size = len(variables[environment.DRIVER])
    for variable in (environment.ATTRIBUTES, environment.CAPACITY):
        by_domain: Mapping[str, Mapping[str, object]] = variables[variable]
        for domain, values in by_domain.items():
            size += len(domain)
            for name, value in values.items():
                size += len(name) + (len(value) if isinstance(value, str) else 1)
    return size


def _without_status(text: str) -> str:
    around = _STATUS_AROUND.fullmatch(text)
    return text if around is None else around["text"]


def _upstream_text(text: str) -> str:
    """Returns the most common messages in the words of upstream's interpreter."""
    if text.startswith("No matching overloads found") or "with an exception set" in text:
        return "no such overload"
    if text.startswith("Iteration budget exceeded"):
        return COST_EXCEEDED
    return "division by zero" if text == "divide by zero" else text


def _type_name(kind: cel.Type) -> str:
    """Returns a type as upstream writes it: MAP<STRING, INT> is map(string, int)."""
    return _TYPE_NAME.sub(lambda word: word[0].lower(), str(kind.name())).replace("<", "(").replace(">", ")")
