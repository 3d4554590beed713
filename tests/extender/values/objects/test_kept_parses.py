"""Parses of long demands are kept within a bound of bytes, whatever their number."""

from extender.values.objects.kept_parses import LONG, LONG_BYTES_KEPT, SHORT_KEPT, kept_for_equal


class Parser:
    """Counts how often it parses."""

    def __init__(self) -> None:
        self.parsed: list[bytes] = []
        self.parse = kept_for_equal(len)(self._parse)

    def _parse(self, text: bytes, repeated: int = 1) -> list[bytes]:
        self.parsed.append(text)
        return [text] * repeated

    def parses(self, text: bytes) -> bool:
        """Whether it has to parse this text."""
        before = len(self.parsed)
        self.parse(text)
        return len(self.parsed) > before


def text(number: int, length: int) -> bytes:
    return number.to_bytes(4, "big").ljust(length, b"x")


def test_equal_texts_are_parsed_once() -> None:
    for length in (10, LONG + 1):
        parser = Parser()

        first = parser.parse(text(1, length))

        assert parser.parse(text(1, length)) is first
        assert parser.parse(text(1, length), 2) == [text(1, length)] * 2, "what else is asked counts, too"


def test_as_many_long_texts_are_kept_as_the_bound_allows() -> None:
    parser, length = Parser(), LONG_BYTES_KEPT // 4
    for number in range(4):
        parser.parse(text(number, length))
    assert not any(parser.parses(text(number, length)) for number in range(4))

    parser.parse(text(4, length))

    assert parser.parses(text(0, length)), "the least recently used one went"
    assert not parser.parses(text(4, length))


def test_one_text_beyond_the_bound_is_kept_alone() -> None:
    parser = Parser()
    parser.parse(text(1, LONG + 1))

    parser.parse(text(2, LONG_BYTES_KEPT + 1))

    assert not parser.parses(text(2, LONG_BYTES_KEPT + 1))
    assert parser.parses(text(1, LONG + 1))


def test_long_texts_leave_short_ones_alone() -> None:
    parser = Parser()
    for number in range(SHORT_KEPT):
        parser.parse(text(number, 10))

    parser.parse(text(1, LONG_BYTES_KEPT))

    assert not any(parser.parses(text(number, 10)) for number in range(SHORT_KEPT))
