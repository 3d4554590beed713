"""Decisions: recorded situations, and what the real scheduler said about each."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from extender.engine.evaluation.scenario import evaluate_scenario
from extender.values.config.configuration import Configuration
from tests.kit.many_cases import each_case
from tests.parity.cases import FOLDER, KNOWN, decision_cases
from tests.parity.compare import differences

_COMPONENTS = {
    "cache",
    "config",
    "quantity",
    "requests",
    "selectors",
    "queue",
    "hints",
    "events",
    "extender-client",
    "podgroups",
}
FAMILIES = sorted({path.name.removesuffix(".jsonl.gz") for path in FOLDER.glob("*.jsonl.gz")} - _COMPONENTS)
CONFIGURATION = Configuration()
DIFFERENCES = Path(__file__).parents[2] / "docs" / "reference" / "differences.md"


def id_of(case: dict[str, Any]) -> str:
    return str(case["expected"]["id"])


def all_decision_cases() -> list[dict[str, Any]]:
    return [case for family in FAMILIES for case in decision_cases(family)]


@pytest.mark.parametrize("family", FAMILIES)
@each_case(decision_cases, name_of=id_of)
def test_decision_is_the_real_schedulers(case: dict[str, Any]) -> None:
    """Filters, scores, messages and victims are those of kube-scheduler 1.36, field by field; not all of them where it has
    a fault.
    """
    answer = asyncio.run(evaluate_scenario(case["scenario"], CONFIGURATION))

    diff = {group: diff for group, diff in differences(case["expected"], answer).items() if diff}
    if id_of(case) in KNOWN:
        assert diff != {}
    else:
        assert diff == {}


def test_cases_that_hold_a_fault_are_named_with_a_row_of_the_known_differences() -> None:
    rows = {line.split(" | ")[0].removeprefix("| ") for line in DIFFERENCES.read_text().splitlines()}

    assert set(KNOWN.values()) <= rows
