"""Reads the bodies of requests into objects of the expected kind; refusals are in Go's words.

Upstream: apiserver/pkg/endpoints/handlers, create.go, rest.go, transformDecodeError; Go, encoding/json.
"""

from typing import Any, Final

from extender.rules import statuses
from extender.rules.api_resources import RESOURCES, Object
from extender.rules.schema import api_types
from extender.values.golang.json import JsonError, parse_json, plain
from extender.values.golang.schema import NO_TYPE_META, Struct, read_as, type_meta
from extender.values.golang.yaml import YamlError, read_yaml
from reprieve.cluster import limits
from reprieve.cluster.requests import protobuf_objects
from reprieve.cluster.requests.request_options import WriteOptions

JSON: Final = "application/json"
YAML: Final = "application/yaml"
MEDIA_TYPES: Final = (JSON, YAML, protobuf_objects.MEDIA_TYPE)

_SHOWN: Final = 30
_SCHEME: Final = '"pkg/api/legacyscheme/scheme.go:30"'


def parse(body: bytes, media_type: str = JSON) -> Any:
    """Returns the JSON value of a body in JSON, YAML or protobuf. Raises ValueError with Go's words."""
    if media_type == protobuf_objects.MEDIA_TYPE:
        return protobuf_objects.parse(body)
    text = body.decode(errors="replace")
    if media_type == YAML:
        try:
            return plain(read_yaml(text).value)
        except YamlError as error:
            raise ValueError(f"error converting YAML to JSON: {error}") from error
    return parse_json(text, max_depth=limits.API_BODY_DEPTH, keep_digits=False)


def typed(body: bytes, media_type: str, group: str, version: str, kind: str) -> Any:
    """Returns the JSON value of a body with an object of this kind, or without a kind. Raises ApiStatus 400."""
    expected = f"{group}/{version}" if group else version
    try:
        value = (
            protobuf_objects.parse(body, expected, kind)
            if media_type == protobuf_objects.MEDIA_TYPE
            else parse(body, media_type)
        )
    except protobuf_objects.BrokenObjectError as error:
        raise statuses.bad_request(
            f'{error.kind} in version "{error.version}" cannot be handled as a {kind}: {error}'
        ) from error
    except ValueError as error:
        prefix = "" if media_type == protobuf_objects.MEDIA_TYPE else NO_TYPE_META
        raise _unrecognized(kind, f"{prefix}{error}", body) from error
    try:
        found_version, found_kind = type_meta(value)
    except JsonError as error:
        raise _unrecognized(kind, str(error), body) from error
    found_version, found_kind = found_version or expected, found_kind or kind
    if (found_version, found_kind) == (expected, kind):
        return {} if value is None else value
    short = found_version.rpartition("/")[2]
    subject = f'{found_kind} in version "{short}" cannot be handled as a {kind}'
    if not _is_known(found_version, found_kind):
        raise statuses.bad_request(
            f'{subject}: no kind "{found_kind}" is registered for version "{found_version}" in scheme {_SCHEME}'
        )
    if found_kind != kind:
        to = group.partition(".")[0] or "core"
        raise statuses.bad_request(f"{subject}: converting ({short}.{found_kind}) to ({to}.{kind}): unknown conversion")
    raise statuses.bad_request(
        f"the API version in the data ({found_version}) does not match the expected API version ({expected})"
    )


def read(struct: Struct, raw: Any, write: WriteOptions, kind: str, version: str = "v1") -> Object:
    """Returns an object of a type. Unknown and repeated fields are refused or warned of, as the caller requests.

    Raises ApiStatus 400 if the value does not fit the type.
    """
    value: Object
    try:
        value, problems = read_as(struct, raw)
    except JsonError as error:
        raise statuses.undecodable(kind, version, str(error)) from error
    if problems and write.field_validation == "Strict":
        raise statuses.undecodable(kind, version, f"strict decoding error: {', '.join(problems)}")
    if write.field_validation == "Warn":
        write.warnings += problems
    return value


def _unrecognized(kind: str, why: str, body: bytes) -> statuses.ApiStatus:
    cut = body[:_SHOWN]
    summary = (cut.decode(errors="replace") if cut.startswith(b"{") else cut.hex()) + (
        " ..." if len(body) > _SHOWN else ""
    )
    return statuses.bad_request(
        f"the object provided is unrecognized (must be of type {kind}): {why} ({summary or '<empty>'})"
    )


def _is_known(api_version: str, kind: str) -> bool:
    group, _, version = api_version.rpartition("/")
    return api_types.find(group, version, kind) is not None or any(
        (resource.api_version, resource.kind) == (api_version, kind) for resource in RESOURCES
    )
