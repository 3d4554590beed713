"""docs/reference/refusals.md: it has a row for each message of a Filter or PreFilter in the recorded cases, and what a row
says is added to a message is added to it in one of them.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, final

import pytest

from tests.parity.test_decisions import all_decision_cases
from tests.parity.test_explanations import explained
from tests.parity.test_remedies import refused_cases

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "refusals.md").read_text()


@final
@dataclass(frozen=True, slots=True)
class Row:
    words: re.Pattern[str]
    plugin: str
    facts: tuple[str, ...]
    remedies: tuple[str, ...]


def pattern(words: str) -> str:
    """The text as a pattern: words in capitals stand for anything."""
    return re.sub(r"\b[A-Z]+\b", ".+?", re.escape(words))


def rows() -> list[Row]:
    lines = [re.split(r"\s*\|\s*", line.strip("| ")) for line in re.findall(r"^\| `.*$", PAGE, re.MULTILINE)]
    return [
        Row(re.compile(pattern(words.strip("`"))), plugin, *(tuple(re.findall("`(.+?)`", cell)) for cell in cells))
        for words, plugin, *cells in lines
    ]


ROWS = rows()


def refusals(expected: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yields (plugin, message), of a pod and of nodes."""
    status = expected["prefilter"]["status"]
    yield from ((status.get("plugin", ""), reason) for reason in status.get("reasons", ()))
    for one in expected["filter"].values():
        yield from ((one.get("plugin", ""), reason) for reason in one.get("reasons", ()))
    for plugin, statuses in expected["filterByPlugin"].items():
        yield from ((plugin, reason) for one in statuses.values() for reason in one.get("reasons", ()))


def rows_of(plugin: str, message: str) -> list[Row]:
    return [row for row in ROWS if row.plugin == (plugin or row.plugin) and row.words.fullmatch(message)]


def test_every_recorded_message_has_one_row() -> None:
    messages = {one for case in all_decision_cases() for one in refusals(case["expected"])}

    assert {one for one in messages if len(rows_of(*one)) != 1} == set()
    assert {row.words.pattern for row in ROWS} == {rows_of(*one)[0].words.pattern for one in messages}


def test_a_row_without_a_fact_or_a_remedy_says_why() -> None:
    cells = [re.split(r"\s*\|\s*", line.strip("| "))[2:] for line in re.findall(r"^\| `.*$", PAGE, re.MULTILINE)]

    assert all(cell.startswith("`") or re.match(r"– \S", cell) for pair in cells for cell in pair)


@cache
def words_by_pattern() -> dict[str, tuple[set[str], set[str]]]:
    """By the pattern of a row: what is said of a pod that is refused with its message, and which changes are offered."""
    words: defaultdict[str, tuple[set[str], set[str]]] = defaultdict(lambda: (set(), set()))
    for case in refused_cases():
        answer = explained(case["scenario"])
        facts = {*(fact.text for fact in answer.facts), *answer.notes}
        for row in {row.words: row for one in refusals(case["expected"]) for row in rows_of(*one)}.values():
            words[row.words.pattern][0].update(facts)
            words[row.words.pattern][1].update(fix.text for fix in answer.fixes)
    return words


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.plugin)
def test_what_a_row_promises_is_said_of_a_recorded_pod(row: Row) -> None:
    if row.words.pattern not in words_by_pattern():
        pytest.skip("no recorded pod that fits nowhere is told so")
    facts, remedies = words_by_pattern()[row.words.pattern]

    assert [fact for fact in row.facts if not any(re.search(pattern(fact), text) for text in facts)] == []
    assert [one for one in row.remedies if not any(re.search(pattern(one), text) for text in remedies)] == []
