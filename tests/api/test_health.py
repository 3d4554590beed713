"""The health paths answer as those of Kubernetes' own components do."""

import pytest

from api.routes.health import answer_of
from tests.kit.service import Service, assert_is_refusal
from tests.kit.tables import cases


@pytest.mark.parametrize(
    "path", ["/healthz", "/livez", "/readyz", "/healthz/ping", "/readyz/informer-sync", "/livez?exclude=ping"]
)
def test_a_healthy_service_says_ok(example: Service, path: str) -> None:
    answer = example.client.get(path)

    assert (answer.status_code, answer.text) == (200, "ok")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"


@cases(
    "query, text",
    ("verbose", "verbose", "[+]ping ok\n[+]sched-handler-sync ok\n[+]informer-sync ok\nreadyz check passed\n"),
    (
        "excluded",
        "verbose&exclude=informer-sync",
        "[+]ping ok\n[+]sched-handler-sync ok\n[+]informer-sync excluded: ok\nreadyz check passed\n",
    ),
    (
        "unknown excluded",
        "verbose&exclude=b&exclude=a",
        "[+]ping ok\n[+]sched-handler-sync ok\n[+]informer-sync ok\n"
        'warn: some health checks cannot be excluded: no matches for "a","b"\nreadyz check passed\n',
    ),
)
def test_every_check_is_listed_on_request(example: Service, query: str, text: str) -> None:
    assert example.client.get(f"/readyz?{query}").text == text


@pytest.mark.parametrize("path", ["/healthz/nope", "/livez/informer-sync", "/healthz/", "/readyz/ping/x"])
def test_an_unknown_check_is_not_found(example: Service, path: str) -> None:
    assert_is_refusal(example.client.get(path), 404)


@pytest.mark.parametrize("path", ["*", "/", "/healthz/", "/readyz/ping/x", "/healthzx", "/x/ping"])
def test_no_other_path_is_taken_for_that_of_a_check(path: str) -> None:
    assert answer_of(path) is None
