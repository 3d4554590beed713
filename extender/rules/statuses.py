"""The refusals of an API server, with upstream's names, codes and words.

Upstream: apimachinery/pkg/api/errors/errors.go; apiserver/pkg/storage/errors.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, final

from extender.rules.api_resources import Object, Resource
from extender.values import limits
from extender.values.golang import field_errors
from extender.values.golang.field_errors import FieldError


@final
class ApiStatus(Exception):  # noqa: N818 - an answer, not an error of ours
    """The request is refused with a metav1.Status.

    Attributes:
        reason: the machine-readable reason; may be empty.
        details: as in metav1.StatusDetails, without empty fields; None if the answer has none.
        headers: further headers of the answer.
        metadata: a metav1.ListMeta; it is empty unless a list that has expired can be continued.
    """

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code: Final = code
        self.reason: Final = reason
        self.message: Final = message
        self.details: Final = details
        self.headers: Final = dict(headers or {})
        self.metadata: Final = dict(metadata or {})

    def as_object(self) -> Object:
        status: Object = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = {name: value for name, value in self.details.items() if value}
        return status | {"code": self.code}


def success(code: int, details: Mapping[str, Any] | None = None) -> Object:
    """Returns the metav1.Status of an action that has nothing else to show."""
    status: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details is not None:
        status["details"] = {name: value for name, value in details.items() if value}
    return status if code == 200 else status | {"code": code}


def _details(resource: Resource, name: str, kind: str = "") -> dict[str, Any]:
    return {"name": name, "group": resource.group, "kind": kind or resource.plural}


def not_found(resource: Resource, name: str) -> ApiStatus:
    """404: the object does not exist. Upstream: NewNotFound."""
    return ApiStatus(404, "NotFound", f'{resource.qualified} "{name}" not found', _details(resource, name))


def page_not_found() -> ApiStatus:
    """404: nothing is served at this path, or of this group, version and plural. Upstream: NewGenericServerResponse."""
    return ApiStatus(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(resource: Resource, name: str) -> ApiStatus:
    """409: an object of this name exists. Upstream: NewAlreadyExists."""
    return ApiStatus(409, "AlreadyExists", f'{resource.qualified} "{name}" already exists', _details(resource, name))


def generate_name_conflict(resource: Resource, name: str) -> ApiStatus:
    """409: all generated names existed already. Upstream: NewGenerateNameConflict."""
    message = (
        f'{resource.qualified} "{name}" already exists, the server was not able to generate a unique name for the '
        "object"
    )
    return ApiStatus(
        409, "AlreadyExists", message, _details(resource, name) | {"retryAfterSeconds": 1}, {"Retry-After": "1"}
    )


MODIFIED: Final = "the object has been modified; please apply your changes to the latest version and try again"
"""Upstream: registry/generic/registry/store.go, OptimisticLockErrorMsg."""


def conflict(resource: Resource, name: str, why: str = MODIFIED, *, subresource: str = "", kind: str = "") -> ApiStatus:
    """409: the object has changed, or a precondition fails. `kind` replaces the plural. Upstream: NewConflict."""
    plural = kind or (f"{resource.plural}/{subresource}" if subresource else resource.plural)
    qualified = f"{plural}.{resource.group}" if resource.group else plural
    message = f'Operation cannot be fulfilled on {qualified} "{name}": {why}'
    return ApiStatus(409, "Conflict", message, _details(resource, name, plural))


_PLACES: Final = {"nodes": "minions", "services": "services/specs", "replicationcontrollers": "controllers"}
"""The names under which upstream keeps kinds that it does not keep under their plural."""


def wrong_object(resource: Resource, key: str, name: str, field: str, wanted: str, found: str) -> ApiStatus:
    """409: the UID or ResourceVersion is another one. Upstream: Preconditions.Check, NewInvalidObjError."""
    place = f"/registry/{_PLACES.get(resource.qualified, resource.plural)}/{key}"
    error = (
        f"StorageError: invalid object, Code: 4, Key: {place}, ResourceVersion: 0, AdditionalErrorMsg: Precondition "
        f"failed: {field} in precondition: {wanted}, {field} in object meta: {found}"
    )
    return conflict(resource, name, error)


def version_required(resource: Resource, name: str) -> ApiStatus:
    """422: an update of this kind has to say its resourceVersion. Upstream: registry/store.go, Update."""
    # Upstream has no better kind at hand than the plural.
    error = field_errors.invalid("metadata.resourceVersion", 0, "must be specified for an update")
    return invalid(resource.group, resource.plural, name, [error])


def undecodable(kind: str, version: str, why: str) -> ApiStatus:
    """400: the body has the expected kind and cannot be read. Upstream: handlers/rest.go, transformDecodeError."""
    return bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {why}')


def forbidden(resource: Resource, name: str, why: str) -> ApiStatus:
    """403: an admission plugin refuses the object. Upstream: NewForbidden."""
    subject = f'{resource.qualified} "{name}" is forbidden' if name else f"{resource.qualified} is forbidden"
    return ApiStatus(403, "Forbidden", f"{subject}: {why}", _details(resource, name))


def bad_request(message: str) -> ApiStatus:
    """400: the request cannot be understood. Upstream: NewBadRequest."""
    return ApiStatus(400, "BadRequest", message)


def invalid(group: str, kind: str, name: str, errors: Sequence[FieldError]) -> ApiStatus:
    """422: fields of the object are wrong. Upstream, which lists all errors: NewInvalid."""
    errors = errors[: limits.ERRORS_OF_OBJECT]
    # Upstream prints an error that several rules found only once, but lists every cause.
    texts = list(dict.fromkeys(map(str, errors)))
    qualified = f"{kind}.{group}" if group else kind
    message = f'{qualified} "{name}" is invalid'
    if texts:
        message += f": {texts[0]}" if len(texts) == 1 else f": [{', '.join(texts)}]"
    return ApiStatus(
        422,
        "Invalid",
        message,
        {"name": name, "group": group, "kind": kind, "causes": [each.as_cause() for each in errors]},
    )


def expired(message: str, *, continue_token: str = "") -> ApiStatus:
    """410: the resourceVersion is forgotten; with the token a list goes on from now. Upstream: NewResourceExpired."""
    return ApiStatus(410, "Expired", message, metadata={"continue": continue_token} if continue_token else None)


def too_large_resource_version(asked: int, current: int) -> ApiStatus:
    """504: the resourceVersion does not exist yet. Upstream: storage.NewTooLargeResourceVersionError."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
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
