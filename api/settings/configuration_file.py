"""The scheduler's configuration, as a file or the defaults give it."""

import random
from pathlib import Path

from api.config_fixes import with_fix
from api.fatal_errors import StartUpError
from api.settings.settings import read_features
from extender.engine.plugins import IN_TREE
from extender.engine.runtime.registry import Registry
from extender.values.config import ConfigErrors, Configuration, FeatureGates, default_profiles, load_file


def read_configuration(path: Path | None, features: FeatureGates | None = None) -> Configuration:
    """Returns the scheduler's configuration; the default one without a file.

    Arguments:
        features: the features that are on; None for those that the environment gives.

    Raises:
        StartUpError: the file cannot be read, or is wrong.
    """
    features = read_features() if features is None else features
    if path is None:
        return Configuration(profiles=default_profiles(features), feature_gates=features)
    try:
        return load_file(path, features)
    except ConfigErrors as exc:
        raise StartUpError(f"configuration {path}: {exc}") from exc


def shadow_configuration(path: Path | None, features: FeatureGates | None = None) -> Configuration:
    """Returns the configuration of a shadow; see `read_configuration`.

    Raises:
        StartUpError: the file cannot be read, is wrong, or names extenders.
    """
    configuration = read_configuration(path, features)
    if configuration.extenders:
        raise StartUpError(
            f"configuration {path}: names extenders, which a shadow does not call; leave them out for it"
        )
    try:
        Registry(IN_TREE).make_frameworks(configuration, random.Random())
    except ConfigErrors as exc:
        raise StartUpError(f"configuration {path}: {with_fix(exc)}") from exc
    return configuration
