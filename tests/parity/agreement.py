"""How many recorded answers of kube-scheduler this version agrees with: the tests of this folder, counted.

`python -m tests.parity.agreement` prints it as the last line. It is a process of its own, because pytest has to be there
before what it tests.
"""

import importlib
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import final

import pytest

from tests.kit.many_cases import CASES


@final
class _Counts:
    """A pytest plugin. State: test file -> the number of cases and of those that agree."""

    def __init__(self) -> None:
        self.found: dict[str, tuple[int, int]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Takes the number of cases from the report of a test."""
        file = Path(report.nodeid.partition("::")[0]).stem
        for name, value in report.user_properties if report.when == "call" else ():
            if name == CASES and isinstance(value, tuple):
                number, agree = self.found.get(file, (0, 0))
                self.found[file] = number + value[0], agree + value[0] - len(value[1])


def agreements() -> Sequence[tuple[str, int, int]]:
    """Runs the comparisons. Returns what was compared, the number of cases, and that of those that agree."""
    command = [sys.executable, "-m", "tests.parity.agreement"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [(str(what), int(number), int(agree)) for what, number, agree in json.loads(done.stdout.splitlines()[-1])]


def main() -> None:
    """Runs the comparisons, and prints what came of them."""
    plugin = _Counts()
    pytest.main(["-q", "--no-header", str(Path(__file__).parent)], plugins=[plugin])
    print(json.dumps([(_title(file), *numbers) for file, numbers in sorted(plugin.found.items())]))


def _title(module: str) -> str:
    docstring = importlib.import_module(f"tests.parity.{module}").__doc__ or module
    return re.split(r":|[.](?=\s|$)", docstring)[0]


if __name__ == "__main__":
    main()
