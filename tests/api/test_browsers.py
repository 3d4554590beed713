"""No page of another site writes here, or reads otherwise than by a link, not even by DNS rebinding: neither what the
service answers nor the embedded cluster.
"""

from collections.abc import Iterator

import pytest

from tests.api.raw_http import assert_refused, connected, head
from tests.kit.service import Service, serving
from tests.kit.tables import cases

POD = b'{"metadata": {"name": "csrf"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}'
PODS = "/api/v1/namespaces/default/pods"
READ = ["/", "/metrics", "/metrics/resources", "/v1/queue", "/healthz", "/api/v1/pods", "/openapi/v2", "/nothing"]
WRITTEN = ["/extender/filter", "/v1/whatif", "/ui/sign-in", "/ui/sign-out", PODS]


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with serving(schedule=False, allowed_hosts="Reprieve.kube-system.svc, other.example.") as service:
        yield service


def status(service: Service, *lines: str, body: bytes = b"") -> int:
    """The status of the answer to a request with exactly these lines before its body."""
    with connected(service.port) as connection:
        connection.send("\r\n".join([*lines, "Connection: close", "", ""]).encode() + body)
        answer = connection.answer()
    if answer.status in (400, 403, 415, 421):
        assert_refused(answer, answer.status)
    assert answer.headers["x-content-type-options"] == "nosniff"
    return answer.status


def posting(path: str, length: int, *more: str) -> list[str]:
    return [f"POST {path} HTTP/1.1", "Host: 127.0.0.1:8888", f"Content-Length: {length}", *more]


def names(service: Service) -> set[str]:
    return {item["metadata"]["name"] for item in service.client.get("/api/v1/pods").json()["items"]}


# Reading.


@pytest.mark.parametrize("path", READ)
@pytest.mark.parametrize(
    "host", ["evil.example", "rebound.test:8888", "localhost.evil.example", "127.0.0.1.evil.example", "LOCALHOST_", "1"]
)
def test_a_request_for_another_name_is_refused(service: Service, path: str, host: str) -> None:
    assert status(service, f"GET {path} HTTP/1.1", f"Host: {host}") == 421


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "10.9.8.7:80", "[::1]", "[fd00::7]:8888", "localhost", "LocalHost:8888", "localhost.",
        "reprieve.localhost",
        "reprieve.kube-system.svc", "reprieve.kube-system.svc.:80", "OTHER.example:9",
    ],
)  # fmt: skip
def test_addresses_loopback_names_and_configured_names_are_ours(service: Service, host: str) -> None:
    assert status(service, "GET /livez HTTP/1.1", f"Host: {host}") == 200


@cases(
    "hosts",
    ("none", []),
    ("two", ["Host: 127.0.0.1", "Host: 127.0.0.1"]),
    ("two that differ", ["Host: 127.0.0.1", "Host: evil.example"]),
    ("an empty one", ["Host:"]),
    ("a list", ["Host: 127.0.0.1, evil.example"]),
    ("with a user", ["Host: user@127.0.0.1"]),
    ("with a path", ["Host: 127.0.0.1/x"]),
    ("a port that is no number", ["Host: 127.0.0.1:port"]),
)
def test_a_request_has_exactly_one_host(service: Service, hosts: list[str]) -> None:
    assert status(service, "GET /livez HTTP/1.1", *hosts) == 400


def test_http_1_0_knows_no_host(service: Service) -> None:
    assert status(service, "GET /livez HTTP/1.0") == 200


FOREIGN = [
    pytest.param(["Sec-Fetch-Site: cross-site", "Origin: http://evil.example"], id="another site"),
    pytest.param(["Sec-Fetch-Site: same-site", "Origin: http://127.0.0.1:1"], id="another port of this host"),
    pytest.param(["Sec-Fetch-Site: cross-site"], id="another site that hides its origin"),
    pytest.param(["Sec-Fetch-Site: cross-site", "Origin: http://127.0.0.1:8888"], id="another site, of our name"),
    pytest.param(["Origin: http://evil.example"], id="another site, in a browser that says no more"),
    pytest.param(["Origin: null"], id="a page without an origin, such as a sandboxed frame"),
]
OURS = [
    pytest.param(["Sec-Fetch-Site: same-origin", "Origin: http://127.0.0.1:8888"], id="our page"),
    pytest.param(["Sec-Fetch-Site: none"], id="the user"),
    pytest.param(["Origin: http://127.0.0.1:8888"], id="our page, in a browser that says no more"),
    pytest.param([], id="no browser"),
]
LINK = ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"]


