"""The text form of label selectors: `app in (a,b),tier!=x,!old`.

Upstream: apimachinery/pkg/labels/selector.go, Lexer, Parser, Parse. Its error texts are kept, even where they show
another token than the one that is wrong.
"""

import re
from enum import Enum, auto
from typing import Final, NamedTuple, final

from extender.values.golang.field_errors import invalid
from extender.values.objects.label_selectors import (
    BINARY_OPERATORS,
    Operator,
    Requirement,
    Selector,
    SelectorError,
    requirement_of,
    selector_with,
)
from extender.values.objects.name_syntax import label_key_errors


class _Kind(Enum):
    END = auto()
    CLOSED = auto()
    COMMA = auto()
    NOT = auto()
    OPERATOR = auto()
    WORD = auto()
    OPEN = auto()


class _Token(NamedTuple):
    kind: _Kind
    text: str


_END: Final = _Token(_Kind.END, "")
_SYMBOLS: Final = {")": _Kind.CLOSED, ",": _Kind.COMMA, "!": _Kind.NOT, "(": _Kind.OPEN}
"""The symbols that are no operators."""
_OPERATORS: Final = {
    "in": Operator.IN,
    "notin": Operator.NOT_IN,
    "=": Operator.EQUALS,
    "==": Operator.DOUBLE_EQUALS,
    "!=": Operator.NOT_EQUALS,
    ">": Operator.GREATER_THAN,
    "<": Operator.LESS_THAN,
}
# The longest symbol counts. Upstream's reader takes a NUL for the end of the text, but only where a token would begin.
_LEXEMES: Final = re.compile(r"[ \t\r\n]*+(?:(?P<symbol>==|!=|[=!(),><])|(?P<word>[^=!(),>< \t\r\n\0]++))\0?")


def parse_selector(text: str) -> Selector:
    """Returns the selector that `text` spells (Parse); an empty one selects everything. Raises SelectorError."""
    return selector_with(_Parser(_tokens(text)).requirements())


def _tokens(text: str) -> list[_Token]:
    tokens = []
    place = 0
    while (lexeme := _LEXEMES.match(text, place)) is not None:
        symbol = lexeme["symbol"]
        tokens.append(
            _Token(_SYMBOLS.get(symbol, _Kind.OPERATOR), symbol) if symbol else _Token(_Kind.WORD, lexeme["word"])
        )
        place = lexeme.end()
    return [*tokens, _END]


@final
class _Parser:
    """One pass over the tokens of a text. The words `in` and `notin` are operators only where one is expected."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._next = 0

    def requirements(self) -> list[Requirement]:
        requirements: list[Requirement] = []
        while True:
            token = self._look()
            if token.kind is _Kind.END:
                return requirements
            if token.kind not in (_Kind.WORD, _Kind.NOT):
                raise SelectorError(f"found '{token.text}', expected: !, identifier, or 'end of string'")
            try:
                requirements.append(self._requirement())
            except SelectorError as exc:
                raise SelectorError(f"unable to parse requirement: {exc}") from exc
            token = self._take()
            if token.kind is _Kind.END:
                return requirements
            if token.kind is not _Kind.COMMA:
                raise SelectorError(f"found '{token.text}', expected: ',' or 'end of string'")
            token = self._look()
            if token.kind not in (_Kind.WORD, _Kind.NOT):
                raise SelectorError(f"found '{token.text}', expected: identifier after ','")

    def _look(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._tokens[self._next]
        self._next += 1
        return token

    def _requirement(self) -> Requirement:
        token = self._take()
        negated = token.kind is _Kind.NOT
        if negated:
            token = self._take()
        if token.kind is not _Kind.WORD:
            raise SelectorError(f"found '{token.text}', expected: identifier")
        key = token.text
        wrong = label_key_errors(key)
        if wrong:
            # Upstream has no path here and prints it all the same.
            raise SelectorError(str(invalid("<nil>", key, "; ".join(wrong))))
        if negated:
            return requirement_of(key, Operator.DOES_NOT_EXIST, ())
        if self._look().kind in (_Kind.END, _Kind.COMMA):
            return requirement_of(key, Operator.EXISTS, ())
        operator = self._operator()
        values = self._set() if operator in (Operator.IN, Operator.NOT_IN) else {self._value()}
        return requirement_of(key, operator, sorted(values))

    def _operator(self) -> Operator:
        token = self._take()
        if token.text not in _OPERATORS:
            raise SelectorError(f"found '{token.text}', expected: {', '.join(BINARY_OPERATORS)}")
        return _OPERATORS[token.text]

    def _value(self) -> str:
        if self._look().kind in (_Kind.END, _Kind.COMMA):
            return ""
        token = self._take()
        if token.kind is not _Kind.WORD:
            raise SelectorError(f"found '{token.text}', expected: identifier")
        return token.text

    def _set(self) -> set[str]:
        token = self._take()
        if token.kind is not _Kind.OPEN:
            raise SelectorError(f"found '{token.text}' expected: '('")
        token = self._look()
        if token.kind is _Kind.CLOSED:
            self._take()
            return {""}
        if token.kind not in (_Kind.WORD, _Kind.COMMA):
            raise SelectorError(f"found '{token.text}', expected: ',', ')' or identifier")
        values = self._list()
        self._take()
        return values

    def _list(self) -> set[str]:
        """Returns the values up to the closing parenthesis, which is left; a missing value is the empty one."""
        values: set[str] = set()
        while True:
            token = self._take()
            if token.kind is _Kind.WORD:
                values.add(token.text)
                following = self._look()
                if following.kind is _Kind.CLOSED:
                    return values
                if following.kind is not _Kind.COMMA:
                    raise SelectorError(f"found '{following.text}', expected: ',' or ')'")
            elif token.kind is _Kind.COMMA:
                if not values:
                    values.add("")
                following = self._look()
                if following.kind is _Kind.CLOSED:
                    return values | {""}
                if following.kind is _Kind.COMMA:
                    values.add("")
            else:
                raise SelectorError(f"found '{token.text}', expected: ',', or identifier")
