"""The scheduler's configuration, as a file or the defaults give it, and what to do about a wrong one."""

import os
import random
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final

from extender.engine.plugins import IN_TREE
from extender.engine.runtime.registry import ENTRY_POINTS, Registry
from extender.values.config.configuration import API_VERSION, KIND, ConfigErrors, Configuration, default_profiles
from extender.values.config.feature_gate_table import DEFAULT_VERSION, GATES
from extender.values.config.feature_gates import FeatureGates, parse_feature_gates, parse_version
from extender.values.config.loading import load_file
from extender.values.config.plugin_sets import MULTI_POINT, PluginRef, plugins
from extender.values.near_names import did_you_mean
from extender.values.reasons import InputError
from reprieve.errors import StartUpError

EMULATED_VERSION: Final = "REPRIEVE_EMULATED_VERSION"
FEATURE_GATES: Final = "REPRIEVE_FEATURE_GATES"
DEFAULT_PREEMPTION: Final = "DefaultPreemption"

_UNKNOWN: Final = re.compile(r'\w+Plugin "(?P<name>[^"]+)" does not exist')
_OF_GO: Final = re.compile(r' in scheme "pkg/[^"]*"')
_NOT_THERE: Final = re.compile(r'plugin "(?P<name>[^"]+)" does not extend (?P<point>\w+) plugin')


def with_fix(exc: InputError) -> str:
    """Returns the errors, with what to do about a file of another kind, or a plugin unknown there."""
    text = _OF_GO.sub(f"; give a {KIND} of {API_VERSION}", str(exc))
    if unknown := _UNKNOWN.search(text):
        plugin_names = sorted({*IN_TREE, *(entry.name for entry in entry_points(group=ENTRY_POINTS))})
        if near := did_you_mean(unknown["name"], plugin_names, 0.6):
            return f"{text}{near}"
        return f"{text}; install the distribution that has it beside reprieve (`reprieve plugins` lists what is there)"
    if elsewhere := _NOT_THERE.search(text):
        return (
            f"{text}; enable {elsewhere['name']} at multiPoint, or at one of its points, which `reprieve plugins "
            "--all` lists"
        )
    return text


def features_of_environment(environment: Mapping[str, str] = os.environ) -> FeatureGates:
    """Returns the features that are on by the environment, as the settings of a service. Raises StartUpError."""
    variable = EMULATED_VERSION
    try:
        version = parse_version(environment.get(EMULATED_VERSION) or DEFAULT_VERSION)
        variable = FEATURE_GATES
        return FeatureGates.of(parse_feature_gates(environment.get(FEATURE_GATES, "")), version)
    except ValueError as exc:
        raise StartUpError(f"{variable}: {exc}") from exc


def read_configuration(path: Path | None, features: FeatureGates | None = None) -> Configuration:
    """Returns the file's or the default configuration, with the environment's features. Raises StartUpError."""
    features = features_of_environment() if features is None else features
    if path is None:
        return Configuration(profiles=default_profiles(features), feature_gates=features)
    try:
        return load_file(path, features)
    except ConfigErrors as exc:
        raise StartUpError(f"configuration {path}: {with_fix(exc)}") from exc


def with_gates(configuration: Configuration, is_on_by_name: Mapping[str, bool]) -> Configuration:
    """Returns the configuration with further feature gates; default profiles become those of these features.

    Raises StartUpError if they cannot be had.
    """
    before = configuration.feature_gates
    try:
        features = before.changed(is_on_by_name)
    except ValueError as exc:
        unknown = [name for name in is_on_by_name if f"gate: {name}" in str(exc)]
        suggestion = "".join(did_you_mean(name, GATES, 0.6) for name in unknown)
        raise StartUpError(f"{exc}{suggestion}") from exc
    is_default = configuration.profiles == default_profiles(before)
    profiles = default_profiles(features) if is_default else configuration.profiles
    return replace(configuration, profiles=profiles, feature_gates=features)


def usable_configuration(path: Path | None, features: FeatureGates | None = None) -> Configuration:
    """Returns a configuration with which profiles can be built; see `read_configuration`."""
    return try_profiles(read_configuration(path, features), path)


def shadow_configuration(path: Path | None, features: FeatureGates | None = None) -> Configuration:
    """Returns a shadow's configuration; see `read_configuration`. It must not name extenders."""
    configuration = usable_configuration(path, features)
    if configuration.extenders:
        raise StartUpError(f"configuration {path}: names extenders, which a shadow does not call; leave them out")
    return configuration


def try_profiles(configuration: Configuration, path: Path | None) -> Configuration:
    """Returns the configuration, with which profiles can be built. Raises StartUpError if a plugin cannot be made."""
    try:
        Registry(IN_TREE).make_frameworks(configuration, random.Random())
    except ConfigErrors as exc:
        raise StartUpError(f"configuration {path or ''}".rstrip() + f": {with_fix(exc)}") from exc
    return configuration


def with_plugins(
    configuration: Configuration, names: Collection[str], that_preempt: Collection[str] = ()
) -> Configuration:
    """Returns the configuration with the plugins enabled in its first profile, unless it names one of them itself.

    Those that preempt take the place of DefaultPreemption, unless the profile names it.
    """
    mentioned = {
        plugin.name
        for profile in configuration.profiles
        for point in profile.plugins.values()
        for plugin in point.enabled
    }
    if not names or not mentioned.isdisjoint(names):
        return configuration
    first, *later = configuration.profiles
    everywhere, post_filter = first.plugins[MULTI_POINT], first.plugins["postFilter"]
    added = replace(everywhere, enabled=(*everywhere.enabled, *map(PluginRef, sorted(names))))
    if that_preempt and DEFAULT_PREEMPTION not in {plugin.name for plugin in post_filter.enabled}:
        post_filter = replace(post_filter, disabled=(*post_filter.disabled, PluginRef(DEFAULT_PREEMPTION)))
    changed = {**first.plugins, MULTI_POINT: added, "postFilter": post_filter}
    return replace(configuration, profiles=(replace(first, plugins=plugins(**changed)), *later))
