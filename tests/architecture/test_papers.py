"""ARCHITECTURE.md, and what was said there before, tells the truth where a program can tell."""

import inspect
import re
import tomllib

import extender
from tests.architecture.sources import ROOT, parsed, sources
from tools import draw_rooms

PAPER = (ROOT / "ARCHITECTURE.md").read_text()
_MOVES = "0029-rules-sources-and-what-is-built-on-the-scheduler.md"
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]


def section(heading: str) -> str:
    """The text of ARCHITECTURE.md below a heading, up to the next one."""
    return PAPER.split(f"## {heading}\n")[1].split("\n## ")[0]


def classes() -> set[str]:
    return {name for path in sources() for name in parsed(path).classes}


def drawn(text: str) -> list[tuple[list[str], str]]:
    """The rooms of a drawing, from the top: packages with ` | ` between them, then what they contain."""
    floors = re.findall(r"^ *(\w+(?: \| \w+)*) {2,}(\S.*)$", text, re.MULTILINE)
    return [(names.split(" | "), contents) for names, contents in floors]


def contracted() -> list[list[str]]:
    """The rooms that import-linter holds."""
    [floors] = [contract["layers"] for contract in CONTRACTS if contract["name"].startswith("Rooms")]
    return [[name.rpartition(".")[2] for name in floor.split(" | ")] for floor in floors]


def packages() -> set[str]:
    return {path.parent.name for above in ("extender", "reprieve") for path in (ROOT / above).glob("*/__init__.py")}


def test_the_rooms_are_drawn_as_they_are_held() -> None:
    """In ARCHITECTURE.md, and those of the scheduler in the docstring of `extender`."""
    floors = drawn(section("Rooms"))

    assert [names for names, _ in floors] == contracted()
    of_the_scheduler = [floor for floor in floors if (ROOT / "extender" / floor[0][0] / "__init__.py").exists()]
    assert drawn(inspect.getdoc(extender) or "") == of_the_scheduler


def test_every_package_is_a_room_and_keeps_away_from_the_test_kit() -> None:
    [kit] = [contract for contract in CONTRACTS if contract.get("forbidden_modules") == ["extender.testing"]]

    assert {name for floor in contracted() for name in floor} == packages() - {"testing"} | {"api"}
    assert {name.rpartition(".")[2] for name in kit["source_modules"]} == packages() - {"testing"}


def test_rooms_are_drawn_with_what_they_import() -> None:
    assert draw_rooms.PICTURE.read_text() == draw_rooms.picture(), "run `make docs`"


def test_architecture_is_read_in_ten_minutes() -> None:
    assert len(PAPER.encode()) <= 9 * 1024


def test_every_module_of_a_walk_exists() -> None:
    modules = re.findall(r"`([a-z_/0-9]+\.py)`", section("Walks"))

    assert len(modules) > 30
    assert [name for name in modules if not any((above / name).exists() for above in (ROOT, ROOT / "extender"))] == []


def test_every_home_of_state_is_a_class() -> None:
    rows = re.findall(r"^\| (`.*?) \|", section("Where state lives"), re.MULTILINE)

    class_names = {name for row in rows for name in re.findall(r"`(.*?)`", row)}

    assert len(class_names) > 20
    assert class_names - classes() == set()


def test_every_class_among_the_words_exists() -> None:
    rows = re.findall(r"^\| (.*?) \|", (ROOT / "docs/maintain/words.md").read_text(), re.MULTILINE)

    class_names = {name for row in rows for name in re.findall(r"`([A-Z]\w+)`", row)}

    assert len(class_names) > 30
    assert class_names - classes() == set()


def test_every_change_of_the_guide_names_its_files_and_tests() -> None:
    """In docs/maintain/change-x.md."""
    page = (ROOT / "docs/maintain/change-x.md").read_text()
    rows = [row for row in re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", page, re.MULTILINE) if row[1] != "open"]

    assert len(rows) > 30
    for change, *cells in rows:
        for cell in cells:
            files = re.findall(r"`((?:api|bench|extender|reprieve|tests|deploy|tools)/[^`]*)`", cell)
            assert files, change
            assert [name for name in files if not (ROOT / name).exists()] == [], change


def test_every_path_in_back_ticks_exists() -> None:
    """In each paper, from the root or below a package. The record of a move names the old places, too."""
    papers = sorted(
        path for path in ROOT.rglob("*.md") if not any(part[0] in "._" for part in path.relative_to(ROOT).parts)
    )
    tree = [
        "/" + str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if "/." not in str(path.relative_to(ROOT.parent))
    ]
    ours = re.compile(
        r"`((?:api|bench|deploy|docs|examples|extender|reprieve|tests|tools)/[\w./-]+|[a-z_]+(?:/[a-z_0-9]+)*/[a-z_0-9]+\.py)`"
    )
    mentions = {
        (str(paper.relative_to(ROOT)), path)
        for paper in papers
        if paper.name != _MOVES
        for path in ours.findall(paper.read_text())
    }

    assert len(mentions) > 200
    assert (
        sorted(
            (paper, path) for paper, path in mentions if not any(file.endswith("/" + path.rstrip("/")) for file in tree)
        )
        == []
    )


def test_every_known_difference_names_a_test_that_exists() -> None:
    """A difference without a test would be an excuse."""
    table = (ROOT / "docs/reference/differences.md").read_text()

    test_paths = re.findall(r"`(tests/[\w/]+\.py)`", table)

    assert len(test_paths) > 5
    assert [name for name in test_paths if not (ROOT / name).exists()] == []
