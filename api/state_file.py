"""A cluster from a file: a List as kubectl prints it, or several of its documents, as JSON or YAML, packed or not."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from api.settings import StartUpError
from extender.cluster_state import ClusterState
from extender.objects.decoding import DecodeError

MAX_VALUES: Final = 50_000_000
"""Values in a document, counted as often as YAML aliases repeat them."""

_GZIP: Final = b"\x1f\x8b"
_TIMESTAMP: Final = "tag:yaml.org,2002:timestamp"
_HOW_TO_DUMP: Final = "kubectl get nodes,pods,pdb,namespaces -A -o json prints one"


class _Loader(yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader):  # type: ignore[misc]
    """Plain values only. A point in time stays text, as in JSON."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's way
        first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def read_state(path: Path) -> ClusterState:
    """The cluster that the file describes. Kinds that scheduling does not look at are left out.

    Raises:
        StartUpError: the file cannot be read, or holds something else.
    """
    try:
        data = path.read_bytes()
        text = gzip.decompress(data) if data.startswith(_GZIP) else data
    except OSError as exc:
        raise StartUpError(f"state file {path}: {(exc.strerror or str(exc)).lower()}; give a cluster with --state") from exc
    except (EOFError, zlib.error) as exc:
        raise StartUpError(f"state file {path}: not a complete gzip file") from exc
    try:
        items = [item for document in _documents(text) for item in _items(document)]
        return ClusterState.from_items(items)
    except (DecodeError, yaml.YAMLError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise StartUpError(f"state file {path}: {_on_one_line(exc)}; {_HOW_TO_DUMP}") from exc


def _documents(text: bytes) -> Iterator[Any]:
    if text.lstrip()[:1] in (b"{", b"["):
        yield msgspec.json.decode(text)
        return
    for document in yaml.load_all(text, Loader=_Loader):
        _check_size(document)
        if document is not None:
            yield document


def _items(document: Any, kind_of_list: str = "") -> Iterator[tuple[str, object]]:
    """(kind, object) of a document: of one object, of a List, or of a list of one kind such as PodList, whose items name none."""
    if not isinstance(document, dict):
        raise DecodeError("expected a Kubernetes List or object")
    kind = document.get("kind") or kind_of_list
    if not isinstance(kind, str) or not kind:
        raise DecodeError("an object has no kind")
    items = document.get("items")
    if not kind.endswith("List") or items is None:
        yield kind, document
        return
    if not isinstance(items, list):
        raise DecodeError(f"{kind}: items is not a list")
    for item in items:
        yield from _items(item, kind.removesuffix("List"))


def _check_size(document: Any) -> None:
    """Refuse aliases of aliases: they cost nothing here, and for ever where the values are walked."""
    sizes: dict[int, int] = {}

    def size(value: Any) -> int:
        if not isinstance(value, dict | list):
            return 1
        if id(value) not in sizes:
            sizes[id(value)] = MAX_VALUES  # of a value inside itself
            sizes[id(value)] = 1 + sum(map(size, value.values() if isinstance(value, dict) else value))
        return sizes[id(value)]

    if size(document) > MAX_VALUES:
        raise DecodeError("excessive aliasing")


def _on_one_line(exc: Exception) -> str:
    return "nested too deeply" if isinstance(exc, RecursionError) else " ".join(str(exc).split())
