"""The refusals of an API server, with upstream's names, codes and words.

Upstream: apimachinery/pkg/api/errors/errors.go; apiserver/pkg/storage/errors.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, final

from extender.rules.api_resources import Object, Resource
from extender.values import limits
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


def details_of(resource: Resource, name: str, kind: str = "") -> dict[str, Any]:
    return {"name": name, "group": resource.group, "kind": kind or resource.plural}


def not_found(resource: Resource, name: str) -> ApiStatus:
    """404: the object does not exist. Upstream: NewNotFound."""
    return ApiStatus(404, "NotFound", f'{resource.qualified} "{name}" not found', details_of(resource, name))


def already_exists(resource: Resource, name: str) -> ApiStatus:
    """409: an object of this name exists. Upstream: NewAlreadyExists."""
    return ApiStatus(409, "AlreadyExists", f'{resource.qualified} "{name}" already exists', details_of(resource, name))


def undecodable(kind: str, version: str, why: str) -> ApiStatus:
    """400: the body has the expected kind and cannot be read. Upstream: handlers/rest.go, transformDecodeError."""
    return bad_request(f'{kind} in version "{version}" cannot be handled as a {kind}: {why}')


def forbidden(resource: Resource, name: str, why: str) -> ApiStatus:
    """403: an admission plugin refuses the object. Upstream: NewForbidden."""
    subject = f'{resource.qualified} "{name}" is forbidden' if name else f"{resource.qualified} is forbidden"
    return ApiStatus(403, "Forbidden", f"{subject}: {why}", details_of(resource, name))


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
        {"name": name, "group": group, "kind": kind, "causes": [error.as_cause() for error in errors]},
    )
