"""A write arrives once, whatever fails on the way; a caller is told when it cannot be known."""

import asyncio
import random
from typing import Any

import pytest

from extender.client.writes.dispatcher import ApiDispatcher
from extender.engine.framework import (
    BindPod,
    CallConflict,
    CallError,
    CallNotFound,
    CallUnknown,
    DeletePod,
    PatchPodStatus,
    PodCondition,
)
from extender.values.objects.decoding import convert
from extender.values.objects.pod import Pod
from tests.extender.client.embedded_server import BINDING, Server, pod_on
from tests.kit.faults import Fault
from tests.kit.faults.answers import (
    answer,
    black_hole,
    commit_late,
    commit_then,
    commit_then_drop,
    delay,
    drop_before_commit,
    login_page,
    refused,
    status,
)


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def pod(server: Server) -> Pod:
    return pod_on(server)


def bind(server: Server, pod: Pod, node: str = "n1") -> tuple[str, float]:
    """How the binding ended, and after how many seconds."""

    async def story(dispatcher: ApiDispatcher) -> tuple[str, float]:
        try:
            await dispatcher.perform(BindPod.of(pod, node))
        except CallError as exc:
            return f"{type(exc).__name__}: {exc}", asyncio.get_running_loop().time()
        return "bound", asyncio.get_running_loop().time()

    return server.run(story)


def test_a_pod_is_bound(server: Server) -> None:
    assert bind(server, pod_on(server)) == ("bound", 0)
    assert server.node_of("p") == "n1"
    assert server.count("create", "pods", "binding") == 1


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(commit_then_drop(), id="committed, the answer is lost"),
        pytest.param(drop_before_commit(), id="not committed, the connection is cut"),
        pytest.param(black_hole(), id="nothing ever comes back"),
        pytest.param(commit_late(20), id="committed long after the client has given up"),
        pytest.param(commit_then(status(500)), id="committed, and then the server broke"),
        pytest.param(status(503), id="not committed, and the server was broken"),
        pytest.param(commit_then(login_page()), id="committed, and a proxy answered"),
        pytest.param(login_page(), id="a proxy answered"),
        pytest.param(delay(30), id="the server takes its time"),
    ],
)
def test_a_binding_whose_answer_is_lost_is_pursued(fault: Any) -> None:
    """To the same node, until the API server has said what became of it."""
    server = Server(Fault(fault, **BINDING))

    ending, _ = bind(server, pod_on(server))

    assert ending == "bound"
    assert server.node_of("p") == "n1"
    assert server.transport.missed == []


def test_a_garbled_answer_is_success_all_the_same() -> None:
    """The status decides."""
    server = Server(Fault(commit_then(answer(b"\x00{", 201)), **BINDING))

    assert bind(server, pod_on(server)) == ("bound", 0)
    assert server.count("create", "pods", "binding") == 1


async def test_after_an_outage_a_lost_binding_is_found_or_made() -> None:
    """Nobody knows for a minute; the pod is in limbo, and its room stays taken."""
    server = Server(Fault(drop_before_commit(), **BINDING))
    pod = pod_on(server)

    async with server.dispatching() as dispatcher:
        binding = asyncio.ensure_future(dispatcher.perform(BindPod.of(pod, "n1")))
        await asyncio.sleep(0.01)
        server.transport.go_down()
        await asyncio.sleep(60)
        was_undecided, limbo = not binding.done(), list(dispatcher.in_limbo)
        server.transport.come_up()
        await binding

        assert not dispatcher.in_limbo

    assert (was_undecided, limbo) == (True, [pod.uid])
    assert asyncio.get_running_loop().time() < 66
    assert server.node_of("p") == "n1"


def test_write_that_was_certainly_not_sent_fails_at_once() -> None:
    """The pod is free to go elsewhere."""
    server = Server(Fault(refused(), times=None))

    ending, seconds = bind(server, pod_on(server))

    assert ending.startswith("CallError: ")
    assert seconds == 0


