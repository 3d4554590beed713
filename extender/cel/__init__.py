"""CEL for device selectors, by cel-expr-python (Google's C++ CEL) with the types and functions that Kubernetes adds.

Expressions that use the Kubernetes libraries url, ip, cidr, format, regex and sets, or the further list functions, do not compile. The cost
of an expression is bounded: see `cost`. What is not cheap runs in a process of its own: see `evaluation`.
"""

from extender.cel.evaluation import evaluate, is_cheap, work_of_expression
from extender.cel.selector import CelError, CelSelector, CompileError, Facts, compiled, facts_of

__all__ = ["CelError", "CelSelector", "CompileError", "Facts", "compiled", "evaluate", "facts_of", "is_cheap", "work_of_expression"]
