"""ARCHITECTURE.md tells the truth where a program can tell."""

import re
from pathlib import Path

from extender.config.plugin_sets import DEFAULT_PLUGINS
from extender.plugins import IN_TREE
from extender.runtime.registry import POINTS, implemented_points

ROOT = Path(__file__).parents[2]
PAPER = (ROOT / "ARCHITECTURE.md").read_text()


def test_every_plugin_is_listed_with_its_extension_points_and_weight() -> None:
    """
    The table is what the classes say, in the order of the default profile.
    """
    weights = {plugin.name: plugin.weight or 1 for plugin in DEFAULT_PLUGINS["multiPoint"].enabled}
    expected = []
    for name, plugin in IN_TREE.items():
        points = [point for point in POINTS if point in implemented_points(plugin)]
        expected.append((name, ", ".join(points), str(weights[name]) if "score" in points else ""))

    listed = re.findall(r"^\| (\w+) \| ((?:\w+)(?:, \w+)*) \| ?(\d*) ?\|$", PAPER, re.MULTILINE)

    assert [row for row in listed if row[0] in IN_TREE] == expected


def test_every_known_difference_names_a_test_that_exists() -> None:
    """
    A difference without a test would be an excuse.
    """
    table = PAPER[PAPER.index("## Known differences") :]

    named = re.findall(r"`(tests/[\w/]+\.py)`", table)

    assert len(named) > 5
    assert [name for name in named if not (ROOT / name).exists()] == []
