"""What people ask about one cluster: answered from what is known of it, its queue and its records, and without
consequences.
"""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from extender.answers.questions import Questions
from extender.answers.records.records import Records
from extender.answers.types import Capacity, Explanation, QuestionError, WhatIfRequest
from extender.engine.cache.cluster import Cluster
from extender.rules.trial_registry import TrialRegistry
from extender.testing import NodeBuilder, PodBuilder, make_node, make_pod
from extender.values.config.configuration import ConfigErrors, Configuration
from extender.values.config.feature_gates import FeatureGates
from extender.values.config.loading import load
from extender.values.objects.cluster import ClusterState
from extender.values.objects.decoding import convert
from extender.values.objects.grouping import PodGroup
from tests.extender.engine.cache.snapshot_contents import view
from tests.kit.objects import GROUP_GATES, priority_class
from tests.kit.tables import cases
from tests.kit.told_scheduler import NOON, ToldScheduler

A, B = (make_node(name).capacity(cpu=4, pods=10) for name in "ab")
PROFILES = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"


def a_pod(name: str, cpu: int | str = 1) -> PodBuilder:
    return make_pod(name).uid(f"uid-{name}").req(cpu=cpu)


def manifest(name: str = "new", cpu: str = "1", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def cluster(*nodes: NodeBuilder, pods: Sequence[PodBuilder] = ()) -> Cluster:
    return Cluster.of(ClusterState(nodes=[node.obj() for node in nodes], pods=[pod.obj() for pod in pods]))


def about(*nodes: NodeBuilder, pods: Sequence[PodBuilder] = (), profiles: str = "") -> Questions:
    """Of an extender: another scheduler decides."""
    return Questions(
        load(PROFILES + profiles) if profiles else Configuration(), cluster(*nodes, pods=pods), TrialRegistry
    )


async def explained_by(questions: Questions, name: str) -> Explanation:
    answer = await questions.explain("default", name)
    assert answer is not None
    return answer


def explained(questions: Questions, name: str) -> Explanation:
    return asyncio.run(explained_by(questions, name))


def fitting(questions: Questions, name: str, limit: int = 10) -> Capacity:
    fits = questions.capacity(f"default/{name}", limit)
    assert fits is not None
    return fits


def deciding() -> tuple[ToldScheduler, Questions]:
    """A scheduler that decides, and what people ask about its cluster."""
    records = Records(now=NOON.timestamp)
    scheduling = ToldScheduler(records)
    queue = scheduling.alone.world.queue
    return scheduling, Questions(
        Configuration(), scheduling.cluster, TrialRegistry, queue=queue, records=records, now=lambda: NOON
    )


# Why a pod is where it is.


@cases(
    "pod, state, node",
    ("waits", a_pod("p"), "Pending", ""),
    ("fits nowhere", a_pod("p", 9), "Pending", ""),
    ("held back", a_pod("p").gate("later"), "Gated", ""),
    ("promised a node", a_pod("p").nominated_node("a"), "Nominated", "a"),
    ("has a node", a_pod("p").node("a"), "Scheduled", "a"),
    ("has a node, chosen by another scheduler", a_pod("p").node("a").scheduler_name("other"), "Scheduled", "a"),
)
def test_a_pod_is_in_the_state_that_its_cluster_says(pod: PodBuilder, state: str, node: str) -> None:
    answer = explained(about(A, B, pods=[pod]), "p")

    assert (answer.state, answer.node, answer.pod.uid) == (state, node, "uid-p")
    assert answer.queue is None


def test_a_pod_that_has_got_its_place_is_being_bound() -> None:
    live = cluster(A, pods=[a_pod("p")])
    live.assume("uid-p", "a")

    answer = explained(Questions(Configuration(), live, TrialRegistry), "p")

    assert (answer.state, answer.node, answer.waterfall) == ("Binding", "a", ())


@cases("pod", ("on a node", a_pod("p", "lots").node("a")), ("promised a node", a_pod("p", "lots").nominated_node("a")))
def test_unreadable_pod_is_reported_each_time(pod: PodBuilder) -> None:
    questions = about(A, pods=[pod])

    for _ in range(2):
        answer = explained(questions, "p")

        assert (answer.state, answer.pod.uid) == ("Unreadable", "uid-p")
        assert "quantities must match the regular expression" in answer.summary


def test_unknown_pod_has_no_explanation_and_no_capacity() -> None:
    questions = about(A, pods=[a_pod("p")])

    assert asyncio.run(questions.explain("default", "q")) is None
    assert asyncio.run(questions.explain("other", "p")) is None
    assert questions.capacity("default/q", 10) is None


def test_the_picture_comes_when_it_is_asked_for() -> None:
    questions = about(A, B, pods=[a_pod("p", 9)])

    with_picture = asyncio.run(questions.explain("default", "p", picture=True))

    assert with_picture is not None
    assert with_picture.picture is not None
    assert with_picture.picture.nodes == ("a", "b")
    assert explained(questions, "p").picture is None


# Why this node.


async def test_choice_of_a_node_is_explained_from_the_recorded_decision() -> None:
    scheduling, questions = deciding()
    scheduling.comes(A, B, a_pod("taken", 2).node("a"), a_pod("p"))
    await scheduling.decides()
    scheduling.cluster.changed(None, a_pod("later", 3).node("b").obj())

    answer = await explained_by(questions, "p")

    assert (answer.node, answer.scores_of, [score.node for score in answer.scores]) == ("b", "decision", ["b", "a"])
    assert answer.choice.startswith(f"b had the highest score of 2 nodes, {answer.scores[0].total}; a came next with")
    fit = answer.scores[0].plugins["NodeResourcesFit"]
    assert (fit.normalized, fit.weight, fit.weighted) == (fit.raw, 1, fit.raw)


def test_why_a_pod_of_another_scheduler_is_on_its_node_is_worked_out_again() -> None:
    """As if it had no node yet: its own requests do not speak against it."""
    answer = explained(about(A, B, pods=[a_pod("taken", 2).node("a"), a_pod("p", 3).node("b")]), "p")

    assert (answer.scores_of, answer.scores) == ("now", ())
    assert answer.choice == "No other node would pass now, so nothing would be scored."
    answer = explained(about(A, B, pods=[a_pod("taken", 2).node("a"), a_pod("p").node("b")]), "p")
    assert [score.node for score in answer.scores] == ["b", "a"]
    assert answer.choice.startswith("As things are now, without this pod, b has the highest score of 2 nodes")
    full = about(A, B, pods=[a_pod("taken", 3).node("a"), a_pod("p", 2).node("a")])
    assert explained(full, "p").choice == "As things are now, a would refuse this pod; it would find 1 node."


# Whose pods.


def test_the_only_profile_answers_for_pods_of_any_scheduler() -> None:
    """Another scheduler asks the extender, and calls its profile what it likes: one pod on a, none on b, which a pod of
    any name may use.
    """
    other = a_pod("p", 3).scheduler_name("theirs")
    questions = about(A, B, pods=[a_pod("q", 2).node("a"), other])

    assert explained(questions, "p").scores[0].node == "b"
    fits = fitting(questions, "p")
    assert [(room.node, room.pods) for room in fits.by_node] == [("b", 1)]
    assert questions.capacity_of(manifest(cpu="3", schedulerName="theirs"), 10).fits == 1
    request = WhatIfRequest(create=[manifest(schedulerName="theirs", cpu="2")], include_pending=True)
    placed = questions.what_if(request).placements
    assert {placement.pod.name: placement.node for placement in placed} == {"p": "b", "new": "a"}


def test_nomination_by_the_only_profile_reserves_room_for_any_scheduler_name() -> None:
    """The urgent one has a promise by preemption, and the next one, with the same scheduler, does not take the room
    that was made.
    """
    questions = about(A, pods=[a_pod("victim", 3).node("a").priority(0)])
    urgent = {"apiVersion": "v1", "kind": "Pod", **manifest("urgent", "3", schedulerName="theirs", priority=10)}
    urgent["spec"].pop("priority")
    urgent["spec"]["priorityClassName"] = "high"
    high = priority_class("high", 10)

    answer = questions.what_if(WhatIfRequest(create=[high, urgent, manifest("small", "2", schedulerName="theirs")]))

    created = {placement.pod.name: placement.node for placement in answer.placements if placement.cause == "created"}
    assert created == {"urgent": "a", "small": ""}


def test_among_several_profiles_none_is_meant() -> None:
    profiles = "- schedulerName: ours\n- schedulerName: too\n"
    questions = about(
        A, pods=[a_pod("p").scheduler_name("theirs"), a_pod("q").scheduler_name("too")], profiles=profiles
    )

    assert explained(questions, "p").state == "NotOurs"
    assert explained(questions, "q").state == "Pending"
    fits = fitting(questions, "p")
    assert (fits.fits, fits.stopped_by) == (0, 'no profile here for schedulerName "theirs"')
    (placed,) = questions.what_if(WhatIfRequest(create=[manifest(schedulerName="theirs")])).placements
    assert (placed.node, placed.message) == ("", 'no profile here for schedulerName "theirs"')


async def test_pods_of_other_schedulers_are_left_alone_by_a_deciding_scheduler() -> None:
    scheduling, questions = deciding()
    scheduling.comes(A, a_pod("p").scheduler_name("theirs"))

    answer = await explained_by(questions, "p")
    fits = await asyncio.to_thread(fitting, questions, "p")

    assert (answer.state, answer.queue) == ("NotOurs", None)
    assert fits.stopped_by == 'no profile here for schedulerName "theirs"'


# What was decided.


async def test_explanation_includes_queue_place_and_attempts() -> None:
    scheduling, questions = deciding()
    scheduling.comes(A, a_pod("big", 9))
    await scheduling.decides()

    answer = await explained_by(questions, "big")

    assert answer.queue is not None
    assert (answer.queue.queue, answer.queue.refused_by) == ("unschedulable", ("NodeResourcesFit",))
    assert answer.queue.since == "2026-01-01T12:00:00Z"
    (attempt,) = answer.attempts
    assert (attempt.outcome, attempt.number, attempt.message) == ("Unschedulable", 1, answer.message)
    assert attempt.seconds == round(attempt.seconds, 6) > 0


async def test_pod_waits_since_the_same_second_whenever_it_is_asked() -> None:
    scheduling = ToldScheduler()
    scheduling.comes(A, a_pod("big", 9))
    late = iter([0.0, 0.9, -0.9, 3600.0])
    loop = asyncio.get_running_loop()
    questions = Questions(
        Configuration(),
        scheduling.cluster,
        TrialRegistry,
        queue=scheduling.alone.world.queue,
        now=lambda: NOON + timedelta(seconds=loop.time() + next(late)),
    )

    times = [(await questions.queue()).items[0].since for _ in range(4)]

    assert len(set(times[:3])) == 1
    assert times[3] != times[0]  # the wall clock was set


async def test_a_queued_pod_for_which_a_node_is_chosen_is_told_so_in_the_queue() -> None:
    scheduling, questions = deciding()
    pod = a_pod("p", 1)
    scheduling.comes(A, pod)
    scheduling.cluster.assume(pod.obj().uid, "a")

    (place,) = (await questions.queue()).items
    answer = await explained_by(questions, "p")

    assert place.queue == "placed"
    assert place.standing is not None and place.standing == answer.standing


async def test_a_pod_that_is_gone_is_remembered_by_what_was_decided() -> None:
    scheduling, questions = deciding()
    scheduling.comes(A, victim := a_pod("victim", 3).node("a").priority(4), a_pod("urgent", 3).priority(9))
    await scheduling.decides()
    scheduling.goes(victim)

    answer = await explained_by(questions, "victim")

    assert (answer.state, answer.attempts) == ("Finished", ())
    assert (answer.pod.uid, answer.pod.priority) == (victim.obj().uid, 4)
    assert answer.story is not None
    assert [(step.what, step.text) for step in answer.story.steps] == [
        ("evicted", "it was evicted from a for default/urgent (priority 9)")
    ]
    assert [preemption.by.name for preemption in questions.preemptions("default/urgent", 10).items] == ["urgent"]
    assert questions.preemptions("default/other", 10).items == ()


async def test_decisions_are_listed_page_by_page() -> None:
    scheduling, questions = deciding()
    scheduling.comes(A, *(a_pod(f"p{number}", 9) for number in range(5)))
    await scheduling.decides()

    newest = questions.decisions(None, 2)
    older = questions.decisions(None, 10, before=newest.items[-1].id)

    ids = [decision.id for decision in (*newest.items, *older.items)]
    assert ids == sorted(ids, reverse=True)
    assert len(set(ids)) == 5
    assert newest.oldest == ids[-1]
    assert [decision.pod.name for decision in questions.decisions("default/p3", 10).items] == ["p3"]


# Whether anything has changed.


async def test_another_version_says_that_something_may_be_otherwise() -> None:
    scheduling, questions = deciding()
    versions = [questions.version()]

    def changed() -> bool:
        versions.append(questions.version())
        return versions[-1] not in versions[:-1]

    assert not changed()
    scheduling.comes(A)
    assert changed(), "a node came"
    scheduling.comes(a_pod("p"), a_pod("big", 9))
    assert changed(), "pods came"
    info = scheduling.alone.world.queue.pop_nowait()
    assert info is not None
    assert changed(), "a pod is being tried"
    async with asyncio.TaskGroup() as acting:
        await scheduling.alone.scheduler.schedule_one(info, acting)
    assert changed(), "it was decided about"
    await questions.explain("default", "big", picture=True)
    request = WhatIfRequest(create=[manifest()], drain_nodes=["a"], include_pending=True)
    await asyncio.to_thread(questions.what_if, request)
    await asyncio.to_thread(questions.capacity, "default/big", 10)
    assert not changed(), "somebody has asked"


# What if, and how many.


def test_a_what_if_leaves_everything_as_it_was() -> None:
    live = cluster(A, B, pods=[a_pod("web", 3).node("a"), a_pod("waits", 2), a_pod("promised", 2).nominated_node("b")])
    questions = Questions(Configuration(), live, TrialRegistry)
    explained(questions, "waits")  # by which nominations are known
    before = view(live.cache.update_snapshot()), live.nodes.copy(), live.pending.copy(), live.changes

    request = WhatIfRequest(
        create=[
            manifest(cpu="2"),
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "c"}, "status": {"allocatable": {"cpu": "1"}}},
        ],
        drain_nodes=["a"],
        remove_nodes=["b"],
        include_pending=True,
    )
    answer = questions.what_if(request)

    assert answer.placements
    assert (view(live.cache.update_snapshot()), live.nodes, live.pending, live.changes) == before
    assert answer == questions.what_if(request)