@pytest.mark.parametrize("caused_by", FOREIGN)
@pytest.mark.parametrize(
    "path",
    [
        *READ, "/v1/stream", "/v1/capacity?pod=default/web-0", "/api/v1/pods?watch=1", "/api/v1/pods?watch",
        "/api/v1/pods?w%61tch=1", "/api/v1/watch/pods",
    ],
)  # fmt: skip
def test_a_page_of_another_origin_reads_nothing(service: Service, path: str, caused_by: list[str]) -> None:
    for method in ("GET", "OPTIONS"):
        assert status(service, f"{method} {path} HTTP/1.1", "Host: 127.0.0.1:8888", *caused_by) == 403


@pytest.mark.parametrize("path", ["/", "/metrics", "/healthz", "/api/v1/pods", "/nothing"])
def test_a_page_of_another_origin_may_link_here(service: Service, path: str) -> None:
    linked = status(service, f"GET {path} HTTP/1.1", "Host: 127.0.0.1:8888", *LINK)

    assert linked == (404 if path == "/nothing" else 200)


@cases(
    "way",
    ("a request of a script", ["Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: document"]),
    ("a frame", ["Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"]),
    ("to nobody knows where", ["Sec-Fetch-Mode: navigate"]),
    ("in advance", [*LINK[1:], "Sec-Purpose: prefetch;prerender"]),
)
def test_what_is_no_link_is_refused(service: Service, way: list[str]) -> None:
    assert status(service, "GET / HTTP/1.1", "Host: 127.0.0.1:8888", "Sec-Fetch-Site: cross-site", *way) == 403


@pytest.mark.parametrize("caused_by", OURS)
@pytest.mark.parametrize("path", ["/v1/stream", "/api/v1/pods?watch=1", "/docs", "/v1/queue"])
def test_our_own_page_and_other_callers_read_and_follow(service: Service, path: str, caused_by: list[str]) -> None:
    headers = {"Host": "127.0.0.1:8888", **dict(header.split(": ") for header in caused_by)}
    with service.client.stream("GET", path, headers=headers) as answer:
        assert answer.status_code == 200


# Writing.


@pytest.mark.parametrize("path", WRITTEN)
@pytest.mark.parametrize("caused_by", FOREIGN)
def test_a_page_of_another_origin_may_not_write(service: Service, path: str, caused_by: list[str]) -> None:
    before = names(service)

    refused = status(service, *posting(path, len(POD), "Content-Type: application/json", *caused_by), body=POD)

    assert refused == 403
    assert names(service) == before


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_page_of_another_site_cannot_change_or_delete(service: Service, method: str) -> None:
    lines = [f"{method} {PODS}/web-0 HTTP/1.1", "Host: 127.0.0.1", "Content-Length: 0", "Origin: http://evil.example"]

    assert status(service, *lines) == 403


@pytest.mark.parametrize("caused_by", OURS)
def test_our_own_page_and_other_callers_may_write(service: Service, caused_by: list[str]) -> None:
    body = b'{"token": "x"}'
    lines = posting("/ui/sign-in", len(body), "Content-Type: application/json", *caused_by)

    assert status(service, *lines, body=body) == 204


# Bodies.


@pytest.mark.parametrize("path", WRITTEN)
@pytest.mark.parametrize("length", [f"Content-Length: {len(POD)}", "Transfer-Encoding: chunked"])
def test_a_body_has_a_type(service: Service, path: str, length: str) -> None:
    """A script may send a body without a type to any site, without the browser's asking that site first."""
    before = names(service)
    body = POD if "chunked" not in length else b"%x\r\n%s\r\n0\r\n\r\n" % (len(POD), POD)

    assert status(service, f"POST {path} HTTP/1.1", "Host: 127.0.0.1", length, body=body) == 415
    assert names(service) == before


def test_kubectl_may_send_one_without(service: Service) -> None:
    """`kubectl create --raw` does. A page cannot send this header to another site unasked."""
    lines = posting(PODS, len(POD), "User-Agent: kubectl/v1.36.0 (linux/amd64)")

    assert status(service, *lines, body=POD) == 201


@pytest.mark.parametrize(
    "media_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]
)
@pytest.mark.parametrize("path", ["/extender/filter", "/v1/whatif", "/ui/sign-in", PODS])
def test_a_form_is_no_json(service: Service, path: str, media_type: str) -> None:
    assert status(service, *posting(path, len(POD), f"Content-Type: {media_type}"), body=POD) == 415


def test_a_refused_body_is_not_taken_for_the_next_request(service: Service) -> None:
    with connected(service.port) as connection:
        connection.send(
            head(PODS, Host="evil.example", Content_Length=1000) + b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
        )

        assert_refused(connection.answer(), 421)
        assert connection.is_closed()
