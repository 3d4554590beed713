"""The `reprieve` command, run as people run it."""

import gzip
import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from api.documents.documentation import BY_NAME, SCENARIO
from extender import __version__
from extender.values.config.completion import written
from extender.values.config.configuration import Configuration
from extender.values.config.loading import load
from tests.api.in_process import HEADER, ROOT, configured, reprieve
from tests.kit.tables import cases
from tests.kit.waiting import DEADLINE
from tests.parity.cases import FOLDER
from tests.parity.compare import differences


def lines_of(*scenarios: object) -> bytes:
    return b"".join(json.dumps(scenario).encode() + b"\n" for scenario in scenarios)


def test_version() -> None:
    """Of the module run as a program."""
    command = [sys.executable, "-m", "api.cli", "--version"]
    done = subprocess.run(command, check=False, capture_output=True, cwd=ROOT, text=True, timeout=DEADLINE)

    assert (done.returncode, done.stdout, done.stderr) == (0, f"reprieve {__version__}\n", "")


def test_print_config_spells_out_every_default() -> None:
    printed = reprieve("print-config").stdout

    assert yaml.safe_load(printed) == written(Configuration())
    assert load(printed) == Configuration()


def test_print_config_of_a_file(tmp_path: Path) -> None:
    printed = reprieve("print-config", "--config", configured(tmp_path, "profiles: [{schedulerName: gpu}]\n")).stdout

    assert yaml.safe_load(printed)["profiles"][0]["schedulerName"] == "gpu"


def test_print_config_shows_preemption_rules_that_were_chosen() -> None:
    """Without them there is nothing that kube-scheduler would refuse."""
    chosen = yaml.safe_load(reprieve("print-config", "--config", "examples/clusters/four-releases-config.yaml").stdout)
    default = yaml.safe_load(reprieve("print-config").stdout)

    def rules_of(document: dict[str, Any]) -> list[str | None]:
        configs = [config for profile in document["profiles"] for config in profile["pluginConfig"]]
        return [config["args"].get("preemptionRules") for config in configs if config["name"] == "DefaultPreemption"]

    assert rules_of(chosen) == ["v1.12", "v1.17", "v1.25", "v1.36"]
    assert rules_of(default) == [None]


@cases(
    "arguments, text, why",
    ("no state", ["serve", "--state", "FILE"], None, "no such file"),
    ("bad state", ["serve", "--state", "FILE"], "kind: [", "state file"),
    ("no form to save in", ["serve", "--save", "FILE.txt"], None, "the name has to end in"),
    ("nowhere to save", ["serve", "--save", "/nowhere/at/all.yaml"], None, "cannot be written to"),
    ("no configuration", ["serve", "--config", "FILE"], None, "no such file"),
    ("no configuration at all", ["serve", "--config", "FILE"], "a: 1", "'Kind' is missing"),
    ("bad value", ["serve", "--config", "FILE"], f"{HEADER}parallelism: 0\n", "parallelism: Invalid value: 0"),
    (
        "unknown plugin",
        ["serve", "--config", "FILE"],
        f"{HEADER}profiles: [{{plugins: {{filter: {{enabled: [{{name: Nope}}]}}}}}}]\n",
        "Nope",
    ),
    ("bad port", ["serve", "--port", "99999"], None, "--port"),
    ("not our address", ["serve", "--host", "192.0.2.1", "--access", "open"], None, "cannot listen on 192.0.2.1:"),
    ("print-config", ["print-config", "--config", "FILE"], "a: 1", "'Kind' is missing"),
    ("no scenarios", ["evaluate", "FILE"], None, "no such file"),
    ("evaluate with bad configuration", ["evaluate", "FILE", "--config", "FILE"], "a: 1", "'Kind' is missing"),
)
def test_command_that_cannot_start_gives_the_reason_in_one_line(
    tmp_path: Path, arguments: list[str], text: str | None, why: str
) -> None:
    path = tmp_path / "file"
    if text is not None:
        path.write_text(text)

    done = reprieve(*(str(path) if argument == "FILE" else argument for argument in arguments))

    assert done.returncode == (4 if "listen" in why else 2)
    error = done.stderr.decode()
    assert error.startswith("reprieve: ")
    assert why in error
    assert error.count("\n") == 1
    assert done.stdout == b""


@pytest.mark.parametrize("wrapped", [False, True], ids=["scenario", "object with a scenario"])
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "packed"])
def test_evaluate_reads_scenarios_from_files(tmp_path: Path, wrapped: bool, packed: bool) -> None:
    path = tmp_path / "scenarios"
    data = lines_of({"scenario": SCENARIO} if wrapped else SCENARIO)
    path.write_bytes(gzip.compress(data) if packed else data)

    done = reprieve("evaluate", str(path))

    (answer,) = map(json.loads, done.stdout.splitlines())
    assert (done.returncode, done.stderr) == (0, b"")
    assert answer["id"] == SCENARIO["id"]
    assert answer["filter"]["node-a2"] == {"code": "Success"}
    assert answer["filter"]["node-a9"]["reasons"] == ["Insufficient cpu", "Insufficient memory"]


