"""What the README says to developers; what it says to users, tests/installed/test_documentation.py types."""

import os
import random
import re
import subprocess
from pathlib import Path

import pytest

from extender.engine.plugins import IN_TREE
from extender.engine.runtime.registry import Registry
from extender.values.config.loading import load_file

ROOT = Path(__file__).parents[1]


def commands() -> list[str]:
    """Every command of make that the README names."""
    return re.findall(r"`(make .*?)`", (ROOT / "README.md").read_text())


@pytest.mark.parametrize(("target", "needs"), [("run", "requirements.txt"), ("test", "requirements-dev.txt")])
def test_make_says_first_what_it_installs_and_installs_no_more(target: str, needs: str, tmp_path: Path) -> None:
    command = ["make", "--dry-run", target, f"VENV={tmp_path / 'venv'}"]
    # The tests themselves may be run by make, which would say that it enters a folder.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    lines = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    ).stdout.splitlines()

    assert lines[0].startswith('echo "Setting up ') and needs in lines[0]
    assert any(f"-r {needs}" in line for line in lines)
    assert target == "test" or not any("requirements-dev" in line for line in lines)


def test_make_run_says_where_to_click() -> None:
    output = subprocess.run(
        ["make", "--dry-run", "run", "PORT=18888"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout

    assert "http://127.0.0.1:18888/ shows the cluster" in output


def test_every_make_target_that_is_named_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

    named_targets = {word for command in commands() for word in command.split()[1:2]}

    assert {"run", "test"} <= named_targets <= targets


def test_every_file_that_is_linked_exists() -> None:
    """No link leads nowhere, here and in the other papers."""
    papers = [*ROOT.glob("*.md"), *ROOT.glob("changelog.d/*.md")]
    papers += sorted((ROOT / "docs").rglob("*.md"))
    links = {(page, link) for page in papers for link in re.findall(r"\]\((?!https?://|#)([^)#\s]+)", page.read_text())}

    assert [(page, link) for page, link in sorted(links) if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("path", sorted((ROOT / "deploy").glob("*.yaml")), ids=lambda path: path.name)
def test_every_configuration_that_ships_makes_an_engine(path: Path) -> None:
    """As it is, without a change."""
    frameworks = Registry(IN_TREE).make_frameworks(load_file(path), random.Random())

    assert frameworks
