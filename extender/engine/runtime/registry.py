"""Registry: the known plugins, the extension points each implements, and the frameworks made of them.

In-tree plugins come from a table; out-of-tree plugins come from the entry points `extender.plugins` of installed
distributions. All errors in any of them are reported at start, at once and by name. Plugins that look at one node at a
time are wrapped here, so that the framework only sees rows.
"""

import inspect
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache, lru_cache, partial
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any, Final, TypeVar, final

from extender.engine import framework as fwk
from extender.engine.framework.devices import MAY_DEFER
from extender.engine.runtime.each_node import EachNodeFilter, EachNodeScore
from extender.engine.runtime.framework import UTC_NOW, Framework, PluginsByPoint
from extender.engine.runtime.plugin_calls import place_of, told
from extender.engine.runtime.profiles import ResolvedProfile, resolve_all
from extender.engine.runtime.quarantine import QUARANTINES, Quarantines, guard
from extender.engine.runtime.scoring import WeightedScorer
from extender.values.config.completion import complete
from extender.values.config.configuration import ConfigErrors, Configuration, Profile
from extender.values.config.plugin_sets import GATE_OF
from extender.values.golang.field_errors import FieldError
from extender.values.klog.logger import Logger

ENTRY_POINTS = "extender.plugins"

DROPPED_PROMISES: Final = (
    "fits", "score_by_label", "follows_group_cycle", "prepare", "deadline", "async_deadline", "blocking",
)  # fmt: skip
"""The promises that plugins could make before docs/decisions/0022-a-lean-plugin-contract.md."""

_LOG: Final = Logger(__name__)

POINTS: dict[str, tuple[type[fwk.Plugin], ...]] = {
    "preEnqueue": (fwk.PreEnqueuePlugin,),
    "queueSort": (fwk.QueueSortPlugin,),
    "preFilter": (fwk.PreFilterPlugin,),
    "filter": (fwk.FilterPlugin, fwk.EachNodeFilterPlugin),
    "postFilter": (fwk.PostFilterPlugin,),
    "preScore": (fwk.PreScorePlugin,),
    "score": (fwk.ScorePlugin, fwk.EachNodeScorePlugin),
    "reserve": (fwk.ReservePlugin,),
    "permit": (fwk.PermitPlugin,),
    "preBind": (fwk.PreBindPlugin,),
    "bind": (fwk.BindPlugin,),
    "postBind": (fwk.PostBindPlugin,),
    "placementGenerate": (fwk.PlacementGeneratePlugin,),
    "placementScore": (fwk.PlacementScorePlugin,),
}
"""Extension point, as a configuration names it -> the contracts a plugin may fulfil there."""

P = TypeVar("P", bound=fwk.Plugin)


@lru_cache(maxsize=1)
def _installed(_found_by: tuple[object, ...]) -> Sequence[EntryPoint]:
    """Returns the plugins of installed distributions. A file of each distribution is read, so this is done once."""
    return tuple(entry_points(group=ENTRY_POINTS))


