"""What-ifs about recorded situations: where the pod goes, what it is told and whom it pushes out are what the real
scheduler said.
"""

import random
from typing import Any

from extender.answers.types import WhatIfRequest
from extender.answers.what_if.what_if import what_if
from extender.engine.cache.cluster import Cluster
from extender.engine.framework.preemption import STILL_TERMINATING
from extender.rules.trial_registry import TrialRegistry
from extender.values.config.configuration import Configuration
from extender.values.objects.cluster import ClusterState
from tests.kit.many_cases import each_case
from tests.parity.cases import KNOWN
from tests.parity.test_decisions import all_decision_cases, id_of

NUM_CASES = 200
MADE_BY_CONTROLLERS = "waiting for ephemeral volume controller"


def is_comparable(case: dict[str, Any]) -> bool:
    """Errors of plugins have no words that could be compared; a pod that names its node is on it; and claims for
    ephemeral volumes, which the real scheduler waits for, are made with the pod.
    """
    scenario, expected = case["scenario"], case["expected"]
    has_words = (
        not (expected.get("error") or expected.get("scoreError")) and MADE_BY_CONTROLLERS not in expected["fitError"]
    )
    return has_words and not scenario["pod"]["spec"].get("nodeName")


def some_comparable_cases() -> list[dict[str, Any]]:
    answered = [case for case in all_decision_cases() if is_comparable(case)]
    sample = random.Random(6).sample(answered, min(NUM_CASES, len(answered)))
    return [case for case in sample if id_of(case) not in KNOWN]


@each_case(some_comparable_cases, name_of=id_of)
def test_what_if_agrees_with_the_real_scheduler(case: dict[str, Any]) -> None:
    scenario, expected = case["scenario"], case["expected"]
    objects = {**scenario.get("objects", {})}
    objects["pods"] = [*objects.get("pods", []), *(promised(entry) for entry in scenario.get("nominated") or ())]
    request = WhatIfRequest(create=[as_served(scenario["pod"])], configuration=scenario.get("config"))

    answer = what_if(Cluster.of(ClusterState.decode(objects)), Configuration(), request, TrialRegistry)

    placement = answer.placements[0]
    words = expected.get("fitErrorWithPostFilter") or expected["fitError"]
    if placement.message and not placement.message.startswith("0/"):
        # A pod that PreEnqueue holds back is not tried; the recorded decisions pass that by.
        assert placement.message in words
        assert not placement.node
        return
    if STILL_TERMINATING in words:
        # Time does not stand still for the pods that are on their way out: what comes after them was not recorded.
        assert placement.message == words or not placement.node
        return
    if placement.evicts and not placement.node:
        # Of several pods that each keep the room, some have gone; what is said then was not recorded.
        evicted = [f"{victim.pod.namespace}/{victim.pod.name}" for victim in placement.evicts]
        first = [expected["preemption"]["candidates"][node]["victims"] for node in expected["preemption"]["bestSet"]]
        assert any(evicted[: len(victims)] == victims for victims in first)
        return
    # What PostFilter plugins say besides is recorded only of profiles that preempt.
    assert placement.message == words if "fitErrorWithPostFilter" in expected else placement.message.startswith(words)
    assert bool(placement.message) == bool(words)
    preemption = expected["preemption"]
    best = preemption["bestSet"] if preemption is not None else []
    if placement.preemption is None or not placement.preemption.node:
        assert best == []
        assert placement.node in (expected["topNodes"] or [""]) or placement.node == expected.get("nominatedNodeFits")
        return
    chosen = preemption["candidates"][placement.preemption.node]
    assert placement.preemption.node in best
    assert [f"{victim.pod.namespace}/{victim.pod.name}" for victim in placement.preemption.victims] == chosen["victims"]
    assert placement.preemption.num_pdb_violations == chosen["numPDBViolations"]
    # Where two pods hold a volume that only one may have, room takes two rounds.
    assert placement.node
    evicted = [f"{item.victim.pod.namespace}/{item.victim.pod.name}" for item in answer.evictions if item.depth == 1]
    assert evicted[: len(chosen["victims"])] == chosen["victims"]
    assert placement.node == placement.preemption.node or len(evicted) > len(chosen["victims"])


def as_served(pod: dict[str, Any]) -> dict[str, Any]:
    """The pod as a server would print it: taken as it is, for the situations hold more than a server would let pass."""
    metadata = {
        "namespace": "default",
        "uid": f"asked-{pod['metadata'].get('name')}",
        **pod["metadata"],
        "resourceVersion": "1",
    }
    return {"apiVersion": "v1", "kind": "Pod", **pod, "metadata": metadata}


def promised(entry: dict[str, Any]) -> dict[str, Any]:
    """A pending pod that says itself which node it was promised."""
    pod = entry["pod"]
    return {**pod, "status": {**pod.get("status", {}), "nominatedNodeName": entry["nodeName"]}}
