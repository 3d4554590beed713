"""Which pods may preempt at all."""

from dataclasses import replace

import pytest

from extender.engine import framework as fwk
from extender.engine.preemption import V1_36
from extender.engine.preemption.evaluator import why_not_eligible
from extender.testing import PodBuilder, make_node, make_pod, make_snapshot
from extender.values.objects.decoding import replaced
from extender.values.objects.meta import Condition
from extender.values.objects.pod import Pod
from tests.kit.tables import cases

NEVER = "not eligible due to preemptionPolicy=Never."
TERMINATING = "not eligible due to a terminating pod on the nominated node."

PREEMPTOR = make_pod("preemptor").priority(10)
REFUSED = fwk.NodeStatuses({"n": fwk.unschedulable("full")})


def condition(
    type_: str = "DisruptionTarget", status: str = "True", reason: str = "PreemptionByScheduler"
) -> Condition:
    return Condition(type=type_, status=status, reason=reason)


def victim(*conditions: Condition, priority: int = 1, is_terminating: bool = True) -> Pod:
    """A pod on node n."""
    pod = make_pod("victim").priority(priority).node("n")
    pod = pod.terminating() if is_terminating else pod
    return replaced(pod.obj(), status=replaced(pod.obj().status, conditions=list(conditions)))


def why_not(
    pod: PodBuilder, *running: Pod, statuses: fwk.NodeStatuses = REFUSED, rules: fwk.PreemptionRules = V1_36
) -> str | None:
    return why_not_eligible(pod.obj(), make_snapshot(make_node("n"), pods=running), statuses, rules)


def test_a_pod_may_preempt() -> None:
    assert why_not(PREEMPTOR, victim(condition())) is None


@pytest.mark.parametrize(
    ("policy", "answer"),
    [pytest.param("Never", NEVER), pytest.param("PreemptLowerPriority", None), pytest.param("", None)],
)
def test_unless_its_policy_says_never(policy: str, answer: str | None) -> None:
    assert why_not(PREEMPTOR.preemption_policy(policy)) == answer


def test_a_policy_of_never_goes_before_all_else() -> None:
    assert why_not(PREEMPTOR.preemption_policy("Never").nominated_node("n"), victim(condition())) == NEVER


NOMINATED = PREEMPTOR.nominated_node("n")


@cases(
    "other, answer",
    ("its victim is still leaving", victim(condition()), TERMINATING),
    ("a pod of equal priority is no victim", victim(condition(), priority=10), None),
    ("not leaving", victim(condition(), is_terminating=False), None),
    ("terminating for an unknown reason", victim(), None),
    ("leaving for another reason", victim(condition(reason="EvictionByEvictionAPI")), None),
    ("no disruption after all", victim(condition(status="False")), None),
    ("another condition", victim(condition(type_="Ready")), None),
    ("only the first such condition counts", victim(condition(status="False"), condition()), None),
    ("the first of this type", victim(condition(type_="Ready"), condition()), TERMINATING),
)
def test_a_pod_that_has_preempted_waits_until_its_victims_are_gone(other: Pod, answer: str | None) -> None:
    assert why_not(NOMINATED, other) == answer


@cases(
    "statuses, answer",
    ("hopeless", fwk.NodeStatuses({"n": fwk.unresolvable("cordoned")}), None),
    ("like all nodes", fwk.NodeStatuses(absent=fwk.unresolvable("refused early")), None),
    ("full", fwk.NodeStatuses({"n": fwk.unschedulable("full")}), TERMINATING),
    ("full like all nodes", fwk.NodeStatuses(absent=fwk.unschedulable("refused early")), TERMINATING),
)
def test_preemptor_does_not_wait_for_a_node_that_became_hopeless(
    statuses: fwk.NodeStatuses, answer: str | None
) -> None:
    assert why_not(NOMINATED, victim(condition()), statuses=statuses) == answer


def test_a_nominated_node_that_is_gone_does_not_hold_it_back() -> None:
    assert why_not(PREEMPTOR.nominated_node("gone"), victim(condition())) is None
    assert why_not(PREEMPTOR.nominated_node("gone"), statuses=fwk.NodeStatuses(absent=fwk.unschedulable())) is None


def test_terminating_pod_that_may_not_be_a_victim_does_not_block_preemption() -> None:
    """A plugin may say which pods are eligible (upstream's IsEligiblePod)."""
    sparing, anyone = replace(V1_36, may_go=lambda pod: pod.name != "victim"), replace(V1_36, may_go=lambda pod: True)

    assert why_not(NOMINATED, victim(condition()), rules=sparing) is None
    assert why_not(NOMINATED, victim(condition()), rules=anyone) == TERMINATING
