"""The house stands as it is drawn: floors without cycles, files that mean one thing, every plugin specified, nothing
left open.
"""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

from extender.engine.framework import Plugin
from extender.engine.plugins import IN_TREE
from extender.engine.runtime.registry import implemented_points
from tests.architecture.sources import ROOT, parsed, sources
from tests.kit.many_cases import each_case
from tests.kit.waiting import DEADLINE

MAX_LINES = 550
MAX_LINES_OF_A_FUNCTION = 85
DRAWERS = ("utils", "util", "helpers", "helper", "common", "core", "manager", "base", "misc")


def relative_name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_importing_the_contract_loads_no_engine_and_no_web_library() -> None:
    """A plugin can be written, typed and tested without what runs it."""
    code = "import sys, extender.engine.framework; print(*sys.modules)"

    run = subprocess.run(
        [sys.executable, "-c", code], check=True, cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE
    )

    loaded = run.stdout.split()
    unwanted = (
        "extender.engine.runtime",
        "extender.engine.cache",
        "extender.engine.plugins",
        "extender.verbs",
        "extender.assembly",
        "api",
        "fastapi",
        "pydantic",
        "httpx",
    )
    assert [module for module in loaded if module.startswith(unwanted)] == []


OF_NO_OBJECT = (
    "extender/client/informers/reflector.py",
    "extender/client/writes/call_requests.py",
    "extender/values/config/args_validation.py",
    "extender/values/golang/quoting.py",
)
"""Look up the type of an error, a call, arguments or a plain value, of which there are no subclasses."""


def test_only_kind_of_looks_up_of_what_type_an_object_is() -> None:
    """A pod or node that remembers its JSON is of a subclass, which no table has."""
    looks_up = re.compile(r"(\[|\.get\()type\(")

    assert [relative_name(path) for path in sources() if looks_up.search(parsed(path).text)] == [*OF_NO_OBJECT]


LOADING_LATE = (
    "api/cli/showing.py",
    "extender/answers/explain/verdict_tables.py",
    "extender/answers/questions.py",
    "extender/values/metrics/metrics.py",
    "reprieve/library.py",
    "reprieve/pytest_plugin.py",
    "reprieve/trials.py",
)
"""Load what takes long when it is first needed, so that a command answers sooner. None of it imports them."""


@each_case(sources, name_of=relative_name)
def test_a_file_means_one_thing(case: Path) -> None:
    source = parsed(case)
    text = source.text

    assert case.stem not in DRAWERS, "a function without a room shows a missing noun"
    assert len(text.splitlines()) <= MAX_LINES
    assert [name for name, lines in source.functions if lines > MAX_LINES_OF_A_FUNCTION] == []
    assert source.docstring, "a file begins with what it is"
    assert not any(re.search(r"\.go(:\d|#L\d|, line)", doc) for doc in source.docstrings), "line numbers do not last"
    # A door may name for mypy what it loads when it is asked for, and so may these.
    may_name = case.name == "__init__.py" or relative_name(case) in LOADING_LATE
    assert "TYPE_CHECKING" not in text or may_name, "a cycle of types is a cycle"
    assert "__future__.annotations" not in source.imports
    assert not re.search(r"NotImplementedError|\b(TODO|FIXME|XXX)\b", text), "nothing is left open"
    assert not re.search(r"^\s*except(\s+Exception)?\s*:\s*(#.*)?\n\s*pass\b", text, re.MULTILINE), (
        "no error is swallowed"
    )
    assert "mock" not in source.imports


def test_a_class_name_stands_for_one_thing() -> None:
    """An API type and the plugin that enforces it may share upstream's name for both, and the library's classes have
    the names of what they are for its users.
    """
    paths_by_class: dict[str, list[str]] = {}
    for path in sources():
        if path.parent == ROOT / "reprieve" and path.stem in ("library", "results", "trials"):
            continue
        for name in parsed(path).classes:
            if not name.startswith("_"):
                paths_by_class.setdefault(name, []).append(relative_name(path))

    repeated = {name: paths for name, paths in paths_by_class.items() if len(paths) > 1 and name not in IN_TREE}
    assert repeated == {}


@pytest.mark.parametrize("name", IN_TREE)
def test_every_plugin_has_a_specification(name: str) -> None:
    """A test file under tests/extender/engine/plugins that imports the plugin."""
    module = IN_TREE[name].__module__
    specifications = (ROOT / "tests" / "extender" / "engine" / "plugins").rglob("test_*.py")

    assert any(f"{module}.{name}" in parsed(path).imports for path in specifications)


@pytest.mark.parametrize("name", IN_TREE)
def test_every_plugin_goes_by_its_classes_name_and_is_finished(name: str) -> None:
    plugin = IN_TREE[name]

    assert issubclass(plugin, Plugin)
    assert plugin.name == name
    assert not inspect.isabstract(plugin)
    assert implemented_points(plugin)


def test_the_tests_mirror_the_engine() -> None:
    """tests/extender/engine/cache holds the tests of extender/engine/cache."""
    tests = ROOT / "tests"
    mirrored = [*(tests / "extender").rglob("*"), *(tests / "reprieve").rglob("*")]
    folders = [path for path in mirrored if list(path.glob("test_*.py"))]

    assert folders
    assert [path for path in folders if not (ROOT / path.relative_to(ROOT / "tests")).is_dir()] == []
