"""The action for GitHub: its form, and what its last step does with an installed program."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.installed.environment import ROOT, Environment

ACTION: Final = ROOT / "action.yml"
READ: Final[dict[str, Any]] = yaml.safe_load(ACTION.read_text())


def test_action_has_the_form_that_github_wants() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-actions", str(ACTION)]

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


def test_scripts_of_the_action_take_inputs_from_the_environment() -> None:
    """What is written into a script would run."""
    steps = READ["runs"]["steps"]

    assert all("${{" not in step.get("run", "") for step in steps)
    assert all(re.search(r"@[0-9a-f]{40}$", step["uses"]) for step in steps if "uses" in step)
    assert set(READ["inputs"]) == set(re.findall(r"inputs\.([\w-]+)", ACTION.read_text()))


@pytest.mark.slow
@pytest.mark.parametrize(("rules", "holds"), [("shop", True), ("broken", False)])
def test_action_fails_where_a_rule_does_not_hold(
    environment: Environment, tmp_path: Path, rules: str, holds: bool
) -> None:
    (tmp_path / "reprieve").symlink_to(environment.root)
    (tmp_path / "shop").symlink_to(ROOT / "examples" / "rules")
    (tmp_path / "broken.yaml").write_text(
        "given: {nodes: {count: 1, cpu: 1}}\nwhen: {create: [{apiVersion: v1, kind: Pod, metadata: {name: large}, "
        "spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 2}}}]}}]}\nthen: [{placed: 1}]\n"
    )
    script = READ["runs"]["steps"][-1]["run"]

    done = environment.run(
        script, cwd=tmp_path, RUNNER_TEMP=str(tmp_path), RULES=rules if holds else f"shop {rules}.yaml", CONFIG="",
        VERSIONS="1.36", JUNIT="report.xml",
    )  # fmt: skip

    assert (done.returncode == 0) == holds, done.stdout + done.stderr
    assert (tmp_path / "report.xml").read_text().startswith("<?xml")
