"""The two CEL environments: one to check expressions as upstream does, one to run them.

Upstream: dynamic-resource-allocation/cel/compile.go, newCompiler; apiserver/pkg/cel/environment/base.go (v1.36.2).
"""

from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Final

from cel_expr_python import cel  # type: ignore[import-untyped]  # it has stubs, but does not say so (py.typed)
from cel_expr_python.ext import ext_bindings, ext_math, ext_optional, ext_strings  # type: ignore[import-untyped]

from extender.cel.functions import FUNCTIONS, CelType, Function, from_carrier, to_carrier

DRIVER: Final = "device.driver"
MULTIPLE_ALLOCATIONS: Final = "device.allowMultipleAllocations"
ATTRIBUTES: Final = "device.attributes"
CAPACITY: Final = "device.capacity"

# "device" is not a variable with fields but four variables with dotted names, so that an unknown field is a compile error.

_BASIC: Final = {CelType.STRING: cel.Type.STRING, CelType.BOOL: cel.Type.BOOL, CelType.INT: cel.Type.INT, CelType.DOUBLE: cel.Type.DOUBLE}
_DECLARED: Final = {
    **_BASIC,
    CelType.QUANTITY: cel.Type.AbstractType("kubernetes.Quantity"),
    CelType.SEMVER: cel.Type.AbstractType("kubernetes.Semver"),
}
_CARRIED: Final = {**_BASIC, CelType.QUANTITY: cel.Type.BYTES, CelType.SEMVER: cel.Type.BYTES}


def checking_environment() -> cel.Env:
    """Returns an environment with quantities and versions as types of their own; its expressions cannot run."""
    return _environment(_DECLARED[CelType.QUANTITY], _by_name(FUNCTIONS, _declared_overloads))


def running_environment() -> cel.Env:
    """Returns an environment with quantities and versions as bytes; it runs what the checking environment has accepted."""
    return _environment(_CARRIED[CelType.QUANTITY], _by_name(FUNCTIONS, _running_overloads))


def _environment(quantity: cel.Type, functions: list[cel.FunctionDecl]) -> cel.Env:
    by_name, string = cel.Type.Map, cel.Type.STRING
    return cel.NewEnv(
        variables={
            DRIVER: string,
            MULTIPLE_ALLOCATIONS: cel.Type.BOOL,
            ATTRIBUTES: by_name(string, by_name(string, cel.Type.DYN)),
            CAPACITY: by_name(string, by_name(string, quantity)),
        },
        functions=functions,
        extensions=[ext_strings.ExtStrings(), ext_bindings.ExtBindings(), ext_optional.ExtOptional(), ext_math.ExtMath()],
    )


def _by_name(functions: Iterable[Function], overloads: Callable[[list[Function]], list[cel.Overload]]) -> list[cel.FunctionDecl]:
    ordered = sorted(functions, key=lambda function: function.name)
    return [cel.FunctionDecl(name, overloads(list(same))) for name, same in groupby(ordered, key=lambda function: function.name)]


def _declared_overloads(functions: list[Function]) -> list[cel.Overload]:
    return [
        cel.Overload(
            function.id,
            return_type=_DECLARED[function.result],
            parameters=[_DECLARED[kind] for kind in function.parameters],
            is_member=function.is_member,
        )
        for function in functions
    ]


def _running_overloads(functions: list[Function]) -> list[cel.Overload]:
    """Makes one overload for all functions whose arguments have the same carriers: at run time the arguments select the function."""
    alike: dict[str, list[Function]] = {}
    for function in functions:
        alike.setdefault(", ".join(_CARRIED[kind].name() for kind in function.parameters), []).append(function)
    return [
        cel.Overload(
            same[0].id,
            return_type=_CARRIED[same[0].result],
            parameters=[_CARRIED[kind] for kind in same[0].parameters],
            is_member=same[0].is_member,
            impl=_first_matching(same),
        )
        for same in alike.values()
    ]


def _first_matching(functions: list[Function]) -> Callable[..., object]:
    def call(*arguments: object) -> object:
        for function in functions:
            values = [from_carrier(kind, argument) for kind, argument in zip(function.parameters, arguments, strict=True)]
            if None not in values:
                return to_carrier(function.result, function.call(*values))
        raise TypeError("no such overload")

    return call
