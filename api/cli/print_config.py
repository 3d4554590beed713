"""`reprieve print-config`: the configuration with every default."""

import sys
from pathlib import Path
from typing import Annotated

import typer
import yaml

from api.fatal_errors import StartUpError
from api.settings.configuration_file import read_configuration
from extender.values.config import ConfigErrors, written


def print_config(
    config: Annotated[
        Path | None, typer.Option(help="KubeSchedulerConfiguration file (the defaults of kube-scheduler).")
    ] = None,
) -> None:
    """Print the scheduler's configuration with every default spelled out, as YAML."""
    try:
        document = written(read_configuration(config))
    except ConfigErrors as exc:
        raise StartUpError(exc) from exc
    yaml.safe_dump(document, sys.stdout, sort_keys=False, default_flow_style=False, width=140)
