"""Where the recorded answers of the real scheduler lie: the folder named by PARITY_CASES, or the one beside this file."""

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ.get("PARITY_CASES") or Path(__file__).parent / "cases")

KNOWN: dict[str, str] = {
    case: row
    for path in {Path(__file__).parent / "known.json", FOLDER / "known.json"}
    if path.exists()
    for case, row in json.loads(path.read_text()).items()
}
"""The ids of cases that hold a fault of kube-scheduler which is mended here, each with its row of the known differences:
in known.json beside this file, and in the folder named by PARITY_CASES.
"""


def component_cases(name: str) -> list[dict[str, Any]]:
    """All `{"id", "input", "expect"}` cases of one component corpus, such as `quantity`."""
    return list(_lines(FOLDER / f"{name}.jsonl.gz"))


def component_document(name: str) -> dict[str, Any] | None:
    """A corpus that is one document, such as `registered-events`; None where a folder of other cases lacks it."""
    path = FOLDER / f"{name}.json"
    if "PARITY_CASES" in os.environ and not path.exists():
        return None
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def decision_cases(family: str) -> list[dict[str, Any]]:
    """All `{"scenario", "expected"}` cases of one family of scheduling decisions, such as `taints`."""
    return list(_lines(FOLDER / f"{family}.jsonl.gz"))


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    if "PARITY_CASES" in os.environ and not path.exists():
        return  # a folder of somebody else's may hold some of the files; their tests are then skipped for want of cases
    with gzip.open(path, "rt") as lines:
        for line in lines:
            yield json.loads(line)
