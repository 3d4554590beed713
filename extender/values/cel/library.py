"""All functions that Kubernetes adds to CEL for device selectors.

Upstream: apiserver/pkg/cel/environment/base.go (v1.36.2). Of its libraries, those for authorization have no values here
that they could be used on, as upstream; sets, the further list functions and macros with two variables come with
cel-expr-python.
"""

from typing import Final

from extender.values.cel import formats, lists, networks, quantities, regexes, urls
from extender.values.cel.functions import Function

FUNCTIONS: Final[tuple[Function, ...]] = (
    *quantities.FUNCTIONS,
    *networks.FUNCTIONS,
    *urls.FUNCTIONS,
    *formats.FUNCTIONS,
    *regexes.FUNCTIONS,
    *lists.FUNCTIONS,
)

UNSAFE: Final = frozenset(function.id for function in FUNCTIONS if not function.is_safe)
"""The ids of those that only the worker process may call."""
