"""The story of a pod: from records, and without any from its conditions and Events."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from extender.answers.parts import PodName, PreemptionState, Verdict, Victim
from extender.answers.questions import Questions
from extender.answers.records.record_store import AttemptRecord, CandidateRecord, PreemptionRecord, Record
from extender.answers.records.records import Records
from extender.answers.stories import Story
from extender.answers.types import Explanation
from extender.engine.cache.cluster import Cluster
from extender.rules.trial_registry import TrialRegistry
from extender.testing import make_node
from extender.values.config.configuration import Configuration
from extender.values.objects.decoding import convert
from extender.values.objects.listed_events import ListedEvent, ListedEvents
from extender.values.objects.pod import Pod

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp()
WEB, VIP = PodName("shop", "web-1", "web-1", 10), PodName("shop", "vip", "vip", 1000)
OTHER = PodName("bank", "till", "till", 5)


def a_pod(
    name: str = "web-1",
    time: str = "12:00:00",
    *,
    uid: str = "",
    owner: str = "",
    node: str = "",
    status: object = None,
    deleted: str | None = None,
) -> Pod:
    kind, _, owner_name = owner.partition("/")
    owners = [{"kind": kind, "name": owner_name, "uid": owner_name, "controller": True}] if owner else []
    metadata = {"name": name, "namespace": "shop", "uid": uid or name, "creationTimestamp": f"2026-01-01T{time}Z"}
    spec = {"nodeName": node, "containers": [{"name": "c", "resources": {"requests": {"cpu": "4"}}}]}
    whole = {**metadata, "ownerReferences": owners, "deletionTimestamp": deleted}
    return convert(Pod, {"metadata": whole, "spec": spec, "status": status or {}})


def refused(id_: int, seconds: int, message: str, *, number: int = 0, pod: PodName = WEB) -> AttemptRecord:
    return AttemptRecord(id_, NOON + seconds, pod, "default-scheduler", "Unschedulable", number or id_, message=message)


def placed(id_: int, seconds: int, number: int = 1) -> AttemptRecord:
    return AttemptRecord(id_, NOON + seconds, WEB, "default-scheduler", "Scheduled", number, "a", feasible=3)


def preemption(
    *victims: Victim,
    preemptor: PodName = VIP,
    outcome: PreemptionState = "told",
    verdict: Verdict = "",
    took: PodName | None = None,
) -> PreemptionRecord:
    spared = CandidateRecord("b", (Victim(OTHER),), 0, costs=(0, 5, 5, 1, 0))
    return PreemptionRecord(
        50, NOON + 50, preemptor, "a", victims, 0, (CandidateRecord("a", victims, 0, costs=(0, 1, 1, 1, 0)), spared), 2, outcome,
        verdict=verdict, room_taken_by=(took,) if took else (),
    )  # fmt: skip


def explained(
    *pods: Pod, records: Sequence[Record] = (), events: ListedEvents | None = None, name: str = "web-1"
) -> Explanation | None:
    cluster, store = Cluster(), Records()
    for item in (make_node("a").capacity(cpu=4).obj(), *pods):
        cluster.changed(None, item)
    store.restore(records)

    async def about(*_: str) -> ListedEvents:
        return events or ListedEvents()

    questions = Questions(Configuration(), cluster, TrialRegistry, records=store, events=about if events else None)
    return asyncio.run(questions.explain("shop", name, events=events is not None))


def tale(*pods: Pod, records: Sequence[Record] = (), events: ListedEvents | None = None, name: str = "web-1") -> Story:
    answer = explained(*pods, records=records, events=events, name=name)
    assert answer is not None and answer.story is not None
    return answer.story


def steps(story: Story) -> list[tuple[str, str]]:
    return [(step.what, step.text) for step in story.steps]


def test_refusals_for_equal_reasons_are_one_step_with_their_number_and_times() -> None:
    few, many = ("0/3 nodes are available: 1 Insufficient cpu.", "0/4 nodes are available: 2 Insufficient cpu.")
    story = tale(
        a_pod(),
        records=[
            refused(1, 1, few), refused(2, 5, "0/3 nodes are available: 3 node(s) were unschedulable."),
            refused(3, 9, many), refused(4, 70, few),
        ],
    )  # fmt: skip

    assert [(step.what, step.count, step.first, step.time) for step in story.steps] == [
        ("created", 1, "2026-01-01T12:00:00Z", "2026-01-01T12:00:00Z"),
        ("refused", 3, "2026-01-01T12:00:01.000Z", "2026-01-01T12:01:10.000Z"),
        ("refused", 1, "2026-01-01T12:00:05.000Z", "2026-01-01T12:00:05.000Z"),
    ]
    assert story.text == "It has waited since 2026-01-01T12:00:00Z and was refused 4 times."
    assert story.refusals == 4


def test_attempts_that_are_no_longer_kept_are_counted() -> None:
    story = tale(a_pod(), records=[refused(1, 1, "full", number=30), refused(2, 2, "full", number=31)])

    assert story.refusals == 31
    assert story.notes == ("its attempts before number 30 are no longer stored",)


def test_a_pod_with_a_node_tells_how_long_it_waited() -> None:
    story = tale(a_pod(node="a"), records=[refused(1, 1, "full"), placed(2, 90, 2)])

    assert story.text == "It waited 90s for its node and was refused once."
    assert steps(story)[-1] == ("placed", "default-scheduler chose a among 3 nodes that fit")


@pytest.mark.parametrize(
    ("outcome", "verdict", "took", "text"),
    [
        ("told", "used", None, "it evicted bank/till on a, and got a node"),
        ("told", "", None, "it evicted bank/till on a"),
        ("deciding", "", None, "it chose to evict bank/till on a"),
        ("failed", "", None, "it could not evict all of bank/till on a"),
        ("told", "wasted", VIP, "it evicted bank/till on a, but got no node there: shop/vip took the room"),
        ("told", "wasted", None, "it evicted bank/till on a, but got no node there"),
    ],
)
def test_a_preemptor_tells_of_its_victims(
    outcome: PreemptionState, verdict: Verdict, took: PodName | None, text: str
) -> None:
    record = preemption(Victim(OTHER), preemptor=WEB, outcome=outcome, verdict=verdict, took=took)

    (step,) = (step for step in tale(a_pod(), records=[record]).steps if step.preemption is not None)

    assert (step.what, step.text) == ("preempted", text)
    assert step.preemption is not None
    assert [candidate.why_not for candidate in step.preemption.candidates if candidate.node == "b"] == [
        "its most important victim has priority 5, on a it is 1"
    ]


def test_who_took_the_room_of_another_is_told_so() -> None:
    record = preemption(Victim(OTHER), verdict="wasted", took=WEB)

    assert ("took", "it took the room on a that was freed for shop/vip (priority 1000)") in steps(
        tale(a_pod(), records=[record])
    )


EVICTED = "it was evicted from a for shop/vip (priority 1000)"


@pytest.mark.parametrize(
    ("other_pods", "came"),
    [
        ([], []),
        ([a_pod("web-2", "12:00:51", owner="ReplicaSet/web", node="a")], ["made shop/web-2 instead, which is on a"]),
        ([a_pod("web-2", "12:00:50", owner="ReplicaSet/web")], ["made shop/web-2 instead, which waits for a node"]),
        ([a_pod("web-2", "12:00:49", owner="ReplicaSet/web")], []),
        ([a_pod("x-2", "12:00:51", owner="ReplicaSet/x")], []),
        (
            [a_pod(f"web-{n}", f"12:00:{50 + n}", owner="ReplicaSet/web") for n in (4, 3, 2)],
            ["made shop/web-2 instead, which waits for a node"],
        ),
    ],
    ids=["nobody", "with a node", "in the same second", "older", "another owner", "the first of several"],
)
def test_a_victim_tells_who_came_in_its_place(other_pods: list[Pod], came: list[str]) -> None:
    answer = explained(*other_pods, records=[preemption(Victim(WEB, owner="ReplicaSet/web"))])

    assert answer is not None and answer.story is not None
    assert answer.state == "Finished"
    assert steps(answer.story) == [("evicted", EVICTED), *(("replaced", f"ReplicaSet/web {text}") for text in came)]
    assert answer.summary.startswith(
        f"It is gone or has finished; the last that is recorded, at 2026-01-01T12:00:50.000Z: {EVICTED}."
    )


def test_of_two_victims_of_one_owner_two_came_back() -> None:
    victims = [Victim(pod, owner="ReplicaSet/web") for pod in (WEB, PodName("shop", "web-0", "web-0"))]
    came = [a_pod(f"web-{n}", f"12:00:{50 + n}", owner="ReplicaSet/web") for n in (2, 3, 4)]

    assert [step.pods[0].name for step in tale(*came, records=[preemption(*victims)]).steps[1:]] == ["web-2", "web-3"]


def test_a_pod_that_came_back_under_its_name_tells_of_the_one_before() -> None:
    back = a_pod("web-1", "12:00:52", uid="new", owner="StatefulSet/web")
    victim = Victim(WEB, owner="StatefulSet/web")

    story = tale(
        back,
        records=[
            refused(1, 1, "full"),
            preemption(victim),
            refused(60, 60, "full", number=1, pod=PodName("shop", "web-1", "new")),
        ],
    )

    assert [step.what for step in story.steps] == ["refused", "evicted", "created", "replaced", "refused"]
    assert story.refusals == 1


def test_without_records_the_conditions_tell_and_say_so() -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "full"}
    story = tale(a_pod(status={"conditions": [{**condition, "lastTransitionTime": "2026-01-01T12:00:03Z"}]}))

    assert steps(story) == [("created", "it was created"), ("refused", "default-scheduler refused it: full")]
    assert (story.steps[1].first, story.steps[1].time, story.steps[1].count) == ("2026-01-01T12:00:03Z", None, 0)
    assert story.text == "It has waited since 2026-01-01T12:00:00Z and was refused."
    assert story.notes == ("no records of it exist here: this story comes from its conditions and Events",)


@pytest.mark.parametrize(
    ("pod", "step"),
    [
        (
            a_pod(
                node="a",
                status={
                    "conditions": [{"type": "PodScheduled", "status": "True"}],
                    "startTime": "2026-01-01T12:00:09Z",
                },
            ),
            ("placed", "it got the node a"),
        ),
        (
            a_pod(
                node="a", status={"conditions": [{"type": "DisruptionTarget", "status": "True", "message": "for vip"}]}
            ),
            ("evicted", "it was chosen to be evicted: for vip"),
        ),
        (a_pod(node="a", deleted="2026-01-01T13:00:00Z"), ("ended", "it is being deleted")),
        (a_pod(owner="Job/night"), ("created", "it was created by Job/night")),
    ],
)
def test_what_the_pod_says_of_itself_is_a_step(pod: Pod, step: tuple[str, str]) -> None:
    assert step in steps(tale(pod))


def listed(reason: str, message: str, count: int = 1) -> ListedEvents:
    event = ListedEvent("2026-01-01T12:10:00Z", "", reason, message, "sched", count, "2026-01-01T12:01:00Z")
    return ListedEvents((event, ListedEvent("2026-01-01T12:11:00Z", "", "Pulled", "image", "kubelet", 1)))


@pytest.mark.parametrize(
    ("reason", "what", "count"),
    [
        ("FailedScheduling", "refused", 12),
        ("Scheduled", "placed", 1),
        ("Preempted", "evicted", 1),
        ("Evicted", "evicted", 1),
    ],
)
def test_events_tell_what_no_record_tells(reason: str, what: str, count: int) -> None:
    story = tale(a_pod(), events=listed(reason, "words", count))

    assert [(step.what, step.text, step.count) for step in story.steps][1:] == [(what, "sched: words", count)]
    assert story.refusals == (12 if what == "refused" else 0)


def test_a_pod_that_only_events_know_has_a_story() -> None:
    answer = explained(events=listed("Preempted", "Preempted by pod x on node a"))

    assert answer is not None
    assert answer.summary.endswith("at 2026-01-01T12:10:00Z: sched: Preempted by pod x on node a.")
    assert explained() is None


def test_records_count_more_than_events() -> None:
    story = tale(a_pod(), records=[refused(1, 1, "x")], events=listed("FailedScheduling", "x", 9))

    assert [step.count for step in story.steps] == [1, 1]


def test_a_question_that_cannot_be_answered_about_events_says_why() -> None:
    assert "its Events are not known: no right" in tale(a_pod(), events=ListedEvents(why_none="no right")).notes


def test_only_so_many_pods_are_named() -> None:
    many = [Victim(PodName("bank", f"till-{n}")) for n in range(9)]

    assert ("preempted", "it evicted bank/till-0, bank/till-1, bank/till-2 and 6 more on a") in steps(
        tale(a_pod(), records=[preemption(*many, preemptor=WEB)])
    )
