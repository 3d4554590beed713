"""Lists objects, all or page by page, as they are or as they were at a resourceVersion.

Upstream: apiserver/pkg/storage, interfaces.go, continue.go; storage/cacher; storage/etcd3/store.go.
"""

import base64
import binascii
import itertools
import posixpath
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import orjson

from extender.rules import statuses
from extender.rules.api_resources import Object, Resource
from extender.values.golang.quoting import quoted
from reprieve.cluster import refusals
from reprieve.cluster.requests.request_options import EXACT, ListOptions
from reprieve.cluster.store.object_store import CompactedError, ObjectStore
from reprieve.cluster.store.selections import ObjectSelection
from reprieve.cluster.store.stored_objects import Stored

EXPIRED: Final = "The resourceVersion for the provided list is too old."
CONTINUE_EXPIRED: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)

_LATEST: Final = -1
"""In a continue token: the list continues with what exists now."""
_TOKEN_VERSION: Final = "meta.k8s.io/v1"  # noqa: S105 - no secret
_MAX_UINT64: Final = 2**64 - 1


@final
@dataclass(frozen=True, slots=True)
class Page:
    """A list or a part of one, as of a resourceVersion.

    Attributes:
        continue_token: asks for the next page; empty on the last one.
        remaining: the number of objects on later pages; None if it is unknown, or if there are none.
    """

    objects: Sequence[Stored]
    resource_version: int
    continue_token: str = ""
    remaining: int | None = None

    @property
    def metadata(self) -> Object:
        metadata: Object = {"resourceVersion": str(self.resource_version)}
        if self.continue_token:
            metadata["continue"] = self.continue_token
        if self.remaining:
            metadata["remainingItemCount"] = self.remaining
        return metadata


def page(
    store: ObjectStore, resource: Resource, namespace: str, selected: ObjectSelection, options: ListOptions
) -> Page:
    """Returns the objects that a list request asks for.

    Raises ApiStatus 400 if it cannot be read, 410 if its resourceVersion is forgotten, 504 if it does not exist yet.
    """
    version, start = _place(options, namespace)
    if start:
        if version == _LATEST:
            version = store.resource_version
        return _read(store, resource, namespace, selected, options.limit, version, start)
    version = parse_resource_version(options.resource_version)
    if version > store.resource_version:
        raise refusals.too_large_resource_version(version, store.resource_version)
    is_exact = options.resource_version_match == EXACT or (not options.resource_version_match and options.limit > 0)
    if not is_exact or not version:
        version = store.resource_version
    # With resourceVersion 0, upstream answers from a cache that does not know pages.
    limit = 0 if options.resource_version == "0" else options.limit
    return _read(store, resource, namespace, selected, limit, version, "")


def parse_resource_version(text: str) -> int:
    """Returns the number in a text; 0 for an empty text. Raises ApiStatus 400 if it is no number."""
    if text.isascii() and text.isdigit() and int(text[:20]) <= _MAX_UINT64 and len(text) <= 20:
        return int(text)
    if not text:
        return 0
    problem = "value out of range" if text.isascii() and text.isdigit() else "invalid syntax"
    why = f"Invalid value: {quoted(text)}: strconv.ParseUint: parsing {quoted(text)}: {problem}"
    raise statuses.bad_request(f"invalid resource version: resourceVersion: {why}")


def _read(
    store: ObjectStore,
    resource: Resource,
    namespace: str,
    selected: ObjectSelection,
    limit: int,
    version: int,
    start: str,
) -> Page:
    name = selected.name
    if name is not None and version == store.resource_version and (namespace or not resource.namespaced):
        # The selectors name one object: no other has to be looked at.
        stored = store.get(resource, namespace, name)
        return Page([] if stored is None or not selected.matches(stored) or stored.key < start else [stored], version)
    try:
        count, objects = store.scan(resource, namespace, version=version, start=start)
    except CompactedError as error:
        if not start:
            raise refusals.expired(EXPIRED) from error
        token = _token(start.removeprefix(f"{namespace}/") if namespace else start, _LATEST)
        raise refusals.expired(CONTINUE_EXPIRED, continue_token=token) from error
    if limit <= 0:
        return Page(list(selected.of(objects)), version)
    return _first(selected.of(objects), count - limit if selected.is_everything else None, namespace, limit, version)


def _first(objects: Iterable[Stored], remaining: int | None, namespace: str, limit: int, version: int) -> Page:
    chosen = list(itertools.islice(objects, min(limit + 1, sys.maxsize)))
    if len(chosen) <= limit:
        return Page(chosen, version)
    last = chosen[limit - 1].key
    token = _token((last.removeprefix(f"{namespace}/") if namespace else last) + "\0", version)
    return Page(chosen[:limit], version, token, remaining)


def _place(options: ListOptions, namespace: str) -> tuple[int, str]:
    """Returns the resourceVersion and the key at which a list continues; the key is empty for the first page."""
    if not options.continue_token:
        return 0, ""
    try:
        version, start = _decoded(options.continue_token)
    except ValueError as error:
        raise statuses.bad_request(f"invalid continue token: continue key is not valid{error}") from error
    if options.resource_version not in ("", "0"):
        raise statuses.bad_request("specifying resource version is not allowed when using continue")
    return (version if version > 0 else _LATEST), f"{namespace}/{start}" if namespace else start


def _token(start: str, resource_version: int) -> str:
    token = orjson.dumps({"v": _TOKEN_VERSION, "rv": resource_version, "start": start})
    return base64.urlsafe_b64encode(token).rstrip(b"=").decode()


def _decoded(token: str) -> tuple[int, str]:
    """Returns the resourceVersion and key of a continue token. Raises ValueError with the end of upstream's message."""
    try:
        raw = base64.b64decode(token.encode() + b"=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(": illegal base64 data at input byte 0") from error
    try:
        value: Any = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise ValueError(": unexpected end of JSON input") from error
    if not isinstance(value, dict):
        raise ValueError(": json: cannot unmarshal into Go value of type storage.continueToken")
    api_version, version, start = value.get("v", ""), value.get("rv", 0), value.get("start", "")
    if not isinstance(version, int) or not isinstance(start, str):
        raise ValueError(": json: cannot unmarshal into Go value of type storage.continueToken")
    if api_version != _TOKEN_VERSION:
        raise ValueError(f": server does not recognize this encoded version {api_version}")
    if version == 0:
        raise ValueError(": incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
    if not start:
        raise ValueError(": encoded start key empty (version meta.k8s.io/v1)")
    key = start if start.startswith("/") else f"/{start}"
    if posixpath.normpath(key) != key:
        raise ValueError(f": {start}")
    return version, key[1:]
