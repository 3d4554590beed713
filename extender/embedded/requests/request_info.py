"""A request and its answer as values, so that the API needs no HTTP server and the server no knowledge of the API."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import final

from extender.embedded import statuses
from extender.embedded.api_resources import NAMESPACES, RESOURCES, Resource, find


@final
@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request."""

    method: str
    """Upper case."""
    path: str
    """Percent-decoded, without the query."""
    query: Mapping[str, Sequence[str]] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    """Names in lower case."""
    body: bytes = b""


@final
@dataclass(frozen=True, slots=True)
class Response:
    """A whole answer."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Content-Type included."""


@final
@dataclass(frozen=True, slots=True)
class StreamResponse:
    """An answer that goes on: a watch. Closing the iterator ends it."""

    status: int
    chunks: AsyncGenerator[bytes, None]
    """Whole watch events, each ending in a line feed."""
    headers: Mapping[str, str] = field(default_factory=dict)


@final
@dataclass(frozen=True, slots=True)
class RequestInfo:
    """A collection, an object, or what lies below one.

    Attributes:
        namespace: empty: all of them, or the kind has none.
        is_watch: by the old paths, `/api/v1/watch/pods`.
    """

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    is_watch: bool = False


def target_of(path: str) -> RequestInfo | None:
    """What the path is about; None: no resource, but perhaps a document.

    Raises:
        ApiStatus: 404, the group and version are served, but not this.
    """
    match [part for part in path.split("/") if part]:
        case ["api", version, *rest]:
            group = ""
        case ["apis", group, version, *rest]:
            pass
        case _:
            return None
    if not rest or not any((each.group, each.version) == (group, version) for each in RESOURCES):
        return None
    target = _below(group, version, rest)
    if target is None:
        raise statuses.page_not_found()
    return target


def _below(group: str, version: str, parts: list[str]) -> RequestInfo | None:
    is_watch = len(parts) > 1 and parts[0] == "watch"
    if is_watch:
        parts = parts[1:]
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 2:
        # What comes third may belong to the namespace itself.
        if not group and len(parts) == 3 and NAMESPACES.subresource(parts[2]) is not None:
            return RequestInfo(NAMESPACES, "", parts[1], parts[2])
        namespace, parts = parts[1], parts[2:]
    resource = find(group, version, parts[0])
    if resource is None or len(parts) > 3:
        return None
    if bool(namespace) != resource.namespaced and (namespace or len(parts) > 1):
        return None
    name, subresource = (*parts[1:], "", "")[:2]
    return RequestInfo(resource, namespace, name, subresource, is_watch)
