"""The scheduler's configuration: as a file or the defaults give it, what to do about a wrong one, and settings that are
written over it: flags of kube-scheduler for which a KubeSchedulerConfiguration has fields.

Upstream: cmd/kube-scheduler/app/options/options.go, ApplyTo, ApplyDeprecated, ApplyLeaderElectionTo.
"""

import dataclasses
from pathlib import Path
from typing import Any, Final, final

from api.settings.settings import DECLARATIONS, Settings
from extender.client.http_extender import check_extenders
from extender.values.config.configuration import ConfigErrors, Configuration
from extender.values.config.validation import validate
from extender.values.klog.logger import Logger
from reprieve.errors import StartUpError
from reprieve.sources.configurations import read_configuration, try_profiles

_LOG: Final = Logger(__name__)


def configuration_of(settings: Settings) -> Configuration:
    """Returns the file's configuration with the settings over it. Raises StartUpError as `read_configuration`."""
    return try_profiles(overridden(read_configuration(settings.config, settings.features), settings), settings.config)


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
