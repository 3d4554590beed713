"""Both ends of the protocol are ours here: what our client sends our strict server takes, and what it answers our
client understands.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from extender.client.http_extender import HTTPExtender
from extender.engine.framework import Candidate, ExtenderError
from extender.testing import make_cache, make_pod
from extender.values.config.configuration import Extender
from extender.values.objects.decoding import convert
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod
from tests.kit.service import TWELVE_NODES, Service, items_of

T = TypeVar("T")

ITEMS = items_of(TWELVE_NODES)
NODES = [convert(Node, item) for item in ITEMS if item["kind"] == "Node"]
PODS = [
    pod
    for item in ITEMS
    if item["kind"] == "Pod" and (pod := convert(Pod, item)).spec.node_name and not pod.is_terminal
]

both_modes = pytest.mark.parametrize("by_name", [True, False], ids=["by name", "in full"])


def reply(service: Service, by_name: bool, ask: Callable[[HTTPExtender], Awaitable[T]]) -> T:
    config = Extender(
        url_prefix=f"http://127.0.0.1:{service.port}/extender",
        filter_verb="filter", prioritize_verb="prioritize", preempt_verb="preempt", bind_verb="bind", node_cache_capable=by_name,
    )  # fmt: skip

    async def whole() -> T:
        extender = HTTPExtender(config)
        try:
            return await ask(extender)
        finally:
            await extender.aclose()

    return asyncio.run(whole())


@both_modes
def test_filter(twelve_nodes: Service, by_name: bool) -> None:
    small, huge = make_pod().req(cpu="1m").obj(), make_pod().req(cpu="100000").obj()

    answer_to_small = reply(twelve_nodes, by_name, lambda extender: extender.filter(small, NODES))
    answer_to_huge = reply(twelve_nodes, by_name, lambda extender: extender.filter(huge, NODES))

    names = {node.name for node in NODES}
    passed = [node.name for node in answer_to_small.nodes]
    assert passed
    assert {*passed, *answer_to_small.failed, *answer_to_small.failed_and_unresolvable} == names
    assert not answer_to_huge.nodes
    assert {*answer_to_huge.failed, *answer_to_huge.failed_and_unresolvable} == names


@both_modes
def test_prioritize(twelve_nodes: Service, by_name: bool) -> None:
    scores = reply(twelve_nodes, by_name, lambda extender: extender.prioritize(make_pod().req(cpu="1m").obj(), NODES))

    assert sorted(score.host for score in scores) == sorted(node.name for node in NODES)


@both_modes
def test_preempt(twelve_nodes: Service, by_name: bool) -> None:
    """Whoever needs no room is spared; what is left are victims that are there."""
    snapshot = make_cache(*NODES, pods=PODS).update_snapshot()
    on = {node.name: tuple(pod for pod in PODS if pod.spec.node_name == node.name) for node in NODES}
    victims = [Candidate(node, pods, 0) for node, pods in on.items() if pods]
    preemptor = make_pod().priority(10**9).req(cpu="7").obj()

    rest = reply(twelve_nodes, by_name, lambda extender: extender.process_preemption(preemptor, victims, snapshot))

    assert rest
    for candidate in rest:
        assert {pod.uid for pod in candidate.victims} <= {pod.uid for pod in on[candidate.node]}


def test_refusal_of_bind_gives_the_reason(twelve_nodes: Service) -> None:
    with pytest.raises(ExtenderError, match=r"^pod default/p was not bound to nowhere: node \"nowhere\" not found$"):
        reply(twelve_nodes, True, lambda extender: extender.bind(make_pod().uid("u-1").obj(), "nowhere"))
