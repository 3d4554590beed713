"""docs/conformance.md: how many recorded answers of kube-scheduler this version agrees with, how fast it decides, and
when that was found.

`make conformance` runs the comparison and writes the page. The figures of versions that are on the page already stay
there.
"""

import importlib
import os
import platform
import re
import resource
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, final

import numpy as np
import pytest

from extender import __version__
from tests.benchmarks.cluster import make_cache
from tests.benchmarks.decision import SHAPES, decide
from tests.each_case import CASES

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "conformance.md"
PODS: Final = 400

_FORM: Final = """# Conformance

Written by `make conformance` on {date}; do not edit it by hand. Reprieve {version}, Python {python}, numpy {numpy}, {cores} cores.

## Recorded answers

Cases were recorded from kube-scheduler 1.36.2 and lie in `tests/parity/cases`. A case agrees if every field does:
nodes, scores, messages, victims. `make test` compares them, too, and fails if one does not agree. Cases that
hold a fault which upstream has mended since, or a default that differs here on purpose, are named in
`tests/parity/known.json`, each with its row of the [known differences](reference/differences.md). They count as agreed, and as wrong once they agree.

| what | cases | agree |
|---|---|---|
{cases}
| all | {number:,} | {agree:,} |

## Versions

Decisions a second of CPU time at 5,000 nodes with ten pods each, and the memory of a process that holds that cluster.
The machines may differ.

| version | date | agree | basic | mixed | memory |
|---|---|---|---|---|---|
{versions}
"""


@final
class _Counts:
    """A pytest plugin. State: (test file, parameter) -> the number of cases and of those that agree."""

    def __init__(self) -> None:
        self.found: dict[tuple[str, str], tuple[int, int]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Takes the number of cases from the report of a test."""
        file, _, test = report.nodeid.partition("::")
        parameter = re.search(r"\[(.*)\]", test)
        for name, value in report.user_properties if report.when == "call" else ():
            if name == CASES and isinstance(value, tuple):
                key = Path(file).stem, parameter[1] if parameter else ""
                number, agree = self.found.get(key, (0, 0))
                self.found[key] = number + value[0], agree + value[0] - len(value[1])


def run() -> int:
    """Compares, measures, and writes the page. Returns pytest's exit code."""
    measured, counts = _measured(), _Counts()
    ended = pytest.main(["-q", str(Path(__file__).parent)], plugins=[counts])
    number, agree = (sum(each[place] for each in counts.found.values()) for place in (0, 1))
    date = datetime.now(UTC).date().isoformat()
    row = f"| {__version__} | {date} | {agree:,} of {number:,} | {' | '.join(measured)} |"
    PAGE.write_text(
        _FORM.format(
            date=date,
            version=__version__,
            python=platform.python_version(),
            numpy=np.__version__,
            cores=os.cpu_count(),
            cases="\n".join(
                f"| {_title(*key)} | {of:,} | {yes:,} |" for key, (of, yes) in sorted(counts.found.items())
            ),
            number=number,
            agree=agree,
            versions="\n".join([row, *_earlier_versions()]),
        )
    )
    print(f"written: {PAGE.relative_to(ROOT)}")
    return int(ended)


def _title(module: str, parameter: str) -> str:
    said = importlib.import_module(f"tests.parity.{module}").__doc__ or module
    title = re.split(r":|[.](?=\s|$)", said)[0]
    return f"{title} ({parameter})" if parameter else title


def _measured() -> tuple[str, str, str]:
    """Returns decisions a second for basic and mixed pods, and the process's memory, as text."""
    cache = make_cache(5000)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    held = pages * resource.getpagesize() / 2**20
    basic, mixed = (
        decide(cache.fork(), [SHAPES[shape](place) for place in range(PODS)], time.process_time).per_second
        for shape in ("basic", "mixed")
    )
    return f"{basic:,.0f}", f"{mixed:,.0f}", f"{held:,.0f} MiB"


def _earlier_versions() -> list[str]:
    known = PAGE.read_text().rpartition("## Versions")[2] if PAGE.exists() else ""
    rows = [line for line in known.splitlines() if re.match(r"\| \d", line)]
    return [line for line in rows if not line.startswith(f"| {__version__} |")]


if __name__ == "__main__":
    sys.exit(run())
