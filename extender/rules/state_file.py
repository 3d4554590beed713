"""A cluster in a file: read as kubectl prints it, written so that `kubectl apply -f` accepts it.

A file holds one object, a List, a list of one kind such as PodList, or several documents of these, in JSON or YAML,
perhaps gzipped; or what `kubectl cluster-info dump` prints. A text with a byte order mark may be UTF-16 as well.
"""

import gzip
import io
import json
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec
import orjson
import yaml

from extender.rules.api_resources import Object
from extender.values import limits
from extender.values.byte_order_marks import in_utf8
from extender.values.concurrency.process import collector_paused
from extender.values.golang.json import plain
from extender.values.golang.json_bytes import check_number_of_values
from extender.values.golang.yaml import read_yaml, split_documents
from extender.values.golang.yaml_scalars import STRING, ScalarError, resolve
from extender.values.reasons import InputError, in_one_line

_PART: Final = 2**20
"""The number of bytes that are read at one time."""
_UNPACKED_ANYWAY: Final = 64 * 2**20
"""The size up to which a compressed file may unpack, however small it is."""

_IS_JSON: Final = re.compile(rb"\s*[\[{]")
_BETWEEN_JSON: Final = re.compile(r"[-\s]*")
_LOGS: Final = re.compile(
    rb"^==== START logs (for container \S+ of pod \S+) ====$.*?(?:==== END logs \1 ====$|\Z)", re.DOTALL | re.MULTILINE
)
"""The logs that `kubectl cluster-info dump` prints between its lists. The last line of a log may lack its end."""
_GZIP: Final = b"\x1f\x8b"
HOW_TO_DUMP: Final = "kubectl get nodes,pods,pdb,ns,svc,rs,sts,pv,pvc,sc,pc -A -o json prints one"
_OF_ONE_SERVER: Final = ("resourceVersion", "managedFields", "selfLink")
"""Metadata without meaning to another server, with which kubectl could not apply the object."""

_JSON_HEAD: Final = '{"apiVersion":"v1","kind":"List","metadata":{"resourceVersion":"%s"},"items":[\n'
_YAML_HEAD: Final = "# resourceVersion: %s\n"
_HEAD: Final = re.compile("|".join(re.escape(head) % "([0-9]{1,18})" for head in (_JSON_HEAD, _YAML_HEAD)).encode())
"""The head of a saved file, with the resourceVersion of the cluster, of fewer digits than Go's integers may have."""


class StateFileError(InputError, ValueError):
    """The file cannot be read, or holds no cluster. The message is one line and names the file."""


def load_state(path: Path) -> list[Object]:
    """Returns the objects in a file, each with its kind and apiVersion, unchecked. Raises StateFileError."""
    return read_state(state_bytes(path), f"state file {path}")


def state_bytes(path: Path) -> bytes:
    """Returns the content of a file, up to one part beyond its limit. Raises StateFileError."""
    try:
        with path.open("rb") as file:
            return _content(file, limits.STATE_FILE_BYTES)
    except (OSError, MemoryError) as exc:
        raise StateFileError(f"state file {path}: {_why_unread(exc)}") from exc


def read_state(data: bytes, source: str) -> list[Object]:
    """Returns the objects in the content of a file, as `load_state`; errors name it by `source`."""
    try:
        limit = int(limits.STATE_FILE_BYTES)
        text = data
        if data.startswith(_GZIP):
            limit = min(limit, max(_UNPACKED_ANYWAY, limits.STATE_FILE_RATIO * len(data)))
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
                text = _content(stream, limit)
        if len(text) > limit:
            raise StateFileError(f"{source}: more than {limit} bytes")
        text = in_utf8(text)
        if b"==== START logs " in text:
            text = _LOGS.sub(b"", text.replace(b"\r\n", b"\n"))
        with collector_paused():
            return [item for document in _documents(text) for item in _items(document)]
    except StateFileError:
        raise
    except (OSError, MemoryError) as exc:
        raise StateFileError(f"{source}: {_why_unread(exc)}") from exc
    except (EOFError, zlib.error) as exc:
        raise StateFileError(f"{source}: not a complete gzip file") from exc
    except (ValueError, RecursionError) as exc:
        raise StateFileError(f"{source}: {in_one_line(exc)}; {HOW_TO_DUMP}") from exc


def _why_unread(error: OSError | MemoryError) -> str:
    return in_one_line(error) if isinstance(error, OSError) else "there is not enough memory for it"


def saved_version(path: Path) -> int:
    """Returns the resourceVersion of the cluster that was saved in a file; 0 without a file, or in any other file."""
    try:
        with path.open("rb") as file:
            is_packed = file.peek(len(_GZIP)).startswith(_GZIP)
            head = _HEAD.match((gzip.GzipFile(fileobj=file) if is_packed else file).read(200))
    except (OSError, EOFError, zlib.error):
        return 0  # the reader of the objects says why
    return int(head[1] or head[2]) if head else 0


