"""docs/newer-versions.md agrees with the table of feature gates and with the known differences."""

import re
from pathlib import Path
from typing import Final

import pytest

from extender.values.config.feature_gate_table import GATES, VERSIONS, Gate

DOCS: Final = Path(__file__).parents[1] / "docs"
PAGE: Final = (DOCS / "newer-versions.md").read_text()
DIFFERENCES: Final = {
    cells[0]: " ".join(cells)
    for line in (DOCS / "reference" / "differences.md").read_text().splitlines()
    if line.startswith("| ") and len(cells := line.strip("| ").split(" | ")) == 4
}


def rows_under(heading: str) -> list[list[str]]:
    """The cells of the table under a heading."""
    part = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("| ")][1:]


FAULTS: Final = rows_under("Faults of 1.36 that were mended later")
FEATURES: Final = rows_under("Features behind gates")
MENDED: Final = [(what, note.removeprefix("mended: ")) for what, _, note in FAULTS if note.startswith("mended: ")]


def states(gate: Gate) -> list[tuple[object, ...]]:
    """What the gate is in 1.36, 1.37 and 1.38."""
    specs = [gate.at(version) for version in VERSIONS[VERSIONS.index("1.36") :]]
    return [() if spec is None else (spec.stage, spec.default, spec.locked) for spec in specs]


@pytest.mark.parametrize(("what", "row"), MENDED)
def test_a_fault_that_is_mended_is_a_known_difference(what: str, row: str) -> None:
    """Which names the change, so that it can be taken out once that version is emulated."""
    assert row in DIFFERENCES
    for number in re.findall(r"#(\d+)", what):
        assert f"#{number}" in DIFFERENCES[row]


def test_every_mended_fault_among_the_known_differences_is_on_the_page() -> None:
    page_numbers = set(re.findall(r"#(\d+)", PAGE))
    among = {
        number
        for row in DIFFERENCES.values()
        for mended in re.findall(r"mended since \((.*?)\)", row)
        for number in re.findall(r"#(\d+)", mended)
    }

    # These two are neither in the change log of 1.37 nor in one of 1.38's alphas.
    assert among - page_numbers <= {"141526", "141563"}


def test_every_gate_that_1_37_or_1_38_change_is_on_the_page() -> None:
    changed = {name for name, gate in GATES.items() if len({*states(gate)}) > 1}

    # Its second alpha has no other defaults than the first, and the other one is about expressions.
    assert {name.strip("`") for name, _, _ in FEATURES} == changed | {
        "DRANodeAllocatableResources",
        "DRAListTypeAttributes",
    }


@pytest.mark.parametrize(("name", "change", "note"), FEATURES)
def test_the_page_says_of_a_gate_what_the_table_does(name: str, change: str, note: str) -> None:
    gate = GATES[name.strip("`")]
    of_36, of_37, of_38 = states(gate)

    assert (note == "not here") == (gate.only is False)
    assert (note == "gate, without effect") == (gate.only is None and bool(gate.why))
    assert ("gone" in change) == (gate.removed_in is not None and gate.removed_in >= (1, 37))
    assert ("new" in change) == (of_36 == () and of_37 != ())
    assert ("locked" in change) == any(after and after[2] and not (of_36 and of_36[2]) for after in (of_37, of_38))
    assert ("off" in change and "new" in change) == (of_36 == () and bool(of_37) and not of_37[1])


def test_a_change_is_told_of_once() -> None:
    numbers = re.findall(r"#(\d+)", PAGE.split("\n## ", 1)[1])
    repeated = {number for number in numbers if numbers.count(number) > 1}

    assert repeated == {"138676", "139520", "140256"}, "changes of several gates"
