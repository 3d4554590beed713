"""Pods that are held at Permit: the first word counts."""

import asyncio

import pytest

from extender.engine import framework as fwk
from extender.engine.runtime.waiting_pods import HeldPod, WaitingPodsMap
from extender.testing import make_pod

POD = make_pod("held").node("n").obj()


async def test_waiting_pod_proceeds_once_all_plugins_allow_it() -> None:
    waiting = HeldPod(POD, {"First": 10.0, "Second": 10.0})

    waiting.allow("First")
    assert waiting.pending_plugins == ["Second"]
    waiting.allow("Second")

    assert (await waiting.wait()).is_success


async def test_plugin_that_does_not_hold_the_pod_cannot_release_it() -> None:
    waiting = HeldPod(POD, {"First": 3.0})
    waiting.allow("Stranger")
    status = await waiting.wait()

    assert status.code is fwk.Code.UNSCHEDULABLE


async def test_a_refusal_is_signed() -> None:
    waiting = HeldPod(POD, {"First": 10.0})
    assert waiting.reject("First", "no")

    assert await waiting.wait() == fwk.unschedulable("no").by("First")


async def test_preempted_waiting_pod_ends_with_an_error() -> None:
    """An error, so that it comes back after a pause and waits for no event."""
    waiting = HeldPod(POD, {"First": 10.0})
    assert waiting.preempt("DefaultPreemption", "preempted")

    assert await waiting.wait() == fwk.error("preempted").by("DefaultPreemption")


@pytest.mark.parametrize(
    ("seconds", "text"), [(10.0, "10s"), (300.0, "5m0s"), (0.5, "500ms"), (900.0, "15m0s"), (90.5, "1m30.5s")], ids=str
)
async def test_the_first_whose_time_is_up_refuses_the_pod_in_gos_words(seconds: float, text: str) -> None:
    waiting = HeldPod(POD, {"ExaminedService": 10_000.0, "Hasty": seconds})
    status, time = await waiting.wait(), asyncio.get_running_loop().time()

    assert status == fwk.unschedulable(f"rejected due to timeout after waiting {text} at plugin Hasty").by("Hasty")
    assert time == pytest.approx(seconds)


async def test_timeout_of_a_waiting_pod_runs_before_it_is_awaited() -> None:
    waiting = HeldPod(POD, {"First": 2.0})
    await asyncio.sleep(5)
    status = await waiting.wait()

    assert status.message == "rejected due to timeout after waiting 2s at plugin First"


async def test_the_time_of_a_plugin_that_has_let_go_does_not_run() -> None:
    waiting = HeldPod(POD, {"Hasty": 2.0, "ExaminedService": 10.0})
    waiting.allow("Hasty")
    await asyncio.sleep(5)
    waiting.allow("ExaminedService")
    status = await waiting.wait()

    assert status.is_success


async def test_after_the_first_word_nothing_counts() -> None:
    waiting = HeldPod(POD, {"First": 2.0})
    waiting.allow("First")

    assert not waiting.reject("First", "no")
    assert not waiting.preempt("DefaultPreemption", "preempted")
    await asyncio.sleep(5)
    status = await waiting.wait()

    assert status.is_success


async def test_pods_are_known_by_uid_until_they_are_removed() -> None:
    pods = WaitingPodsMap()
    waiting = pods.add(POD, {"First": 2.0})

    assert (pods.get(POD.uid), list(pods), len(pods)) == (waiting, [waiting], 1)

    pods.remove(POD.uid)
    pods.remove(POD.uid)

    assert (pods.get(POD.uid), len(pods)) == (None, 0)
    waiting.allow("First")


async def test_removed_pod_cannot_be_rejected() -> None:
    pods = WaitingPodsMap()
    assert not pods.reject(POD.uid)
    waiting = pods.add(POD, {"First": 2.0})

    assert pods.reject(POD.uid)

    assert await waiting.wait() == fwk.unschedulable("removed")
    assert not pods.reject(POD.uid)
