"""What is built and shipped is pinned by hash, listed, and under a licence that lets it be passed on."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

import pytest
import yaml

from tools.generate_licences import NEEDED_FOR, PAGE, ROOT, needed_by, packages

DOCKERFILE: Final = (ROOT / "Dockerfile").read_text()
LOCKS: Final = ("requirements.txt", "requirements-archive.txt", "requirements-build.txt", "requirements-dev.txt")

PERMISSIVE: Final = {
    "0BSD", "Apache Software License", "Apache-2.0", "BSD License", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0",
    "ISC License (ISCL)",
    "MIT", "MIT-0", "MIT License", "PSF-2.0", "Python Software Foundation License", "Zlib",
}  # fmt: skip
BY_FILE: Final = {"MPL-2.0", "Mozilla Public License 2.0 (MPL 2.0)"}
"""Licences that are about changed files only: these packages are shipped unchanged."""


@pytest.mark.parametrize("line", re.findall(r"^FROM .*", DOCKERFILE, re.MULTILINE))
def test_base_images_are_pinned_by_digest(line: str) -> None:
    stages = set(re.findall(r" AS (\w+)$", DOCKERFILE, re.MULTILINE))
    image = line.split()[1]

    assert image in stages or re.fullmatch(r"[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}", image)


@pytest.mark.parametrize("name", LOCKS)
def test_every_locked_package_has_a_version_and_hashes(name: str) -> None:
    requirements = re.split(r"\n(?=[a-z])", (ROOT / name).read_text())[1:]

    assert len(requirements) >= 5
    assert [
        text
        for text in requirements
        if not re.search(r"^[a-z0-9._-]+==\S+(.*\\\n +--hash=sha256:[0-9a-f]{64})+", text, re.DOTALL)
    ] == []


def test_the_image_installs_what_is_locked_and_nothing_else() -> None:
    installs = re.findall(r"pip (?:--python \S+ )?install (.+?)(?: \\)?$", DOCKERFILE, re.MULTILINE)

    assert "PIP_REQUIRE_HASHES=1" in DOCKERFILE
    assert installs == ["-r requirements-build.txt", "-r requirements.txt", "--no-deps --no-index dist/*.whl"]


def test_files_that_the_image_copies_are_sent_to_its_build() -> None:
    files = {name for row in re.findall(r"^COPY (?!--from)(.*) \S+$", DOCKERFILE, re.MULTILINE) for name in row.split()}
    sent_files = {row[1:] for row in (ROOT / ".dockerignore").read_text().splitlines() if row.startswith("!")}

    assert files == sent_files


def test_licences_are_listed_and_allow_redistribution() -> None:
    listed = dict(
        re.findall(
            r"^\| (\S+) \| [^|]+ \| [^|]+ \| ([^|]+) \|$", PAGE.read_text().partition("--- |\n")[2], re.MULTILINE
        )
    )
    licences = {
        package: set(re.split(r" AND | OR ", text.replace("(Apache-2.0 OR MIT)", "MIT")))
        for package, text in listed.items()
    }

    assert listed.keys() == set(packages())
    assert {
        package: names - PERMISSIVE - BY_FILE for package, names in licences.items() if names - PERMISSIVE - BY_FILE
    } == {}


def test_page_says_who_needs_each_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    dependencies = {re.split(r"[><=;]", requirement)[0] for requirement in project["dependencies"]}
    purposes = dict(re.findall(r"^\| (\w\S+) \| [\d.-]+ \| ([^|]+) \| [^|]+ \|$", PAGE.read_text(), re.MULTILINE))

    assert dependencies == NEEDED_FOR.keys()
    assert purposes == needed_by()


@pytest.mark.slow
def test_the_bill_of_materials_has_every_locked_package_with_its_hashes(tmp_path: Path) -> None:
    """`make sbom` writes it; the tool checks it against the schema of CycloneDX."""
    bill = tmp_path / "sbom.cdx.json"
    command = [
        "-m",
        "cyclonedx_py",
        "requirements",
        "requirements.txt",
        "--pyproject",
        "pyproject.toml",
        "--output-reproducible",
    ]
    subprocess.run([sys.executable, *command, "-o", str(bill)], cwd=ROOT, check=True, capture_output=True)

    components = json.loads(bill.read_text())["components"]
    assert {component["name"] for component in components} == set(packages())
    for component in components:
        assert component["purl"] == f"pkg:pypi/{component['name']}@{component['version']}"
        assert component["externalReferences"][0]["hashes"]


def test_updates_are_proposed_for_python_packages_actions_and_images() -> None:
    updates = yaml.safe_load((ROOT / ".github/dependabot.yml").read_text())["updates"]

    assert {update["package-ecosystem"] for update in updates} == {"uv", "github-actions", "docker"}
