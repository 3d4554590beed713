"""The Python besides that of `.venv` on which CI's own script tries commands: the newest promised one that runs."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.api.in_process import ROOT

RUNS: Final = "exit 0"
FAILS: Final = "exit 127"
"""As the command of a Python that pyenv has, but has not been told to use."""


def program(path: Path, does: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{does}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("own_version", "programs", "chosen"),
    [
        pytest.param("3.11", {}, None, id="none"),
        pytest.param("3.11", {"path/python3.11": RUNS}, None, id="its own only"),
        pytest.param("3.11", {"path/python3.10": RUNS, "path/python3.99": RUNS}, None, id="none that is promised"),
        pytest.param("3.11", {"path/python3.12": RUNS, "path/python3.13": RUNS}, "path/python3.13", id="the newest"),
        pytest.param("3.14", {"path/python3.12": RUNS, "path/python3.14": RUNS}, "path/python3.12", id="an older one"),
        pytest.param(
            "3.11", {"path/python3.14": FAILS, "path/python3.12": RUNS}, "path/python3.12", id="one that runs"
        ),
        pytest.param(
            "3.11",
            {"path/python3.13": FAILS, "versions/3.13.0/bin/python3.13": RUNS},
            "versions/3.13.0/bin/python3.13",
            id="one of pyenv that its command does not run",
        ),
        pytest.param("3.11", {"versions/3.13.0/bin/python3.13": FAILS}, None, id="none that runs"),
    ],
)
def test_the_newest_other_python_that_runs_is_found(
    tmp_path: Path, own_version: str, programs: dict[str, str], chosen: str | None
) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "other-python", tmp_path / ".ci")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    program(tmp_path / ".venv" / "bin" / "python", f"echo {own_version}")
    for path, does in programs.items():
        program(tmp_path / path, does)
    system = tmp_path / "system"
    system.mkdir()
    for name in ("bash", "dirname", "ls", "sed", "sort"):
        (system / name).symlink_to(str(shutil.which(name)))

    done = subprocess.run(
        [system / "bash", tmp_path / ".ci" / "other-python"],
        env={"PATH": f"{tmp_path / 'path'}{os.pathsep}{system}", "PYENV_ROOT": str(tmp_path)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert done.stdout == ("" if chosen is None else f"{tmp_path / chosen}\n")
