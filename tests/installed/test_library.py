"""The page of the library and its notebook, run with nothing but the wheel and the extra `notebook`."""

import json
import re
import sys
from pathlib import Path

import pytest

from tests.installed.environment import ROOT, Environment, installed_into, link_with_requirements

pytestmark = pytest.mark.slow

PAGE = ROOT / "docs" / "library.md"
NOTEBOOK = ROOT / "examples" / "notebooks" / "library.ipynb"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with the wheel, the extra `notebook`, and what Jupyter runs a notebook with."""
    environment = installed_into(tmp_path_factory.mktemp("reader"))
    for name in ("matplotlib", "ipykernel", "nbclient"):
        link_with_requirements(name, environment.libraries)
    return environment


def test_the_code_of_the_page_prints_what_it_says(place: Environment, tmp_path: Path) -> None:
    """All of it, as one program."""
    parts = dict.fromkeys(("python", "text"), "")
    for language, block in re.findall(r"^```(python|text)\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL):
        parts[language] += block
    (tmp_path / "page.py").write_text(parts["python"])
    (tmp_path / "examples").symlink_to(ROOT / "examples")

    done = place.run("python page.py", cwd=tmp_path)

    assert (done.stdout, done.stderr) == (parts["text"], "")


EXECUTE = """
import nbformat, sys
from nbclient import NotebookClient

notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=300).execute()
print(*(out.text for cell in notebook.cells for out in cell.get("outputs", ()) if "text" in out))
"""


def test_the_notebook_runs_and_draws(place: Environment, tmp_path: Path) -> None:
    """In the folder that it is in, with the kernel of the environment."""
    for folder in ("workloads", "clusters"):
        (tmp_path / folder).symlink_to(ROOT / "examples" / folder)
    (tmp_path / "notebooks").mkdir()

    done = place.run(f"python -c '{EXECUTE}' {NOTEBOOK}", cwd=tmp_path / "notebooks", MPLBACKEND="agg")

    assert done.returncode == 0, done.stderr
    assert re.search(r"LeastAllocated: \d+ pods placed, .* 78.0% of 228 GPUs\nMostAllocated: .* 98.4%", done.stdout)
    assert "gpu-1: 3 pods leave, without a node then: none" in done.stdout
    assert "with FewestFreeGpus: 97.9% of the GPUs" in done.stdout
    assert (tmp_path / "notebooks" / "packing.png").read_bytes().startswith(b"\x89PNG")


def test_the_notebook_is_kept_without_outputs() -> None:
    cells = json.loads(NOTEBOOK.read_text())["cells"]

    assert [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")] == []


def test_a_foreign_package_that_comes_first_is_named(place: Environment, tmp_path: Path) -> None:
    (tmp_path / "api").mkdir()
    (tmp_path / "api" / "__init__.py").write_text("raise RuntimeError('not to be run')")

    done = place.run("python -c 'from reprieve import Cluster'", PYTHONPATH=str(tmp_path))

    assert "ImportError: another package named 'api' comes before its own" in done.stderr


def test_a_type_checker_knows_the_names(place: Environment, tmp_path: Path) -> None:
    program = "from reprieve import Cluster, Trial\nwith Cluster.load('x').trial() as trial:\n    reveal_type(trial)\n"
    (tmp_path / "program.py").write_text(program)

    done = place.run(f"{sys.executable} -m mypy --python-executable {place.bin / 'python'} program.py", cwd=tmp_path)

    assert 'Revealed type is "reprieve.library.Trial"' in done.stdout, done.stdout + done.stderr
