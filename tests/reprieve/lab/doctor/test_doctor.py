"""The doctor finds what is wrong with an extender, by what kube-scheduler would make of it, and finds nothing in one
that is well.
"""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from api.cli import app
from tests.api.in_process import configured, reprieve
from tests.kit.service import Service, serving as serving_reprieve
from tests.reprieve.lab.doctor.sample_extender import SampleExtender, serving

PLANTED = {
    "preempt is not routed": ("preempt", "nothing answers"),
    "wrong form": ("filter", "reads that as no node at all"),
    "strangers": ("filter", "'master-0' was not asked for"),
    "FailedNodes is a list": ("filter", "FailedNodes"),
    "null crashes": ("filter", "status 500"),
    "remembers": ("filter", "another set of nodes passed"),
    "numbers are floats": ("filter", "came back as"),
    "body limit": ("filter", "status 400"),
    "slow": ("filter", "1.2"),
    "redirects": ("filter", "a redirect"),
    "scores are fractions": ("prioritize", "of type int64"),
    "takes all victims back": ("preempt", "expected at least one victim pod"),
    "null for no victims": ("preempt", "are null: kube-scheduler crashes"),
    "preempt crashes on no victims": ("preempt", "status 500"),
    "answers victims in full": ("preempt", "NodeNameToMetaVictims is not"),
    "invents victims": ("preempt", "'somebody'"),
    "negative violations": ("preempt", "-1"),
    "binds what is not there": ("bind", "does not exist"),
}


def findings(*arguments: str) -> tuple[int, list[dict[str, str]]]:
    result = CliRunner().invoke(app, ["doctor", *arguments, "-o", "json"])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return result.exit_code, [finding for report in json.loads(result.stdout) for finding in report["findings"]]


def test_an_extender_that_is_well_is_found_well() -> None:
    with serving(SampleExtender()) as url:
        code, results = findings(url)

    assert code == 0
    assert [finding for finding in results if finding["grade"] == "bad"] == []
    assert {finding["verb"] for finding in results} == {"", "filter", "prioritize", "preempt", "bind"}


@pytest.mark.parametrize("form", ["full", "names"])
@pytest.mark.parametrize("passes_on", [True, False])
def test_an_extender_may_pass_a_node_without_victims_on_or_leave_it_out(passes_on: bool, form: str) -> None:
    with serving(SampleExtender(passes_on=passes_on)) as url:
        code, results = findings(url, "--form", form, "--verbs", "preempt")

    assert code == 0
    assert {
        finding["check"]: finding["grade"] for finding in results if finding["check"].startswith("takes candidates")
    } == {"takes candidates without victims": "ok", "takes candidates whose victims are null": "ok"}


def test_a_field_that_the_protocol_does_not_have_is_a_warning_because_kube_scheduler_ignores_it() -> None:
    with serving(SampleExtender("misspells a field")) as url:
        code, results = findings(url, "--form", "names", "--verbs", "filter")

    (schema,) = [finding for finding in results if finding["check"] == "is valid by the schema of the protocol"]
    assert (code, schema["grade"]) == (0, "warning")
    assert "'FailedNode' was unexpected" in schema["detail"]


def test_the_answers_of_an_extender_that_is_well_are_valid_by_the_schema_in_either_form() -> None:
    for form in ("full", "names"):
        with serving(SampleExtender()) as url:
            _, results = findings(url, "--form", form)
        valid = [
            finding["verb"]
            for finding in results
            if finding["check"] == "is valid by the schema of the protocol" and finding["grade"] == "ok"
        ]
        assert valid == ["filter", "prioritize", "preempt", "bind"]


@pytest.mark.parametrize("defect", PLANTED)
def test_a_planted_defect_is_found(defect: str) -> None:
    verb, words = PLANTED[defect]

    with serving(SampleExtender(defect)) as url:
        code, results = findings(url, "--form", "full", "--timeout", "1", "--verbs", verb)

    wrong = [finding for finding in results if finding["grade"] == "bad"]
    assert code == 1
    assert any(words in finding["detail"] for finding in wrong), wrong
    assert all(finding["advice"] for finding in wrong)


def test_scores_beyond_10_are_warned_of_because_they_count() -> None:
    with serving(SampleExtender("scores beyond 10")) as url:
        code, results = findings(url, "--form", "full", "--verbs", "prioritize")

    assert code == 0
    warned, by_schema = sorted((row for row in results if row["grade"] == "warning"), key=lambda row: row["check"])
    assert "100 is greater than the maximum of 10" in by_schema["detail"]
    assert warned["check"] == "gives scores from 0 to 10"
    assert warned["detail"].startswith("100 for 'doctor-node-1'")


def test_a_configuration_that_works_with_a_warning_is_named(tmp_path: Path) -> None:
    with serving(SampleExtender()) as url:
        extender = f"{{urlPrefix: '{url}', filterVerb: filter, httpTimeout: 1m, enableHTTPS: true}}"

        _, results = findings("--config", configured(tmp_path, f"extenders: [{extender}]\n"))

    warned = [finding["detail"] for finding in results if finding["check"] == "is configured safely"]
    assert [detail.partition(": ")[0] for detail in warned] == ["httpTimeout", "enableHTTPS"]


