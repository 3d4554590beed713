"""The source files, each parsed once for all tests."""

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Source:
    """What tests ask of a file. Its tree is not kept: those of all files take a quarter of a gigabyte."""

    text: str
    docstring: str | None
    docstrings: list[str]
    classes: list[str]
    functions: list[tuple[str, int]]
    """The functions and methods, each with the number of its lines."""
    imports: set[str]
    """The modules of its import statements; of `from a import b` both a and a.b, for b may be a module."""


def sources() -> list[Path]:
    return sorted(path for package in ("extender", "reprieve", "api") for path in (ROOT / package).rglob("*.py"))


@cache
def parsed(path: Path) -> Source:
    text = path.read_text()
    tree = ast.parse(text)
    source = Source(text, ast.get_docstring(tree), [], [], [], set())
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            source.classes.append(node.name)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            source.functions.append((node.name, (node.end_lineno or node.lineno) - node.lineno + 1))
        elif isinstance(node, ast.Import):
            source.imports.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            source.imports.update((node.module, *(f"{node.module}.{alias.name}" for alias in node.names)))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and (
            docstring := ast.get_docstring(node)
        ):
            source.docstrings.append(docstring)
    return source
