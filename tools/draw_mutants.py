"""Draws small faults at random, reproducibly by a seed: a comparison off by one, a condition inverted, an `and` for an
`or`, a sum for a difference, a number one larger, a call that is left out.
"""

import ast
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]

_OPERATORS: Final[dict[type[ast.AST], type[ast.AST]]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.And: ast.Or, ast.Or: ast.And, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add,
}  # fmt: skip


def drawn(count: int, seed: int) -> Iterator[tuple[str, str, str]]:
    """Yields so many faults, each as a file, its text, and its text with the fault. All places are equally likely."""
    places = [
        (path, number)
        for package in ("extender", "api", "reprieve")
        for path in sorted((ROOT / package).rglob("*.py"))
        if "examples" not in path.parts
        for number in range(len(list(_faults(path.read_text(encoding="utf-8")))))
    ]
    for path, number in random.Random(seed).sample(places, count):
        text = path.read_text(encoding="utf-8")
        yield str(path.relative_to(ROOT)), text, list(_faults(text))[number]


def _faults(text: str) -> Iterator[str]:
    tree = ast.parse(text)
    annotations = {
        id(inner)
        for node in ast.walk(tree)
        for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None))
        if annotation is not None
        for inner in ast.walk(annotation)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.expr | ast.stmt) and id(node) not in annotations:
            for fault in _faults_of(node):
                yield _replaced(text, node, fault)


def _faults_of(node: ast.expr | ast.stmt) -> Iterator[str]:
    match node:
        case ast.Compare(left=left, ops=[operator], comparators=comparators) if type(operator) in _OPERATORS:
            yield f"({ast.unparse(ast.Compare(left, [_OPERATORS[type(operator)]()], comparators))})"  # type: ignore[list-item]
        case ast.BoolOp(op=operator, values=values):
            yield f"({ast.unparse(ast.BoolOp(_OPERATORS[type(operator)](), values))})"  # type: ignore[arg-type]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield f"({ast.unparse(operand)})"
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATORS:
            yield f"({ast.unparse(ast.BinOp(left, _OPERATORS[type(operator)](), right))})"  # type: ignore[arg-type]
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            yield str(value + 1)
        case ast.Expr(value=ast.Call() | ast.Await()):
            yield "pass"


def _replaced(text: str, node: ast.expr | ast.stmt, fault: str) -> str:
    lines = text.encode().splitlines(keepends=True)
    first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
    before = b"".join(lines[:first]) + lines[first][: node.col_offset]
    after = lines[last][node.end_col_offset :] + b"".join(lines[last + 1 :])
    return (before + fault.encode() + after).decode()
