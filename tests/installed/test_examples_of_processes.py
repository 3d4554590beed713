"""The examples of a cluster in several processes say what they found. That of ray is only looked at."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.installed.environment import ROOT

pytestmark = pytest.mark.slow
EXAMPLES = ROOT / "examples" / "processes"

SAID = {
    "multiprocessing": ["without node-0 2 pods have no place", "without node-2 2 pods have no place"],
    "joblib": ["30 pods of 100m", "3 pods of 1"],
    "distributed": ["1 cores instead of []", "4 cores instead of ['batch/report-0']"],
}
FILES = {"distributed": "with_dask.py"}


@pytest.mark.parametrize("library", SAID)
def test_an_example_says_what_its_processes_found(library: str, tmp_path: Path) -> None:
    pytest.importorskip(library)
    file = EXAMPLES / FILES.get(library, f"with_{library}.py")

    done = subprocess.run([sys.executable, file], capture_output=True, text=True, cwd=ROOT, check=False)

    assert done.returncode == 0, done.stderr
    assert set(SAID[library]) <= set(done.stdout.splitlines())
