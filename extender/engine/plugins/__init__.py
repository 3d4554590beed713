"""The in-tree plugins. No file or folder imports another, and the runtime knows them only by `IN_TREE`."""

import inspect
from collections.abc import Iterator, Mapping
from importlib import import_module
from pkgutil import walk_packages
from types import MappingProxyType
from typing import TYPE_CHECKING

from extender.engine.framework import Plugin
from extender.values.config.plugin_sets import IN_TREE_PROFILE

if TYPE_CHECKING:
    IN_TREE: Mapping[str, type[Plugin]]
    """Name -> class, in the order of the default profile. The first access loads all plugins."""


def __getattr__(name: str) -> Mapping[str, type[Plugin]]:
    if name != "IN_TREE":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    by_name = {plugin.name: plugin for plugin in _defined()}
    globals()[name] = MappingProxyType({plugin.name: by_name[plugin.name] for plugin in IN_TREE_PROFILE} | by_name)
    in_tree: Mapping[str, type[Plugin]] = globals()[name]
    return in_tree


def _defined() -> Iterator[type[Plugin]]:
    """Yields the final plugin classes of this package's modules; other classes are bases."""
    for module in walk_packages(__path__, f"{__name__}."):
        for value in vars(import_module(module.name)).values():
            is_its_own = inspect.isclass(value) and value.__module__ == module.name
            if is_its_own and "__final__" in vars(value) and Plugin in value.__mro__:
                yield value
