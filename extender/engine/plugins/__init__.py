"""The in-tree plugins. No file or folder imports another, and the runtime knows them only by `IN_TREE`."""

import inspect
from collections.abc import Iterator, Mapping
from importlib import import_module
from pkgutil import walk_packages
from types import MappingProxyType
from typing import Final

from extender.engine.framework import Plugin
from extender.values.config.plugin_sets import IN_TREE_PROFILE


def _found() -> Iterator[type[Plugin]]:
    """Yields the plugins that the modules of this package define: their final classes; others are bases."""
    for module in walk_packages(__path__, f"{__name__}."):
        for each in vars(import_module(module.name)).values():
            is_plugin = inspect.isclass(each) and issubclass(each, Plugin) and "__final__" in vars(each)
            if is_plugin and each.__module__ == module.name:
                yield each


_BY_NAME: Final = {plugin.name: plugin for plugin in _found()}

IN_TREE: Final[Mapping[str, type[Plugin]]] = MappingProxyType(
    {plugin.name: _BY_NAME[plugin.name] for plugin in IN_TREE_PROFILE} | _BY_NAME
)
"""Name -> class, in the order of the default profile."""
