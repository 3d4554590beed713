"""Admission: the part of an API server that what-ifs need. The assembly decides which API server it is."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from extender.values.objects.meta import Object


class Admission(Protocol):
    """An API server for the objects of one question: it sets defaults, and refuses what is wrong in its words."""

    def api_version_of(self, kind: str) -> str | None:
        """Returns the apiVersion under which objects of this kind are kept; None if they are not."""
        ...

    def is_namespaced(self, api_version: str, kind: str) -> bool | None:
        """Returns whether objects of this kind are in namespaces; None if they are not kept."""
        ...

    def why_undecodable(self, obj: Object) -> str:
        """Returns why the object has fields that no API server knows; empty if it has none."""
        ...

    def create(self, objects: Iterable[Object]) -> Sequence[str]:
        """Keeps the objects, which belong to the server afterwards. Returns its refusals: `Pod default/web: why`."""
        ...

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        """Returns an object as it is kept; None if there is none. A kind without namespaces takes an empty one."""
        ...


Admits = Callable[..., Admission]
"""Makes an empty API server for one question; may be called from any thread. Takes the `seed` of what it draws,
UIDs and names: what stays in one cluster needs different ones.
"""
