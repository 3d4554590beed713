"""The workflows and the guide of a release: what runs is pinned, asks for little, and exists."""

import os
import re
import shutil
import subprocess
import tarfile
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from extender import __version__
from tests.api.in_process import ROOT
from tools.check_release import DIST
from tools.kubernetes_programs import NoProgramError
from tools.package_chart import package

WORKFLOWS: Final = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
MAKEFILE: Final = (ROOT / "Makefile").read_text()
_PYTHON: Final = "Programming Language :: Python :: "
TARGETS: Final = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))

each_workflow: Final = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in read(path)["jobs"].values() for step in job["steps"]]


@each_workflow
def test_actions_are_pinned_by_hash_and_say_their_version(path: Path) -> None:
    used = re.findall(r"uses: (.*)", path.read_text())

    assert len(used) == sum("uses" in step for step in steps(path)) > 0
    assert [line for line in used if not re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)] == []


def test_one_action_has_one_version() -> None:
    used = {line for path in WORKFLOWS for line in re.findall(r"uses: (\S+)", path.read_text())}

    assert len({line.partition("@")[0] for line in used}) == len(used)


@each_workflow
def test_a_workflow_may_do_little_and_keeps_no_credentials(path: Path) -> None:
    """Only jobs that publish may write, and no secret is read but the token of the run."""
    workflow, text = read(path), path.read_text()

    assert workflow["permissions"] in ({}, {"contents": "read"})
    assert set(re.findall(r"secrets\.(\w+)", text)) <= {"GITHUB_TOKEN"}
    for name, job in workflow["jobs"].items():
        writes = {what for what, right in job.get("permissions", {}).items() if right == "write"}
        assert not writes or (name in ("pypi", "image", "site", "publish") and "environment" in job)
        assert "timeout-minutes" in job
    for step in steps(path):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False
        # What a stranger may choose, such as a name of a branch, is never part of a script.
        assert "${{" not in step.get("run", "").replace("${{ '${{' }}", "")


@each_workflow
def test_the_make_targets_that_run_exist(path: Path) -> None:
    targets = {
        target
        for step in steps(path)
        for call in re.findall(r"^make ([a-z -]+)", step.get("run", ""), re.MULTILINE)
        for target in call.split()
    }

    assert targets
    assert targets <= TARGETS


def test_tests_run_on_every_version_of_python_that_is_promised() -> None:
    """Types are checked for the oldest and the newest of them, and what ships runs on one of them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    promised = [line.removeprefix(_PYTHON) for line in project["project"]["classifiers"] if line.startswith(_PYTHON)]
    matrix = read(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]["test"]["strategy"]["matrix"]["python"]
    set_up = {
        step["with"]["python-version"]
        for path in WORKFLOWS
        for step in steps(path)
        if step.get("uses", "").startswith("actions/setup-python@")
    }
    image = re.findall(r"^FROM python:(\d\.\d+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE)

    assert promised == matrix == [f"3.{11 + minor}" for minor in range(len(promised))]
    assert project["project"]["requires-python"] == f">={promised[0]}"
    assert project["tool"]["mypy"]["python_version"] == promised[0]
    assert re.findall(r"mypy --python-version (.*)", MAKEFILE) == [promised[-1]]
    assert set_up - {"${{ matrix.python }}"} <= set(promised)
    assert read(ROOT / "action.yml")["inputs"]["python-version"]["default"] in promised
    assert image
    assert set(image) <= set(promised)


def test_publishing_needs_the_checks() -> None:
    jobs = read(ROOT / ".github" / "workflows" / "release.yml")["jobs"]

    def needs(name: str) -> set[str]:
        direct = jobs[name].get("needs", [])
        needed = {direct} if isinstance(direct, str) else set(direct)
        return needed.union(*map(needs, needed)) if needed else needed

    assert all("check" in needs(name) for name in jobs if name != "check")
    assert [step["run"] for step in jobs["check"]["steps"] if step.get("run", "").startswith("make ")] == [
        "make check test-all",
        'make release-check VERSION="${GITHUB_REF_NAME#v}"',
    ]
    assert {"krew", "pypi", "image", "site", "publish"} <= jobs.keys()


def test_the_guide_names_targets_and_files_that_exist() -> None:
    guide = (ROOT / "docs" / "maintain" / "releasing.md").read_text()
    targets = {target for call in re.findall(r"\$ make ([a-z -]+)", guide) for target in call.split()}

    assert targets == {"check", "docs", "figures", "manifests", "release-check", "test-all"}
    assert targets <= TARGETS
    assert [
        path for path in re.findall(r"`((?:extender|deploy|tools)/[\w./]+)`", guide) if not (ROOT / path).exists()
    ] == []


def test_a_released_chart_names_its_image_by_digest(tmp_path: Path) -> None:
    digest = "sha256:" + "1" * 64
    try:
        packed = package(tmp_path, "ghcr.io/somebody/reprieve", digest)
    except NoProgramError as exc:
        pytest.skip(str(exc))

    assert packed.name == f"reprieve-chart-{__version__}.tgz"
    assert DIST.name == "dist"
    with tarfile.open(packed) as chart:
        values = chart.extractfile("reprieve/values.yaml")
        assert values is not None
        image = yaml.safe_load(values.read())["image"]
    assert (image["repository"], image["digest"]) == ("ghcr.io/somebody/reprieve", digest)


def test_links_of_the_readme_lead_somewhere_from_the_page_of_pypi(tmp_path: Path) -> None:
    [script] = [
        step["run"] for step in steps(ROOT / ".github/workflows/release.yml") if "README" in step.get("run", "")
    ]
    shutil.copy(ROOT / "README.md", tmp_path)
    environment = {**os.environ, "GITHUB_REPOSITORY": "owner/reprieve", "GITHUB_REF_NAME": "v1.0.0"}

    subprocess.run(["bash", "-c", script], cwd=tmp_path, env=environment, check=True)

    links = re.findall(r"\]\(([^)]+)\)", (tmp_path / "README.md").read_text())
    assert [link for link in links if not link.startswith("https://")] == []
    assert "https://raw.githubusercontent.com/owner/reprieve/v1.0.0/docs/images/pod-light.png" in links
    assert "https://github.com/owner/reprieve/blob/v1.0.0/docs/tutorial.md" in links
