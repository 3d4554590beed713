"""Where we knowingly differ from upstream: the rows of ARCHITECTURE.md that have no better place."""

import asyncio

import pytest

from extender.cel import CelError, compiled
from extender.config import Configuration
from extender.evaluation.scenario import evaluate_scenario
from extender.objects.decoding import DecodeError, decode
from extender.objects.node import Node

NODE = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}}


def test_an_extended_resource_that_a_device_class_stands_for_is_counted_like_any_other() -> None:
    """
    Upstream (DRAExtendedResource) would look for a device instead of an amount.
    """
    container = {"name": "c", "resources": {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}}
    device_class = {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "example.com/gpu"}}
    scenario = {
        "objects": {"nodes": [NODE], "deviceClasses": [device_class]},
        "pod": {"metadata": {"name": "p"}, "spec": {"containers": [container]}},
    }

    answer = asyncio.run(evaluate_scenario(scenario, Configuration()))

    assert answer["fitError"] == "0/1 nodes are available: 1 Insufficient example.com/gpu."


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
