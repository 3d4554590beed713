"""How far a pod has come with its scheduler: the same state, words and count in every answer."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TypeVar

import pytest

from extender.answers.parts import PodName
from extender.answers.phrases import its_scheduler
from extender.answers.questions import Questions
from extender.answers.records.record_store import AttemptRecord
from extender.answers.records.records import Records
from extender.answers.types import Explanation, Queue
from extender.engine.cache.cluster import Cluster
from extender.engine.runtime.waiting_pods import WaitingPodsMap
from extender.rules.trial_registry import TrialRegistry
from extender.testing import PodBuilder, make_node, make_pod
from extender.values.config.configuration import Configuration
from extender.values.objects.cluster import identified
from extender.values.objects.decoding import convert, replaced
from extender.values.objects.devices import ResourceClaim
from extender.values.objects.listed_events import ListedEvent, ListedEvents
from extender.values.objects.meta import Condition, HasMetadata
from extender.values.objects.pod import Pod
from tests.kit.storage import make_claim, make_class

Made = TypeVar("Made", bound=HasMetadata)

MESSAGE = "0/1 nodes are available: 1 Insufficient cpu."


def a_pod(name: str = "p") -> PodBuilder:
    return make_pod(name).uid(name).req(cpu=4)


def with_condition(pod: Pod, time: str | None = None) -> Pod:
    refused = Condition(type="PodScheduled", status="False", message=MESSAGE, last_transition_time=time)
    return replaced(pod, status=replaced(pod.status, conditions=[refused]))


def ending(pod: Pod, *finalizers: str) -> Pod:
    metadata = replaced(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z", finalizers=finalizers)
    return replaced(pod, metadata=metadata)


WAITS_FOR_DATA = a_pod().claim("data").nominated_node("a").obj()
DATA = [make_claim("data", selected_node="a"), make_class("std", provisioner="csi.example.com")]

TAINTED = make_node("t").capacity(cpu=4).taint("starting").obj()

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
    conditions = [{"type": condition, "status": "True"} for condition in ready]
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
    answer = asyncio.run(questions.explain("default", name))
    assert answer is not None
    return answer


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
        (
            a_pod().nominated_node("t").obj(),
            [TAINTED],
            "nominated",
            "taint",
            "until the taint starting:NoSchedule there",
        ),
        (with_condition(a_pod().nominated_node("t").obj()), [TAINTED], "nominated", "taint", "waits until the taint"),
        (
            a_pod().nominated_node("t").toleration("starting", operator="Exists").obj(),
            [TAINTED],
            "nominated",
            "",
            "has nominated it to t",
        ),
        (a_pod().gate("x/wait").obj(), [], "gated", "", "held back by the scheduling gate"),
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

    answer, queue, number = asyncio.run(all_asked())

    assert answer is not None and answer.standing is not None
    assert (answer.standing.state, answer.standing.waits_for) == (state, waits_for)
    assert words in answer.standing.text
    assert words.lower() in (its_scheduler(answer) or answer.summary).lower()
    assert [place.standing and place.standing.text for place in queue.items] == [answer.standing.text]
    assert number == 1


def test_a_refusal_is_repeated_with_what_would_become_of_the_pod_now() -> None:
    assert its_scheduler(explained(about(with_condition(a_pod().obj())))).endswith("Insufficient cpu; it would fit now")
    full = explained(about(with_condition(a_pod().obj()), make_pod("x").req(cpu=4).node("a").obj()))
    assert its_scheduler(full).endswith("it would be refused now, too")


def test_who_waits_for_a_volume_holds_its_room_and_can_be_evicted_for_it() -> None:
    above = a_pod("above").priority(9).obj()

    answer = explained(about(WAITS_FOR_DATA, above, objects=DATA), "above")

    assert answer.feasible_nodes == 0
    assert answer.preemption is not None
    assert [victim.pod.name for victim in answer.preemption.victims] == ["p"]


def test_a_pod_that_permit_holds_waits_for_the_plugin() -> None:
    async def ask() -> Explanation | None:
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

    answer = asyncio.run(ask())

    assert answer is not None
    assert (answer.state, answer.summary) == ("Waiting", "It is placed on a and waits until Quota permits it.")


def created(item: Made, time: str) -> Made:
    return replaced(item, metadata=replaced(item.metadata, creation_timestamp=time))


@pytest.mark.parametrize(
    ("pod", "claim", "since"),
    [
        (created(WAITS_FOR_DATA, "2026-01-01T08:00:00Z"), created(DATA[0], "2026-01-01T07:00:00Z"), "08:00:00"),
        (created(WAITS_FOR_DATA, "2026-01-01T08:00:00Z"), created(DATA[0], "2026-01-01T08:00:05Z"), "08:00:05"),
        (with_condition(WAITS_FOR_DATA, "2026-01-01T09:00:00Z"), created(DATA[0], "2026-01-01T08:00:05Z"), "09:00:00"),
    ],
    ids=["the pod came last", "its claim came last", "it was refused before"],
)
def test_a_wait_for_a_volume_began_when_all_was_there_at_the_earliest(pod: Pod, claim: HasMetadata, since: str) -> None:
    its = explained(about(pod, objects=[claim, DATA[1]])).standing

    assert its is not None
    assert its.since == f"2026-01-01T{since}Z"
    assert f"waits, since {its.since} at the earliest, for the volume" in its.text


def told_by(events: ListedEvents, pod: Pod = WAITS_FOR_DATA, objects: Sequence[HasMetadata] = DATA) -> Explanation:
    keys: list[tuple[str, ...]] = []

    async def about_it(*key: str) -> ListedEvents:
        keys.append(key)
        return events

    cluster = Cluster()
    for item in (make_node("a").capacity(cpu=4).obj(), *objects, pod):
        cluster.changed(None, item)
    answer = explained(Questions(Configuration(), cluster, TrialRegistry, events=about_it))
    assert keys == [("PersistentVolumeClaim", "default", "data")]
    return answer


def an_event(reason: str, message: str, count: int = 1) -> ListedEvents:
    event = ListedEvent("2026-01-01T09:30:00Z", "Warning", reason, message, "x", count, "2026-01-01T09:00:00Z")
    return ListedEvents((event,))


@pytest.mark.parametrize(
    ("events", "note"),
    [
        (
            an_event("ProvisioningFailed", "no quota", 7),
            "last Event of the claim data, at 2026-01-01T09:30:00Z, 7 times since 2026-01-01T09:00:00Z: "
            "ProvisioningFailed: no quota",
        ),
        (
            an_event("ExternalProvisioning", "waiting for it"),
            "last Event of the claim data, at 2026-01-01T09:30:00Z: ExternalProvisioning: waiting for it",
        ),
        (ListedEvents(), "no Events of the claim data are known"),
        (ListedEvents(why_none="no right"), "no Events of the claim data are known: no right"),
    ],
)
def test_the_last_word_of_the_provisioner_is_told(events: ListedEvents, note: str) -> None:
    assert note in told_by(events).notes
    assert note in told_by(events, with_condition(a_pod().claim("data").obj()), [make_claim("data"), DATA[1]]).notes


HAND_PLACED = a_pod().claim("data").node("a").obj()


@pytest.mark.parametrize(
    ("claim", "binding", "hangs"),
    [
        (make_claim("data"), "WaitForFirstConsumer", True),
        (make_claim("data"), "Immediate", False),
        (make_claim("data", volume="v"), "WaitForFirstConsumer", False),
        (DATA[0], "WaitForFirstConsumer", False),
    ],
    ids=["waits for a consumer", "is bound at once", "is bound", "a scheduler chose a node"],
)
def test_a_hand_placed_pod_whose_claim_nobody_binds_is_told_so(claim: HasMetadata, binding: str, hangs: bool) -> None:
    answer = explained(about(HAND_PLACED, objects=[claim, make_class(binding=binding)]))

    assert answer.state == "Scheduled"
    assert any("it waits forever" in note for note in answer.notes) == hangs
    assert any("the node selector kubernetes.io/hostname=a" in note for note in answer.notes) == hangs


def test_a_hand_placed_pod_that_runs_waits_for_nothing() -> None:
    running = replaced(HAND_PLACED, status=replaced(HAND_PLACED.status, phase="Running"))

    assert explained(about(running, objects=[make_claim("data"), make_class()])).notes == ()


def test_since_when_a_pod_waits_is_known_if_its_node_was_chosen_here() -> None:
    cluster, records = Cluster(), Records()
    for item in (make_node("a").capacity(cpu=4).obj(), *DATA, created(WAITS_FOR_DATA, "2026-01-01T08:00:00Z")):
        cluster.changed(None, item)
    chosen = datetime(2026, 1, 1, 9, tzinfo=UTC).timestamp()
    records.restore([AttemptRecord(1, chosen, PodName.of(WAITS_FOR_DATA), "default-scheduler", "Scheduled", node="a")])

    its = explained(Questions(Configuration(), cluster, TrialRegistry, records=records)).standing

    assert its is not None
    assert its.since == "2026-01-01T09:00:00.000Z"
    assert "waits, since 2026-01-01T09:00:00.000Z, for the volume" in its.text
