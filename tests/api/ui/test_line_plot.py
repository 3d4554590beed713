"""Line plots as SVG."""

import xml.etree.ElementTree as ET

import pytest

from api.ui.simulation_page import amount, line_plot
from reprieve.lab.simulation import Series


def test_a_line_goes_from_the_first_point_to_the_last() -> None:
    plot = ET.fromstring(str(line_plot("Pods", [Series("placed <so far>", [(0, 0), (10, 100)], 2)], "seconds")))

    (path,) = plot.findall("svg/path")
    assert path.attrib == {"class": "line c2", "d": "M52.0 206.0L628.0 12.0"}
    assert plot.find("svg").attrib["aria-label"] == "Pods: placed <so far>"  # type: ignore[union-attr]
    assert [item.findtext(".") or "".join(item.itertext()) for item in plot.findall("ul/li")] == ["placed <so far>"]


def test_shares_have_one_hundred_percent_at_the_top() -> None:
    plot = str(line_plot("Allocated", [Series("cpu", [(0, 0.5), (1, 0.25)], 0)], "attempts", percent=True))

    assert "100%" in plot
    assert "M52.0 109.0L628.0 157.5" in plot


@pytest.mark.parametrize("points", [[], [(0.0, 0.0)], [(0.0, 1e12)], [(5.0, 0.3)]], ids=str)
def test_odd_series_are_drawn(points: list[tuple[float, float]]) -> None:
    assert "<figure" in str(line_plot("Odd", [Series("a", points, 0)], "x"))


@pytest.mark.parametrize(
    ("value", "words"), [(0, "0"), (0.25, "0.25"), (375, "375"), (7180, "7,180"), (28_719, "28.7k"), (2.5e6, "2.5M")]
)
def test_amounts_are_short(value: float, words: str) -> None:
    assert amount(value) == words