@final
class Registry:
    """Plugin name -> class."""

    def __init__(
        self,
        in_tree: Mapping[str, type[fwk.Plugin]],
        out_of_tree: Sequence[EntryPoint] | None = None,
        *,
        also: Mapping[str, type[fwk.Plugin]] | None = None,
    ) -> None:
        """Loads the entry points, or else those of installed distributions, and `also` these plugins by name.

        Raises ConfigErrors if one cannot be loaded, is no plugin, has a name that is taken, or a second name.
        """
        self._in_tree = frozenset(in_tree)
        self._classes: dict[str, type[fwk.Plugin]] = {**in_tree, **(also or {})}
        errors: list[FieldError] = []
        # Every entry is looked at before the errors are raised, so that an operator sees all of them at once.
        for entry in _installed((*sys.path, *sys.meta_path)) if out_of_tree is None else out_of_tree:
            try:
                loaded = load_plugin(entry, self._classes)
            except ValueError as exc:
                errors.append(FieldError(f'plugin "{entry.name}"', detail=str(exc)))
                continue
            loaded.name = entry.name
            self._classes[entry.name] = loaded
        if errors:
            raise ConfigErrors(errors)
        for name, plugin in self._classes.items():
            if name not in self._in_tree:
                _warn_of_dropped_promises(plugin)

    @property
    def points_of(self) -> dict[str, frozenset[str]]:
        """Plugin name -> the extension points it may be enabled at."""
        return {name: implemented_points(plugin) for name, plugin in self._classes.items()}

    def make_frameworks(
        self,
        configuration: Configuration,
        rng: random.Random,
        extenders: Sequence[fwk.PreemptionExtender] = (),
        *,
        dispatcher: fwk.Dispatcher | None = None,
        live: fwk.LiveCluster | None = None,
        now: Callable[[], datetime] = UTC_NOW,
        is_exhaustive: bool = False,
        may_defer: bool = False,
    ) -> dict[str, Framework]:
        """Returns one framework per profile, by scheduler name.

        Without an API server that plugins write to, `dispatcher` and `live` are None. Whoever runs the cycles does
        `LongWork` if they `may_defer`.

        Raises ConfigErrors if a profile names a plugin that is not there or at that point, or one refuses its
        arguments.
        """
        configuration = complete(configuration)
        resolved = resolve_all(configuration, self.points_of)
        errors: list[FieldError] = []
        frameworks: dict[str, Framework] = {}
        # One dict for all profiles: plugins of different profiles share state through their handles.
        shared: dict[fwk.StateKey[Any], Any] = {MAY_DEFER: may_defer}
        for profile in configuration.profiles:
            try:
                frameworks[profile.scheduler_name] = Framework(
                    profile.scheduler_name,
                    partial(self._plugins, profile, resolved[profile.scheduler_name]),
                    rng,
                    percentage_of_nodes_to_score=profile.percentage_of_nodes_to_score,
                    extenders=extenders,
                    dispatcher=dispatcher,
                    live=live,
                    now=now,
                    shared=shared,
                    is_exhaustive=is_exhaustive,
                    feature_gates=configuration.feature_gates,
                )
            except ConfigErrors as exc:
                errors += exc.errors
        if errors:
            raise ConfigErrors(errors, "create")
        return frameworks

    def _plugins(self, profile: Profile, plan: ResolvedProfile, handle: fwk.Handle) -> PluginsByPoint:
        """Returns the profile's plugins by extension point, each made once. Raises ConfigErrors for arguments."""
        errors: list[str] = []
        arguments = {config.name: config.args for config in profile.plugin_configs}
        by_name: dict[str, fwk.Plugin] = {}
        quarantines = handle.shared(QUARANTINES, lambda: Quarantines(handle.now))
        for name in dict.fromkeys(name for names in plan.plugins.values() for name in names):
            if name in GATE_OF and not handle.feature_gates.enabled(GATE_OF[name]):
                continue  # where upstream's plugin does nothing either
            try:
                by_name[name] = self._classes[name](arguments.get(name), handle)
                if name not in self._in_tree:
                    by_name[name].events_to_register()  # which may fail, too
                    guard(by_name[name], quarantines.of(name))
            except Exception as exc:
                where = f'initializing profile "{profile.scheduler_name}": initializing plugin "{name}"'
                errors.append(f"{where}: {told(exc)}")
        if errors:
            raise ConfigErrors(errors, "create")

        def at(point: str, kind: type[P]) -> tuple[P, ...]:
            plugins = (by_name.get(name) for name in plan.plugins.get(point, ()))
            return tuple(plugin for plugin in plugins if isinstance(plugin, kind))

        (queue_sort,) = at("queueSort", fwk.QueueSortPlugin)
        return PluginsByPoint(
            queue_sort=queue_sort,
            pre_enqueue=at("preEnqueue", fwk.PreEnqueuePlugin),
            pre_filter=at("preFilter", fwk.PreFilterPlugin),
            filter=tuple((plugin.name, _on_rows(plugin, quarantines)) for plugin in at("filter", fwk.Plugin)),
            post_filter=at("postFilter", fwk.PostFilterPlugin),
            pre_score=at("preScore", fwk.PreScorePlugin),
            score=tuple(
                WeightedScorer(plugin.name, _scoring_rows(plugin, quarantines), plan.score_weights[plugin.name])
                for plugin in at("score", fwk.Plugin)
            ),
            reserve=at("reserve", fwk.ReservePlugin),
            permit=at("permit", fwk.PermitPlugin),
            pre_bind=at("preBind", fwk.PreBindPlugin),
            bind=at("bind", fwk.BindPlugin),
            post_bind=at("postBind", fwk.PostBindPlugin),
            placement_generate=at("placementGenerate", fwk.PlacementGeneratePlugin),
            placement_score=tuple(
                (plugin, plan.placement_score_weights[plugin.name])
                for plugin in at("placementScore", fwk.PlacementScorePlugin)
            ),
            advice={name: plugin for name, plugin in by_name.items() if isinstance(plugin, fwk.AdvicePlugin)},
            every=tuple(by_name.values()),
        )


