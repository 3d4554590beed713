"""Scheduling rules: what they say is tried by the scheduler itself, and what does not hold is said in words."""

from typing import Any

import pytest

from extender.rules.trial_registry import TrialRegistry
from extender.values.config.configuration import Configuration
from extender.values.objects.decoding import DecodeError
from reprieve.lab.verification.rules import read_rule
from reprieve.lab.verification.verification import RuleError, verify
from tests.kit.objects import budget, node, pod, priority_class, workload
from tests.kit.tables import cases


def deployment(name: str = "shop", replicas: int = 3, cpu: str = "1", **spec: Any) -> dict[str, Any]:
    return workload("Deployment", name, pod(name, cpu, **spec), replicas=replicas)


def failures(
    *then: dict[str, Any], world: dict[str, Any] | None = None, when: dict[str, Any] | None = None
) -> list[tuple[str, str]]:
    rule = read_rule(
        {
            "given": world or {"nodes": {"count": 3, "zones": ["a", "b"], "cpu": 2}},
            "when": when or {},
            "then": list(then),
        }
    )
    return [
        (failure.expected, failure.happened) for failure in verify(rule, [], [], Configuration(), TrialRegistry).unmet
    ]


def test_pods_that_exist_count_beside_those_that_are_created() -> None:
    """One of each, as the second object of its list: an API server that begins anew must not give both the same UID."""
    world = {"nodes": {"count": 1, "cpu": 4}, "objects": [pod("there", "3", nodeName="node")]}

    assert failures({"placed": 0}, world=world, when={"create": [priority_class("any", 1), pod("created", "3")]}) == []


NO_ROOM = (
    "0/3 nodes are available: 3 Insufficient cpu. no new claims to deallocate, "
    "preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod."
)
NOT_ASKED = "(they have no constraint over topology.kubernetes.io/zone with DoNotSchedule)"


@cases(
    "then, failed",
    ("counts that are right", {"placed": 6, "pending": 1}, []),
    (
        "a count of those that are placed",
        {"placed": 7},
        [("pods: 7 placed", f"6 placed; default/shop-7 is pending: {NO_ROOM}")],
    ),
    (
        "a count of the others",
        {"pending": 0},
        [("pods: 0 pending", f"1 pending; default/shop-7 is pending: {NO_ROOM}")],
    ),
    ("what the pending ones are told", {"pods": "app=shop", "message": "Insufficient cpu"}, []),
    (
        "what they are not told",
        {"pods": "app=shop", "message": "affinity"},
        [("pods app=shop: pending with 'affinity'", f"default/shop-7 is pending: {NO_ROOM}")],
    ),
    ("on how many nodes", {"nodes": 3}, []),
    ("not on so many", {"nodes": 1}, [("pods: on 1 nodes", f"on 3; default/shop-7 is pending: {NO_ROOM}")]),
    ("evenly over nodes", {"spread": {"by": "hostname"}}, []),
    (
        "not evenly over zones of different size",
        {"spread": {"by": "zone"}},
        [("pods: spread by zone with a skew of at most 1", f"a skew of 2: 4 in a, 2 in b {NOT_ASKED}")],
    ),
    ("over so many, however evenly", {"spread": {"by": "zone", "maxSkew": None, "minDomains": 2}}, []),
    (
        "over too few",
        {"spread": {"by": "zone", "maxSkew": None, "minDomains": 3}},
        [("pods: spread by zone over at least 3", f"a skew of 2: 4 in a, 2 in b {NOT_ASKED}")],
    ),
    ("as evenly as is asked", {"spread": {"by": "zone", "maxSkew": 2}}, []),
    (
        "over something that is not there",
        {"spread": {"by": "rack"}},
        [("pods: spread by rack with a skew of at most 1", "no node has the label rack")],
    ),
    ("not on nodes", {"notOnNodes": "disk=ssd"}, []),
    (
        "on nodes that they should not be on",
        {"pods": "name=shop-1", "notOnNodes": "kubernetes.io/hostname"},
        [("pods name=shop-1: not on nodes kubernetes.io/hostname", "default/shop-1 is on node-2")],
    ),
    (
        "no pods",
        {"pods": "app=nobody", "onNodes": "disk=ssd"},
        [("pods app=nobody: on nodes disk=ssd", "none is placed")],
    ),
)
def test_failed_expectations_are_reported(then: dict[str, Any], failed: list[tuple[str, str]]) -> None:
    """Seven pods of one core, and three nodes of two."""
    assert failures(then, when={"create": [deployment(replicas=7)]}) == failed


