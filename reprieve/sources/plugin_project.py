"""A project with plugins in a folder: its `pyproject.toml` names them, and they are found as if it were installed.

`reprieve test` and `reprieve dev` work on a project in this way, so that there is nothing to install while it is being
written.
"""

import importlib
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import Distribution, DistributionFinder, EntryPoint
from pathlib import Path
from typing import Any, Final, final

from extender.engine.runtime.registry import ENTRY_POINTS
from extender.values.config.configuration import Configuration, Profile
from extender.values.config.plugin_sets import plugins
from extender.values.reasons import in_one_line
from reprieve.errors import StartUpError
from reprieve.sources.configurations import with_plugins

CONFIGURATION: Final = "scheduler-config.yaml"
"""The configuration of the project, with which its plugins decide beside the in-tree ones."""

PYPROJECT: Final = "pyproject.toml"


def plugin_name(module: str) -> str:
    """Returns the default name of a plugin: MyPolicy of my-policy and of my_policy."""
    return "".join(part.capitalize() for part in re.split(r"[-_.]", module))


@final
@dataclass(frozen=True, slots=True)
class PluginProject:
    """A folder with a `pyproject.toml` that names plugins."""

    folder: Path
    name: str
    version: str
    plugins: Sequence[EntryPoint] = field(repr=False)
    only: Path | None = None
    """The one file that matters; None for all of the folder."""

    @staticmethod
    def at(folder: Path) -> "PluginProject":
        """Returns the project in a folder. Raises StartUpError, which says what to do, if it names no plugin."""
        file = folder / PYPROJECT
        try:
            declared = tomllib.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError as exc:
            raise StartUpError(
                f"{file}: no such file; go to the folder of a plugin, or make one with `reprieve init NAME`"
            ) from exc
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as exc:
            raise StartUpError(f"{file}: {in_one_line(exc)}") from exc
        project = _table(declared, "project")
        class_paths = _table(_table(project, "entry-points"), ENTRY_POINTS)
        if not class_paths:
            raise StartUpError(
                f'{file}: it names no plugin; add [project.entry-points."{ENTRY_POINTS}"] with a line NAME = '
                '"MODULE:CLASS"'
            )
        entries = [EntryPoint(name, str(value), ENTRY_POINTS) for name, value in class_paths.items()]
        return PluginProject(
            folder.resolve(), str(project.get("name", folder.name)), str(project.get("version", "0")), entries
        )

    @staticmethod
    def of_file(file: Path, plugin: str) -> "PluginProject":
        """Returns a project of one module with one plugin. Raises StartUpError if there is no such module."""
        if file.suffix != ".py" or not file.is_file():
            raise StartUpError(f"{file}: no Python file with a plugin; `reprieve init NAME` makes a project")
        entry = EntryPoint(plugin, file.stem, ENTRY_POINTS)
        return PluginProject(file.resolve().parent, file.stem, "0", [entry], file.resolve())

    @property
    def plugin_names(self) -> frozenset[str]:
        return frozenset(entry.name for entry in self.plugins)

    @property
    def configuration_file(self) -> Path | None:
        """Its configuration; None if it has none."""
        file = self.folder / CONFIGURATION
        return file if file.exists() and self.only is None else None

    def open(self) -> None:
        """Lets this process find the plugins, in place of those of an installed distribution of the same name."""
        sys.path[:0] = [str(folder) for folder in (self.folder, self.folder / "src") if folder.is_dir()]
        sys.meta_path.insert(0, _Finder(self))
        # A compiled module is found out to be old by seconds only; a project is edited faster than that.
        sys.dont_write_bytecode = True

    def forget_modules(self) -> dict[str, Any]:
        """Makes the next import read the project's modules again. Returns those that were loaded."""
        inside = {
            name: module for name, module in sys.modules.items() if self._is_inside(getattr(module, "__file__", None))
        }
        for name in inside:
            del sys.modules[name]
        importlib.invalidate_caches()
        return inside

    def _is_inside(self, file: str | None) -> bool:
        # An environment may lie in the project's folder; what is installed there is not the project's.
        return file is not None and Path(file).is_relative_to(self.folder) and "site-packages" not in Path(file).parts

    def stamp(self) -> dict[Path, int]:
        """Returns when each of its files was last changed; two of these differ if the project was edited."""
        times: dict[Path, int] = {}
        for file in _sources(self.folder) if self.only is None else (self.only,):
            with suppress(FileNotFoundError):  # an editor is replacing it
                times[file] = file.stat().st_mtime_ns
        return times

    def enabled_in(self, configuration: Configuration) -> Configuration:
        """Returns the configuration with the plugins enabled; see `with_plugins`."""
        return with_plugins(configuration, self.plugin_names)

    def disabled_in(self, configuration: Configuration) -> Configuration:
        return replace(configuration, profiles=tuple(map(self._without, configuration.profiles)))

    def _without(self, profile: Profile) -> Profile:
        enabled = {
            point: replace(
                point_plugins,
                enabled=tuple(plugin for plugin in point_plugins.enabled if plugin.name not in self.plugin_names),
            )
            for point, point_plugins in profile.plugins.items()
        }
        return replace(profile, plugins=plugins(**enabled))


def _table(parent: dict[str, Any], name: str) -> dict[str, Any]:
    value = parent.get(name, {})
    return value if isinstance(value, dict) else {}


def _sources(folder: Path) -> Iterator[Path]:
    """Yields the project's modules and configuration, but nothing of environments and tools in its folder."""
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            if not path.name.startswith(".") and not (path / "pyvenv.cfg").exists() and path.name != "__pycache__":
                yield from _sources(path)
        elif path.suffix in (".py", ".toml", ".yaml", ".yml"):
            yield path


@final
class _Finder(DistributionFinder):
    def __init__(self, project: PluginProject) -> None:
        self._distribution = _ProjectDistribution(project)

    def find_spec(self, *_: object) -> None:
        """Returns None: modules are found in the folder, which is on the path."""

    def find_distributions(
        self,
        context: DistributionFinder.Context = DistributionFinder.Context(),  # noqa: B008
    ) -> Iterable[Distribution]:
        if context.name in (None, self._distribution.metadata["Name"]):
            yield self._distribution


@final
class _ProjectDistribution(Distribution):
    def __init__(self, project: PluginProject) -> None:
        lines = "".join(f"{entry.name} = {entry.value}\n" for entry in project.plugins)
        self._files = {
            "METADATA": f"Metadata-Version: 2.1\nName: {project.name}\nVersion: {project.version}\n",
            "entry_points.txt": f"[{ENTRY_POINTS}]\n{lines}",
        }
        self._folder = project.folder

    def read_text(self, filename: str) -> str | None:
        return self._files.get(filename)

    def locate_file(self, path: Any) -> Path:
        return self._folder / str(path)