@cases(
    "question, error, words",
    ("an unknown node", {"drain_nodes": ["c"]}, QuestionError, 'node "c" not found'),
    ("no object", {"create": [{"kind": "Pod"}]}, QuestionError, "needs an apiVersion and metadata"),
    ("a pod that runs", {"create": [manifest("web")]}, QuestionError, 'pods "web" already exists'),
    ("no quantity", {"create": [manifest(cpu="lots")]}, QuestionError, "quantities must match"),
    ("no configuration", {"configuration": {"kind": "Pod"}}, ConfigErrors, "'apiVersion' is missing"),
)
def test_a_what_if_that_cannot_be_is_an_error(question: dict[str, Any], error: type[Exception], words: str) -> None:
    questions = about(A, pods=[a_pod("web").node("a")])

    with pytest.raises(error, match=words):
        questions.what_if(WhatIfRequest(**question))


def test_capacity_counts_further_copies_of_a_pod() -> None:
    questions = about(A, B, pods=[a_pod("web", 2).node("a")])

    fits = fitting(questions, "web")

    assert ({room.node: room.pods for room in fits.by_node}, fits.is_limit) == ({"a": 1, "b": 2}, False)
    assert fitting(questions, "web", 2).is_limit


@cases(
    "metadata",
    ("none", {}),
    ("that of a pod that runs", {"name": "web"}),
    ("that of another pod that runs", {"name": "one-more-0"}),
    ("to be made", {"generateName": "web-"}),
    ("no metadata", None),
    ("no name at all", {"name": 5}),
)
def test_name_of_a_pod_that_is_only_written_down_does_not_matter(metadata: object) -> None:
    questions = about(A, B, pods=[a_pod("web", 2).node("a"), a_pod("one-more-0").node("b"), a_pod("one-more-1")])

    fits = questions.capacity_of({**manifest(cpu="2"), "metadata": metadata}, 10)

    assert {room.node: room.pods for room in fits.by_node} == {"a": 1, "b": 1}  # one-more-0 is on b


