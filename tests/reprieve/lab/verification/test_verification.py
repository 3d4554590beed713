"""Scheduling rules: what they say is tried by the scheduler itself, and what does not hold is said in words."""

from typing import Any

import pytest

from extender.rules.trial_registry import TrialRegistry
from extender.values.config.configuration import Configuration
from extender.values.objects.decoding import DecodeError
from reprieve.lab.verification.rules import read_rule
from reprieve.lab.verification.verification import RuleError, verify
from tests.kit.objects import budget, node, pod, priority_class, workload


def deployment(name: str = "shop", replicas: int = 3, cpu: str = "1", **spec: Any) -> dict[str, Any]:
    return workload("Deployment", name, pod(name, cpu, **spec), replicas=replicas)


def failures(
    *then: dict[str, Any], given: dict[str, Any] | None = None, when: dict[str, Any] | None = None
) -> list[tuple[str, str]]:
    rule = read_rule(
        {
            "given": given or {"nodes": {"count": 3, "zones": ["a", "b"], "cpu": 2}},
            "when": when or {},
            "then": list(then),
        }
    )
    return [
        (failure.expected, failure.happened) for failure in verify(rule, [], [], Configuration(), TrialRegistry).unmet
    ]


def test_pods_that_exist_count_beside_those_that_are_created() -> None:
    """One of each, as the second object of its list: an API server that begins anew must not give both the same UID."""
    given = {"nodes": {"count": 1, "cpu": 4}, "objects": [pod("there", "3", nodeName="node")]}

    assert failures({"placed": 0}, given=given, when={"create": [priority_class("any", 1), pod("created", "3")]}) == []


NO_ROOM = (
    "0/3 nodes are available: 3 Insufficient cpu. no new claims to deallocate, "
    "preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod."
)
NOT_ASKED = "(they have no constraint over topology.kubernetes.io/zone with DoNotSchedule)"


@pytest.mark.parametrize(
    ("then", "failed"),
    [
        pytest.param({"placed": 6, "pending": 1}, [], id="counts that are right"),
        pytest.param(
            {"placed": 7},
            [("pods: 7 placed", f"6 placed; default/shop-7 is pending: {NO_ROOM}")],
            id="a count of those that are placed",
        ),
        pytest.param(
            {"pending": 0},
            [("pods: 0 pending", f"1 pending; default/shop-7 is pending: {NO_ROOM}")],
            id="a count of the others",
        ),
        pytest.param({"pods": "app=shop", "message": "Insufficient cpu"}, [], id="what the pending ones are told"),
        pytest.param(
            {"pods": "app=shop", "message": "affinity"},
            [("pods app=shop: pending with 'affinity'", f"default/shop-7 is pending: {NO_ROOM}")],
            id="what they are not told",
        ),
        pytest.param({"nodes": 3}, [], id="on how many nodes"),
        pytest.param(
            {"nodes": 1}, [("pods: on 1 nodes", f"on 3; default/shop-7 is pending: {NO_ROOM}")], id="not on so many"
        ),
        pytest.param({"spread": {"by": "hostname"}}, [], id="evenly over nodes"),
        pytest.param(
            {"spread": {"by": "zone"}},
            [("pods: spread by zone with a skew of at most 1", f"a skew of 2: 4 in a, 2 in b {NOT_ASKED}")],
            id="not evenly over zones of different size",
        ),
        pytest.param(
            {"spread": {"by": "zone", "maxSkew": None, "minDomains": 2}}, [], id="over so many, however evenly"
        ),
        pytest.param(
            {"spread": {"by": "zone", "maxSkew": None, "minDomains": 3}},
            [("pods: spread by zone over at least 3", f"a skew of 2: 4 in a, 2 in b {NOT_ASKED}")],
            id="over too few",
        ),
        pytest.param({"spread": {"by": "zone", "maxSkew": 2}}, [], id="as evenly as is asked"),
        pytest.param(
            {"spread": {"by": "rack"}},
            [("pods: spread by rack with a skew of at most 1", "no node has the label rack")],
            id="over something that is not there",
        ),
        pytest.param({"notOnNodes": "disk=ssd"}, [], id="not on nodes"),
        pytest.param(
            {"pods": "name=shop-1", "notOnNodes": "kubernetes.io/hostname"},
            [("pods name=shop-1: not on nodes kubernetes.io/hostname", "default/shop-1 is on node-2")],
            id="on nodes that they should not be on",
        ),
        pytest.param(
            {"pods": "app=nobody", "onNodes": "disk=ssd"},
            [("pods app=nobody: on nodes disk=ssd", "none is placed")],
            id="no pods",
        ),
    ],
)
def test_failed_expectations_are_reported(then: dict[str, Any], failed: list[tuple[str, str]]) -> None:
    """Seven pods of one core, and three nodes of two."""
    assert failures(then, when={"create": [deployment(replicas=7)]}) == failed