def test_evaluate_refuses_a_line_without_an_end(tmp_path: Path) -> None:
    """A gzipped file of a megabyte may hold a line of a gigabyte."""
    path = tmp_path / "scenarios.jsonl.gz"
    path.write_bytes(gzip.compress(b"[" * 2**28, 1) * 2)
    result = reprieve("evaluate", str(path))

    assert result.returncode == 2
    assert result.stderr.decode().endswith("a line of more than 268435456 bytes\n")


def test_evaluate_goes_on_after_a_bad_line() -> None:
    bad = [
        b"{",
        b"[]",
        b'{"scenario":1}',
        b'{"id":"x"}',
        b'{"pod":{"metadata":{"name":"p"}},"objects":{"cows":[]}}',
        b'{"pod":{"spec":7}}',
    ]
    data = b"\n".join([lines_of(SCENARIO).strip(), b"", *bad, lines_of({**SCENARIO, "id": "last"}).strip()])

    done = reprieve("evaluate", "-", stdin=data)

    assert done.returncode == 2
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [SCENARIO["id"], "last"]
    reported = [int(re.match(r"line (\d+): ..", line)[1]) for line in done.stderr.decode().splitlines()]  # type: ignore[index]
    assert reported == [3, 4, 5, 6, 7, 8]


def test_evaluate_takes_the_configuration_for_scenarios_that_bring_none(tmp_path: Path) -> None:
    config = configured(tmp_path, "profiles: [{plugins: {multiPoint: {disabled: [{name: NodeResourcesFit}]}}}]\n")

    done = reprieve("evaluate", "-", "--config", config, stdin=lines_of(SCENARIO))

    assert json.loads(done.stdout)["filter"]["node-a9"] == {"code": "Success"}


def test_evaluate_answers_recorded_scenarios_as_the_real_scheduler_did() -> None:
    done = reprieve("evaluate", str(FOLDER / "unschedulable.jsonl.gz"))

    answers: dict[str, Any] = {answer["id"]: answer for answer in map(json.loads, done.stdout.splitlines())}
    with gzip.open(FOLDER / "unschedulable.jsonl.gz") as lines:
        expected = [json.loads(line)["expected"] for line in lines]
    assert done.returncode == 0
    assert len(answers) == len(expected)
    for one in expected:
        assert differences(one, answers[one["id"]])["filter"] == []


def test_evaluate_ends_quietly_when_its_reader_closes_the_pipe() -> None:
    command = f"{sys.executable} -m api.cli evaluate {FOLDER}/resources.jsonl.gz | /usr/bin/head -c 1"

    done = subprocess.run(["/bin/sh", "-c", command], check=False, capture_output=True, cwd=ROOT, timeout=120)

    assert (done.stdout, done.stderr) == (b"{", b"")


def first_match(lines: Iterable[str], pattern: str) -> re.Match[str]:
    """What the first line has of this form."""
    return next(match for line in lines if (match := re.search(pattern, line)))


def test_serve_answers_until_sigterm(tmp_path: Path) -> None:
    saved = tmp_path / "saved.json"
    command = [sys.executable, "-m", "api.cli", "serve", "--port", "0", "--kubernetes-port", "0", "--prefix", "/sched"]
    command += ["--save", str(saved)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, cwd=ROOT, text=True) as process:
        assert process.stderr is not None
        try:
            address = first_match(process.stderr, r"reprieve answers for the example cluster on (http://\S+/sched)\n")
            notes = [process.stderr.readline() for _ in range(4)]
            answer = httpx.post(f"{address[1]}/filter", json=BY_NAME, trust_env=False)
        finally:
            process.send_signal(signal.SIGTERM)
            _, log = process.communicate(timeout=DEADLINE)

    assert answer.json()["NodeNames"] == ["node-a1"]
    assert notes[1:] == [
        f"{address[1].removesuffix('/sched')}/ shows it\n",
        "this cluster has no RBAC: every token is accepted as an administrator's\n",
        f"it is saved to {saved} each minute and at SIGTERM: kill -9 loses up to a minute\n",
    ]
    assert saved.exists()
    assert process.returncode in (0, -signal.SIGTERM)
    assert "Application shutdown complete" in log
    assert "Traceback" not in log


def test_serve_says_when_its_port_is_taken(tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        done = reprieve("serve", "--port", str(listener.getsockname()[1]))

    assert done.returncode == 4
    error = done.stderr.decode()
    assert re.fullmatch(
        r"reprieve: cannot listen on 127.0.0.1:\d+: address already in use; choose another --host or --port\n", error
    )


@pytest.mark.slow
def test_service_started_by_one_who_ignores_how_children_end_answers_questions() -> None:
    """A process inherits that from its parent."""
    ignoring = (
        "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    )
    serve = [sys.executable, "-m", "api.cli", "serve", "--port", "0", "--kubernetes-port", "0"]
    command = [sys.executable, "-c", ignoring, *serve]
    with subprocess.Popen(command, stderr=subprocess.PIPE, cwd=ROOT, text=True) as process:
        assert process.stderr is not None
        try:
            address = first_match(process.stderr, r"on (http://\S+)/extender\n")
            answer = httpx.post(f"{address[1]}/v1/whatif", json={"drainNodes": ["node-a1"]}, trust_env=False)
        finally:
            process.kill()
            process.communicate(timeout=DEADLINE)

    assert answer.status_code == 200
