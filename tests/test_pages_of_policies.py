"""docs/plan.md, docs/how-to/free-nodes.md and docs/victim-policies.md: every command in them is run, and prints what the page says."""

import re
import shlex
from pathlib import Path

import pytest

from tests.api.in_process import reprieve

ROOT = Path(__file__).parents[1]
PAGES = ("plan.md", "victim-policies.md", "how-to/free-nodes.md")
EXAMPLES = [
    tuple(part.split("\n", 1))
    for page in PAGES
    for console in re.findall(r"^```console\n(.*?)^```", (ROOT / "docs" / page).read_text(), re.MULTILINE | re.DOTALL)
    for part in re.split(r"^\$ ", console, flags=re.MULTILINE)[1:]
]
VARYING = re.compile(r"\b\d+\.\d\b|\d+ ms|\b\d+d(?:\d+h)?\b")
"""GPU time and ages, which grow while nobody looks, and how long something took."""


def words(text: str) -> list[list[str]]:
    return [VARYING.sub("<varying>", line).split() for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize(("command", "output"), EXAMPLES, ids=[command for command, _ in EXAMPLES])
def test_output_on_the_page_is_what_commands_print(command: str, output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    done = reprieve(*shlex.split(command)[1:])

    assert (done.returncode, done.stderr) == (0, b"")
    assert words(done.stdout.decode()) == words(output)
