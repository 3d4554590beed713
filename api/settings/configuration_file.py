"""The scheduler's configuration: as a file or the defaults give it, what to do about a wrong one, and settings that are
written over it: flags of kube-scheduler for which a KubeSchedulerConfiguration has fields.

Upstream: cmd/kube-scheduler/app/options/options.go, ApplyTo, ApplyDeprecated, ApplyLeaderElectionTo (v1.36.2).
"""

import dataclasses
import random
import re
from difflib import get_close_matches
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final, final

from api.fatal_errors import StartUpError
from api.settings.settings import DECLARATIONS, Settings, read_features
from extender.client.http_extender import check_extenders
from extender.engine.plugins import IN_TREE
from extender.engine.runtime.registry import ENTRY_POINTS, Registry
from extender.values.config import (
    ConfigErrors,
    Configuration,
    FeatureGates,
    default_profiles,
    load_file,
    validate,
)
from extender.values.config.configuration import API_VERSION, KIND
from extender.values.klog.logger import Logger
from extender.values.reasons import InputError

_LOG: Final = Logger(__name__)
_UNKNOWN: Final = re.compile(r'\w+Plugin "(?P<name>[^"]+)" does not exist')
_OF_GO: Final = re.compile(r' in scheme "pkg/[^"]*"')
_NOT_THERE: Final = re.compile(r'plugin "(?P<name>[^"]+)" does not extend (?P<point>\w+) plugin')


def with_fix(exc: InputError) -> str:
    """Returns the errors, with what to do about a file of another kind, or a plugin unknown there."""
    text = _OF_GO.sub(f"; give a {KIND} of {API_VERSION}", str(exc))
    if unknown := _UNKNOWN.search(text):
        known = sorted({*IN_TREE, *(entry.name for entry in entry_points(group=ENTRY_POINTS))})
        near = get_close_matches(unknown["name"], known, 1)
        if near:
            return f"{text}; did you mean {near[0]}?"
        return f"{text}; install the distribution that has it beside reprieve (`reprieve plugins` lists what is there)"
    if elsewhere := _NOT_THERE.search(text):
        return (
            f"{text}; enable {elsewhere['name']} at multiPoint, or at one of its points, which `reprieve plugins "
            "--all` lists"
        )
    return text


def read_configuration(path: Path | None, features: FeatureGates | None = None) -> Configuration:
    """Returns the file's or the default configuration, with the environment's features. Raises StartUpError."""
    features = read_features() if features is None else features
    if path is None:
        return Configuration(profiles=default_profiles(features), feature_gates=features)
    try:
        return load_file(path, features)
    except ConfigErrors as exc:
        raise StartUpError(f"configuration {path}: {with_fix(exc)}") from exc


def usable_configuration(path: Path | None, features: FeatureGates | None = None) -> Configuration:
    """Returns a configuration with which profiles can be built; see `read_configuration`."""
    return try_profiles(read_configuration(path, features), path)


def shadow_configuration(path: Path | None, features: FeatureGates | None = None) -> Configuration:
    """Returns a shadow's configuration; see `read_configuration`. It must not name extenders."""
    configuration = usable_configuration(path, features)
    if configuration.extenders:
        raise StartUpError(
            f"configuration {path}: names extenders, which a shadow does not call; leave them out for it"
        )
    return configuration


def configuration_of(settings: Settings) -> Configuration:
    """Returns the file's configuration with the settings over it. Raises StartUpError as `read_configuration`."""
    return try_profiles(overridden(read_configuration(settings.config, settings.features), settings), settings.config)


def try_profiles(configuration: Configuration, path: Path | None) -> Configuration:
    """Returns the configuration, with which profiles can be built. Raises StartUpError if a plugin cannot be made."""
    try:
        Registry(IN_TREE).make_frameworks(configuration, random.Random())
    except ConfigErrors as exc:
        raise StartUpError(f"configuration {path or ''}".rstrip() + f": {with_fix(exc)}") from exc
    return configuration


def try_extenders(configuration: Configuration, path: Path | None) -> None:
    """Checks that the configuration's extenders can be called. Raises StartUpError if not."""
    try:
        check_extenders(configuration)
    except ConfigErrors as exc:
        raise StartUpError(f"configuration {path}: {exc}") from exc


@final
class WatchedConfiguration:
    """Tells of changes of the configuration file, which take effect at the next start, so that a wrong one is known
    before. State: what the file held when it was last looked at.
    """

    def __init__(self, settings: Settings, *, calls_extenders: bool) -> None:
        self._settings = settings
        self._calls_extenders = calls_extenders
        self._at_start = self._last = self._text()

    def look(self) -> None:
        """Logs whether a changed file is valid, or why not."""
        text, path = self._text(), self._settings.config
        if text == self._last:
            return
        self._last = text
        if text == self._at_start:
            _LOG.info(0, "The configuration is again as it was at the start", file=str(path))
            return
        try:
            configuration = configuration_of(self._settings)
            if self._calls_extenders:
                try_extenders(configuration, path)
        except StartUpError as exc:
            _LOG.error(exc, "The changed configuration would fail the next start; the old one stays in force")
        else:
            _LOG.info(0, "The changed configuration is valid, and takes effect at the next start", file=str(path))

    def _text(self) -> bytes | None:
        try:
            return self._settings.config.read_bytes() if self._settings.config else None
        except OSError:
            return None


def overridden(configuration: Configuration, settings: Settings) -> Configuration:
    """Returns the configuration with the settings over it that configure the same; StartUpError if that is invalid.

    Settings of the election win over a configuration file; the deprecated ones do not, as upstream.
    """
    changed = configuration
    for name, setting in DECLARATIONS.items():
        value, path = getattr(settings, name), setting.option.configures
        if path and value is not None and not (setting.option.yields_to_file and settings.config):
            changed = _replaced(changed, path, value)
    if changed == configuration:
        return configuration
    errors = validate(changed)
    if errors:
        raise StartUpError(ConfigErrors(errors))
    return changed


def _replaced(configuration: Any, path: tuple[str, ...], value: object) -> Any:
    field, *rest = path
    return dataclasses.replace(
        configuration, **{field: _replaced(getattr(configuration, field), tuple(rest), value) if rest else value}
    )
