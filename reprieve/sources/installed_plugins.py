"""The plugins that are installed here, and those of the project in this folder."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, final

from extender.answers.types import Answer
from extender.engine import framework as fwk
from extender.engine.plugins import IN_TREE
from extender.engine.runtime.profiles import resolve_all
from extender.engine.runtime.registry import ENTRY_POINTS, POINTS, implemented_points, load_plugin
from extender.values.config.completion import written
from extender.values.config.configuration import Configuration
from reprieve.errors import StartUpError
from reprieve.sources.configurations import read_configuration
from reprieve.sources.plugin_project import PYPROJECT, PluginProject

HERE = Path()


@final
class InstalledPlugin(Answer, frozen=True, kw_only=True):
    """A plugin that a profile can enable, or that cannot be loaded."""

    name: str
    source: str
    """The distribution that it comes from, with its version."""
    points: tuple[str, ...] = ()
    arguments: Any = None
    """Its arguments in the first profile that gives it some."""
    enabled_in: tuple[str, ...] = ()
    """The schedulerNames of the profiles that enable it."""
    summary: str = ""
    """The first line of its docstring."""
    error: str = ""
    """Why it cannot be loaded; empty if it can."""


@final
class InstalledPlugins(Answer, frozen=True, kw_only=True):
    """All plugins, in the order of their names; those of other distributions first."""

    items: tuple[InstalledPlugin, ...]


def installed_plugins(config: Path | None, *, in_tree: bool) -> InstalledPlugins:
    """Returns the plugins, with what the configuration enables. Raises StartUpError if that cannot be read."""
    if (HERE / PYPROJECT).exists():
        with suppress(StartUpError):  # a pyproject.toml of another kind
            PluginProject.at(HERE).open()
    external = {name: (_source(entry), loaded) for name, entry, loaded in _loaded()}
    classes = {**IN_TREE, **{name: loaded for name, (_, loaded) in external.items() if not isinstance(loaded, str)}}
    enabled, arguments = _enabled(read_configuration(config), classes)
    listed = [(name, *external[name]) for name in sorted(external)]
    if in_tree:
        listed += [(name, "kube-scheduler", loaded) for name, loaded in IN_TREE.items()]
    items = (_described(*row, enabled.get(row[0], ()), arguments.get(row[0])) for row in listed)
    return InstalledPlugins(items=tuple(items))


def _loaded() -> Iterator[tuple[str, EntryPoint, type[fwk.Plugin] | str]]:
    """Yields the plugins of other distributions, or why they cannot be loaded."""
    classes: dict[str, type[fwk.Plugin]] = dict(IN_TREE)
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            classes[entry.name] = load_plugin(entry, classes)
        except ValueError as exc:
            yield entry.name, entry, str(exc)
        else:
            yield entry.name, entry, classes[entry.name]


def _enabled(
    configuration: Configuration, classes: Mapping[str, type[fwk.Plugin]]
) -> tuple[dict[str, tuple[str, ...]], dict[str, Any]]:
    """Returns for each plugin the profiles that enable it, and its arguments as they are written."""
    points = {name: implemented_points(loaded) for name, loaded in classes.items()}
    enabled: dict[str, tuple[str, ...]] = {}
    for scheduler_name, plan in resolve_all(configuration, points).items():
        for name in dict.fromkeys(name for names in plan.plugins.values() for name in names):
            enabled[name] = (*enabled.get(name, ()), scheduler_name)
    arguments: dict[str, Any] = {}
    for profile in written(configuration)["profiles"]:
        for config in profile.get("pluginConfig", ()):
            arguments_of = {key: value for key, value in config["args"].items() if key not in ("apiVersion", "kind")}
            arguments.setdefault(config["name"], arguments_of)
    return enabled, arguments


def _source(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else entry.value


def _described(
    name: str, source: str, loaded: type[fwk.Plugin] | str, enabled_in: tuple[str, ...], arguments: Any
) -> InstalledPlugin:
    if isinstance(loaded, str):
        return InstalledPlugin(name=name, source=source, error=loaded)
    points = implemented_points(loaded)
    return InstalledPlugin(
        name=name,
        source=source,
        points=tuple(point for point in POINTS if point in points),
        arguments=arguments,
        enabled_in=enabled_in,
        summary=next(iter((loaded.__doc__ or "").strip().splitlines()), ""),
    )
