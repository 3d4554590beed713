"""CEL as device selectors use it: the language is cel-expr-python's (Google's C++ CEL), what Kubernetes adds to it is ours.

Not in here, so that an expression using them does not compile: the Kubernetes libraries url, ip, cidr, format, regex and sets, and the
further list functions. No expression takes long: see `cost`.
"""

from extender.plugins.dynamic_resources.cel.selector import CelError, CelSelector, Facts, compiled, facts_of

__all__ = ["CelError", "CelSelector", "Facts", "compiled", "facts_of"]
