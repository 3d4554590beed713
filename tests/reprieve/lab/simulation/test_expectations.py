"""Expectations of a report."""

import pytest

from extender.values.config.configuration import Configuration
from reprieve.lab.simulation.playing import play
from reprieve.lab.simulation.workload import ExpectationError, ExpectedFigure
from tests.reprieve.lab.simulation.test_playing import OBJECTS, URGENT, Given

REPORT = play(Given(OBJECTS, URGENT), Configuration()).report


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("pods == 90", True),
        ("placed >= 1000", False),
        ("refused > 0", True),
        ("allocated.cpu > 50%", True),
        ("allocated.cpu > 0.999", False),
        ("waiting.p99 < 1", True),
        ("utilisation.cpu.peak <= 100%", True),
    ],
)
def test_a_figure_and_its_bound(text: str, holds: bool) -> None:
    assert ExpectedFigure.read(text).judge(REPORT).holds == holds


@pytest.mark.parametrize(
    "text", ["", "placed", "placed = 3", "cows >= 3", "placed >= many", "placed >= 1 and refused == 0", "x" * 10_000]
)
def test_malformed_expectation_is_refused(text: str) -> None:
    with pytest.raises(ExpectationError):
        ExpectedFigure.read(text)


@pytest.mark.parametrize("text", ["allocated.gold > 1", "waiting > 1", "notes == 0", "workload == 1"])
def test_a_figure_that_the_report_lacks_is_named(text: str) -> None:
    with pytest.raises(ExpectationError, match="no number"):
        ExpectedFigure.read(text).judge(REPORT)
