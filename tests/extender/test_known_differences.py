"""Where we knowingly differ from upstream: the rows of docs/reference/differences.md that have no better place."""

import pytest

from extender.values.cel import CelError, CelSelector, compiled, facts_of
from extender.values.objects.decoding import DecodeError, decode
from extender.values.objects.devices import Device
from extender.values.objects.node import Node


@pytest.mark.parametrize(
    "expression",
    [
        "[1].transformMap(i, v, v) == {0: 1}",
        "{'a': 1}.transformMapEntry(k, v, {v: k}) == {1: 'a'}",
        "[duration('1s')].sum() == duration('1s')",
        "[1u].max() == 1u",
        "[" * 40 + "1" + "]" * 40 + " != []",
    ],
)
def test_unsupported_macro_in_a_selector_does_not_compile(expression: str) -> None:
    """A selector that uses one is an error in words, never a silent mismatch."""
    with pytest.raises(CelError):
        compiled(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "format.uuid().validate('x') == 1",
        "format.named('uuid').validate('x').hasValue()",
        "'a'.find('[') == ''",
        "[1, 'a'] == []",
    ],
)
def test_some_mistakes_in_selectors_are_found_only_when_they_run(expression: str) -> None:
    """Upstream finds them when the claim or the class is written."""
    selector = compiled(expression)

    assert _is_wrong(selector)


def _is_wrong(selector: CelSelector) -> bool:
    try:
        return not selector.matches(facts_of("dra.example.com", Device()))
    except CelError:
        return True


def test_an_integer_beyond_its_go_type_is_refused_where_it_is_decoded() -> None:
    """It would overflow where amounts are added up."""
    with pytest.raises(DecodeError):
        decode(Node, b'{"status": {"images": [{"names": ["a"], "sizeBytes": 1000000000000000000000}]}}')