@pytest.mark.parametrize(
    ("then", "failed"),
    [
        pytest.param(
            {"evicts": "app=batch", "noPreemptionOf": "priorityClass=prod"}, [], id="pods that may be evicted"
        ),
        pytest.param(
            {"noPreemptionOf": "app=batch"},
            [("no preemption of pods app=batch", "1 evicted: default/batch-1 from node (preempted by default/shop-1)")],
            id="pods that may not be evicted",
        ),
        pytest.param(
            {"evicts": "priorityClass=prod"},
            [("evicts pods priorityClass=prod", "none is evicted")],
            id="pods that are not evicted",
        ),
        pytest.param({"pods": "app in (batch,other),namespace=default", "evicted": 1}, [], id="how many"),
        pytest.param(
            {"pods": "namespace=x", "evicted": 1},
            [("pods namespace=x: 1 evicted", "none is evicted")],
            id="not so many",
        ),
    ],
)
def test_evictions_and_preemptions_are_checked_against_the_rule(
    then: dict[str, Any], failed: list[tuple[str, str]]
) -> None:
    """What is there runs before anything else happens, and its budgets are reckoned from that."""
    there = [priority_class("prod", 1000), deployment("batch", 1, "2"), deployment("db", 1, priorityClassName="prod")]
    given = {"nodes": {"cpu": 3}, "objects": there}

    assert failures(then, given=given, when={"create": [deployment("shop", 1, priorityClassName="prod")]}) == failed


def test_budgets_are_reckoned_when_their_pods_run() -> None:
    given = {
        "nodes": [{"name": "full", "cpu": 2}, {"name": "free", "cpu": 2}],
        "objects": [deployment(replicas=2), budget("shop", {"matchLabels": {"app": "shop"}}, maxUnavailable=1)],
    }
    rule = read_rule({"given": given, "when": {"drain": "full"}, "then": [{"pods": "app=shop", "placed": 2}]})

    assert verify(rule, [], [], Configuration(), TrialRegistry).unmet == []


def test_pod_replaced_by_its_controller_does_not_count_as_evicted() -> None:
    """A rollout of two pods, with room for one more at a time."""
    given = {"nodes": {"cpu": 3}, "objects": [deployment(replicas=2)]}
    changed = deployment(replicas=2, nodeSelector={"kubernetes.io/hostname": "node"})

    then = {"pods": "app=shop", "placed": 2, "evicted": 0, "noEvictionOf": "app=shop"}
    assert failures(then, given=given, when={"create": [changed]}) == []


def test_without_a_when_it_is_about_the_cluster_as_it_is() -> None:
    given = {"nodes": {"cpu": 2}, "objects": [deployment(replicas=3)]}

    assert failures({"placed": 2, "pending": 1}, given=given) == []


def test_pending_pod_gets_the_room_of_a_new_node() -> None:
    given = {"nodes": {"cpu": 2}, "objects": [deployment(replicas=3)]}

    assert failures({"pods": "app=shop", "placed": 3}, given=given, when={"create": [node("new")]}) == []


@pytest.mark.parametrize(
    ("document", "why"),
    [
        pytest.param([], "Expected `object`, got `array`", id="no rule"),
        pytest.param({"given": {}}, "Object missing required field `then`", id="nothing is expected"),
        pytest.param({"then": []}, "a rule that expects nothing - at `$.then`", id="an empty list is expected"),
        pytest.param(
            {"then": [{"pods": "app=web"}]},
            "an expectation that expects nothing - at `$.then[0]`",
            id="only a selection",
        ),
        pytest.param(
            {"then": [{"plcaed": 1}]},
            "Object contains unknown field `plcaed` - at `$.then[0]`; did you mean placed?",
            id="a slip of the pen",
        ),
        pytest.param(
            {"given": {"nodes": {"count": "many"}}, "then": [{"placed": 1}]},
            "Expected `int`, got `str` - at `$.given.nodes.count`",
            id="a value of the wrong type",
        ),
    ],
)
def test_malformed_rule_is_refused_with_its_place(document: object, why: str) -> None:
    with pytest.raises(DecodeError) as refusal:
        read_rule(document)

    assert str(refusal.value) == why


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        pytest.param(
            {"when": {"drain": "gone"}, "then": [{"placed": 0}]}, 'node "gone" not found', id="a node that is not there"
        ),
        pytest.param(
            {"then": [{"pods": " ", "placed": 0}]},
            "it selects nothing: give labels as in app=web",
            id="an empty selector",
        ),
        pytest.param(
            {
                "given": {"objects": [{"kind": "Riddle", "apiVersion": "v9", "metadata": {"name": "x"}}]},
                "then": [{"placed": 0}],
            },
            "Riddle x: objects of kind Riddle (v9) are not known here",
            id="an object of an unknown kind",
        ),
    ],
)
def test_rule_that_cannot_be_tried_is_refused_with_the_reason(rule: dict[str, Any], why: str) -> None:
    with pytest.raises(RuleError) as refusal:
        verify(read_rule(rule), [], [], Configuration(), TrialRegistry)

    assert str(refusal.value) == why
