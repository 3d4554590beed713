"""Many writes at a time: who goes before whom, who waits for whom, and what becomes of those that nobody waits for."""

import asyncio

import pytest

from extender.client.writes.call_queue import Lane
from extender.client.writes.dispatcher import AT_A_TIME
from extender.engine.framework import (
    BindPod,
    CallError,
    CallSkipped,
    CallUnknown,
    PatchPodStatus,
    RecordEvent,
    reference_to,
)
from tests.extender.client.embedded_server import BINDING, Server, pod_on
from tests.kit.faults import Fault
from tests.kit.faults.answers import black_hole, delay


async def test_number_of_simultaneous_bindings_is_limited() -> None:
    server = Server(Fault(delay(1), **BINDING, times=None))
    pods = [pod_on(server, f"p{number}") for number in range(AT_A_TIME[Lane.URGENT] + 6)]
    async with server.dispatching() as dispatcher:
        bindings = [asyncio.ensure_future(dispatcher.perform(BindPod.of(pod, "n1"))) for pod in pods]
        await asyncio.sleep(0.5)
        under_way = server.count("create", "pods", "binding")
        await asyncio.gather(*bindings)

    assert under_way == AT_A_TIME[Lane.URGENT]
    assert asyncio.get_running_loop().time() == 2


async def test_events_wait_until_no_binding_waits() -> None:
    server = Server(Fault(delay(1), **BINDING, times=None))
    pods = [pod_on(server, f"p{number}") for number in range(AT_A_TIME[Lane.URGENT] + 1)]
    async with server.dispatching() as dispatcher:
        bindings = [dispatcher.submit(BindPod.of(pod, "n1")) for pod in pods]
        dispatcher.submit(
            RecordEvent(reference_to(pods[0]), "Normal", "Scheduled", "Binding", "done", "default-scheduler")
        )
        counts = []
        for _ in range(2):
            await asyncio.sleep(0.6)
            counts.append(server.count("create", "events"))
        await asyncio.gather(*bindings)

    assert counts == [0, 1]


async def test_once_no_binding_waits_as_many_events_as_may_be_are_written_at_a_time() -> None:
    """Though it is one binding alone that ends then."""
    event_takes_a_second = Fault(delay(1), verb="create", resource="events", times=None)
    server = Server(Fault(delay(1), **BINDING, times=None), event_takes_a_second)
    pods = [pod_on(server, f"p{number}") for number in range(AT_A_TIME[Lane.URGENT] + 1)]
    async with server.dispatching() as dispatcher:
        bindings = [dispatcher.submit(BindPod.of(pod, "n1")) for pod in pods]
        for pod in pods[: 2 * AT_A_TIME[Lane.EVENTS]]:
            dispatcher.submit(RecordEvent(reference_to(pod), "Normal", "Scheduled", "Binding", "done", "a-scheduler"))
        counts = []
        for _ in range(3):
            await asyncio.sleep(1.01)
            counts.append(server.count("create", "events"))
        await asyncio.gather(*bindings)

    assert counts == [AT_A_TIME[Lane.EVENTS], 2 * AT_A_TIME[Lane.EVENTS], 2 * AT_A_TIME[Lane.EVENTS]]


async def test_other_writes_go_on_while_bindings_are_stuck() -> None:
    server = Server(Fault(black_hole(), **BINDING, times=None))
    pods = [pod_on(server, f"p{number}") for number in range(AT_A_TIME[Lane.URGENT] + 1)]
    async with server.dispatching() as dispatcher:
        bindings = [asyncio.ensure_future(dispatcher.perform(BindPod.of(pod, "n1"))) for pod in pods[1:]]
        await asyncio.sleep(0.01)
        await dispatcher.perform(PatchPodStatus.of(pods[0], nominated_node_name="n1"))
        for binding in bindings:
            binding.cancel()
        await asyncio.wait(bindings)

    assert asyncio.get_running_loop().time() < 1


