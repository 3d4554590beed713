"""The wheel holds everything that runs, and nothing else."""

import subprocess
import sys
import zipfile
from configparser import ConfigParser
from pathlib import Path

import pytest

from extender import __version__

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, check=True, cwd=ROOT, capture_output=True, timeout=120)
    [file] = folder.iterdir()
    return zipfile.Path(file)


def test_every_file_of_both_packages_is_in_it(wheel: zipfile.Path) -> None:
    """
    Templates, tables and the example cluster as well as modules; `py.typed`, so that plugins are checked against our types.
    """
    files = {str(path.relative_to(ROOT)) for package in ("api", "extender") for path in (ROOT / package).rglob("*") if path.is_file()}
    held = {name for name in wheel.root.namelist() if ".dist-info/" not in name and not name.endswith("/")}

    assert held == {file for file in files if "__pycache__" not in file}
    assert {"api/py.typed", "extender/py.typed", "api/examples/cluster.yaml"} <= held


def test_it_brings_both_commands(wheel: zipfile.Path) -> None:
    entry_points = ConfigParser()
    entry_points.read_string((wheel / f"reprieve-{__version__}.dist-info" / "entry_points.txt").read_text())

    assert dict(entry_points["console_scripts"]) == {"reprieve": "api.cli:main", "kubectl-reprieve": "api.cli:main"}
