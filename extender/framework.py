"""What a plugin imports: the contract of plugins, and `replaced`, which makes a changed copy of an API object.

`from extender import framework as fwk`.
"""

from extender.engine import framework as _contract
from extender.engine.framework import *  # noqa: F403
from extender.values.objects.decoding import replaced

__all__ = [*_contract.__all__, "replaced"]  # noqa: PLE0604 - names all
