"""The manifests of `deploy/kubernetes`."""

from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

FOLDER: Final = Path(__file__).parents[2] / "deploy" / "kubernetes"


@cache
def shipped(mode: str) -> tuple[dict[str, Any], ...]:
    """Returns the objects of a mode's manifest."""
    return tuple(yaml.safe_load_all((FOLDER / f"{mode}.yaml").read_text()))
