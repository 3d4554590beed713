"""The existing objects as the rules see them, wherever they are stored."""

from collections.abc import Iterable
from typing import Protocol

from extender.rules.api_resources import Object, Resource


class Lookup(Protocol):
    """The existing objects. Those returned must not be changed."""

    def find(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """Returns an object without its kind and apiVersion; None if there is none."""
        ...

    def objects(self, resource: Resource) -> Iterable[Object]:
        """Returns all objects of a resource, in the order of their names."""
        ...
