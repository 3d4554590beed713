"""Plans: which pods move where, so that a new one fits; what keeps a pod where it is; and what a plan costs."""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from extender.answers.redaction import redacted
from extender.answers.types import QuestionError
from extender.engine.cache.cluster import Cluster
from extender.rules.trial_registry import TrialRegistry
from extender.testing import make_pod
from extender.values.config.configuration import Configuration
from extender.values.config.feature_gates import FeatureGates
from extender.values.config.loading import load
from extender.values.objects.grouping import PodDisruptionBudget
from extender.values.objects.pod import Pod
from reprieve.lab.plan.plan import plan
from reprieve.lab.plan.plan_answer import PlanAnswer, PlanRequest
from tests.extender.answers.what_if.test_what_if import node, owned, running
from tests.kit.cluster import cluster_of
from tests.kit.objects import GROUP_GATES, members, pod, pod_group, priority_class
from tests.kit.owners import make_budget
from tests.kit.pod_specs import away_from

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
PROTECTING = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: DefaultPreemption
    args: {protect: {selector: {matchLabels: {keep: "true"}}}}
"""
GANGS = load(
    "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n", FeatureGates.of(GROUP_GATES)
)


def ask(
    about: Cluster, *create: Mapping[str, Any], configuration: Configuration | None = None, **more: Any
) -> PlanAnswer:
    max_moves = more.pop("max_moves", 8)
    request = PlanRequest(create=[dict(obj) for obj in create], max_moves=max_moves)
    settings = configuration or Configuration()
    return plan(
        about.fork(), settings, request, partial(TrialRegistry, features=settings.feature_gates), lambda: NOW, **more
    )


def moves(answer: PlanAnswer) -> list[tuple[str, str, str]]:
    return [(move.pod.name, move.from_node, move.to_node) for move in answer.moves]


def nodes(answer: PlanAnswer) -> dict[str, str]:
    return {placement.pod.name: placement.node for placement in answer.placements}


def staying(answer: PlanAnswer) -> dict[str, int]:
    return {group.reason: group.pods for group in answer.staying}


def labelled(name: str, on: str, cpu: int, **labels: str) -> Pod:
    return owned(make_pod(name).req(cpu=cpu).node(on).label(labels))


# Moves.


def test_a_pod_that_fits_needs_no_move() -> None:
    answer = ask(cluster_of(node("a")), pod("new", 2))

    assert (answer.fits, moves(answer), nodes(answer)) == (True, [], {"new": "a"})
    assert answer.summary == "default/new fits on a without any move."


def test_a_pod_moves_to_where_there_is_room() -> None:
    answer = ask(
        cluster_of(node("a"), node("b"), pods=(running("small", "a", 1), running("large", "b", 3, priority=5))),
        pod("new", 4),
    )

    assert moves(answer) == [("small", "a", "b")]
    assert nodes(answer) == {"new": "a"}
    assert answer.is_complete
    assert answer.moves[0].owner == "ReplicaSet/small-owner"
    assert answer.moves[0].requests == {"cpu": "1"}


def chained() -> Cluster:
    """No pod fits on the node of another until a third one has left."""
    pods = (running("three", "a", 3), running("one", "b", 1), running("two", "c", 1))
    return cluster_of(node("a", 4), node("b", 3), node("c", 2), pods=pods)


def test_room_is_made_first_for_a_pod_that_finds_none() -> None:
    answer = ask(chained(), pod("new", 4))

    assert moves(answer) == [("one", "b", "c"), ("three", "a", "b")]
    assert (nodes(answer), answer.is_complete) == ({"new": "a"}, True)


def test_a_pod_moves_twice_where_two_have_to_change_places() -> None:
    pods = (running("three", "a", 3), running("two", "b", 2))
    new_pods = [pod(f"new-{name}", 2, nodeSelector={"kubernetes.io/hostname": name}) for name in "ac"]
    answer = ask(cluster_of(node("a", 4), node("b", 3), node("c", 2), pods=pods), *new_pods)

    assert moves(answer) == [("two", "b", "c"), ("three", "a", "b"), ("two", "c", "a")]
    assert (nodes(answer), answer.is_complete) == ({"new-a": "a", "new-c": "c"}, True)


def test_pods_that_mind_each_other_are_kept_apart() -> None:
    apart = [
        owned(
            make_pod(f"web-{name}")
            .req(cpu=1)
            .node(name)
            .label(app="web")
            .pod_anti_affinity("kubernetes.io/hostname", app="web")
        )
        for name in "ab"
    ]
    answer = ask(cluster_of(node("a", 4), node("b", 4), node("c", 1), pods=tuple(apart)), pod("new", 4))

    assert [to for _, _, to in moves(answer)] == ["c"]


def test_the_pod_that_stands_in_the_way_elsewhere_in_the_zone_moves() -> None:
    """The wanted pod minds another one in its zone, on a node that it does not get."""
    zoned = [node(name, 4).label({"zone": zone}) for name, zone in (("a1", "a"), ("a2", "a"), ("b1", "b"))]
    about = cluster_of(*zoned, pods=(labelled("web", "a2", 1, app="web"), running("full", "b1", 2, kind="DaemonSet")))
    answer = ask(about, pod("new", 4, affinity=away_from("zone", app="web")))

    assert moves(answer) == [("web", "a2", "b1")]
    assert nodes(answer)["new"] in ("a1", "a2")


def test_the_pods_of_a_job_fit_together_after_the_moves() -> None:
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train"},
        "spec": {
            "parallelism": 2,
            "completions": 2,
            "template": {"spec": {**pod("x", 4)["spec"], "restartPolicy": "Never"}},
        },
    }
    about = cluster_of(node("a"), node("b"), node("c"), pods=(running("one", "a", 1), running("two", "b", 1)))
    answer = ask(about, job)

    assert len(answer.moves) == 1
    assert len({*nodes(answer).values()}) == 2
    assert answer.summary.startswith("All 2 pods would fit after 1 move:")


def test_a_gang_fits_after_the_moves_in_one_rack() -> None:
    racks = [node(name, 4).label({"rack": rack}) for name, rack in (("a1", "a"), ("a2", "a"), ("b1", "b"), ("b2", "b"))]
    about = cluster_of(*racks, pods=(running("one", "a1", 1), running("two", "b1", 2), running("three", "b2", 2)))
    gang = [pod_group("g", 2, topology_key="rack"), *members(2, cpu="4")]
    answer = ask(about, *gang, configuration=GANGS)

    assert [name for name, *_ in moves(answer)] == ["one"]
    assert {*nodes(answer).values()} == {"a1", "a2"}


# What stays.


def test_plan_moves_no_protected_unowned_daemon_or_terminating_pod() -> None:
    stays = [
        make_pod("bare").req(cpu=1).node("a").obj(),
        running("daemon", "a", 1, kind="DaemonSet"),
        owned(make_pod("going").req(cpu=1).node("b").terminating()),
        labelled("kept", "b", 1, keep="true"),
    ]
    about = cluster_of(node("a", 2), node("b", 2), node("c", 1), pods=tuple(stays))
    answer = ask(about, pod("new", 2), configuration=load(PROTECTING))

    assert (answer.fits, answer.is_complete, moves(answer)) == (False, True, [])
    assert staying(answer) == {
        "have no controller that would recreate them": 1,
        "belong to their nodes": 1,
        "are terminating already": 1,
        "are protected by the victim policy": 1,
    }
    assert answer.summary == "No plan of at most 8 moves makes room for default/new."


@pytest.mark.parametrize(
    ("budgets", "why"),
    [
        ([make_budget("web", 0, app="web")], "have a PodDisruptionBudget that allows no eviction now"),
        (
            [make_budget("web", 1, app="web"), make_budget("all", 1)],
            "have more than one PodDisruptionBudget, so every eviction request is refused",
        ),
    ],
)
def test_plan_makes_no_move_that_the_eviction_api_would_refuse(budgets: list[PodDisruptionBudget], why: str) -> None:
    pods = (labelled("web", "a", 1, app="web"),)
    answer = ask(cluster_of(node("a", 2), node("b", 1), pods=pods, pdbs=budgets), pod("new", 2))

    assert (answer.fits, staying(answer)) == (False, {why: 1})
    assert ask(cluster_of(node("a", 2), node("b", 1), pods=pods), pod("new", 2)).fits


def test_a_move_waits_for_the_budget_that_an_earlier_one_has_used_up() -> None:
    pods = (labelled("web-1", "a", 1, app="web"), labelled("web-2", "a", 1, app="web"))
    answer = ask(
        cluster_of(node("a", 2), node("b", 1), node("c", 1), pods=pods, pdbs=[make_budget("web", 1, app="web")]),
        pod("new", 2),
    )

    assert [move.waits_for for move in answer.moves] == [(), ("web",)]

    other = cluster_of(node("a", 2), node("b", 1), node("c", 1), pods=pods, pdbs=[make_budget("web", 2, app="web")])
    assert [move.waits_for for move in ask(other, pod("new", 2)).moves] == [(), ()]


def test_a_pod_whose_budget_need_not_recover_is_preferred() -> None:
    web = (labelled(name, "a", 1, app="web") for name in ("web-1", "web-2"))
    pods = (*web, running("free", "a", 1, priority=5))
    answer = ask(
        cluster_of(node("a", 3), node("b", 1), node("c", 1), pods=pods, pdbs=[make_budget("web", 1, app="web")]),
        pod("new", 2),
    )

    assert {move.pod.name for move in answer.moves} == {"web-1", "free"}
    assert [move.waits_for for move in answer.moves] == [(), ()]


# Bounds.


def test_a_plan_has_no_more_moves_than_are_allowed() -> None:
    answer = ask(chained(), pod("new", 4), max_moves=1)

    assert (answer.fits, answer.is_complete, answer.looked_through) == (False, True, 1)
    assert answer.summary == "No plan of at most 1 move makes room for default/new."


def full(count: int) -> Cluster:
    """Nodes on each of which one of four CPUs is free, in pods of different sizes."""
    pods = [running(f"p{number}-{cpu}", f"n{number}", cpu) for number in range(count) for cpu in (1, 2)]
    return cluster_of(*(node(f"n{number}", 4) for number in range(count)), pods=tuple(pods))


def test_incomplete_search_is_marked_in_the_summary() -> None:
    answer = ask(full(6), pod("new", 4), trials=30)

    assert not answer.is_complete
    assert "the search reached its limit" in answer.summary or "There may be a plan with fewer moves." in answer.summary


def test_beyond_the_exact_search_room_is_made_node_by_node() -> None:
    answer = ask(full(6), pod("new", 3), trials=200)

    assert answer.fits
    assert len(answer.moves) == 2


def test_equal_questions_have_equal_answers() -> None:
    assert ask(full(5), pod("new", 3)) == ask(full(5), pod("new", 3))


# Gain and cost.


def test_answer_names_the_gpu_hours_that_moves_lose_and_the_victims_of_preemption_instead() -> None:
    def of_gpus(name: str, on: str, **more: str) -> Pod:
        builder = make_pod(name).req({"nvidia.com/gpu": 2}, cpu=1).node(on).start_time("2026-11-23T02:00:00Z")
        return owned(builder.annotation(more).priority(0))

    gpus = [node(name).capacity({"nvidia.com/gpu": 4}, cpu=4, memory="8Gi", pods=110) for name in "ab"]
    about = cluster_of(
        *gpus,
        pods=(
            of_gpus("long", "a"),
            of_gpus("saved", "b", **{"volcano.sh/last-checkpoint-time": "2026-11-23T11:00:00Z"}),
        ),
    )
    high = priority_class("high", 1000)
    want = pod("new", 1, priorityClassName="high")
    want["spec"]["containers"][0]["resources"] = {key: {"nvidia.com/gpu": "4"} for key in ("requests", "limits")}
    answer = ask(about, high, want)

    assert moves(answer) == [("saved", "b", "a")]
    assert (answer.moves[0].gpu_hours, answer.gpu_hours) == (2.0, 2.0)
    assert len(answer.instead) == 1
    assert answer.instead[0].by is not None


def test_a_move_to_where_the_scheduler_would_not_put_the_pod_needs_steering() -> None:
    spread = [running("a1", "a", 2), running("b1", "b", 1), running("c1", "c", 1)]
    about = cluster_of(node("a", 4), node("b", 4), node("c", 4), pods=tuple(spread))
    assert [move.needs_steering for move in ask(about, pod("new", 4)).moves] == [False]

    two = cluster_of(
        node("a", 4),
        node("b", 4),
        node("c", 2),
        pods=(running("b1", "b", 1), running("b2", "b", 1), running("a1", "a", 2)),
    )
    answer = ask(two, pod("new", 4, nodeSelector={"kubernetes.io/hostname": "b"}))
    assert answer.fits
    assert len(answer.moves) == 2


# Questions that cannot be answered, and callers who may not see all.


@pytest.mark.parametrize(
    ("create", "words"),
    [
        ([], "makes room for pods, or frees a number of nodes: ask for one of them"),
        ([priority_class("high", 1)], "it has no pending pod"),
        ([pod("new", nodeName="a")], "a plan is for new pods that a scheduler places"),
        ([pod("new", schedulerName="other")], 'no profile here for schedulerName "other"'),
        (
            [{"apiVersion": "v1", "kind": "Strange", "metadata": {"name": "x"}}],
            "objects of kind Strange (v1) are not known here",
        ),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(create: list[Mapping[str, Any]], words: str) -> None:
    with pytest.raises(QuestionError) as raised:
        ask(cluster_of(node("a")), *create)
    assert words in str(raised.value)


def test_names_of_other_namespaces_are_hidden() -> None:
    secret = owned(make_pod("secret").namespace("other").req(cpu=1).node("a"))
    answer = redacted(ask(cluster_of(node("a"), node("b", 1), pods=(secret,)), pod("new", 4)), {"default"})

    assert answer.moves[0].pod.hidden
    assert answer.moves[0].owner == ""
    assert "secret" not in repr(answer)
