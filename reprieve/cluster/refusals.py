"""The refusals of a server, about requests, versions and bodies, with upstream's names, codes and words.

Upstream: apimachinery/pkg/api/errors/errors.go; apiserver/pkg/storage/errors.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from extender.rules.api_resources import Object, Resource
from extender.rules.statuses import ApiStatus, details_of, invalid
from extender.values.golang import field_errors


def success(code: int, details: Mapping[str, Any] | None = None) -> Object:
    """Returns the metav1.Status of an action without another result."""
    status: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details is not None:
        status["details"] = {name: value for name, value in details.items() if value}
    return status if code == 200 else status | {"code": code}


def page_not_found() -> ApiStatus:
    """404: nothing is served at this path, or of this group, version and plural. Upstream: NewGenericServerResponse."""
    return ApiStatus(404, "NotFound", "the server could not find the requested resource", {})


def generate_name_conflict(resource: Resource, name: str) -> ApiStatus:
    """409: all generated names existed already. Upstream: NewGenerateNameConflict."""
    message = (
        f'{resource.qualified} "{name}" already exists, the server was not able to generate a unique name for the '
        "object"
    )
    return ApiStatus(
        409, "AlreadyExists", message, details_of(resource, name) | {"retryAfterSeconds": 1}, {"Retry-After": "1"}
    )


MODIFIED: Final = "the object has been modified; please apply your changes to the latest version and try again"
"""Upstream: registry/generic/registry/store.go, OptimisticLockErrorMsg."""


def conflict(resource: Resource, name: str, why: str = MODIFIED, *, subresource: str = "", kind: str = "") -> ApiStatus:
    """409: the object has changed, or a precondition fails. `kind` replaces the plural. Upstream: NewConflict."""
    plural = kind or (f"{resource.plural}/{subresource}" if subresource else resource.plural)
    qualified = f"{plural}.{resource.group}" if resource.group else plural
    message = f'Operation cannot be fulfilled on {qualified} "{name}": {why}'
    return ApiStatus(409, "Conflict", message, details_of(resource, name, plural))


_PLACES: Final = {"nodes": "minions", "services": "services/specs", "replicationcontrollers": "controllers"}
"""The kinds that upstream stores under another name than their plural."""


def wrong_object(resource: Resource, key: str, name: str, field: str, expected: str, actual: str) -> ApiStatus:
    """409: the UID or ResourceVersion is another one. Upstream: Preconditions.Check, NewInvalidObjError."""
    place = f"/registry/{_PLACES.get(resource.qualified, resource.plural)}/{key}"
    error = (
        f"StorageError: invalid object, Code: 4, Key: {place}, ResourceVersion: 0, AdditionalErrorMsg: Precondition "
        f"failed: {field} in precondition: {expected}, {field} in object meta: {actual}"
    )
    return conflict(resource, name, error)


def version_required(resource: Resource, name: str) -> ApiStatus:
    """422: an update of this kind has to say its resourceVersion. Upstream: registry/store.go, Update."""
    # Upstream has no better kind at hand than the plural.
    error = field_errors.invalid("metadata.resourceVersion", 0, "must be specified for an update")
    return invalid(resource.group, resource.plural, name, [error])


def expired(message: str, *, continue_token: str = "") -> ApiStatus:
    """410: the resourceVersion is forgotten; with the token a list continues now. Upstream: NewResourceExpired."""
    return ApiStatus(410, "Expired", message, metadata={"continue": continue_token} if continue_token else None)


def too_large_resource_version(version: int, current: int) -> ApiStatus:
    """504: the resourceVersion does not exist yet. Upstream: storage.NewTooLargeResourceVersionError."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    message = f"Timeout: Too large resource version: {version}, current: {current}"
    return ApiStatus(504, "Timeout", message, {"causes": [cause], "retryAfterSeconds": 1}, {"Retry-After": "1"})


def too_many_requests(message: str, retry_after: int, causes: Sequence[Mapping[str, str]] = ()) -> ApiStatus:
    """429: the request may succeed later. Upstream: NewTooManyRequests."""
    details = {"causes": [dict(cause) for cause in causes], "retryAfterSeconds": retry_after}
    return ApiStatus(
        429, "TooManyRequests", message, details, {"Retry-After": str(retry_after)} if retry_after else None
    )


def method_not_allowed() -> ApiStatus:
    """405: the path does not know the method. Upstream: NewGenericServerResponse."""
    return ApiStatus(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def not_acceptable(accepted: Sequence[str]) -> ApiStatus:
    """406: the caller accepts none of the forms that can be produced. Upstream: negotiation.NewNotAcceptableError."""
    return ApiStatus(406, "NotAcceptable", f"only the following media types are accepted: {', '.join(accepted)}")


def unsupported_media_type(accepted: Sequence[str]) -> ApiStatus:
    """415: the body is in a form that cannot be read. Upstream: negotiation.NewUnsupportedMediaTypeError."""
    message = f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    return ApiStatus(415, "UnsupportedMediaType", message)


def too_large_body(limit: int) -> ApiStatus:
    """413: the body is too long. Upstream: NewRequestEntityTooLargeError."""
    return ApiStatus(413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit}")


def too_large_object() -> ApiStatus:
    """500: the object does not fit into a request to the store. Upstream: etcd, ErrGRPCRequestTooLarge."""
    return ApiStatus(500, "", "etcdserver: request is too large")


def internal_error(message: str) -> ApiStatus:
    """500: the request failed through no fault of the caller. Upstream: NewInternalError."""
    return ApiStatus(500, "InternalError", f"Internal error occurred: {message}", {"causes": [{"message": message}]})
