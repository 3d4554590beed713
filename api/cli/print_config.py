"""`reprieve print-config`: the configuration with every default."""

import sys
from pathlib import Path
from typing import Annotated

import typer
import yaml

from api.settings.configuration_file import read_configuration
from extender.values.config import written


def print_config(
    config: Annotated[
        Path | None, typer.Option(help="KubeSchedulerConfiguration file (the defaults of kube-scheduler).")
    ] = None,
) -> None:
    """Print the scheduler's configuration with every default spelled out, as YAML."""
    document = written(read_configuration(config))
    yaml.safe_dump(document, sys.stdout, sort_keys=False, default_flow_style=False, width=140)
