"""Kubernetes objects from files: what `-f` names."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from api.settings import StartUpError
from api.ui.manifests import ManifestError, objects_in
from extender.cluster_state import TABLES, ClusterState

_TABLE_OF_KIND: Final = {table.kind.__name__: table.name for table in TABLES}


def read_manifests(file: str) -> list[dict[str, Any]]:
    """The objects in a file of YAML or JSON; `-` is standard input.

    Raises:
        StartUpError: it cannot be read, or holds something else; the message is one line.
    """
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text()
    except (OSError, UnicodeDecodeError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "not UTF-8"
        raise StartUpError(f"{file}: {(reason or str(exc)).lower()}; give a file with Kubernetes objects, or - for standard input") from exc
    try:
        objects = objects_in(text)
    except ManifestError as exc:
        raise StartUpError(f"{file}: {exc}") from exc
    if not objects:
        raise StartUpError(f"{file}: there is no object in it")
    return objects


def state_of(objects: Iterable[dict[str, Any]]) -> ClusterState:
    """The cluster that the objects are; kinds that mean nothing to scheduling are left out.

    Raises:
        DecodeError: an object has the wrong form.
    """
    lists: dict[str, list[object]] = {}
    for obj in objects:
        table = _TABLE_OF_KIND.get(str(obj.get("kind")))
        if table is not None:
            lists.setdefault(table, []).append(obj)
    return ClusterState.decode(lists)
