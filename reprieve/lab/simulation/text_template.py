"""The part of Go's text/template that manifests use: values and calls in braces, `name: pod-{{AddInt .Index 1}}`.

Upstream: Go, text/template; test/integration/scheduler_perf, getTemplateFuncs.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

from reprieve.lab import limits

Value = str | int | float | bool

_TOKEN: Final = re.compile(
    r'\s*(?:(?P<field>\.\w+)|(?P<number>-?\d+(?:\.\d+)?)|(?P<text>"[^"\\]*")|(?P<paren>[()])|(?P<name>\w+))'
)


class TemplateError(ValueError):
    """The template uses an unsupported action, or a missing value."""


def rendered(template: str, values: Mapping[str, Value]) -> str:
    """Returns the text with values by name, without the dot. Raises TemplateError, quoting the action."""
    parts, place = [], 0
    while (begin := template.find("{{", place)) >= 0:
        end = template.find("}}", begin)
        if end < 0:
            raise TemplateError(f"{template[begin : begin + 60]} has no end")
        parts += [
            template[place:begin],
            _shown(_Action(template[begin + 2 : end].removeprefix("-").removesuffix("-"), values).value()),
        ]
        place = end + 2
    return "".join([*parts, template[place:]])


def is_constant(template: str) -> bool:
    """Returns whether the text has no actions, so that it is the same for all values."""
    return "{{" not in template


class _Action:
    """One action while it is read: its tokens, and the place of the next one."""

    def __init__(self, text: str, values: Mapping[str, Value]) -> None:
        self._text = text.strip()
        self._values = values
        self._tokens: list[tuple[str, str]] = []
        self._next = place = 0
        while place < len(self._text):
            match = _TOKEN.match(self._text, place)
            if match is None or match.lastgroup is None:
                raise self._error("is not supported")
            self._tokens.append((match.lastgroup, match[match.lastgroup]))
            place = match.end()

    def value(self) -> Value:
        value = self._term(0) if self._tokens and self._tokens[0][0] != "name" else self._call(0)
        if self._next < len(self._tokens):
            raise self._error("is not supported")
        return value

    def _call(self, depth: int) -> Value:
        if depth > limits.TEMPLATE_DEPTH or self._next >= len(self._tokens):
            raise self._error("is not supported")
        kind, name = self._tokens[self._next]
        function = _FUNCTIONS.get(name) if kind == "name" else None
        if function is None:
            raise self._error(f"has no supported function {name!r:.40}")
        self._next += 1
        arguments = []
        while self._next < len(self._tokens) and self._tokens[self._next] != ("paren", ")"):
            arguments.append(self._number(self._term(depth + 1)))
        try:
            return function(*arguments)
        except (TypeError, ArithmeticError, ValueError) as exc:
            raise self._error("cannot be computed") from exc

    def _term(self, depth: int) -> Value:
        if self._next >= len(self._tokens):
            raise self._error("ends too early")
        kind, text = self._tokens[self._next]
        self._next += 1
        if kind == "field":
            if text[1:] not in self._values:
                raise self._error(f"names {text!r:.40}, which is not given")
            return self._values[text[1:]]
        if kind == "number":
            return float(text) if "." in text else int(text)
        if kind == "text":
            return text[1:-1]
        if (kind, text) == ("paren", "("):
            inner = self._call(depth)
            if self._next >= len(self._tokens) or self._tokens[self._next] != ("paren", ")"):
                raise self._error("lacks a parenthesis")
            self._next += 1
            return inner
        raise self._error("is not supported")

    def _number(self, value: Value) -> float:
        try:
            return float(value)
        except ValueError as exc:
            raise self._error(f"takes {value!r:.40} for a number") from exc

    def _error(self, why: str) -> TemplateError:
        return TemplateError(f"{{{{{self._text:.60}}}}} {why}")


def _shown(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) and value == int(value) else str(value)


def _product(*numbers: float) -> float:
    result = 1.0
    for number in numbers:
        result *= number
    return result


_FUNCTIONS: Final[Mapping[str, Callable[..., Value]]] = {
    "AddFloat": lambda *numbers: float(sum(numbers)),
    "AddInt": lambda *numbers: int(sum(numbers)),
    "SubtractFloat": lambda a, b: a - b,
    "SubtractInt": lambda a, b: int(a - b),
    "MultiplyFloat": _product,
    "MultiplyInt": lambda *numbers: int(_product(*numbers)),
    "DivideFloat": lambda a, b: a / b,
    "DivideInt": lambda a, b: int(a / b),
    "Mod": lambda a, b: int(a) - int(int(a) / int(b)) * int(b),
}
"""Numbers are computed as floats, as upstream does; integer functions cut the result off."""
