"""Every row of the tables of limits is filled: what is seen at it, and at one above it."""

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from extender.values import limits
from extender.values.concurrency import virtual_time
from reprieve.cluster import limits as cluster_limits
from reprieve.lab import limits as lab_limits
from tests.api.in_process import reprieve
from tests.kit.service import Service
from tests.limits.of_answers import ANSWERS
from tests.limits.of_kept import KEPT
from tests.limits.of_objects import OBJECTS
from tests.limits.of_questions import QUESTIONS
from tests.limits.of_verbs import VERBS
from tests.limits.rows import Command, Filled, Held, Kept, Page

ROWS: dict[str, Filled | Kept | Page | Command | Held] = {**OBJECTS, **VERBS, **QUESTIONS, **ANSWERS, **KEPT}
TABLES = {
    name: table
    for table in (limits, lab_limits, cluster_limits)
    for name, limit in vars(table).items()
    if isinstance(limit, limits.Limit)
}
LIMITS: dict[str, limits.Limit] = {name: vars(table)[name] for name, table in TABLES.items()}
ROOT = Path(__file__).parents[2]


def test_each_row_has_an_entry() -> None:
    assert sorted(ROWS) == sorted(LIMITS)


def _probed(row: Filled, number: int) -> Any:
    return _awaited(row.probe(number))


def _awaited(answer: Any) -> Any:
    return virtual_time.run(answer) if inspect.iscoroutine(answer) else answer


def _lowered(name: str, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = LIMITS[name]
    monkeypatch.setattr(TABLES[name], name, limits.Limit(limit.door, number, limit.what, limit.told))


def _expected(what: Any, number: int) -> Any:
    return what(number) if callable(what) else what


FILLED = [
    pytest.param(name, marks=[pytest.mark.slow] * row.is_slow) for name, row in ROWS.items() if isinstance(row, Filled)
]


@pytest.mark.parametrize("name", FILLED)
def test_a_limit_takes_as_much_as_it_says_and_no_more(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    row, limit = ROWS[name], LIMITS[name]
    assert isinstance(row, Filled)
    number = row.lowered_to or int(limit)
    if row.lowered_to:
        _lowered(name, number, monkeypatch)

    at_limit, above = _probed(row, number), _probed(row, number + 1)

    assert at_limit == _expected(row.at, number)
    expected = _expected(row.above, number + 1)
    if isinstance(expected, str):
        assert expected
        assert expected in above
    else:
        assert above == expected


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if isinstance(row, Kept)])
def test_what_a_limit_just_takes_is_whole_and_one_unit_less_cuts_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    row = ROWS[name]
    assert isinstance(row, Kept)

    _lowered(name, row.units, monkeypatch)
    whole = _awaited(row.probe())
    _lowered(name, row.units - 1, monkeypatch)
    cut = _awaited(row.probe())

    assert (whole, cut) == (row.whole, row.cut)


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if isinstance(row, Page | Command)])
def test_a_page_or_a_command_shows_no_more_than_the_limit(
    name: str, example: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = ROWS[name]
    assert isinstance(row, Page | Command)

    def num_shown() -> int:
        if isinstance(row, Page):
            answer = example.client.get(row.path)
            assert answer.status_code == 200
            return len(re.findall(row.pattern, answer.text))
        done = reprieve(*row.words, "--server", f"127.0.0.1:{example.port}")
        assert done.returncode == 0, done.stderr
        return len(re.findall(row.pattern, done.stdout.decode()))

    _lowered(name, row.units, monkeypatch)
    whole = num_shown()
    _lowered(name, row.units - 1, monkeypatch)
    cut = num_shown()

    assert (whole, cut) == (row.units, row.units - 1)


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if isinstance(row, Held)])
def test_a_limit_that_another_test_holds_is_named_there(name: str) -> None:
    row = ROWS[name]
    assert isinstance(row, Held)
    file, _, test = row.by.partition("::")
    text = (ROOT / file).read_text(encoding="utf-8")

    assert re.search(rf"def {test}\b", text)
    assert (row.says or f"limits.{name}") in text or f'"{name}"' in text
