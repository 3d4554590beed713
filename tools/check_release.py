"""Builds what a release publishes, and tries it: `python -m tools.check_release [VERSION]` (or `make release-check`).

Each step is a line of the output, with its seconds. The workflow of the release runs the same after all tests.
"""

import os
import re
import subprocess
import sys
import tarfile
import time
import venv
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import yaml

from extender import __version__
from tools.kubernetes_programs import ROOT
from tools.play_commands import play

DIST: Final = ROOT / "dist"
_POD: Final = "shop/web-6"
_DOORS: Final = "README or index or ten-questions or tutorial or migrate or beside"


class ReleaseError(SystemExit):
    """The release is not ready. The text says why."""


def main() -> None:
    """Runs all steps; the first that fails ends it."""
    expected = sys.argv[1] if len(sys.argv) > 1 else __version__
    deploy, installed = "tests/deploy", "tests/installed"
    steps: Sequence[tuple[str, Callable[[], object]]] = (
        ("the version is the same everywhere", lambda: _check_versions(expected)),
        ("what is generated is committed, and the site is built", _check_generated),
        ("wheel and source distribution", _build_packages),
        ("the wheel in an empty environment", lambda: _check_installed("reprieve-*.whl")),
        ("the source distribution in an empty environment", lambda: _check_installed("reprieve-*.tar.gz")),
        ("the archive for krew", lambda: _make("krew")),
        ("the archive in an empty environment", lambda: _test(f"{installed}/test_kubectl_archive.py")),
        ("the chart", lambda: _make("chart")),
        ("what the chart renders, by its schema and Kubernetes'", lambda: _test(f"{deploy}/test_chart.py")),
        ("the manifests", lambda: _test(f"{deploy}/test_manifests.py", f"{deploy}/test_recipes.py")),
        ("the image", lambda: _test(f"{deploy}/test_image.py", f"{deploy}/test_supply_chain.py")),
        ("the bill of materials", lambda: _make("sbom")),
        ("the action", lambda: _test(f"{installed}/test_action.py")),
        ("the links of the site", lambda: _test(f"{installed}/test_documentation.py", "-k", "site or address or link")),
        ("the commands of the doors", lambda: _test(f"{installed}/test_documentation.py", "-k", _DOORS)),
    )
    for words, step in steps:
        print(f"release-check: {words}", end=" ", flush=True)  # noqa: T201
        began = time.monotonic()
        step()
        print(f"({time.monotonic() - began:.0f} s)", flush=True)  # noqa: T201
    print(f"release-check: {expected} can be released, if make check and make test-all pass")  # noqa: T201


def _check_versions(expected: str) -> None:
    chart = yaml.safe_load((ROOT / "deploy" / "chart" / "Chart.yaml").read_text(encoding="utf-8"))
    version_of = {
        "extender/__init__.py": __version__,
        "Chart.yaml version": chart["version"],
        "Chart.yaml appVersion": chart["appVersion"],
    }
    wrong = {place: version for place, version in version_of.items() if version != expected}
    if wrong:
        raise ReleaseError(f"{expected} is wanted, and there is {wrong}")
    released = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    if len(sys.argv) > 1 and expected not in released:
        raise ReleaseError(f"CHANGELOG.md has no section {expected}")


def _check_generated() -> None:
    """What make writes is compared with the files as they were; in a checkout of a tag these are the committed ones."""
    before = _tree()
    _make("docs")
    _make("manifests")
    changed = {path for path, text in _tree().items() if before.get(path) != text}
    if changed:
        raise ReleaseError(f"make docs and make manifests changed {', '.join(sorted(changed))}: commit that")


def _tree() -> dict[str, bytes]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()  # noqa: S607
    return {name: Path(ROOT, name).read_bytes() for name in listed.split("\0") if name and Path(ROOT, name).is_file()}


def _build_packages() -> None:
    for old in [*DIST.glob("*.whl"), *DIST.glob("*.tar.gz")]:
        old.unlink()
    _make("packages")
    built = [*DIST.glob("*.whl"), *DIST.glob("*.tar.gz")]
    _run(sys.executable, "-m", "twine", "check", "--strict", *map(str, built))
    (source,) = DIST.glob("reprieve-*.tar.gz")
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    absent = {"LICENSE", "README.md", "deploy/chart/Chart.yaml", "pyproject.toml"} - names
    if absent:
        raise ReleaseError(f"the source distribution lacks {absent}")


def _check_installed(pattern: str) -> None:
    """Installs a package with its dependencies from the registry, and tries it."""
    (package,) = DIST.glob(pattern)
    with TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        programs = Path(folder, "bin")
        _run(str(programs / "pip"), "install", "--quiet", "--disable-pip-version-check", str(package))
        version = _run(str(programs / "reprieve"), "--version", cwd=folder)
        if __version__ not in version:
            raise ReleaseError(f"{package.name} says that it is {version}")
        dump = ROOT / "api" / "examples" / "cluster.yaml"
        if _POD not in _run(str(programs / "kubectl-reprieve"), "why", _POD, "--dump", str(dump), cwd=folder):
            raise ReleaseError(f"{package.name} does not answer why a pod is pending")
        play(programs)


def _test(*arguments: str) -> None:
    """Runs tests with the packages in dist."""
    _run(sys.executable, "-m", "pytest", "-q", *arguments, also={"REPRIEVE_DIST": str(DIST)})


def _make(target: str) -> None:
    _run("make", target)


def _run(*command: str, cwd: str | Path = ROOT, also: dict[str, str] | None = None) -> str:
    environment = {
        name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES")
    }
    done = subprocess.run(  # noqa: S603 - ours
        command, cwd=cwd, env=environment | (also or {}), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise ReleaseError(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


if __name__ == "__main__":
    main()
