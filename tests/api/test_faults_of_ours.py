"""When the engine fails, callers learn an id, the log learns the rest, and nobody's data starts a line of the log."""

import logging
import re

import pytest

from api.documents.documentation import BINDING, BY_NAME, VICTIMS_BY_UID
from extender.values.klog.setup import TextFormatter
from extender.verbs.verbs import VerbError
from tests.api.fake_engines import FailingEngine
from tests.kit.service import assert_is_refusal, serving

SECRET = "s3cr3t\n2026-01-01 ERROR forged \x1b[31m"


def number_in(text: str) -> str:
    match = re.search(r"internal error, id ([0-9a-f]{12})", text)
    assert match, text
    return match[1]


def logged(caplog: pytest.LogCaptureFixture) -> str:
    formatter = TextFormatter()
    for record in caplog.records:
        record.exc_text = None  # what the formatter of the tests made of it
    return "\n".join(formatter.format(record) for record in caplog.records)


@pytest.mark.parametrize(("verb", "body"), [("filter", BY_NAME), ("bind", BINDING)])
def test_failing_verb_with_an_error_field_tells_the_id_of_the_log_entry(
    verb: str, body: object, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(lambda _: FailingEngine(RuntimeError(SECRET)), serve_bind=True) as service:
        answer = service.call(verb, body)

    assert answer.status_code == 200
    assert "s3cr3t" not in answer.text
    text = logged(caplog)
    assert f"id {number_in(answer.json()['Error'])}" in text
    assert "RuntimeError: s3cr3t\\n2026" in text
    assert "fake_engines.py" in text
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("path", "body"), [("prioritize", BY_NAME), ("preempt", VICTIMS_BY_UID), ("../v1/evaluate", {})]
)
def test_failing_route_without_an_error_field_answers_500_with_the_id(
    path: str, body: object, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(lambda _: FailingEngine(RuntimeError(SECRET))) as service:
        answer = service.call(path, body) if "v1" not in path else service.post("/v1/evaluate", body)

    assert_is_refusal(answer, 500)
    assert "s3cr3t" not in answer.text
    assert f"id {number_in(answer.json()['message'])}" in logged(caplog)


def test_error_of_the_engine_is_answered_in_the_form_of_each_verb(caplog: pytest.LogCaptureFixture) -> None:
    with serving(lambda _: FailingEngine(VerbError("no profile for this pod")), serve_bind=True) as service:
        filtered, prioritized = service.call("filter", BY_NAME), service.call("prioritize", BY_NAME)
        preempted, bound = service.call("preempt", VICTIMS_BY_UID), service.call("bind", BINDING)

    assert (filtered.status_code, filtered.json()["Error"]) == (200, "no profile for this pod")
    assert prioritized.json() == [{"Host": name, "Score": 0} for name in BY_NAME["NodeNames"]]
    assert_is_refusal(preempted, 503)
    assert (bound.status_code, bound.json()) == (200, {"Error": "no profile for this pod"})
    assert caplog.text.count("no profile for this pod") == 2


def test_an_error_of_any_length_fits_into_an_event() -> None:
    with serving(lambda _: FailingEngine(VerbError("x" * 5000))) as service:
        assert len(service.call("filter", BY_NAME).json()["Error"]) == 1024


@pytest.mark.parametrize(
    ("verb", "body"), [("filter", BY_NAME), ("prioritize", BY_NAME), ("preempt", VICTIMS_BY_UID), ("bind", BINDING)]
)
def test_while_the_engine_is_not_ready_calls_are_sent_away_at_once(verb: str, body: object) -> None:
    with serving(lambda _: FailingEngine(VerbError(""), is_ready=False), serve_bind=True) as service:
        answer = service.call(verb, body)
        health = service.client.get("/readyz"), service.client.get("/healthz"), service.client.get("/livez")

    assert_is_refusal(answer, 503)
    assert answer.headers["retry-after"] == "1"
    assert [answer.status_code for answer in health] == [503, 200, 200]
    assert health[0].text == (
        "[+]ping ok\n[-]sched-handler-sync failed: reason withheld\n[-]informer-sync failed: reason withheld\nreadyz "
        "check failed\n"
    )


def test_exception_is_logged_with_its_causes() -> None:
    try:
        try:
            raise KeyError("inner\nline")
        except KeyError as exc:
            raise ValueError("outer\x00" + "x" * 1000) from exc
    except ValueError as exc:
        record = logging.LogRecord(
            "api", logging.ERROR, "", 0, "it %s", ("went\nwrong",), (ValueError, exc, exc.__traceback__)
        )

    text = TextFormatter().format(record)

    assert "it went\\nwrong" in text
    assert "ValueError: outer\\x00xxx" in text
    assert "KeyError: 'inner\\nline'" in text
    assert len(text) < 2000
    assert all(line.startswith(("  ", "E")) for line in text.splitlines())