def test_a_pod_that_another_scheduler_bound_is_left_there(server: Server, pod: Pod) -> None:
    bind(server, pod, "n2")

    ending, _ = bind(server, pod, "n1")

    assert ending == (
        'CallConflict: Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n2"'
    )
    assert server.node_of("p") == "n2"


def test_a_pod_that_is_on_that_node_already_is_bound(server: Server, pod: Pod) -> None:
    bind(server, pod)

    assert bind(server, pod)[0] == "bound"


async def test_a_pod_that_was_bound_elsewhere_while_the_answer_was_lost_is_no_success() -> None:
    server = Server(Fault(drop_before_commit(), **BINDING))
    pod = pod_on(server)

    other = BindPod.of(pod, "n2")
    async with server.dispatching() as dispatcher:
        binding = asyncio.ensure_future(dispatcher.perform(BindPod.of(pod, "n1")))
        await asyncio.sleep(0.01)
        async with server.dispatching() as another:
            await another.perform(other)
        with pytest.raises(CallConflict, match=r'pod p is already assigned to node "n2"$'):
            await binding


def test_a_pod_of_that_name_that_is_another_one_is_not_bound(server: Server) -> None:
    old = pod_on(server)
    server.delete("p", at_once=True)
    pod_on(server)

    ending, _ = bind(server, old)

    assert ending.startswith("CallConflict: ")
    assert server.node_of("p") == ""


def test_a_pod_that_is_gone_is_not_found(server: Server) -> None:
    old = pod_on(server)
    server.delete("p", at_once=True)

    assert bind(server, old)[0] == 'CallNotFound: pods "p" not found'


def test_a_gated_pod_is_refused(server: Server) -> None:
    pod = pod_on(server, schedulingGates=[{"name": "wait"}])

    ending, _ = bind(server, pod)

    assert ending.startswith("CallConflict: ")


def test_fenced_dispatcher_sends_no_write(server: Server, pod: Pod) -> None:
    """Who is no longer the leader must not write."""
    server.fenced = "this is not the leader"

    assert bind(server, pod)[0] == "CallError: this is not the leader"
    assert server.count("create", "pods", "binding") == 0


async def test_a_binding_in_limbo_ends_as_unknown_at_the_fence() -> None:
    server = Server(Fault(commit_then_drop(), **BINDING))
    pod = pod_on(server)
    async with server.dispatching() as dispatcher:
        binding = asyncio.ensure_future(dispatcher.perform(BindPod.of(pod, "n1")))
        await asyncio.sleep(0.01)
        server.fenced = "this is not the leader"
        with pytest.raises(CallUnknown, match=r"^this is not the leader$"):
            await binding


@pytest.mark.parametrize("seed", range(8))
async def test_each_pod_is_bound_once_over_faulty_connections_and_only_the_winner_believes_it(seed: int) -> None:
    """Two schedulers bind the same pods to different nodes."""
    going_wrong = [
        commit_then_drop(),
        drop_before_commit(),
        commit_late(7),
        status(500),
        commit_then(status(503)),
        login_page(),
        delay(6),
    ]
    server = Server(
        *(Fault(action, **BINDING, times=None, probability=0.12) for action in going_wrong), rng=random.Random(seed)
    )
    pods = [pod_on(server, f"p{number}") for number in range(40)]

    async def bound(dispatcher: ApiDispatcher, pod: Pod, node: str) -> str:
        try:
            await dispatcher.perform(BindPod.of(pod, node))
        except CallConflict:
            return ""
        return node

    async with server.dispatching() as one, server.dispatching() as another:
        ours, theirs = await asyncio.gather(
            asyncio.gather(*(bound(one, pod, "ours") for pod in pods)),
            asyncio.gather(*(bound(another, pod, "theirs") for pod in reversed(pods))),
        )
        await asyncio.sleep(60)  # for what the server does late

    assert [mine + yours for mine, yours in zip(ours, theirs[::-1], strict=True)] == [
        server.node_of(pod.name) for pod in pods
    ]
    assert {"ours", "theirs"} == {server.node_of(pod.name) for pod in pods}


