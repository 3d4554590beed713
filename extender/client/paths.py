"""Paths of the Kubernetes API, and the rights that requests to them need."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, final
from urllib.parse import quote

_PLAIN: Final = re.compile(r"[A-Za-z0-9_.~:-]+")
"""Text that quoting does not change, which nearly every name is."""


def path(
    group: str,
    version: str,
    plural: str,
    *,
    namespace: str | None = None,
    name: str | None = None,
    subresource: str | None = None,
) -> str:
    """Returns the path of a resource, of one object of it, or of a subresource of that.

        path("", "v1", "pods", namespace="default", name="web", subresource="binding")

    Without a namespace it is of cluster-scoped objects, or of all namespaces. Raises ValueError if a part, such as a
    name with a slash in it, would lead elsewhere. Upstream: client-go/rest/request.go, Request.URL.
    """
    if subresource is not None and name is None:
        raise ValueError(f"{plural}/{subresource}: a subresource needs the name of an object")
    collection = _collection(group, version, plural, namespace)
    if name is None:
        return collection
    return f"{collection}/{_segment(name)}{_below(subresource)}"


@lru_cache(64)
def _collection(group: str, version: str, plural: str, namespace: str | None) -> str:
    root = ("apis", group, version) if group else ("api", version)
    return _joined((*root, plural) if namespace is None else (*root, "namespaces", namespace, plural))


@lru_cache(64)
def _below(subresource: str | None) -> str:
    return "" if subresource is None else _joined(subresource.split("/"))


def _joined(parts: Iterable[str]) -> str:
    return "".join(f"/{_segment(part)}" for part in parts)


def _segment(text: str) -> str:
    """Returns the quoted segment (api/validation/path/name.go, IsValidPathSegmentName)."""
    if text in ("", ".", "..") or "/" in text or "%" in text:
        raise ValueError(f"{text!r} cannot be part of a path")
    return text if _PLAIN.fullmatch(text) else quote(text, safe=":")


@final
@dataclass(frozen=True, slots=True, order=True)
class Right:
    """What a role has to allow so that a request is not refused with 403."""

    group: str
    plural: str
    verb: str
    subresource: str = ""

    def __str__(self) -> str:
        group = f".{self.group}" if self.group else ""
        return f"{self.verb} {self.resource}{group}"

    @property
    def resource(self) -> str:
        """The resource as rules name it: `pods`, `pods/binding`."""
        return f"{self.plural}/{self.subresource}" if self.subresource else self.plural
