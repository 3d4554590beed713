"""From settings to an engine: the files are read, and what is wrong with them is said in one line."""

import logging
from pathlib import Path
from typing import Final

from api.settings import Settings, StartUpError
from api.state_file import read_state
from extender.config import ConfigErrors, Configuration, load_file
from extender.engine import Engine

_log: Final = logging.getLogger(__name__)


def read_configuration(path: Path | None) -> Configuration:
    """The scheduler's configuration; the default one without a file.

    Raises:
        StartUpError: the file cannot be read, or is wrong.
    """
    if path is None:
        return Configuration.default()
    try:
        return load_file(path)
    except ConfigErrors as exc:
        raise StartUpError(f"configuration {path}: {_on_one_line(exc)}") from exc


def open_engine(settings: Settings) -> Engine:
    """An engine for the cluster and the configuration that the settings name.

    Raises:
        StartUpError: one of the files cannot be used.
    """
    configuration = read_configuration(settings.config)
    try:
        engine = Engine.open(configuration, read_state(settings.state))
    except ConfigErrors as exc:
        where = f"configuration {settings.config}" if settings.config else "configuration"
        raise StartUpError(f"{where}: {_on_one_line(exc)}") from exc
    for pod, reason in engine.unreadable:
        _log.warning("pod %s is left out of the cluster: %s", pod, reason)
    return engine


def _on_one_line(exc: Exception) -> str:
    return " ".join(str(exc).split())