@cases(
    "then, failed",
    ("pods that may be evicted", {"evicts": "app=batch", "noPreemptionOf": "priorityClass=prod"}, []),
    (
        "pods that may not be evicted",
        {"noPreemptionOf": "app=batch"},
        [("no preemption of pods app=batch", "1 evicted: default/batch-1 from node (preempted by default/shop-1)")],
    ),
    (
        "pods that are not evicted",
        {"evicts": "priorityClass=prod"},
        [("evicts pods priorityClass=prod", "none is evicted")],
    ),
    ("how many", {"pods": "app in (batch,other),namespace=default", "evicted": 1}, []),
    ("not so many", {"pods": "namespace=x", "evicted": 1}, [("pods namespace=x: 1 evicted", "none is evicted")]),
)
def test_evictions_and_preemptions_are_checked_against_the_rule(
    then: dict[str, Any], failed: list[tuple[str, str]]
) -> None:
    """What is there runs before anything else happens, and its budgets are reckoned from that."""
    objects = [priority_class("prod", 1000), deployment("batch", 1, "2"), deployment("db", 1, priorityClassName="prod")]
    world = {"nodes": {"cpu": 3}, "objects": objects}

    assert failures(then, world=world, when={"create": [deployment("shop", 1, priorityClassName="prod")]}) == failed


def test_budgets_are_reckoned_when_their_pods_run() -> None:
    world = {
        "nodes": [{"name": "full", "cpu": 2}, {"name": "free", "cpu": 2}],
        "objects": [deployment(replicas=2), budget("shop", {"matchLabels": {"app": "shop"}}, maxUnavailable=1)],
    }
    rule = read_rule({"given": world, "when": {"drain": "full"}, "then": [{"pods": "app=shop", "placed": 2}]})

    assert verify(rule, [], [], Configuration(), TrialRegistry).unmet == []


def test_pod_replaced_by_its_controller_does_not_count_as_evicted() -> None:
    """A rollout of two pods, with room for one more at a time."""
    world = {"nodes": {"cpu": 3}, "objects": [deployment(replicas=2)]}
    changed = deployment(replicas=2, nodeSelector={"kubernetes.io/hostname": "node"})

    then = {"pods": "app=shop", "placed": 2, "evicted": 0, "noEvictionOf": "app=shop"}
    assert failures(then, world=world, when={"create": [changed]}) == []


def test_without_a_when_it_is_about_the_cluster_as_it_is() -> None:
    world = {"nodes": {"cpu": 2}, "objects": [deployment(replicas=3)]}

    assert failures({"placed": 2, "pending": 1}, world=world) == []


def test_pending_pod_gets_the_room_of_a_new_node() -> None:
    world = {"nodes": {"cpu": 2}, "objects": [deployment(replicas=3)]}

    assert failures({"pods": "app=shop", "placed": 3}, world=world, when={"create": [node("new")]}) == []


@cases(
    "document, why",
    ("no rule", [], "Expected `object`, got `array`"),
    ("nothing is expected", {"given": {}}, "Object missing required field `then`"),
    ("an empty list is expected", {"then": []}, "a rule that expects nothing - at `$.then`"),
    ("only a selection", {"then": [{"pods": "app=web"}]}, "an expectation that expects nothing - at `$.then[0]`"),
    (
        "a slip of the pen",
        {"then": [{"plcaed": 1}]},
        "Object contains unknown field `plcaed` - at `$.then[0]`; did you mean placed?",
    ),
    (
        "a value of the wrong type",
        {"given": {"nodes": {"count": "many"}}, "then": [{"placed": 1}]},
        "Expected `int`, got `str` - at `$.given.nodes.count`",
    ),
)
def test_malformed_rule_is_refused_with_its_place(document: object, why: str) -> None:
    with pytest.raises(DecodeError) as refusal:
        read_rule(document)

    assert str(refusal.value) == why


@cases(
    "rule, why",
    ("a node that is not there", {"when": {"drain": "gone"}, "then": [{"placed": 0}]}, 'node "gone" not found'),
    ("an empty selector", {"then": [{"pods": " ", "placed": 0}]}, "it selects nothing: give labels as in app=web"),
    (
        "an object of an unknown kind",
        {
            "given": {"objects": [{"kind": "Riddle", "apiVersion": "v9", "metadata": {"name": "x"}}]},
            "then": [{"placed": 0}],
        },
        "Riddle x: objects of kind Riddle (v9) are not known here",
    ),
)
def test_rule_that_cannot_be_tried_is_refused_with_the_reason(rule: dict[str, Any], why: str) -> None:
    with pytest.raises(RuleError) as refusal:
        verify(read_rule(rule), [], [], Configuration(), TrialRegistry)

    assert str(refusal.value) == why
