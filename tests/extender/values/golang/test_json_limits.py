"""What is deeper, longer or larger than the limits is refused, wherever in a document it stands, and nothing else
is.
"""

import json

import pytest
from hypothesis import given, strategies as st

from extender.values import limits
from extender.values.golang.json import JsonError, TooLargeError
from extender.values.golang.json_bytes import check_json, check_number_of_values

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**15), 10**15)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def depth_of(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth_of, value), default=0)
    return 0


@given(JSON, st.integers(0, limits.JSON_DEPTH + 2), st.booleans())
def test_depth_is_counted_outside_of_strings_only(value: object, outside: int, ascii_only: bool) -> None:
    document = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "replace")

    if depth_of(value) and outside + depth_of(value) > limits.JSON_DEPTH:
        with pytest.raises(JsonError, match="levels deep"):
            check_json(document, outside)
    else:
        check_json(document, outside)


@pytest.mark.parametrize("padding", [0, 2**18 - 3, 2**18, 2**19 + 1])
@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"[" * 65 + b"]" * 65, "deep"),
        (b"-1e999", "out of range"),
        (b"1E+0400", "out of range"),
        (b'"\xc3\x28"', "UTF-8"),
    ],
)
def test_the_limits_hold_at_every_place(padding: int, text: bytes, why: str) -> None:
    before = b'{"a":"' + b'\\"' * (padding // 2) + b'","b":'

    with pytest.raises(JsonError, match=why) as refused:
        check_json(before + text + b"}")

    assert type(refused.value) is JsonError


@pytest.mark.parametrize(
    "text",
    [
        b"1" * 1_000_000,
        b"1" * 1_000_000 + b".5e30",
        b"1e308",
        b"1e-400",
        b"0.1e100",
        b"[" * 64 + b"]" * 64,
        b'"' + b"\\\\" * 1000 + b'"',
        b'["\\\\","[",{"]":"}"}]',
        b'"' + b"x" * 2**22 + b'"',
        b"",
        b'"',
        b"1e5e",
    ],
)
def test_everything_else_is_left_to_the_decoder(text: bytes) -> None:
    check_json(text)


@pytest.mark.parametrize("padding", [b"", b" " * 5000], ids=["mostly escapes", "few escapes"])
@pytest.mark.parametrize("backslashes", range(6))
def test_brackets_count_outside_strings_only(backslashes: int, padding: bytes) -> None:
    """A quote ends a string after an even number of backslashes."""
    text = padding + b'["n\\n","' + b"\\\\" * 9 + b"\\" * backslashes + b'",' + b"[" * 64

    if backslashes % 2:
        check_json(text + b'"')
    else:
        with pytest.raises(JsonError, match="deep"):
            check_json(text)


def test_values_are_counted() -> None:
    check_number_of_values(b"," * limits.JSON_VALUES)

    with pytest.raises(TooLargeError):
        check_number_of_values(b"," * (limits.JSON_VALUES + 1))
