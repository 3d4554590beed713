"""A request and its answer as values, so that the API needs no HTTP server and the server no knowledge of the API."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import final


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