# Status patches.


UNSCHEDULABLE = PodCondition("PodScheduled", "False", "Unschedulable", "0/1 nodes are available", 1)


def test_a_status_patch_writes_conditions_and_the_nomination(server: Server, pod: Pod) -> None:
    server.run(lambda dispatcher: dispatcher.perform(PatchPodStatus.of(pod, UNSCHEDULABLE, nominated_node_name="n1")))

    pod_status = server.pod("p")["status"]
    assert pod_status["nominatedNodeName"] == "n1"
    assert [condition for condition in pod_status["conditions"] if condition["type"] == "PodScheduled"] == [
        {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "0/1 nodes are available",
            "observedGeneration": 1,
            "lastProbeTime": None,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
    ]


def test_a_nomination_is_cleared(server: Server, pod: Pod) -> None:
    server.run(lambda dispatcher: dispatcher.perform(PatchPodStatus.of(pod, nominated_node_name="n1")))
    nominated = convert(Pod, server.pod("p"))

    server.run(lambda dispatcher: dispatcher.perform(PatchPodStatus.of(nominated, nominated_node_name="")))

    assert "nominatedNodeName" not in server.pod("p")["status"]


def test_a_status_that_is_so_already_is_not_written(server: Server, pod: Pod) -> None:
    server.run(lambda dispatcher: dispatcher.perform(PatchPodStatus.of(pod, UNSCHEDULABLE)))
    pod = convert(Pod, server.pod("p"))

    server.run(lambda dispatcher: dispatcher.perform(PatchPodStatus.of(pod, UNSCHEDULABLE, nominated_node_name="")))

    assert server.count("patch", "pods", "status") == 1


@pytest.mark.parametrize("fault", [status(500), status(409), refused()], ids=["broken", "conflict", "away"])
def test_a_status_patch_is_tried_again_a_few_times(fault: Any) -> None:
    server = Server(Fault(fault, verb="patch", times=3))
    pod = pod_on(server)

    server.run(lambda dispatcher: dispatcher.perform(PatchPodStatus.of(pod, UNSCHEDULABLE)))

    assert server.count("patch", "pods", "status") == 4


async def test_a_status_patch_that_always_fails_is_given_up_soon() -> None:
    server = Server(Fault(status(500), verb="patch", times=None))
    pod = pod_on(server)
    async with server.dispatching() as dispatcher:
        with pytest.raises(CallUnknown):
            await dispatcher.perform(PatchPodStatus.of(pod, UNSCHEDULABLE))

    assert asyncio.get_running_loop().time() < 1
    assert server.count("patch", "pods", "status") == 4


async def test_a_status_patch_does_not_hit_a_pod_that_took_over_the_name(server: Server) -> None:
    old = pod_on(server)
    server.delete("p", at_once=True)
    pod_on(server)
    async with server.dispatching() as dispatcher:
        with pytest.raises(CallError):
            await dispatcher.perform(PatchPodStatus.of(old, nominated_node_name="n1"))

    assert "nominatedNodeName" not in server.pod("p")["status"]


def test_a_status_patch_of_a_pod_that_has_changed_is_worked_out_anew(server: Server) -> None:
    old = pod_on(server)
    server.run(lambda dispatcher: dispatcher.perform(PatchPodStatus.of(old, nominated_node_name="n1")))

    server.run(lambda dispatcher: dispatcher.perform(PatchPodStatus.of(old, UNSCHEDULABLE, nominated_node_name="n1")))

    pod_status = server.pod("p")["status"]
    assert [condition["message"] for condition in pod_status["conditions"]] == ["0/1 nodes are available"]
    calls = [(call.verb, call.subresource) for call in server.transport.calls]
    assert calls == [("patch", "status"), ("patch", "status"), ("get", ""), ("patch", "status")]


def test_a_status_patch_that_has_nothing_left_to_say_is_not_sent_again() -> None:
    """Its answer was lost the first time, though it was done."""
    server = Server(Fault(commit_then(status(500)), verb="patch"))
    pod = pod_on(server)

    server.run(lambda dispatcher: dispatcher.perform(PatchPodStatus.of(pod, UNSCHEDULABLE)))

    assert server.count("patch", "pods", "status") == 2
    assert server.count("get", "pods") == 1


async def test_pending_status_is_not_written_to_a_pod_that_has_a_node(server: Server, pod: Pod) -> None:
    disrupted = PodCondition("DisruptionTarget", "True", "PreemptionByScheduler", "why")
    async with server.dispatching() as dispatcher:
        await dispatcher.perform(BindPod.of(pod, "n1"))
        with pytest.raises(CallConflict):
            await dispatcher.perform(PatchPodStatus.of(pod, UNSCHEDULABLE))
        with pytest.raises(CallConflict):
            await dispatcher.perform(PatchPodStatus.of(pod, nominated_node_name="n2"))
        await dispatcher.perform(PatchPodStatus.of(pod, disrupted))

    status_by_type = {condition["type"]: condition["status"] for condition in server.pod("p")["status"]["conditions"]}
    assert status_by_type == {"PodScheduled": "True", "DisruptionTarget": "True"}


# Deletion.


def delete(server: Server, pod: Pod) -> str:
    async def story(dispatcher: ApiDispatcher) -> str:
        try:
            await dispatcher.perform(DeletePod.of(pod))
        except CallError as exc:
            return type(exc).__name__
        return "deleted"

    return server.run(story)


def test_a_pod_is_deleted(server: Server, pod: Pod) -> None:
    assert delete(server, pod) == "deleted"
    assert delete(server, pod) == "CallNotFound"


def test_a_pod_that_took_over_the_name_is_spared(server: Server) -> None:
    old = pod_on(server)
    delete(server, old)
    pod_on(server)

    assert delete(server, old) == "CallConflict"
    assert server.pod("p")


@pytest.mark.parametrize("fault", [commit_then_drop(), drop_before_commit()], ids=["done", "not done"])
def test_a_deletion_whose_answer_is_lost_is_asked_for_again(fault: Any) -> None:
    server = Server(Fault(fault, verb="delete"))

    assert delete(server, pod_on(server)) == "deleted"
    assert server.count("delete", "pods") == 2


def test_refused_deletion_is_a_call_error() -> None:
    server = Server(Fault(status(403, "pods is forbidden"), verb="delete"))

    assert delete(server, pod_on(server)) == "CallError"


@pytest.mark.parametrize(
    "refusal", [status(403), status(401)], ids=["forbidden for a while", "unauthorized for a while"]
)
def test_unconfirmed_binding_is_retried_through_unrelated_refusals(refusal: Any) -> None:
    server = Server(Fault(drop_before_commit(), **BINDING), Fault(refusal, **BINDING, times=2))

    assert bind(server, pod_on(server))[0] == "bound"
    assert server.node_of("p") == "n1"


def test_a_binding_in_limbo_that_was_made_is_seen_even_when_it_may_not_be_repeated() -> None:
    """As in a namespace that has begun to go."""
    server = Server(Fault(commit_then_drop(), **BINDING), Fault(status(403), **BINDING, times=None))

    assert bind(server, pod_on(server))[0] == "bound"


def test_a_binding_that_cannot_be_valid_ends() -> None:
    server = Server(Fault(drop_before_commit(), **BINDING), Fault(status(422), **BINDING))

    assert bind(server, pod_on(server))[0] == "CallError: injected"


async def test_missing_pod_is_distinguished_from_other_refusals(server: Server, pod: Pod) -> None:
    """Who preempts a pod that is gone already has nothing to do."""
    server.delete("p", at_once=True)
    async with server.dispatching() as dispatcher:
        with pytest.raises(CallNotFound):
            await dispatcher.perform(PatchPodStatus.of(pod, UNSCHEDULABLE))
