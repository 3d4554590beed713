"""CEL for device selectors, by cel-expr-python (Google's C++ CEL) with the types and functions that Kubernetes adds.

The functions are those of `library`. An expression is checked against the types that upstream declares, linked
(`checked_expression`), and run with carriers of these types (`functions`). Its cost is bounded: see `cost`. What is not
cheap, or not safe, runs in a process of its own: see `evaluation`.
"""

from extender.values.cel.evaluation import (
    evaluate,
    is_cheap,
    work_of_expression,
)
from extender.values.cel.pod_number import PodNumber
from extender.values.cel.selector import (
    CelError,
    CelSelector,
    CompileError,
    Facts,
    compiled,
    facts_of,
)
