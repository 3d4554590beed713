"""Tables of cases, as a test reads them: a row is what the case is called, and its values."""

from typing import Any

import pytest


def cases(names: str, /, *rows: tuple[Any, ...]) -> pytest.MarkDecorator:
    """Runs a test for each row.

    @cases(
        "free, asks, reasons",
        ("room left", "2", "1", []),
        ("no room", "0", "1", ["Insufficient cpu"]),
    )

    Arguments:
        names: of the test's parameters.
        rows: the id of the case, then a value for each parameter.
    """
    return pytest.mark.parametrize(names, [pytest.param(*values, id=name) for name, *values in rows])
