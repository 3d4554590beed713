"""What would happen to pod groups: they start whole or not at all, also in an answer."""

from functools import partial
from typing import Any

from extender.answers.redaction import HIDDEN_GROUP, redacted
from extender.answers.types import GroupOutcome, WhatIf, WhatIfRequest
from extender.answers.what_if.what_if import what_if
from extender.engine.cache.cluster import Cluster
from extender.rules.trial_registry import TrialRegistry
from extender.testing import make_node
from extender.values.config.feature_gates import FeatureGates
from extender.values.config.loading import load
from extender.values.objects.decoding import convert, replaced
from extender.values.objects.grouping import PodDisruptionBudget
from tests.extender.answers.what_if.test_what_if import HIGH, node, places, running
from tests.kit.cluster import cluster_of
from tests.kit.objects import GROUP_GATES, pod, pod_group
from tests.kit.tables import cases

RACK = "example.com/rack"
NO_PROFILES = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def member(number: int, **spec: Any) -> dict[str, Any]:
    return pod(f"train-{number}", schedulingGroup={"podGroupName": "train"}, **spec)


def ask(about: Cluster, *create: dict[str, Any], gates: dict[str, bool] = GROUP_GATES, profiles: str = "") -> WhatIf:
    features = FeatureGates.of(gates)
    admits = partial(TrialRegistry, features=features)
    return what_if(about.fork(), load(NO_PROFILES + profiles, features), WhatIfRequest(create=list(create)), admits)


def only_group(answer: WhatIf) -> GroupOutcome:
    (group,) = answer.groups
    return group


def test_a_gang_that_fits_is_placed_whole() -> None:
    answer = ask(cluster_of(node("a", cpu=2), node("b", cpu=2)), pod_group("train", 4), *map(member, range(4)))
    assert sorted(places(answer).values()) == ["a", "a", "b", "b"]
    assert only_group(answer).scheduled
    assert "PodGroup default/train would be scheduled as a whole." in answer.summary


def test_gang_that_does_not_fit_is_placed_nowhere_and_the_answer_says_what_it_lacks() -> None:
    answer = ask(cluster_of(node("a", cpu=2), node("b", cpu=1)), pod_group("train", 4), *map(member, range(4)))
    assert set(places(answer).values()) == {""}
    group = only_group(answer)
    assert (group.scheduled, group.fits, group.members, group.min_count) == (False, 3, 4, 4)
    text = "PodGroup default/train would wait: 3 of 4 pods fit (the gang needs 4); default/train-3: 0/2 nodes"
    assert text in group.text
    assert group.text in answer.summary


def test_pods_that_do_not_belong_to_the_group_find_its_room_free() -> None:
    answer = ask(cluster_of(node("a", cpu=2)), pod_group("train", 3), *map(member, range(3)), pod("other", cpu=2))
    assert places(answer)["other"] == "a"


def test_a_gang_without_enough_pods_waits_for_them() -> None:
    answer = ask(cluster_of(node("a")), pod_group("train", 3), *map(member, range(2)))
    assert set(places(answer).values()) == {""}
    assert {placement.message for placement in answer.placements} == {
        "waiting for minCount pods from a gang to appear in scheduling queue"
    }


def test_members_are_placed_one_by_one_without_the_gates() -> None:
    pods = [member(number) for number in range(3)]
    answer = ask(cluster_of(node("a", cpu=2)), *pods, gates={})
    assert sorted(places(answer).values()) == ["", "a", "a"]
    assert not answer.groups


def test_a_gang_preempts_as_a_whole_or_not_at_all() -> None:
    low = [running(f"low-{name}", name) for name in "abc"]
    about = cluster_of(node("a", cpu=1), node("b", cpu=1), node("c", cpu=1), pods=tuple(low))
    group = pod_group("train", 2, priority="high")
    answer = ask(about, HIGH, group, *(member(number, priorityClassName="high") for number in range(2)))
    assert only_group(answer).scheduled
    assert len({eviction.victim.pod.uid for eviction in answer.evictions}) == 2
    assert only_group(answer).evicts == tuple(eviction.victim for eviction in answer.evictions)

    group["spec"]["schedulingPolicy"]["gang"]["minCount"] = 4
    answer = ask(about, HIGH, group, *(member(number, priorityClassName="high") for number in range(4)))
    assert not answer.evictions
    assert not only_group(answer).scheduled


@cases(
    "protect, evicts",
    ("a pod", "selector: {matchLabels: {app: low-a}}", {"low-b", "low-c"}),
    ("pods that have not run for long", "minRunTime: 1h", set()),
    ("a budget", "neverViolateBudgets: true", {"low-a", "low-b"}),
)
def test_a_gang_leaves_protected_pods_alone(protect: str, evicts: set[str]) -> None:
    low = [
        replaced(pod, metadata=replaced(pod.metadata, labels={"app": pod.name}))
        for pod in (running(f"low-{name}", name) for name in "abc")
    ]
    budget = convert(
        PodDisruptionBudget, {"metadata": {"name": "keep"}, "spec": {"selector": {"matchLabels": {"app": "low-c"}}}}
    )
    about = cluster_of(node("a", cpu=1), node("b", cpu=1), node("c", cpu=1), pods=tuple(low), pdbs=(budget,))
    profile = f"profiles: [{{pluginConfig: [{{name: DefaultPreemption, args: {{protect: {{{protect}}}}}}}]}}]\n"
    gang = [pod_group("train", 2, priority="high"), *(member(number, priorityClassName="high") for number in range(2))]
    assert {eviction.victim.pod.name for eviction in ask(about, HIGH, *gang, profiles=profile).evictions} == evicts


def test_single_members_evict_no_pod_unless_the_gang_fits_then() -> None:
    gates = {**GROUP_GATES, "WorkloadAwarePreemption": False}
    about = cluster_of(node("a", cpu=1), node("b", cpu=1), pods=(running("low-a", "a"), running("low-b", "b")))
    pods = [member(number, priorityClassName="high") for number in range(3)]
    assert not ask(about, HIGH, pod_group("train", 3), *pods, gates=gates).evictions
    answer = ask(about, HIGH, pod_group("train", 2), *pods[:2], gates=gates)
    assert {eviction.victim.pod.name for eviction in answer.evictions} == {"low-a", "low-b"}
    assert only_group(answer).scheduled


def test_a_gang_in_one_rack_says_which_rack_it_gets_or_which_is_nearest() -> None:
    racks = [
        make_node(name).capacity(cpu=cpu, memory="8Gi", pods=110).label({RACK: name[0]})
        for name, cpu in (("r1", 1), ("s1", 2), ("s2", 1))
    ]
    group = pod_group("train", 3, topology_key=RACK)
    answer = ask(cluster_of(*racks), group, *map(member, range(3)))
    assert set(places(answer).values()) == {"s1", "s2"}
    assert only_group(answer).placement == "s"

    answer = ask(cluster_of(*racks[:2]), group, *map(member, range(3)))
    outcome = only_group(answer)
    assert (outcome.scheduled, outcome.placement, outcome.fits) == (False, "s", 2)
    assert f"2 of 3 pods fit in {RACK}=s (the gang needs 3)" in outcome.text


def test_group_name_is_hidden_from_callers_who_may_not_see_its_namespace() -> None:
    answer = redacted(ask(cluster_of(node("a", cpu=1)), pod_group("train", 2), *map(member, range(2))), may_see=())
    assert (only_group(answer).namespace, only_group(answer).name) == ("", "")
    assert HIDDEN_GROUP in answer.summary
    assert "train" not in repr(answer)
