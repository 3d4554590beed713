"""A request as a value, and its subject: the resource, the object, the verb and the form of the answer.

Upstream: apiserver/pkg/endpoints, request/requestinfo.go; handlers/negotiation; munnerlyn/goautoneg.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final, Literal, cast, final, get_args

from extender.rules.api_resources import NAMESPACES, Resource, find, served
from extender.values.config.feature_gates import DEFAULT_FEATURES, FeatureGates
from reprieve.cluster import refusals
from reprieve.cluster.requests import request_options

_VERBS_OF_OBJECTS: Final = {"GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_VERBS_OF_COLLECTIONS: Final = {"GET": "list", "HEAD": "list", "POST": "create", "DELETE": "deletecollection"}


@final
@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request. The path is decoded and without the query; the names of headers are in lower case."""

    method: str
    path: str
    query: Mapping[str, Sequence[str]] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@final
@dataclass(frozen=True, slots=True)
class RequestInfo:
    """The subject of a request: a collection, an object, or a subresource, and the verb.

    Attributes:
        namespace: empty for all namespaces, and for kinds without any.
        verb: `get`, `list`, `create`, `update`, `patch`, `delete` or `deletecollection`; a watch is a `list`.
        is_watch: the path itself asks for a watch: `/api/v1/watch/pods`.
    """

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    verb: str = ""
    is_watch: bool = False


def request_info(
    request: Request, features: FeatureGates = DEFAULT_FEATURES, custom: tuple[Resource, ...] = ()
) -> RequestInfo | None:
    """Returns the subject of the request; None if its path names no resource, but perhaps a document.

    Raises ApiStatus 404 if the group and version are served, but not this path; 405 if the path lacks the method.
    """
    info = _of_path(request.path, features, custom)
    return None if info is None else replace(info, verb=_verb(request, info))


def _of_path(path: str, features: FeatureGates, custom: tuple[Resource, ...]) -> RequestInfo | None:
    match [part for part in path.split("/") if part]:
        case ["api", version, *rest]:
            group = ""
        case ["apis", group, version, *rest]:
            pass
        case _:
            return None
    if not rest or not any(
        (resource.group, resource.version) == (group, version) for resource in chain(served(features), custom)
    ):
        return None
    info = _below(group, version, rest, custom)
    if info is None or (info.resource.gate and info.resource not in served(features)):
        raise refusals.page_not_found()
    return info


def _below(group: str, version: str, parts: list[str], custom: tuple[Resource, ...]) -> RequestInfo | None:
    is_watch = len(parts) > 1 and parts[0] == "watch"
    if is_watch:
        parts = parts[1:]
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 2:
        # The third part may be a subresource of the namespace itself.
        if not group and len(parts) == 3 and NAMESPACES.subresource(parts[2]) is not None:
            return RequestInfo(NAMESPACES, "", parts[1], parts[2])
        namespace, parts = parts[1], parts[2:]
    resource = find(group, version, parts[0], custom)
    if resource is None or len(parts) > 3:
        return None
    if bool(namespace) != resource.namespaced and (namespace or len(parts) > 1):
        return None
    name, subresource = (*parts[1:], "", "")[:2]
    return RequestInfo(resource, namespace, name, subresource, is_watch=is_watch)


def _verb(request: Request, info: RequestInfo) -> str:
    if info.subresource and request.method == "POST" and info.name:
        verb = "create"
    else:
        verb = (_VERBS_OF_OBJECTS if info.name else _VERBS_OF_COLLECTIONS).get(request.method, "")
    offered = info.resource.verbs
    if info.subresource:
        below = info.resource.subresource(info.subresource)
        if below is None:
            raise refusals.page_not_found()
        offered = below.verbs
    lacks_namespace = verb == "create" and info.resource.namespaced and not info.namespace
    if verb not in offered or lacks_namespace:
        raise refusals.method_not_allowed()
    if info.is_watch or (verb == "get" and not info.subresource and request_options.flag(request.query, "watch")):
        return "list"
    return verb


JSON: Final = "application/json"
PRODUCED: Final = (JSON,)
META: Final = ("meta.k8s.io/v1", "meta.k8s.io/v1beta1")

Shape = Literal["", "Table", "PartialObjectMetadata", "PartialObjectMetadataList"]


@final
@dataclass(frozen=True, slots=True)
class Form:
    """The form of an answer: the kind into which objects are converted, if any, and its apiVersion."""

    shape: Shape = ""
    api_version: str = META[0]


AS_IT_IS: Final = Form()


def accepted_form(header: str) -> Form:
    """Returns the preferred form of the Accept header. Raises ApiStatus 406 if it has none that can be produced."""
    if not header:
        return AS_IT_IS
    for media_type, parameters in _clauses(header):
        form = _form(media_type, parameters)
        if form is not None:
            return form
    raise refusals.not_acceptable(PRODUCED)


def preferred_media_type(header: str, offered: Sequence[str]) -> str:
    """Returns the preferred media type of the Accept header, in doubt the first one offered.

    Raises ApiStatus 406 if the header accepts none of them.
    """
    for accepted, _ in _clauses(header or "*/*"):
        for media_type in offered:
            if accepted in (media_type, f"{media_type.partition('/')[0]}/*", "*/*", "*"):
                return media_type
    raise refusals.not_acceptable(offered)


def body_media_type(header: str, supported: Sequence[str], default: str = "") -> str:
    """Returns the media type of a body, without its parameters. Raises ApiStatus 415 if it is not supported."""
    media_type = header.partition(";")[0].strip().lower() or default
    if media_type not in supported:
        raise refusals.unsupported_media_type(supported)
    return media_type


def _form(media_type: str, parameters: Mapping[str, str]) -> Form | None:
    if (
        media_type not in (JSON, "application/*", "*/*")
        or parameters.get("stream", "watch") != "watch"
        or parameters.get("sv")
    ):
        return None
    if not {"as", "g", "v"} & set(parameters):
        return AS_IT_IS
    api_version = f"{parameters.get('g', '')}/{parameters.get('v', '')}"
    shape = parameters.get("as", "")
    if api_version not in META:
        return None
    return Form(cast(Shape, shape), api_version) if shape in get_args(Shape) and shape else None


def _clauses(header: str) -> list[tuple[str, dict[str, str]]]:
    """Returns the clauses of an Accept header by quality, the more specific ones first, then in their order."""
    clauses = []
    for place, clause in enumerate(header.split(",")):
        media_type, *rest = (part.strip() for part in clause.split(";"))
        parameters = {
            name.strip().lower(): value.strip().strip('"') for name, _, value in (part.partition("=") for part in rest)
        }
        quality = _quality(parameters.pop("q", "1"))
        clauses.append((-quality, media_type.count("*"), place, media_type.lower(), parameters))
    clauses.sort(key=lambda clause: clause[:3])
    return [(media_type, parameters) for *_, media_type, parameters in clauses]


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 1.0