@cache
def _warn_of_dropped_promises(plugin: type[fwk.Plugin]) -> None:
    dropped = [promise for promise in DROPPED_PROMISES if hasattr(plugin, promise)]
    if dropped:
        _LOG.info(
            0, "Ignoring promises that the contract of plugins no longer has", plugin=plugin.name, promises=dropped
        )


def load_plugin(entry: EntryPoint, classes: Mapping[str, type[fwk.Plugin]]) -> type[fwk.Plugin]:
    """Returns the plugin class of an entry point.

    Raises ValueError if it cannot be loaded, is no plugin, has the name of a known one, or is a known one under a
    second name; the message says what to do.
    """
    if entry.name in classes:
        raise ValueError(f"the name is taken; {entry.value} must be registered under another one")
    try:
        loaded = entry.load()
    except Exception as exc:
        place = f" ({file_and_line})" if (file_and_line := place_of(exc)) else ""
        raise ValueError(f"cannot be loaded from {entry.value}: {type(exc).__name__}: {exc}{place}") from exc
    if isinstance(loaded, ModuleType):
        loaded = _only_plugin_in(loaded)
    wrong = why_not_a_plugin(loaded)
    if wrong is None and loaded in classes.values():
        wrong = "is registered under another name already; derive a separate class from it"
    if wrong is not None:
        raise ValueError(f"{entry.value} {wrong}")
    plugin: type[fwk.Plugin] = loaded
    return plugin


def _only_plugin_in(module: ModuleType) -> type[fwk.Plugin]:
    """Returns the plugin that a module defines; ValueError if it defines none, or several."""
    plugins = [
        member
        for name, member in vars(module).items()
        if inspect.isclass(member) and issubclass(member, fwk.Plugin) and member.__module__ == module.__name__
        if not name.startswith("_")
    ]
    if len(plugins) != 1:
        names = f" ({', '.join(member.__name__ for member in plugins)})" if plugins else ""
        raise ValueError(f"{module.__name__} defines {len(plugins)} plugins{names}; write {module.__name__}:NAME")
    return plugins[0]


def implemented_points(plugin: type[fwk.Plugin]) -> frozenset[str]:
    """Returns the extension points whose contract a class fulfils."""
    return frozenset(point for point, kinds in POINTS.items() if issubclass(plugin, kinds))


def why_not_a_plugin(loaded: object) -> str | None:
    if not inspect.isclass(loaded) or not issubclass(loaded, fwk.Plugin):
        fix = "; decorate it with @fwk.node_filter or @fwk.node_score" if inspect.isroutine(loaded) else ""
        return f"is not a class derived from one of the plugin classes of reprieve.plugin{fix}"
    if inspect.isabstract(loaded):
        methods = ", ".join(sorted(loaded.__abstractmethods__))
        return f"does not implement {methods}"
    if not implemented_points(loaded):
        return "implements no extension point"
    wrongly_async = _wrongly_async(loaded)
    if wrongly_async:
        return f"has an async def where nothing waits for it: write def {', '.join(wrongly_async)}"
    return None


def _wrongly_async(plugin: type[fwk.Plugin]) -> list[str]:
    contract = [vars(base) for base in plugin.__mro__ if base.__module__.startswith(fwk.__name__)]
    return [
        name
        for name, method in inspect.getmembers(plugin, _is_async)
        if any(name in members and not _is_async(members[name]) for members in contract)
    ]


def _is_async(method: object) -> bool:
    return inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method)


def _on_rows(plugin: fwk.Plugin, quarantines: Quarantines) -> fwk.FilterPlugin:
    if isinstance(plugin, fwk.EachNodeFilterPlugin):
        on_rows = EachNodeFilter(plugin)
        guard(on_rows, quarantines.of(plugin.name), holds_time=True)
        return on_rows
    if isinstance(plugin, fwk.FilterPlugin):
        return plugin
    raise TypeError(f"{plugin.name} is no Filter plugin")


def _scoring_rows(plugin: fwk.Plugin, quarantines: Quarantines) -> fwk.ScorePlugin:
    if isinstance(plugin, fwk.EachNodeScorePlugin):
        on_rows = EachNodeScore(plugin)
        guard(on_rows, quarantines.of(plugin.name), holds_time=True)
        return on_rows
    if isinstance(plugin, fwk.ScorePlugin):
        return plugin
    raise TypeError(f"{plugin.name} is no Score plugin")