@cases(
    "pod, words",
    ("no quantity", manifest(cpu="lots"), "quantities must match"),
    ("less than nothing", manifest(cpu="-1"), "must be greater than or equal to 0"),
    ("no pod", manifest() | {"kind": "Node"}, "pods are counted, not objects of kind 'Node'"),
    ("nothing at all", manifest() | {"spec": None}, "spec.containers: Required value"),
    ("a number", manifest() | {"spec": 7}, "cannot unmarshal number"),
    ("of another version", manifest() | {"apiVersion": "v9"}, "not known here"),
    ("not even an object", {}, "spec.containers: Required value"),
)
def test_invalid_pod_is_refused_by_capacity(pod: dict[str, Any], words: str) -> None:
    questions = about(A)

    with pytest.raises(QuestionError, match=words):
        questions.capacity_of(pod, 10)


def test_a_pod_that_is_written_down_as_it_runs_counts_as_a_new_one() -> None:
    """Its node, its UID and its state are those of one that is there."""
    questions = about(A, B, pods=[a_pod("web", 2).node("a")])
    running = manifest("web", "2", nodeName="a") | {"status": {"phase": "Succeeded", "nominatedNodeName": "a"}}
    running["metadata"] |= {"uid": "uid-web", "deletionTimestamp": "2026-01-01T00:00:00Z"}

    fits = questions.capacity_of(running, 10)

    assert {room.node: room.pods for room in fits.by_node} == {"a": 1, "b": 2}


