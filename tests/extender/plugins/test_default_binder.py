import asyncio

from extender.framework import Code, CycleState
from extender.plugins.default_binder import DefaultBinder
from extender.testing import make_pod


def test_without_an_api_server_nothing_is_bound() -> None:
    """
    A binding that nobody wrote down is no success.
    """
    status = asyncio.run(DefaultBinder().bind(CycleState(), make_pod("web").obj(), "n1"))

    assert status.code is Code.ERROR
    assert status.message == "binding pod default/web to node n1: there is no API server to bind through"
