"""ARCHITECTURE.md tells the truth where a program can tell."""

import ast
import inspect
import re
import tomllib
from pathlib import Path

import extender
from extender.engine.plugins import IN_TREE
from extender.engine.runtime.registry import POINTS, implemented_points
from extender.values.config.plugin_sets import DEFAULT_PLUGINS

ROOT = Path(__file__).parents[2]
PAPER = (ROOT / "ARCHITECTURE.md").read_text()
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]


def section(heading: str) -> str:
    """
    The text of ARCHITECTURE.md below a heading, up to the next one.
    """
    return PAPER.split(f"## {heading}\n")[1].split("\n## ")[0]


def classes() -> set[str]:
    sources = [path for package in ("extender", "api") for path in (ROOT / package).rglob("*.py")]
    return {
        node.name
        for path in sources
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    }


def drawn(text: str) -> list[tuple[list[str], str]]:
    """
    The rooms of a drawing, from the top: packages with ` | ` between them, then what they contain.
    """
    floors = re.findall(r"^ *(\w+(?: \| \w+)*) {2,}(\S.*)$", text, re.MULTILINE)
    return [(names.split(" | "), contents) for names, contents in floors]


def contracted() -> list[list[str]]:
    """
    The rooms that import-linter holds.
    """
    [floors] = [contract["layers"] for contract in CONTRACTS if contract["name"].startswith("Rooms")]
    return [[name.removeprefix("extender.") for name in floor.split(" | ")] for floor in floors]


def packages() -> set[str]:
    return {path.parent.name for path in (ROOT / "extender").glob("*/__init__.py")}


def test_the_rooms_are_drawn_as_they_are_held() -> None:
    """
    In ARCHITECTURE.md, and, but for the topmost, in the engine's docstring.
    """
    floors = drawn(section("Rooms"))

    assert [names for names, _ in floors] == contracted()
    assert drawn(inspect.getdoc(extender) or "") == floors[1:]


def test_every_package_is_a_room_and_keeps_away_from_the_test_kit() -> None:
    [kit] = [contract for contract in CONTRACTS if contract.get("forbidden_modules") == ["extender.testing"]]

    assert {name for floor in contracted() for name in floor} == packages() - {"testing"} | {"api"}
    assert {name.removeprefix("extender.") for name in kit["source_modules"]} == packages() - {"testing"}


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


def test_every_home_of_state_is_a_class() -> None:
    rows = re.findall(r"^\| (`.*?) \|", section("Where state lives"), re.MULTILINE)

    named = {name for row in rows for name in re.findall(r"`(.*?)`", row)}

    assert len(named) > 20
    assert named - classes() == set()


def test_every_class_of_the_glossary_exists() -> None:
    rows = re.findall(r"^\| (.*?) \|", section("Glossary"), re.MULTILINE)

    named = {name for row in rows for name in re.findall(r"`([A-Z]\w+)`", row)}

    assert len(named) > 30
    assert named - classes() == set()


def test_every_change_of_the_guide_needs_at_most_three_files_and_names_its_tests() -> None:
    """
    In CONTRIBUTING.md, "To change X, open Y".
    """
    guide = (ROOT / "CONTRIBUTING.md").read_text().split("## To change X, open Y\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", guide, re.MULTILINE)[1:]

    assert len(rows) > 12
    for change, opened, tests in rows:
        files, specified = (re.findall(r"`((?:api|extender|tests|deploy)/[^`]*)`", cell) for cell in (opened, tests))
        assert 1 <= len(files) <= 3, change
        assert specified, change
        assert [name for name in (*files, *specified) if not (ROOT / name).exists()] == [], change


def test_every_known_difference_names_a_test_that_exists() -> None:
    """
    A difference without a test would be an excuse.
    """
    table = PAPER[PAPER.index("## Known differences") :]

    named = re.findall(r"`(tests/[\w/]+\.py)`", table)

    assert len(named) > 5
    assert [name for name in named if not (ROOT / name).exists()] == []