# Who waits.


def test_pods_without_a_node_wait_when_another_scheduler_decides() -> None:
    queue = asyncio.run(about(A, pods=[a_pod("web").node("a"), a_pod("waits")]).queue())

    assert ([item.pod.name for item in queue.items], queue.deciding) == (["waits"], False)


def template(cpu: str = "1", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"labels": {"app": "w"}}, "spec": manifest(cpu=cpu, **spec)["spec"]}


SELECTOR = {"matchLabels": {"app": "w"}}


@pytest.mark.parametrize(
    ("api_version", "kind", "spec"),
    [
        ("apps/v1", "Deployment", {"replicas": 1, "selector": SELECTOR, "template": template()}),
        ("apps/v1", "DaemonSet", {"selector": SELECTOR, "template": template()}),
        ("batch/v1", "Job", {"parallelism": 2, "template": template(restartPolicy="Never")}),
        (
            "batch/v1",
            "CronJob",
            {"schedule": "@daily", "jobTemplate": {"spec": {"template": template(restartPolicy="Never")}}},
        ),
    ],
)
def test_capacity_of_a_workload_counts_pods_of_its_template(api_version: str, kind: str, spec: dict[str, Any]) -> None:
    workload = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "w"}, "spec": spec}

    fits = about(A, B).capacity_of(workload, 100)

    assert fits.fits == 8
    assert fits.notes == (f"pods of the template of {kind} w are counted; its number of replicas does not matter",)


