"""The OpenAPI documents: versions 2 and 3 in JSON, and version 2 in protobuf.

Upstream: k8s.io/kube-openapi/pkg/handler, handler3.
"""

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import orjson

from extender import KUBERNETES_VERSION
from extender.rules.api_resources import Resource, served
from extender.rules.schema.api_types import lookup
from extender.values.config.feature_gates import DEFAULT_FEATURES, FeatureGates
from reprieve.cluster.requests.request_info import JSON, preferred_media_type
from reprieve.cluster.responses.openapi import openapi_protobuf, operations, schemas

_INDEX: Final = "/openapi/v3"
_OLD: Final = "/openapi/v2"
_TITLE: Final = {"title": "Kubernetes", "version": KUBERNETES_VERSION}
_TYPE_NAMES: Final = ("Status", "DeleteOptions")


def answer(path: str, accept: str = "", features: FeatureGates = DEFAULT_FEATURES) -> tuple[str, bytes] | None:
    """Returns the media type and the document at a path; None if there is none.

    Raises ApiStatus 406 if the Accept header has none of the document's forms.
    """
    if path == _OLD:
        form = preferred_media_type(accept, (JSON, *openapi_protobuf.MEDIA_TYPES))
        if form == JSON:
            return form, _version_2(features)
        return openapi_protobuf.MEDIA_TYPES[-1], _version_2_in_protobuf(features)
    if path.rstrip("/") == _INDEX:
        document = _index(features)
    else:
        group_version = path.removeprefix(f"{_INDEX}/")
        if group_version not in _group_versions(features):
            return None
        document = _version_3(group_version, features)
    return preferred_media_type(accept, (JSON,)), document


@lru_cache(maxsize=1)
def _group_versions(features: FeatureGates) -> Mapping[str, tuple[Resource, ...]]:
    """Returns the resources of each group and version, by its path below the root."""
    resources_by_path: dict[str, list[Resource]] = {}
    for resource in served(features):
        path = f"apis/{resource.api_version}" if resource.group else f"api/{resource.version}"
        resources_by_path.setdefault(path, []).append(resource)
    return {path: tuple(resources) for path, resources in resources_by_path.items()}


@lru_cache(maxsize=1)
def _index(features: FeatureGates) -> bytes:
    places = {}
    for path in _group_versions(features):
        digest = hashlib.sha512(_version_3(path, features)).hexdigest().upper()
        places[path] = {"serverRelativeURL": f"{_INDEX}/{path}?hash={digest}"}
    return orjson.dumps({"paths": places})


@lru_cache(maxsize=32)
def _version_3(group_version: str, features: FeatureGates) -> bytes:
    resources = _group_versions(features)[group_version]
    document = {
        "openapi": "3.0.0",
        "info": _TITLE,
        "paths": operations.paths(resources, schemas.VERSION_3),
        "components": {"schemas": _definitions(resources, schemas.VERSION_3)},
    }
    return orjson.dumps(document)


@lru_cache(maxsize=1)
def _version_2(features: FeatureGates) -> bytes:
    return orjson.dumps(_document_2(features))


@lru_cache(maxsize=1)
def _version_2_in_protobuf(features: FeatureGates) -> bytes:
    return openapi_protobuf.encoded(_document_2(features))


def _document_2(features: FeatureGates) -> dict[str, Any]:
    resources = served(features)
    return {
        "swagger": "2.0",
        "info": _TITLE,
        "paths": operations.paths(resources, schemas.VERSION_2),
        "definitions": _definitions(resources, schemas.VERSION_2),
    }


def _definitions(resources: tuple[Resource, ...], version: int) -> dict[str, Any]:
    listed = {(resource.group, resource.version, resource.kind) for resource in resources if resource.is_stored}
    kinds = listed | {("", "v1", name) for name in _TYPE_NAMES}
    kinds |= {kind for resource in resources for kind in resource.kinds}
    definitions = schemas.basics(version)
    for kind in sorted(kinds):
        for struct in schemas.mentioned(lookup(*kind)):
            definitions.setdefault(struct.name, schemas.definition(struct, version))
        group, its_version, name = kind
        definitions[lookup(*kind).name]["x-kubernetes-group-version-kind"] = [
            {"group": group, "kind": name, "version": its_version}
        ]
        if kind in listed:
            definitions[f"{lookup(*kind).name}List"] = _list(kind, version)
    return dict(sorted(definitions.items()))


def _list(kind: tuple[str, str, str], version: int) -> dict[str, Any]:
    group, its_version, name = kind
    return {
        "description": f"A list of objects of kind {name}.",
        "type": "object",
        "properties": {
            "apiVersion": {
                "type": "string",
                "description": "The group and version of the schema that this object follows.",
            },
            "items": {
                "type": "array",
                "items": schemas.reference(lookup(*kind).name, version),
                "description": "The objects.",
            },
            "kind": {"type": "string", "description": "What kind of object this is."},
            "metadata": schemas.reference(schemas.LIST_META, version),
        },
        "required": ["items"],
        "x-kubernetes-group-version-kind": [{"group": group, "kind": f"{name}List", "version": its_version}],
    }
