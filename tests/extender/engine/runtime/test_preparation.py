"""Plugins prepare for a long pod in a thread, before its first cycle."""

import asyncio
import json
import threading

import pytest

from extender.engine import framework as fwk
from extender.engine.runtime.cycle import Cycle
from extender.engine.runtime.framework import Framework
from extender.engine.runtime.long_work import do_long_work
from extender.engine.runtime.memory import LONG_POD, signature_of
from extender.engine.snapshot import Snapshot
from extender.testing import make_framework, make_node, make_pod, make_snapshot
from extender.values.objects.kept_parses import LONG_BYTES_KEPT, kept_for_equal

SHORT = make_pod("short").obj()


class Prepares(fwk.PreFilterPlugin):
    def __init__(self) -> None:
        super().__init__()
        self.prepared: list[tuple[str, threading.Thread]] = []

    def pre_filter(self, state: fwk.CycleState, pod: fwk.Pod, snapshot: Snapshot) -> fwk.PreFilterResult:
        return fwk.PreFilterResult(fwk.SUCCESS)

    def prepare(self, state: fwk.CycleState, pod: fwk.Pod) -> None:
        self.prepared.append((pod.name, threading.current_thread()))


class CannotPrepare(Prepares):
    def prepare(self, state: fwk.CycleState, pod: fwk.Pod) -> None:
        raise ValueError("this pod makes no sense")


def long_pod(name: str) -> fwk.Pod:
    return make_pod(name).node_selector(**{f"key-{number}": "value" for number in range(LONG_POD // 16)}).obj()


def begin(framework: Framework, pod: fwk.Pod) -> None:
    Cycle(framework, make_snapshot(make_node("n")), pod).prepare(signature_of(pod))


def deferred(framework: Framework, pod: fwk.Pod) -> fwk.LongWork:
    """Returns the work, which nothing else holds: pytest.raises would keep it in a reference cycle."""
    try:
        begin(framework, pod)
    except fwk.LongWork as work:
        return work.with_traceback(None)
    pytest.fail("the plugins are prepared")


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
    [
        pytest.param(SHORT, True, id="the pod is short"),
        pytest.param(long_pod("long"), False, id="nobody does long work"),
    ],
)
def test_other_cycles_begin_at_once(pod: fwk.Pod, may_defer: bool) -> None:
    """
    Nothing is prepared for a short pod, nor where the cycle holds no event loop.
    """
    plugin = Prepares()

    begin(make_framework(plugin, may_defer=may_defer), pod)

    assert not plugin.prepared


class Parses(fwk.PreFilterPlugin):
    """Parses the pod's node selector, which is kept for equal pods within a bound, when it prepares and in each
    cycle.
    """

    def __init__(self) -> None:
        super().__init__()
        self.threads: list[threading.Thread] = []
        self.parse = kept_for_equal(len)(self._parse)

    def _parse(self, text: str) -> str:
        self.threads.append(threading.current_thread())
        return text

    def prepare(self, state: fwk.CycleState, pod: fwk.Pod) -> None:
        self.parse(json.dumps(pod.spec.node_selector))

    def pre_filter(self, state: fwk.CycleState, pod: fwk.Pod, snapshot: Snapshot) -> fwk.PreFilterResult:
        self.prepare(state, pod)
        return fwk.PreFilterResult(fwk.SUCCESS)


NUM_BEYOND_THE_BOUND = 12
BEYOND_THE_BOUND = [
    make_pod(f"long-{place}").node_selector(key=f"{place}" + "x" * (LONG_BYTES_KEPT // 10)).obj()
    for place in range(NUM_BEYOND_THE_BOUND)
]
"""Together they have more bytes than are kept prepared."""


def test_plugins_stay_prepared_for_all_pods_whose_attempt_is_not_over() -> None:
    """
    Many long pods are prepared before the first of them has its cycle; none of them is parsed in its cycle.
    """
    plugin = Parses()
    framework = make_framework(plugin, may_defer=True)
    attempts = [deferred(framework, pod) for pod in BEYOND_THE_BOUND]
    for attempt in attempts:
        asyncio.run(do_long_work(attempt))

    for pod in BEYOND_THE_BOUND:
        cycle = Cycle(framework, make_snapshot(make_node("n")), pod)
        cycle.prepare(signature_of(pod))
        cycle.run_pre_filter_plugins()

    assert len(plugin.threads) == NUM_BEYOND_THE_BOUND
    assert threading.current_thread() not in plugin.threads


def test_plugins_prepare_again_for_a_pod_of_which_too_much_came_since() -> None:
    """
    What was prepared for pods whose attempt is over is kept within a bound of bytes.
    """
    framework = make_framework(Parses(), may_defer=True)

    for pod in BEYOND_THE_BOUND:
        asyncio.run(do_long_work(deferred(framework, pod)))

    deferred(framework, BEYOND_THE_BOUND[0])
    begin(framework, BEYOND_THE_BOUND[-1])