def test_capacity_leaves_volume_claims_of_a_stateful_set_aside_with_a_note() -> None:
    mounts = [{"name": "data", "mountPath": "/data"}]
    pod_template = template()
    pod_template["spec"]["containers"][0]["volumeMounts"] = mounts
    claims = [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]
    spec = {"selector": SELECTOR, "template": pod_template, "volumeClaimTemplates": claims}

    fits = about(A).capacity_of(
        {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "w"}, "spec": spec}, 100
    )

    assert (fits.fits, fits.notes[1:]) == (4, ("the volumes that it claims for each of them are ignored",))


@pytest.mark.parametrize("kind", ["Node", "ConfigMap"])
def test_capacity_of_a_kind_without_pods_is_refused(kind: str) -> None:
    with pytest.raises(QuestionError, match=f"not objects of kind '{kind}'"):
        about(A).capacity_of({"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}}, 10)


def test_invalid_pod_is_refused_under_its_own_name() -> None:
    with pytest.raises(QuestionError) as refusal:
        about(A).capacity_of({**manifest("web"), "spec": {"containers": []}}, 10)

    assert 'Pod "web" is invalid' in str(refusal.value)
    assert "one-more" not in str(refusal.value)


def test_a_profile_that_stands_in_for_other_schedulers_is_named() -> None:
    """Where another scheduler asks the extender that is on purpose; of a cluster in a file somebody has to know it."""
    words = (
        "another scheduler (theirs) decides about some of these pods; the answer was computed with the profile "
        "default-scheduler"
    )
    questions = about(A, pods=[a_pod("p").scheduler_name("theirs"), a_pod("ours")])

    assert explained(questions, "p").notes == (words,)
    assert explained(questions, "ours").notes == ()
    assert questions.what_if(WhatIfRequest(create=[manifest(schedulerName="theirs")])).notes == (words,)
    assert questions.what_if(WhatIfRequest(create=[manifest()])).notes == ()
    assert questions.capacity_of(manifest(schedulerName="theirs"), 10).notes == (words,)
    assert fitting(questions, "ours").notes == ()


# Pod groups.


def about_gang(*nodes: NodeBuilder, pods: Sequence[PodBuilder] = (), gates: dict[str, bool] | None = None) -> Questions:
    """About a cluster with the gang `train` of three."""
    features = FeatureGates.of(GROUP_GATES if gates is None else gates)
    spec = {"schedulingPolicy": {"gang": {"minCount": 3}}}
    live = cluster(*nodes, pods=pods)
    live.changed(
        None, convert(PodGroup, {"metadata": {"name": "train", "namespace": "default", "uid": "train"}, "spec": spec})
    )
    return Questions(
        load(PROFILES.removesuffix("profiles:\n"), features), live, partial(TrialRegistry, features=features)
    )


def gang(cpu: int) -> list[PodBuilder]:
    return [a_pod(f"train-{number}", cpu).group("train") for number in range(3)]


def test_a_pod_of_a_gang_is_explained_with_its_gang() -> None:
    answer = explained(about_gang(A, B, pods=gang(3)), "train-0")

    assert answer.group is not None
    assert (answer.group.fits, answer.group.members, answer.group.min_count, answer.group.scheduled) == (2, 3, 3, False)
    assert [bool(member.node) for member in answer.group.pods] == [True, True, False]
    assert "0/2 nodes are available: 2 Insufficient cpu" in answer.group.pods[2].message
    text = "PodGroup default/train would wait: 2 of 3 pods fit (the gang needs 3); default/train-2: 0/2 nodes"
    assert text in answer.summary


def test_the_explanation_of_a_gang_names_the_pods_that_would_have_to_go() -> None:
    low = [a_pod(f"low-{name}", 3).node(name).priority(-1) for name in "ab"]
    answer = explained(about_gang(A, B, pods=[*gang(2), *low]), "train-1")

    assert answer.group is not None
    assert {victim.pod.name for victim in answer.group.evicts} == {"low-a", "low-b"}


def test_a_question_about_a_gang_changes_nothing() -> None:
    questions = about_gang(A, B, pods=gang(1))
    before = questions.version()
    first = explained(questions, "train-0")

    assert explained(questions, "train-0") == first
    assert questions.version() == before


def test_without_the_gates_a_pod_is_explained_by_itself() -> None:
    answer = explained(about_gang(A, B, pods=gang(3), gates={}), "train-0")

    assert answer.group is None
    assert "PodGroup" not in answer.summary
