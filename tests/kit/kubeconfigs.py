"""Kubeconfigs of one context, as files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml


def write_kubeconfig(
    path: Path, cluster: Mapping[str, Any], user: str = "test", namespace: str = "", **credentials: str
) -> Path:
    """Writes one for this cluster, and returns its path.

    Arguments:
        credentials: how the user is known to the server, such as `token`.
    """
    entries = {
        "clusters": [{"name": "test", "cluster": dict(cluster)}],
        "users": [{"name": user, "user": credentials}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": user, "namespace": namespace}}],
    }
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", "current-context": "test", **entries}))
    return path
