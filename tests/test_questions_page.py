"""docs/questions.md: every command in it is run, and answers as it says there."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.documents.documentation import describe
from api.routing import routed
from api.settings.settings import Settings
from tests.api.in_process import Done, reprieve
from tests.api.test_questions import get
from tests.kit.service import Service, serving
from tests.kit.waiting import until

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "questions.md").read_text()
CONSOLES = re.findall(r"^```console\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
EXAMPLES = [
    tuple(part.split("\n", 1))
    for console in CONSOLES
    for part in re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]
    if not part.endswith("&\n")
]

VARYING = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z|"
    r"\b\d+d\b|(?<=\"generation\": )\d+|(?<=\"id\": )\d+|(?<=\"attempts\": )\d+|\d+ attempts?"
)
"""Times, ages, UIDs, and how often a pod was tried before the fixture went on."""


@pytest.fixture(scope="module")
def three_nodes() -> Iterator[Service]:
    with serving(state=ROOT / "examples" / "clusters" / "three-nodes.yaml") as service:
        until(lambda: service.client.get("/v1/explain/shop/web-0").json().get("state") == "Scheduled")
        until(
            lambda: [
                item["pod"]["name"] for item in get(service, "/v1/queue")["items"] if item["queue"] == "unschedulable"
            ]
        )
        yield service


def lines_of(text: str) -> list[str]:
    return [VARYING.sub("<varying>", line.rstrip()) for line in text.rstrip().splitlines()]


def is_as_said(expected_lines: list[str], printed_lines: list[str]) -> bool:
    """Whether the lines are those that were said, any number of them where `...` stands."""
    pattern = "".join(r"(?:.*\n)*?" if line.strip() == "..." else re.escape(line) + r"\n" for line in expected_lines)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in printed_lines)) is not None


@pytest.mark.parametrize(("command", "output"), EXAMPLES, ids=[command for command, _ in EXAMPLES])
def test_commands_on_the_page_have_the_effect_that_it_shows(three_nodes: Service, command: str, output: str) -> None:
    address = f"http://127.0.0.1:{three_nodes.port}"
    command = command.replace("http://127.0.0.1:8888", address)
    words = shlex.split(command)

    if words[0] == "curl" and shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    run: Done | subprocess.CompletedProcess[bytes]
    if words[0] == "reprieve" and not set("|<>&$`") & set(command):
        run = reprieve(*words[1:], REPRIEVE_SERVER=address)
    else:
        environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "REPRIEVE_SERVER": address,
        }
        run = subprocess.run(
            ["bash", "-c", command], cwd=ROOT, env=environment, capture_output=True, check=False, timeout=120
        )

    assert run.returncode == 0, run.stderr.decode()
    assert is_as_said(lines_of(output), lines_of(run.stdout.decode())), run.stdout.decode()


def test_every_question_is_in_the_table() -> None:
    named_paths = set(re.findall(r"`(?:GET|POST) (/v1/[^`]+)`", PAGE))

    questions = {path for path in describe(routed(Settings()))["paths"] if path.startswith("/v1/")}
    assert named_paths == questions - {"/v1/evaluate"}


def test_every_field_that_is_named_is_in_an_answer() -> None:
    schemas = describe(routed(Settings()))["components"]["schemas"].values()
    fields = {field for schema in schemas for field in schema.get("properties", {})}

    rows = re.findall(r"^\| .* \| .* \| .* \| (`.*`.*) \|$", PAGE, re.MULTILINE)
    names = {part for row in rows for field in re.findall(r"`([\w.\[\]]+)`", row) for part in re.findall(r"\w+", field)}
    assert len(names) > 15
    assert names <= fields
