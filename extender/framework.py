"""The contract of plugins, by the name for plugin authors: `from extender import framework as fwk`."""

from extender.engine.framework import *  # noqa: F403
from extender.engine.framework import __all__ as __all__  # noqa: PLC0414 - is exported
