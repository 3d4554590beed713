import asyncio

import pytest

from extender.engine.framework import BindPod, CallConflict, CallError, Code, CycleState, Status
from extender.engine.plugins.default_binder import DefaultBinder
from extender.testing import make_cache, make_framework, make_node, make_pod
from tests.kit.writes import RecordedWrites


def bind(writes: RecordedWrites, node: str) -> Status:
    """What DefaultBinder says to a pod on its way to the node."""
    (binder,) = make_framework(DefaultBinder, dispatcher=writes).plugins.bind
    return asyncio.run(binder.bind(CycleState(), make_pod("web").uid("1").obj(), node))


def test_a_pod_is_bound_by_name_and_uid() -> None:
    writes = RecordedWrites(make_cache(make_node("n1")))

    status = bind(writes, "n1")

    assert status.is_success
    assert writes.calls == [BindPod("default", "web", "1", "n1")]


@pytest.mark.parametrize("refusal", [CallConflict("pod web is being deleted"), CallError("no")])
def test_a_refusal_is_an_error_in_the_api_servers_words(refusal: CallError) -> None:
    writes = RecordedWrites(make_cache(make_node("n1")))
    writes.fail(BindPod, refusal)

    status = bind(writes, "n1")

    assert status.code is Code.ERROR
    assert status.message == str(refusal)


def test_without_an_api_server_nothing_is_bound() -> None:
    """A binding that nobody wrote down is no success."""
    status = asyncio.run(DefaultBinder().bind(CycleState(), make_pod("web").obj(), "n1"))

    assert status.code is Code.ERROR
    assert status.message == "binding pod default/web to node n1: there is no API server to bind through"
