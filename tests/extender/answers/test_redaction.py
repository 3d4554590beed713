"""Names of pods are shown to those who may list pods in their namespaces, and to nobody else."""

import msgspec

from extender.answers.overviews import Preemptions
from extender.answers.parts import PodName, Victim
from extender.answers.redaction import HIDDEN_BUDGET, HIDDEN_POD, namespaces_in, redacted
from extender.answers.stories import Preemption
from extender.answers.types import Eviction, Placement, WhatIf

OURS = PodName(namespace="shop", name="web-1", uid="u1", priority=1000)
THEIRS = PodName(namespace="bank", name="vault-0", uid="u2", priority=10)
VICTIM = Victim(pod=THEIRS, started="2026-01-01T00:00:00Z", owner="StatefulSet/vault", violates=("vault-budget",))
RECORD = Preemption(
    id=7, time="2026-01-01T00:00:00Z", by=OURS, node="node-1", victims=(VICTIM, Victim(pod=OURS)), num_pdb_violations=1
)


def test_the_namespaces_of_an_answer_are_those_of_all_pods_in_it() -> None:
    assert namespaces_in(Preemptions(items=(RECORD,))) == {"shop", "bank"}


def test_caller_who_may_see_all_namespaces_gets_the_answer_unchanged() -> None:
    assert redacted(RECORD, {"shop", "bank"}) is RECORD


def test_a_pod_of_another_namespace_keeps_its_priority_alone() -> None:
    record = redacted(RECORD, {"shop"})

    assert record.victims[0].pod == PodName(namespace="", name="", priority=10, hidden=True)
    assert record.victims[0].owner == ""
    assert record.victims[0].violates == ("",)
    assert record.victims[1].pod == OURS
    assert b"vault" not in msgspec.json.encode(record)
    assert b"bank" not in msgspec.json.encode(record)


def test_sentences_do_not_name_it_either() -> None:
    answer = WhatIf(
        summary="shop/web-1 evicts bank/vault-0. x-bank/vault-0 and bank/vault-01 stay",
        placements=(),
        evictions=(Eviction(victim=VICTIM, node="node-1", why="preempted", by=OURS),),
    )

    redaction = redacted(answer, {"shop"})

    assert redaction.summary == f"shop/web-1 evicts {HIDDEN_POD}. x-bank/vault-0 and bank/vault-01 stay"
    assert redacted(redaction, {"shop"}) is redaction


def test_budget_is_named_only_to_callers_who_see_its_pods() -> None:
    """A budget may have the name of a pod."""
    theirs, ours = Victim(pod=THEIRS), Victim(pod=OURS)
    answer = WhatIf(
        summary="For PodDisruptionBudget bank/vault-0 and PodDisruptionBudget bank/b.c. bank/vault-0: "
        "PodDisruptionBudget shop/d.",
        placements=(
            Placement(pod=THEIRS, cause="evicted", waits_for=("b.c",)),
            Placement(pod=OURS, cause="evicted", waits_for=("d",)),
        ),
        evictions=(
            Eviction(victim=theirs, node="n", why="drained", waits_for=("vault-0", "b.c")),
            Eviction(victim=ours, node="n", why="drained", waits_for=("d",)),
        ),
    )

    redaction = redacted(answer, {"shop"})

    assert isinstance(redaction, WhatIf)
    assert redaction.summary == f"For {HIDDEN_BUDGET} and {HIDDEN_BUDGET}. {HIDDEN_POD}: PodDisruptionBudget shop/d."
    assert [eviction.waits_for for eviction in redaction.evictions] == [("", ""), ("d",)]
    assert [placement.waits_for for placement in redaction.placements] == [("",), ("d",)]
