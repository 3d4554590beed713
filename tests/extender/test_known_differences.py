"""Where we knowingly differ from upstream: the rows of ARCHITECTURE.md that have no better place."""

import pytest

from extender.cel import CelError, compiled
from extender.objects.decoding import DecodeError, decode
from extender.objects.node import Node


@pytest.mark.parametrize(
    "expression", ["isURL('https://example.com')", "isIP('10.0.0.1')", "isCIDR('10.0.0.0/8')", "'a1'.find('[0-9]') == '1'"]
)
def test_kubernetes_own_cel_libraries_do_not_compile(expression: str) -> None:
    """
    A selector that uses one is an error in words, never a silent mismatch.
    """
    with pytest.raises(CelError):
        compiled(expression)


def test_an_integer_beyond_its_go_type_is_refused_where_it_is_decoded() -> None:
    """
    It would overflow where amounts are added up.
    """
    with pytest.raises(DecodeError):
        decode(Node, b'{"status": {"images": [{"names": ["a"], "sizeBytes": 1000000000000000000000}]}}')
