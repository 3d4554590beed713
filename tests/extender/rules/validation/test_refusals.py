"""Everything that the API refuses about an object, in upstream's words; and that nothing is refused without a row."""

import ast
import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from extender.rules import validation
from extender.values.golang import field_errors
from tests.extender.rules.validation.refusals import Refusal, refusals, valid_objects

RULES = Path(validation.__file__).parent
REFUSALS = list(refusals())
Site = tuple[str, int, int]
"""A call in the rules: the file, the line and the column."""


@pytest.mark.parametrize(
    ("resource", "valid"), valid_objects().items(), ids=lambda value: getattr(value, "qualified", "")
)
def test_valid_object_is_accepted_on_create_and_update(resource, valid):
    assert validation.validate_create(resource, valid) == []
    assert validation.validate_update(resource, valid, valid) == []


@pytest.mark.parametrize(
    "refusal", [pytest.param(row, id=f"{row.resource.kind} {row.verb}: {row.errors[0][:60]}") for row in REFUSALS]
)
def test_refusal(refusal: Refusal) -> None:
    texts = list(map(str, refusal.refused()))

    assert len(texts) == len(refusal.errors), texts
    for text, beginning in zip(texts, refusal.errors, strict=True):
        assert text.startswith(beginning)


def test_every_refusal_has_a_row() -> None:
    """Each call in the rules that returns errors returns some for a row of the table."""
    provoked = {site for row in REFUSALS for site in sites_of_errors(row.refused)}

    assert {site: text for site, text in refusing_calls() if site not in provoked} == {}


def refusing_calls() -> Iterator[tuple[Site, str]]:
    """Yields the calls of functions that return errors."""
    modules = {
        path: ast.parse(path.read_text(encoding="utf-8")) for path in (*RULES.glob("*.py"), Path(field_errors.__file__))
    }
    functions = [node for tree in modules.values() for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    refusing = {node.name for node in functions if node.returns and "FieldError" in ast.unparse(node.returns)}
    for path in RULES.glob("*.py"):
        for node in ast.walk(modules[path]):
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in refusing:
                yield (path.name, node.lineno, node.col_offset), ast.unparse(node)


def sites_of_errors(refused: Callable[[], Any]) -> set[Site]:
    """Returns the calls in the rules that return errors while `refused` runs."""
    sites: set[Site] = set()

    def profile(frame: FrameType, event: str, value: Any) -> None:
        caller = frame.f_back
        if event != "return" or caller is None or Path(caller.f_code.co_filename).parent != RULES:
            return
        if value[0] if isinstance(value, tuple) else value:
            positions = itertools.islice(caller.f_code.co_positions(), caller.f_lasti // 2, None)
            line, _, column, _ = next(positions)
            sites.add((Path(caller.f_code.co_filename).name, line or 0, column or 0))

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        refused()
    finally:
        sys.setprofile(before)
    return sites
