"""The two CEL environments: one to check expressions as upstream does, one to run them.

Upstream: dynamic-resource-allocation/cel/compile.go, newCompiler; apiserver/pkg/cel/environment/base.go.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import groupby
from typing import Final

from cel_expr_python import cel  # type: ignore[import-untyped]  # it has stubs, but does not say so (py.typed)
from cel_expr_python.ext import ext_bindings, ext_optional, ext_strings  # type: ignore[import-untyped]

from extender.values.cel.checked_expression import STRING_AT_RUN_TIME
from extender.values.cel.functions import NOT_OF_TYPE, Function
from extender.values.cel.library import FUNCTIONS
from extender.values.cel.quantities import QUANTITY

_OF_STRINGS: Final = ("indexOf", "lastIndexOf")
"""Functions of lists that strings have, too."""

DRIVER: Final = "device.driver"
MULTIPLE_ALLOCATIONS: Final = "device.allowMultipleAllocations"
ATTRIBUTES: Final = "device.attributes"
CAPACITY: Final = "device.capacity"

# "device" is not a variable with fields but four variables with dotted names, so that an unknown field is a compile
# error.

_EXTENSIONS: Final = """
name: kubernetes
extensions:
- name: sets
- name: lists
- name: two-var-comprehensions
"""
"""The libraries that only a configuration can name."""
_WITHOUT_STRING: Final = """
stdlib:
  exclude_functions:
  - name: string
"""
_TO_STRING: Final = {
    "bool": cel.Type.BOOL,
    "bytes": cel.Type.BYTES,
    "double": cel.Type.DOUBLE,
    "duration": cel.Type.DURATION,
    "int64": cel.Type.INT,
    "string": cel.Type.STRING,
    "timestamp": cel.Type.TIMESTAMP,
    "uint64": cel.Type.UINT,
}
"""The overloads of the function `string`, which the library does not let anybody add to."""


def checking_environment() -> cel.Env:
    """Returns an environment with the types of Kubernetes; its expressions cannot run."""
    functions = _by_name(FUNCTIONS, _declared_overloads)
    return _environment(QUANTITY.declared, functions, _EXTENSIONS + _WITHOUT_STRING)


def running_environment() -> cel.Env:
    """Returns an environment with bytes in place of these types, which runs what was compiled and linked."""
    functions = [
        replace(function, name=STRING_AT_RUN_TIME) if function.name == "string" else function for function in FUNCTIONS
    ]
    return _environment(QUANTITY.carried, _by_name(functions, _running_overloads), _EXTENSIONS)


def _environment(quantity: cel.Type, functions: dict[str, list[cel.Overload]], configuration: str) -> cel.Env:
    by_name, string = cel.Type.Map, cel.Type.STRING
    # An extension may overload the functions of another, but there the library takes every abstract type for dyn.
    overloading = [cel.FunctionDecl(name, functions[name]) for name in _OF_STRINGS]
    return cel.NewEnv(
        config=cel.NewEnvConfigFromYaml(configuration),
        functions=[
            cel.FunctionDecl(name, overloads) for name, overloads in functions.items() if name not in _OF_STRINGS
        ],
        variables={
            DRIVER: string,
            MULTIPLE_ALLOCATIONS: cel.Type.BOOL,
            ATTRIBUTES: by_name(string, by_name(string, cel.Type.DYN)),
            CAPACITY: by_name(string, by_name(string, quantity)),
        },
        extensions=[
            ext_strings.ExtStrings(),
            ext_bindings.ExtBindings(),
            ext_optional.ExtOptional(),
            cel.CelExtension("kubernetes", overloading),
        ],
    )


def _by_name(
    functions: Iterable[Function], overloads: Callable[[list[Function]], list[cel.Overload]]
) -> dict[str, list[cel.Overload]]:
    ordered = sorted(functions, key=lambda function: function.name)
    return {name: overloads(list(same)) for name, same in groupby(ordered, key=lambda function: function.name)}


def _declared_overloads(functions: list[Function]) -> list[cel.Overload]:
    of_strings = [
        cel.Overload(f"{name}_to_string", return_type=cel.Type.STRING, parameters=[kind], is_member=False)
        for name, kind in _TO_STRING.items()
        if functions[0].name == "string"
    ]
    return of_strings + [
        cel.Overload(
            function.id,
            return_type=function.result.declared,
            parameters=[kind.declared for kind in function.parameters],
            is_member=function.is_member,
        )
        for function in functions
    ]


def _running_overloads(functions: list[Function]) -> list[cel.Overload]:
    """Makes one overload for all functions with the same carriers: at run time the arguments select one."""
    by_carriers: dict[tuple[bool, ...], list[Function]] = {}
    for function in functions:
        by_carriers.setdefault((function.is_member, *(kind.carried.name() for kind in function.parameters)), []).append(
            function
        )
    return [
        cel.Overload(
            same[0].id,
            return_type=same[0].result.carried
            if len({function.result.carried.name() for function in same}) == 1
            else cel.Type.DYN,
            parameters=[kind.carried for kind in same[0].parameters],
            is_member=same[0].is_member,
            impl=_first_matching(same),
        )
        for same in by_carriers.values()
    ]


def _first_matching(functions: list[Function]) -> Callable[..., object]:
    def call(*arguments: object) -> object:
        for function in functions:
            values = [kind.value(argument) for kind, argument in zip(function.parameters, arguments, strict=True)]
            if not any(value is NOT_OF_TYPE for value in values):
                return function.result.carrier(function.call(*values))
        raise TypeError("no such overload")

    return call
