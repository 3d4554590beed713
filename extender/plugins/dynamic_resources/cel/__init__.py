"""CEL for device selectors, by cel-expr-python (Google's C++ CEL) with the types and functions that Kubernetes adds.

Expressions that use the Kubernetes libraries url, ip, cidr, format, regex and sets, or the further list functions, do not compile. The cost
of an expression is bounded: see `cost`.
"""

from extender.plugins.dynamic_resources.cel.selector import CelError, CelSelector, Facts, compiled, facts_of

__all__ = ["CelError", "CelSelector", "Facts", "compiled", "facts_of"]