async def test_a_status_patch_that_waits_is_displaced_by_the_binding() -> None:
    """And one under way is waited for, so that the two do not overtake each other."""
    server = Server(Fault(delay(3), verb="patch"))
    pod = pod_on(server)
    async with server.dispatching() as dispatcher:
        first = asyncio.ensure_future(dispatcher.perform(PatchPodStatus.of(pod, nominated_node_name="n1")))
        await asyncio.sleep(1)
        second = asyncio.ensure_future(dispatcher.perform(PatchPodStatus.of(pod, nominated_node_name="n2")))
        await asyncio.sleep(1)
        await dispatcher.perform(BindPod.of(pod, "n1"))
        await first
        with pytest.raises(CallSkipped):
            await second

    assert asyncio.get_running_loop().time() == 3
    assert server.count("patch", "pods", "status") == 1


async def test_submitted_call_is_performed_in_the_background() -> None:
    server = Server()
    pod = pod_on(server)
    async with server.dispatching() as dispatcher:
        dispatcher.submit(PatchPodStatus.of(pod, nominated_node_name="n1"))

        assert await dispatcher.drain(1)

    assert server.pod("p")["status"]["nominatedNodeName"] == "n1"


async def test_failed_background_call_is_logged_and_returns_none(caplog: pytest.LogCaptureFixture) -> None:
    server = Server()
    pod = pod_on(server)
    server.delete("p", at_once=True)
    async with server.dispatching() as dispatcher:
        assert await dispatcher.submit(PatchPodStatus.of(pod, nominated_node_name="n1")) is None

    assert caplog.messages == ['PatchPodStatus: pods "p" not found']


async def test_draining_takes_only_so_long() -> None:
    server = Server(Fault(black_hole(), **BINDING, times=None))
    pod = pod_on(server)
    async with server.dispatching() as dispatcher:
        dispatcher.submit(BindPod.of(pod, "n1"))

        assert not await dispatcher.drain(5)

    assert asyncio.get_running_loop().time() == 5


async def test_closed_dispatcher_fails_its_waiting_and_running_calls() -> None:
    """What is under way may happen yet; what waits will not."""
    server = Server(Fault(black_hole(), **BINDING, times=None))
    pods = [pod_on(server, f"p{number}") for number in range(AT_A_TIME[Lane.URGENT] + 1)]

    async with server.dispatching() as ending:
        bindings = [asyncio.ensure_future(ending.perform(BindPod.of(pod, "n1"))) for pod in pods]
        await asyncio.sleep(0.5)
    late = asyncio.ensure_future(ending.perform(BindPod.of(pods[0], "n1")))
    endings = await asyncio.gather(*bindings, late, return_exceptions=True)

    assert {str(ending) for ending in endings} == {"api dispatcher is closed"}
    assert [type(ending) for ending in endings] == [CallUnknown] * AT_A_TIME[Lane.URGENT] + [CallError, CallError]


async def test_events_unrecorded_at_the_end_are_reported_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    server = Server(Fault(black_hole(), resource="events", times=None))
    pod = pod_on(server)
    waiting = 5
    async with server.dispatching(), server.dispatching() as ending:
        for number in range(AT_A_TIME[Lane.EVENTS] + waiting):
            event = RecordEvent(reference_to(pod), "Normal", f"Reason{number}", "Binding", "well", "default-scheduler")
            ending.submit(event)
        await asyncio.sleep(0.5)
        caplog.clear()

    assert [message for message in caplog.messages if "not recorded" in message] == [
        "5 events were not recorded: api dispatcher is closed"
    ]
    assert len(caplog.messages) <= 1 + AT_A_TIME[Lane.EVENTS]


async def test_a_caller_that_is_cancelled_withdraws_what_was_not_begun() -> None:
    server = Server(Fault(delay(1), **BINDING, times=None))
    pods = [pod_on(server, f"p{number}") for number in range(AT_A_TIME[Lane.URGENT] + 1)]

    async with server.dispatching() as dispatcher:
        bindings = [asyncio.ensure_future(dispatcher.perform(BindPod.of(pod, "n1"))) for pod in pods]
        await asyncio.sleep(0.5)
        for binding in bindings:
            binding.cancel()
        await asyncio.wait(bindings)
        assert await dispatcher.drain(10)

    assert [server.node_of(pod.name) for pod in pods] == ["n1"] * AT_A_TIME[Lane.URGENT] + [""]
