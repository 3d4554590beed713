"""The resources that CustomResourceDefinitions define. Schemas are not checked, and versions not converted.

Upstream: apiextensions-apiserver/pkg, apis/apiextensions/v1/types.go; apiserver/customresource_handler.go.
"""

from functools import lru_cache
from typing import Final

from extender.rules.api_resources import Resource, Subresource
from extender.values.objects import decoding
from extender.values.objects.meta import ApiObject

_REMEMBERED: Final = 1024


class _Names(ApiObject, frozen=True):
    plural: str
    kind: str
    singular: str = ""
    short_names: list[str] = []  # noqa: RUF012 - msgspec copies empty defaults
    categories: list[str] = []  # noqa: RUF012


class _Subresources(ApiObject, frozen=True):
    status: dict[str, object] | None = None


class _Version(ApiObject, frozen=True):
    name: str
    served: bool = False
    subresources: _Subresources = _Subresources()


class _Spec(ApiObject, frozen=True):
    group: str
    names: _Names
    scope: str
    versions: list[_Version]


class Definition(ApiObject, frozen=True):
    """A CustomResourceDefinition, without its schemas."""

    spec: _Spec


@lru_cache(maxsize=_REMEMBERED)
def resources_of(definition: bytes) -> tuple[Resource, ...]:
    """Returns a resource for each served version. Cached, since a schema may have some 100 KB."""
    try:
        spec = decoding.decode(Definition, definition).spec
    except decoding.DecodeError:
        return ()  # of a dump
    names = spec.names
    return tuple(
        Resource(
            spec.group,
            version.name,
            names.plural,
            names.singular or names.kind.lower(),
            names.kind,
            spec.scope == "Namespaced",
            tuple(names.short_names),
            tuple(names.categories),
            subresources=(Subresource("status", names.kind),) if version.subresources.status is not None else (),
            needs_version=True,
            is_typed=False,
            is_inert=True,
            is_custom=True,
        )
        for version in spec.versions
        if version.served
    )
