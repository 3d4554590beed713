"""The contract of plugins by its former name: `reprieve.plugin` is what plugins import."""

from types import ModuleType as _Module

from extender.engine.framework import *  # noqa: F403 - all names of the contract
from extender.values.objects.decoding import replaced as replaced  # noqa: PLC0414
from extender.values.objects.resource_amounts import requested_amounts as requested_amounts  # noqa: PLC0414

__all__ = [name for name, each in dict(vars()).items() if not name.startswith("_") and not isinstance(each, _Module)]
