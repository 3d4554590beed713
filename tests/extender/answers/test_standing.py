"""How far a pod has come with its scheduler: the same state, words and count in every answer."""

import asyncio
from collections.abc import Sequence

import pytest

from extender.answers.phrases import its_scheduler
from extender.answers.questions import Questions
from extender.answers.types import Explanation, Queue
from extender.engine.cache.cluster import Cluster
from extender.engine.runtime.waiting_pods import WaitingPodsMap
from extender.rules.trial_registry import TrialRegistry
from extender.testing import PodBuilder, make_node, make_pod
from extender.values.config.configuration import Configuration
from extender.values.objects.cluster import identified
from extender.values.objects.decoding import convert, replaced
from extender.values.objects.devices import ResourceClaim
from extender.values.objects.meta import Condition, HasMetadata
from extender.values.objects.pod import Pod
from tests.kit.storage import make_claim, make_class

MESSAGE = "0/1 nodes are available: 1 Insufficient cpu."


def a_pod(name: str = "p") -> PodBuilder:
    return make_pod(name).uid(name).req(cpu=4)


def with_condition(pod: Pod, at: str | None = None) -> Pod:
    refused = Condition(type="PodScheduled", status="False", message=MESSAGE, last_transition_time=at)
    return replaced(pod, status=replaced(pod.status, conditions=[refused]))


def ending(pod: Pod, *finalizers: str) -> Pod:
    metadata = replaced(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z", finalizers=finalizers)
    return replaced(pod, metadata=metadata)


WAITS_FOR_DATA = a_pod().claim("data").nominated_node("a").obj()
DATA = [make_claim("data", selected_node="a"), make_class("std", provisioner="csi.example.com")]

WITH_DEVICE = identified(
    convert(
        Pod,
        {
            "metadata": {"name": "p", "namespace": "default", "uid": "p"},
            "spec": {"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]},
            "status": {"nominatedNodeName": "a"},
        },
    )
)


def device_claim(*ready: str) -> ResourceClaim:
    device = {"driver": "d", "pool": "a", "device": "0"}
    conditions = [{"type": each, "status": "True"} for each in ready]
    allocation = {"devices": {"results": [{"request": "r", **device, "bindingConditions": ["Attached", "Reset"]}]}}
    return convert(
        ResourceClaim,
        {
            "metadata": {"name": "gpu", "namespace": "default"},
            "status": {
                "allocation": allocation,
                "reservedFor": [{"resource": "pods", "name": "p", "uid": "p"}],
                "devices": [{**device, "conditions": conditions}],
            },
        },
    )


def about(*pods: Pod, objects: Sequence[HasMetadata] = ()) -> Questions:
    cluster = Cluster()
    for item in (make_node("a").capacity(cpu=4).obj(), *objects, *pods):
        cluster.changed(None, item)
    return Questions(Configuration(), cluster, TrialRegistry)


def explained(questions: Questions, name: str = "p") -> Explanation:
    found = asyncio.run(questions.explain("default", name))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("pod", "objects", "state", "waits_for", "words"),
    [
        (a_pod().obj(), [], "untried", "", "default-scheduler has not tried it yet"),
        (with_condition(a_pod().obj(), "2026-01-01T09:00:00Z"), [], "refused", "", "at 2026-01-01T09:00:00Z"),
        (with_condition(a_pod().obj()), [], "refused", "", f"default-scheduler refused it: {MESSAGE[:-1]}"),
        (a_pod().nominated_node("a").obj(), [], "nominated", "", "default-scheduler has nominated it to a"),
        (a_pod().scheduler_name("volcano").obj(), [], "elsewhere", "scheduler", "waits for the scheduler volcano"),
        (ending(a_pod().obj()), [], "deleted", "", "it is being deleted since 2026-01-01T00:00:00Z"),
        (ending(a_pod().obj(), "x/y"), [], "deleted", "finalizer", "goes once the finalizer x/y is removed"),
        (WAITS_FOR_DATA, DATA, "waiting", "volume", "the claim data, which csi.example.com has to provision for a"),
        (a_pod().claim("data").obj(), DATA, "waiting", "volume", "it is placed on a"),
        (with_condition(a_pod().claim("data").obj()), DATA, "refused", "", "refused it"),
        (with_condition(WAITS_FOR_DATA), DATA, "waiting", "volume", "it is placed on a"),
        (WAITS_FOR_DATA, [make_claim("data")], "nominated", "", "has nominated it to a"),
        (WITH_DEVICE, [device_claim()], "waiting", "device", "claim gpu reports Attached and Reset"),
        (WITH_DEVICE, [device_claim("Attached")], "waiting", "device", "claim gpu reports Reset"),
        (WITH_DEVICE, [device_claim("Attached", "Reset")], "binding", "", "it is being bound on a"),
    ],
)
def test_every_answer_says_the_same_of_a_pod(
    pod: Pod, objects: list[HasMetadata], state: str, waits_for: str, words: str
) -> None:
    questions = about(pod, objects=objects)

    async def all_asked() -> tuple[Explanation | None, Queue, int]:
        return await questions.explain("default", "p"), await questions.queue(), (await questions.pending()).pods

    found, queue, number = asyncio.run(all_asked())

    assert found is not None and found.standing is not None
    assert (found.standing.state, found.standing.waits_for) == (state, waits_for)
    assert words in found.standing.text
    assert words.lower() in (its_scheduler(found) or found.summary).lower()
    assert [each.standing and each.standing.text for each in queue.items] == [found.standing.text]
    assert number == 1


def test_a_refusal_is_repeated_with_what_would_become_of_the_pod_now() -> None:
    assert its_scheduler(explained(about(with_condition(a_pod().obj())))).endswith("Insufficient cpu; it would fit now")
    full = explained(about(with_condition(a_pod().obj()), make_pod("x").req(cpu=4).node("a").obj()))
    assert its_scheduler(full).endswith("it would be refused now, too")


def test_who_waits_for_a_volume_holds_its_room_and_can_be_evicted_for_it() -> None:
    above = a_pod("above").priority(9).obj()

    found = explained(about(WAITS_FOR_DATA, above, objects=DATA), "above")

    assert found.feasible_nodes == 0
    assert found.preemption is not None
    assert [each.pod.name for each in found.preemption.victims] == ["p"]


def test_a_pod_that_permit_holds_waits_for_the_plugin() -> None:
    async def asked() -> Explanation | None:
        cluster, waiting = Cluster(), WaitingPodsMap()
        for item in (make_node("a").capacity(cpu=4).obj(), a_pod().obj()):
            cluster.changed(None, item)
        assumed = cluster.assume("p", "a")
        assert assumed is not None
        waiting.add(assumed, {"Quota": 60.0})
        try:
            return await Questions(Configuration(), cluster, TrialRegistry, waiting=waiting).explain("default", "p")
        finally:
            waiting.reject("p")

    found = asyncio.run(asked())

    assert found is not None
    assert (found.state, found.summary) == ("Waiting", "It is placed on a and waits until Quota permits it.")
