"""What each kind of answer means for the caller."""

import json

import pytest

from extender.client import errors

ASKED = "GET /api/v1/pods"


def status(code: int, reason: str, **more: object) -> bytes:
    return json.dumps(
        {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "words", "reason": reason, "code": code}
        | more
    ).encode()


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (400, "BadRequest", errors.BadRequest),
        (401, "Unauthorized", errors.Unauthorized),
        (403, "Forbidden", errors.Forbidden),
        (405, "MethodNotAllowed", errors.BadRequest),
        (409, "AlreadyExists", errors.AlreadyExists),
        (409, "Conflict", errors.Conflict),
        (410, "Expired", errors.Gone),
        (410, "Gone", errors.Gone),
        (413, "RequestEntityTooLarge", errors.BadRequest),
        (415, "UnsupportedMediaType", errors.BadRequest),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.TooManyRequests),
        (500, "InternalError", errors.ServerError),
        (500, "ServerTimeout", errors.ServerTimeout),
        (503, "ServiceUnavailable", errors.ServerError),
        (504, "Timeout", errors.ServerTimeout),
        (409, "SomethingNew", errors.Conflict),
        (599, "", errors.ServerError),
    ],
)
def test_a_status_is_the_error_of_its_reason_and_else_of_its_code(code: int, reason: str, kind: type[errors.ApiError]):
    error = errors.from_response(ASKED, code, status(code, reason))

    assert type(error) is kind
    assert (error.status, error.reason, error.message, str(error)) == (code, reason, "words", "words")


@pytest.mark.parametrize(
    ("details", "kind"),
    [
        pytest.param({"name": "web", "kind": "pods"}, errors.NotFound, id="of an object"),
        pytest.param({"kind": "pods"}, errors.NotServed, id="of a resource"),
        pytest.param({}, errors.NotServed, id="of nothing"),
    ],
)
def test_an_object_that_is_not_there_is_named(details: dict[str, str], kind: type[errors.ApiError]):
    """A server that does not know the API answers 404 too, and its word is none about the object."""
    assert type(errors.from_response(ASKED, 404, status(404, "NotFound", details=details))) is kind


def test_resource_version_ahead_of_the_server_is_recognized_by_its_cause():
    body = status(
        504,
        "Timeout",
        details={"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large"}], "retryAfterSeconds": 1},
    )

    error = errors.from_response(ASKED, 504, body)

    assert isinstance(error, errors.TooLargeResourceVersion)
    assert error.retry_after == 1


def test_the_status_line_goes_before_the_code_in_the_body():
    error = errors.from_response(ASKED, 503, status(409, ""))

    assert type(error) is errors.ServerError
    assert error.status == 503


def test_the_header_goes_before_the_seconds_in_the_status():
    body = status(429, "TooManyRequests", details={"retryAfterSeconds": 1})

    assert errors.from_response(ASKED, 429, body, retry_after=7).retry_after == 7


def test_the_details_come_with_the_error():
    causes = [
        {"field": "spec", "message": "Required value", "reason": "FieldValueRequired"},
        "a cause that is no object",
    ]

    error = errors.from_response(ASKED, 422, status(422, "Invalid", details={"causes": causes}))

    assert type(error) is errors.Invalid
    assert error.details["causes"] == causes


def test_error_event_of_a_watch_is_classified_by_its_status():
    error = errors.from_status(
        {"kind": "Status", "status": "Failure", "message": "too old", "reason": "Expired", "code": 410}
    )

    assert isinstance(error, errors.Gone)
    assert error.status == 410


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        pytest.param(404, errors.NotServed, id="404 page not found says nothing about an object"),
        pytest.param(409, errors.NotKubernetes, id="409"),
        pytest.param(410, errors.NotKubernetes, id="410"),
        pytest.param(302, errors.NotKubernetes, id="a redirection"),
        pytest.param(401, errors.Unauthorized, id="401"),
        pytest.param(403, errors.Forbidden, id="403"),
        pytest.param(429, errors.TooManyRequests, id="429"),
        pytest.param(502, errors.ServerError, id="502"),
        pytest.param(504, errors.ServerTimeout, id="504"),
        pytest.param(418, errors.BadRequest, id="418"),
    ],
)
@pytest.mark.parametrize("body", [b"", b"404 page not found\n", b"<html>", b'{"kind":"Pod"}', b'{"kind":7}', b"\xff"])
def test_error_without_a_status_object_says_nothing_about_the_object(
    code: int, kind: type[errors.ApiError], body: bytes
):
    assert type(errors.from_response(ASKED, code, body)) is kind


def test_message_of_a_proxy_is_shortened_to_one_plain_line():
    error = errors.from_response(ASKED, 502, b"<html>\n\x1b[31m" + b"x" * 10_000)

    assert "\n" not in str(error)
    assert "\x1b" not in str(error)
    assert len(str(error)) < 400


@pytest.mark.parametrize(
    "body",
    [
        b'{"kind":"Status","code":"four"}',
        b'{"kind":"Status","details":{"causes":7}}',
        b'{"kind":"Status","details":{"retryAfterSeconds":"x"}}',
    ],
)
def test_a_status_of_the_wrong_shape_is_still_an_error(body: bytes):
    assert isinstance(errors.from_response(ASKED, 500, body), errors.ServerError)


@pytest.mark.parametrize(
    ("kind", "may_have_happened"),
    [
        (errors.Unreachable, False),
        (errors.Conflict, False),
        (errors.TooManyRequests, False),
        (errors.NoAnswer, True),
        (errors.NotKubernetes, True),
        (errors.ServerError, True),
        (errors.ServerTimeout, True),
    ],
)
def test_after_a_failed_write_it_is_known_whether_it_may_have_happened(
    kind: type[errors.ApiError], may_have_happened: bool
):
    assert kind.may_have_happened is may_have_happened