def test_reprieve_itself_is_well(example: Service) -> None:
    code, results = findings(f"http://127.0.0.1:{example.port}/extender", "--nodes", "node-a1,node-a2")

    assert code == 0
    assert [finding for finding in results if finding["grade"] == "bad"] == []


@pytest.mark.parametrize(("nodes", "exit_code"), [(["--nodes", "node-a1"], 0), ([], 1)], ids=["real", "made up"])
def test_victims_may_be_added_on_nodes_that_exist(nodes: list[str], exit_code: int) -> None:
    with serving(SampleExtender("adds victims")) as url:
        code, results = findings(url, "--form", "names", "--verbs", "preempt", *nodes)

    assert code == exit_code
    assert any("'somebody'" in finding["detail"] for finding in results if finding["grade"] == "bad") == bool(exit_code)


ASSUMED = "keeps nodes whose victims are not bound yet"


@pytest.mark.parametrize("form", ["full", "names"])
def test_an_extender_that_leaves_out_nodes_of_assumed_victims_is_warned_of(form: str) -> None:
    with serving(SampleExtender("knows bound pods alone")) as url:
        code, results = findings(url, "--form", form, "--verbs", "preempt", "--nodes", "node-a1")

    (finding,) = (finding for finding in results if finding["check"] == ASSUMED)
    assert (code, finding["grade"]) == (0, "warning")
    assert finding["detail"] == "'node-a1' is left out, on which kube-scheduler has assumed its victim"
    assert "Permit" in finding["advice"]


@pytest.mark.parametrize("form", ["full", "names"])
def test_reprieve_keeps_nodes_of_assumed_victims(example: Service, form: str) -> None:
    url = f"http://127.0.0.1:{example.port}/extender"
    _, results = findings(url, "--nodes", "node-a1,node-a2", "--form", form, "--verbs", "preempt")

    assert [finding["grade"] for finding in results if finding["check"] == ASSUMED] == ["ok"]


def test_on_nodes_that_do_not_exist_assumed_victims_are_not_asked_about() -> None:
    with serving(SampleExtender("knows bound pods alone")) as url:
        _, results = findings(url, "--verbs", "preempt", "--form", "names")

    assert [finding["grade"] for finding in results if finding["check"] == ASSUMED] == ["skipped"]


def test_a_verb_that_no_configuration_asks_for_may_be_missing() -> None:
    with serving_reprieve(schedule=False) as service:
        url = f"http://127.0.0.1:{service.port}/extender"

        code, results = findings(url, "--form", "names", "--nodes", "node-a1,node-a2")
        bind_code, _ = findings(url, "--form", "names", "--verbs", "bind")
        path, nothing = findings(f"http://127.0.0.1:{service.port}/nowhere", "--form", "names")

    assert (code, [finding["verb"] for finding in results if finding["grade"] == "skipped"]) == (0, ["bind"])
    assert [finding["grade"] for finding in results if finding["grade"] == "bad"] == []
    assert bind_code == 1
    assert (path, [finding["check"] for finding in nothing if finding["grade"] == "bad"]) == (1, ["is served"])


def test_unreachable_extender_has_a_single_finding() -> None:
    code, results = findings("http://127.0.0.1:1/scheduler", "--form", "names")

    assert code == 1
    assert [(finding["verb"], finding["grade"], finding["detail"], finding["advice"]) for finding in results] == [
        ("", "bad", "127.0.0.1:1: connection refused", "is it running, and is the port right?")
    ]


@pytest.mark.parametrize("url", ["http://host:99999/x", "http:///x", "http://a..b/x"])
def test_malformed_url_is_a_finding_with_advice(url: str) -> None:
    code, results = findings(url, "--form", "names")

    assert code == 1
    assert [(finding["grade"], finding["advice"]) for finding in results] == [("bad", "write http://HOST:PORT/PATH")]


def test_the_extenders_of_a_configuration_are_examined_as_it_names_them(tmp_path: Path) -> None:
    with serving(SampleExtender("scores beyond 10")) as url:
        extender = f"{{urlPrefix: '{url}', filterVerb: filter, nodeCacheCapable: true}}"

        code, results = findings("--config", configured(tmp_path, f"extenders: [{extender}]\n"))

    assert code == 0, "its scores are not asked for"
    assert {finding["verb"] for finding in results} == {"", "filter"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give the urlPrefix"),
        (["localhost:80"], "not an address"),
        (["http://localhost", "--form", "half"], "--form"),
        (["http://localhost", "--verbs", "filtre"], "filtre is none of"),
        (["https://localhost", "--ca-file", "/nowhere"], "/nowhere"),
    ],
)
def test_invalid_arguments_are_refused_in_one_line(arguments: list[str], words: str) -> None:
    result = reprieve("doctor", *arguments)

    assert result.returncode == 2
    assert words in result.stderr.decode()
    assert len(result.stderr.splitlines()) == 1
