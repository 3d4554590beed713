"""Prints how large the program is, room by room: python -m tools.house

Lines of code are neither blank nor comments nor docstrings. Characters are counted without blanks, so that another
width of lines changes nothing. Bare names are participles and prepositions, such as `found`, which do not say what is
in them. Numeric constants are those at the top of modules. Helpers are functions of tests that are no tests. Modules of
a door are ours that it loads. Nothing fails here: whoever makes a figure grow says what that is worth.
"""

import ast
import io
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]

BARE: Final = frozenset(
    "again alike asked at by counted each found further given gone held here kept known least left let made meant met "  # noqa: SIM905
    "missing most named of others own put read_ said seen sent shown some taken there those told tried wanted within "
    "without written".split()
)
"""Names that are only a participle, a preposition or a pronoun."""

DOORS: Final = {
    "the library": "from reprieve import Cluster",
    "the contract": "from reprieve import plugin",
    "one plugin": "from extender.engine.plugins.node_name import NodeName",
    "the commands": "import api.cli",
    "the service": "import api.main",
}


@dataclass(slots=True)
class Figures:
    """The figures of a room, or of several."""

    files: int = 0
    lines: int = 0
    code: int = 0
    characters: int = 0
    names: int = 0
    bare: int = 0
    constants: int = 0
    helpers: int = 0
    helper_lines: int = 0

    def add(self, other: "Figures") -> None:
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))


def figures_of(path: Path) -> Figures:
    """Returns the figures of one module."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    figures = Figures(1, len(text.splitlines()), len(_lines_of_code(text, tree)), len("".join(text.split())))
    for name in filter(None, map(_stored_name, ast.walk(tree))):
        figures.names += 1
        figures.bare += name.strip("_") in BARE
    figures.constants = sum(_is_numeric_constant(statement) for statement in tree.body)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("test_"):
            figures.helpers += 1
            figures.helper_lines += (node.end_lineno or node.lineno) - node.lineno + 1
    return figures


def _lines_of_code(text: str, tree: ast.Module) -> set[int]:
    silent = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in silent:
            code.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            code.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return code


def _stored_name(node: ast.AST) -> str:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id
    return node.arg if isinstance(node, ast.arg) and node.arg not in ("self", "cls") else ""


def _is_numeric_constant(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
    if value is None:
        return False
    numbers = (int, float)
    return all(
        isinstance(node, ast.BinOp | ast.UnaryOp | ast.operator | ast.unaryop)
        or (isinstance(node, ast.Constant) and isinstance(node.value, numbers) and not isinstance(node.value, bool))
        for node in ast.walk(value)
    )


def rooms() -> Iterator[tuple[str, Figures]]:
    """Yields each room with its figures: packages of `extender` and `reprieve`, `api`, tests, benches and tools."""
    for package in ("extender", "reprieve", "api", "tests", "bench", "tools"):
        of_rooms: dict[str, Figures] = {}
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).parts
            is_parted = package in ("extender", "reprieve") and len(parts) > 2
            room = "/".join(parts[:2]) if is_parted else package
            of_rooms.setdefault(room, Figures()).add(figures_of(path))
        yield from sorted(of_rooms.items())


def modules_of(door: str) -> int:
    """Returns how many of our modules are loaded by the statement."""
    count = "import sys; print(sum(name.split('.')[0] in ('api', 'extender', 'reprieve') for name in sys.modules))"
    run = subprocess.run(  # noqa: S603 - statements of ours
        [sys.executable, "-c", f"{door}; {count}"], check=True, cwd=ROOT, capture_output=True, text=True
    )
    return int(run.stdout)


def main() -> None:
    """Prints the table."""
    heads = ("files", "lines", "code", "characters", "bare names", "constants", "helpers", "lines of helpers")
    print(f"{'':22}" + "".join(f"{head:>17}" for head in heads))
    product, everything = Figures(), Figures()
    for room, figures in rooms():
        everything.add(figures)
        if room.partition("/")[0] in ("extender", "api"):
            product.add(figures)
        print(_row(room, figures))
    print(_row("extender and api", product))
    print(_row("everything", everything))
    locked = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    print(f"\npackages in requirements.txt: {sum('==' in line and line[0].isalpha() for line in locked if line)}")
    for name, statement in DOORS.items():
        print(f"modules of {name}: {modules_of(statement)}")


def _row(room: str, figures: Figures) -> str:
    part = f"{figures.bare} {100 * figures.bare / max(figures.names, 1):4.1f} %"
    cells = [figures.files, figures.lines, figures.code, figures.characters, part, figures.constants]
    tested = [figures.helpers, figures.helper_lines] if room == "tests" else ["", ""]
    return f"{room:22}" + "".join(f"{cell:>17}" for cell in [*cells, *tested])


if __name__ == "__main__":
    main()
