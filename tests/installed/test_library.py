"""The page of the library and its notebook, run with nothing but the wheel and the extra `notebook`."""

import json
import re
import sys
from pathlib import Path

import pytest

from tests.installed.environment import ROOT, Environment, installed_into, link_with_requirements

pytestmark = pytest.mark.slow

PAGE = ROOT / "docs" / "library.md"
EXAMPLE = ROOT / "api" / "examples" / "cluster.yaml"
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


def foreign(folder: Path, name: str) -> str:
    (folder / name).mkdir()
    (folder / name / "__init__.py").write_text("raise RuntimeError('not to be run')")
    return str(folder)


def test_a_foreign_package_that_comes_first_is_named(place: Environment, tmp_path: Path) -> None:
    done = place.run("python -c 'from reprieve import Cluster'", PYTHONPATH=foreign(tmp_path, "extender"))

    assert "ImportError: another package named 'extender' comes before its own" in done.stderr


@pytest.mark.parametrize("path", [{}, {"PYTHONPATH": "."}], ids=["in the working directory", "in PYTHONPATH, too"])
def test_library_works_beside_a_foreign_folder_api(place: Environment, tmp_path: Path, path: dict[str, str]) -> None:
    foreign(tmp_path, "api")
    (tmp_path / "cluster.yaml").write_bytes(EXAMPLE.read_bytes())
    (tmp_path / "own.py").write_text(OWN)
    program = (
        "from own import Fewest, rule, ask; from reprieve import Cluster; print(len(ask(Cluster.load('cluster.yaml'))))"
    )

    done = place.run(f'python -c "{program}"', cwd=tmp_path, **path)

    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 0


def test_a_command_that_cannot_start_says_why_in_one_line(place: Environment, tmp_path: Path) -> None:
    foreign(tmp_path, "api")

    done = [place.run(f"reprieve {command}", cwd=tmp_path, PYTHONPATH=".") for command in ("serve", "doctor", "test")]

    assert [(run.returncode, run.stdout) for run in done] == [(1, "")] * 3
    assert {run.stderr for run in done} == {
        f"reprieve: another package named 'api' comes before its own: {tmp_path / 'api'}; "
        "take that folder out of PYTHONPATH, or install reprieve in a separate environment\n"
    }


OWN = """
import random

import numpy as np

from reprieve import Capacity, Chart, Cluster, Explanation, NodeArrays, Placement, PreemptionAnswer, plugin as fwk
from reprieve.testing import check_filter, make_node, make_pod, make_snapshot


class Fewest(fwk.ScorePlugin):
    name = "Fewest"

    def score(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return 100 - np.minimum(rows.pod_count, 100)


@fwk.node_filter
def rule(pod: fwk.Pod, node: fwk.NodeInfo) -> str | None:
    return "no" if pod.labels.get("a") else None


CARDS = fwk.Account(1, lambda node: [int(node.annotations["cards"])], lambda pod: [int(pod.annotations["card"])])


class Cards(fwk.FilterPlugin, fwk.ReservePlugin):
    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        return fwk.reject(rows.left(CARDS)[:, 0] < 1, "no card")

    def reserve(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> None:
        state.write(fwk.BINDING_ANNOTATIONS, {"card": str(state.snapshot.nodes.index[node])})

    def unreserve(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> None:
        pass


def ask(cluster: Cluster) -> list[Placement]:
    with cluster.trial(plugins=[Fewest, rule]) as trial:
        arrays: NodeArrays = trial.nodes()
        assert arrays.scores is not None
        return trial.schedule()


def asked_of_a_pod(cluster: Cluster) -> list[str]:
    with cluster.trial() as trial:
        answer: PreemptionAnswer = trial.preempt("x")
        room: Capacity = trial.fits({"kind": "Pod"})
        return [victim.pod.key for victim in answer.victims] + [str(room.by_node[0].pods)]


def why(cluster: Cluster) -> str:
    with cluster.trial() as trial:
        answer: Explanation = trial.why("x")
        return answer.summary + str([each.text for each in answer.fixes])


def test_chart(reprieve_chart: Chart, reprieve_cluster: Cluster) -> None:
    assert reprieve_chart.will_fit() and reprieve_chart.evicts_nobody()
    assert reprieve_chart.spreads_over("zone", min_domains=3, max_skew=1, workload="Deployment/web")
    assert "default/web-1" in reprieve_chart.pods and not reprieve_cluster.chart("x.yaml", namespace="x").evictions


def of_a_list(listed: dict[str, object]) -> Cluster:
    return Cluster.load(listed)


def laws(seed: int) -> None:
    check_filter(rule(), make_snapshot(make_node("n").annotation({"cards": "1"})), make_pod().obj(), random.Random(seed))
"""
"""A program of a plugin's author, with names from each module that documentation tells them to import."""


def test_a_strict_type_checker_knows_all_names(place: Environment, tmp_path: Path) -> None:
    program = "from reprieve import Cluster, Trial\nwith Cluster.load('x').trial() as trial:\n    reveal_type(trial)\n"
    of_the_extra_gym = "from reprieve.gym import SchedulingEnvironment, TrialEnvironment\nprint(SchedulingEnvironment, TrialEnvironment)\n"
    (tmp_path / "program.py").write_text(program + of_the_extra_gym)
    (tmp_path / "own.py").write_text(OWN)
    mypy = f"{sys.executable} -m mypy --strict --python-executable {place.bin / 'python'}"

    done = place.run(f"{mypy} program.py own.py", cwd=tmp_path)

    assert 'Revealed type is "reprieve.trials.Trial"' in done.stdout, done.stdout + done.stderr
    assert "Success: no issues found in 2 source files" in done.stdout