def save_state(path: Path, objects: Iterable[Object], version: int = 0) -> None:
    """Writes the objects as JSON or YAML, by the name of the file, with the version that `saved_version` returns.

    The file is replaced as a whole; only its owner may read it. Raises OSError, and ValueError as `state_form`.
    """
    from extender.values.concurrency.replaced_file import replaced_file  # noqa: PLC0415 - who reads writes nothing

    kind, packed = state_form(path)
    with replaced_file(path) as file:
        if packed:
            with gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as stream:
                _write(stream, kind, objects, version)
        else:
            _write(file, kind, objects, version)


def state_form(path: Path) -> tuple[str, bool]:
    """Returns `.json`, `.yaml` or `.yml` by a file's name, and whether it is compressed. Raises ValueError."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = suffixes[-1:] == [".gz"]
    kind = next(iter(suffixes[-2:-1] if packed else suffixes[-1:]), "")
    if kind not in (".json", ".yaml", ".yml"):
        raise ValueError(f"state file {path}: the name has to end in .json, .yaml or .yml, and perhaps .gz")
    return kind, packed


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Quotes every text that Go would read as something else, and writes no anchors, as kubectl."""

    def ignore_aliases(self, data: object) -> bool:
        return True

    def text(self, text: str) -> yaml.ScalarNode:
        return yaml.ScalarNode(STRING, text, style=None if _is_text_to_go(text) else '"')


_Dumper.add_representer(str, _Dumper.text)


def _is_text_to_go(text: str) -> bool:
    try:
        return resolve("", text)[0] == STRING
    except ScalarError:  # a number that JSON cannot express
        return False


def _content(stream: BinaryIO | gzip.GzipFile, limit: int) -> bytes:
    """Returns the content of a stream, up to one part beyond `limit`."""
    # In parts, since Python allocates the whole size before it reads.
    parts, length = [], 0
    while length <= limit and (part := stream.read(_PART)):
        parts.append(part)
        length += len(part)
    return b"".join(parts)


def _documents(text: bytes) -> Iterator[Any]:
    if _IS_JSON.match(text):
        check_number_of_values(text, limits.STATE_FILE_VALUES, "the file")
        yield from _json_documents(text)
        return
    for document in split_documents(text.decode()):
        value = plain(read_yaml(document, max_nodes=limits.STATE_FILE_YAML_VALUES).value)
        if value is not None:
            yield value


def _json_documents(text: bytes) -> Iterator[Any]:
    try:
        yield msgspec.json.decode(text)
    except msgspec.DecodeError as exc:
        if "trailing characters" not in str(exc):
            raise
    else:
        return
    decoder, rest, position = json.JSONDecoder(), text.decode().strip(), 0
    while position < len(rest):
        document, end = decoder.raw_decode(rest, position)
        yield document
        between = _BETWEEN_JSON.match(rest, end)
        position = len(rest) if between is None else between.end()


def _items(document: Any, kind: str = "", api_version: str = "", place: str = "") -> Iterator[Object]:
    """Yields the objects of a document, each with its kind, which the items of a PodList do not name."""
    where = f" at {place}" if place else ""
    if not isinstance(document, dict):
        raise ValueError(f"expected a Kubernetes List or object{', not null,' if document is None else ''}{where}")
    kind, api_version = document.get("kind") or kind, document.get("apiVersion") or api_version
    if not isinstance(kind, str) or not kind:
        raise ValueError(f"an object has no kind{where}")
    items = document.get("items")
    if not kind.endswith("List") or items is None:
        yield (
            document
            if document.get("kind") and document.get("apiVersion")
            else {**document, "kind": kind, "apiVersion": api_version}
        )
        return
    if not isinstance(items, list):
        raise ValueError(f"{kind}: items is not a list")
    for number, item in enumerate(items):
        yield from _items(item, kind.removesuffix("List"), api_version, f"items[{number}] of the {kind}{where}")


def _write(file: BinaryIO | gzip.GzipFile, kind: str, objects: Iterable[Object], version: int) -> None:
    file.write(((_JSON_HEAD if kind == ".json" else _YAML_HEAD) % version).encode())
    if kind == ".json":
        separator = b""
        for obj in objects:
            file.write(separator + orjson.dumps(_portable(obj)))
            separator = b",\n"
        file.write(b"\n]}\n")
        return
    for obj in objects:
        file.write(b"---\n")
        # A default_flow_style of False is what kubectl prints, too.
        text: bytes = yaml.dump(
            _portable(obj), Dumper=_Dumper, sort_keys=False, allow_unicode=True, encoding="utf-8", width=10_000
        )
        file.write(text)


def _portable(obj: Object) -> Object:
    metadata = {name: value for name, value in (obj.get("metadata") or {}).items() if name not in _OF_ONE_SERVER}
    return {"apiVersion": obj.get("apiVersion"), "kind": obj.get("kind"), **obj, "metadata": metadata}
