"""CEL for device selectors, by cel-expr-python (Google's C++ CEL) with the types and functions that Kubernetes adds.

The functions are those of `library`. An expression is checked against the types that upstream declares, linked
(`checked_expression`), and run with carriers of these types (`functions`). Its cost is bounded: see `cost`. What is not
cheap, or not safe, runs in a process of its own: see `evaluation`.

What needs the interpreter is loaded when it is asked for: few clusters have device selectors.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from extender.values.cel.errors import CelError, CompileError

if TYPE_CHECKING:
    from extender.values.cel.evaluation import evaluate, is_cheap, work_of_expression
    from extender.values.cel.pod_number import PodNumber
    from extender.values.cel.selector import CelSelector, Facts, compiled, facts_of
else:
    _MODULES = {
        **dict.fromkeys(("evaluate", "is_cheap", "work_of_expression"), "evaluation"),
        "PodNumber": "pod_number",
        **dict.fromkeys(("CelSelector", "Facts", "compiled", "facts_of"), "selector"),
    }

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        return globals()[name]
