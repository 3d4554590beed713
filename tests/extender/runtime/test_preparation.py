"""Plugins prepare for a long pod in a thread, before its first cycle."""

import asyncio
import threading

import pytest

from extender import framework as fwk
from extender.runtime.cycle import Cycle
from extender.runtime.framework import Framework
from extender.runtime.long_work import do_long_work
from extender.runtime.memory import LONG_POD, signature_of
from extender.snapshot import Snapshot
from extender.testing import make_framework, make_node, make_pod, make_snapshot

SHORT = make_pod("short").obj()


class Prepares(fwk.PreFilterPlugin):
    def __init__(self) -> None:
        super().__init__()
        self.prepared: list[tuple[str, threading.Thread]] = []

    def pre_filter(self, state: fwk.CycleState, pod: fwk.Pod, snapshot: Snapshot) -> fwk.PreFilterResult:
        return fwk.PreFilterResult(fwk.SUCCESS)

    def prepare(self, pod: fwk.Pod) -> None:
        self.prepared.append((pod.name, threading.current_thread()))


class CannotPrepare(Prepares):
    def prepare(self, pod: fwk.Pod) -> None:
        raise ValueError("this pod makes no sense")


def long_pod(name: str) -> fwk.Pod:
    return make_pod(name).node_selector(**{f"key-{number}": "value" for number in range(LONG_POD // 16)}).obj()


def begin(framework: Framework, pod: fwk.Pod) -> None:
    Cycle(framework, make_snapshot(make_node("n")), pod).prepare(signature_of(pod))


def deferred(framework: Framework, pod: fwk.Pod) -> fwk.LongWork:
    with pytest.raises(fwk.LongWork) as raised:
        begin(framework, pod)
    return raised.value


def test_a_long_pod_has_its_cycle_once_plugins_have_prepared_in_a_thread() -> None:
    """
    Its first cycle is put off. Neither the next one nor that of an equal pod is.
    """
    plugin = Prepares()
    framework = make_framework(plugin, may_defer=True)

    asyncio.run(do_long_work(deferred(framework, long_pod("long"))))
    begin(framework, long_pod("long"))
    begin(framework, long_pod("equal"))

    ((name, thread),) = plugin.prepared
    assert name == "long"
    assert thread is not threading.current_thread()


def test_a_plugin_that_cannot_prepare_puts_nothing_off() -> None:
    """
    Others prepare all the same, and the cycle begins.
    """
    plugin = Prepares()
    framework = make_framework(CannotPrepare(), plugin, may_defer=True)

    asyncio.run(do_long_work(deferred(framework, long_pod("long"))))
    begin(framework, long_pod("long"))

    assert [name for name, _ in plugin.prepared] == ["long"]


def test_what_is_no_longer_wanted_is_not_prepared() -> None:
    """
    The cycle of a pod whose attempt was given up is put off again.
    """
    plugin = Prepares()
    framework = make_framework(plugin, may_defer=True)

    deferred(framework, long_pod("long")).work(lambda: False)

    assert not plugin.prepared
    deferred(framework, long_pod("long"))


@pytest.mark.parametrize(
    ("pod", "may_defer"),
    [pytest.param(SHORT, True, id="the pod is short"), pytest.param(long_pod("long"), False, id="nobody does long work")],
)
def test_other_cycles_begin_at_once(pod: fwk.Pod, may_defer: bool) -> None:
    """
    Nothing is prepared for a short pod, nor where the cycle holds no event loop.
    """
    plugin = Prepares()

    begin(make_framework(plugin, may_defer=may_defer), pod)

    assert not plugin.prepared
