"""Explanations of recorded situations: what people read is what the real scheduler said, reason by reason and victim by
victim.
"""

import asyncio
import random
from collections import Counter
from functools import cache
from typing import Any

import msgspec

from extender.answers.explain.explanation import explain
from extender.answers.types import Explanation, PreemptionAnswer
from extender.engine.cache.cluster import Cluster
from extender.engine.plugins import IN_TREE
from extender.engine.runtime.cycle import Nominations
from extender.engine.runtime.registry import Registry
from extender.values.config.configuration import Configuration
from extender.values.config.loading import load
from extender.values.objects import decoding
from extender.values.objects.cluster import ClusterState, identified
from extender.values.objects.pod import Pod
from tests.kit.many_cases import each_case
from tests.parity.cases import KNOWN
from tests.parity.test_decisions import all_decision_cases, id_of

CHOSEN_SEED, NUM_CASES = 6, 200
"""So many of the pods that fit nowhere, by chance that can be had again."""

LEFT_OUT = "node(s) didn't satisfy plugin(s) ["


@cache
def pending_cases() -> list[dict[str, Any]]:
    cases = all_decision_cases()
    # A pod that names its node in the spec is not pending; some recorded ones do.
    pending = [
        case
        for case in cases
        if case["expected"].get("fitError") and not case["scenario"]["pod"]["spec"].get("nodeName")
    ]
    sample = random.Random(CHOSEN_SEED).sample(pending, min(NUM_CASES, len(pending)))
    return [case for case in sample if id_of(case) not in KNOWN]


def explained(scenario: dict[str, Any]) -> Explanation:
    pod = identified(decoding.convert(Pod, scenario["pod"]))
    config = scenario.get("config")
    configuration = Configuration() if config is None else load(msgspec.json.encode(config))
    frameworks = Registry(IN_TREE).make_frameworks(configuration, random.Random(0), is_exhaustive=True)
    cluster = Cluster.of(ClusterState.decode(scenario.get("objects", {})))
    nominated = [
        (identified(decoding.convert(Pod, one["pod"])), one["nodeName"]) for one in scenario.get("nominated") or ()
    ]
    nominations = Nominations(cluster.nominees(frameworks, nominated))
    snapshot = cluster.cache.update_snapshot()
    return asyncio.run(explain(frameworks[pod.scheduler_name], snapshot, pod, nominations, picture=True))


@each_case(pending_cases, name_of=id_of)
def test_explanation_agrees_with_the_real_scheduler(case: dict[str, Any]) -> None:
    """
    The message word for word; on every node the reasons; the node, the victims and the budgets of every candidate.
    """
    expected, explanation = case["expected"], explained(case["scenario"])

    if "fitErrorWithPostFilter" in expected:
        assert explanation.message == expected["fitErrorWithPostFilter"]
    else:
        # Without DefaultPreemption, what other PostFilter plugins say was not recorded.
        assert explanation.message.startswith(expected["fitError"])
    assert (explanation.total_nodes, explanation.feasible_nodes) == (len(expected["nodeOrder"]), 0)
    _check_waterfall(explanation, expected)
    _check_picture(explanation, expected)
    _check_nearest(explanation, expected)
    assert all(0 < fix.opens <= explanation.total_nodes for fix in explanation.fixes)
    _check_preemption(explanation.preemption, expected["preemption"])


def _check_waterfall(explanation: Explanation, expected: dict[str, Any]) -> None:
    """Every node once, at the plugin that refused it; every reason as often as nodes have it."""
    refused_by: Counter[str] = Counter(status.get("plugin", "") for status in expected["filter"].values())
    refusals: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    narrowed = expected["prefilter"]["nodeNames"] is not None
    for place, step in enumerate(explanation.waterfall):
        refusals["" if narrowed and not place and step.reasons[0].reason.startswith(LEFT_OUT) else step.plugin] += (
            step.refused
        )
        reasons.update({row.reason: row.nodes for row in step.reasons})
    assert +refusals == +refused_by
    assert reasons == Counter(reason for status in expected["filter"].values() for reason in status.get("reasons", ()))
    assert sum(step.unresolvable for step in explanation.waterfall) == sum(
        status["code"] == "UnschedulableAndUnresolvable" for status in expected["filter"].values()
    )
    assert sum(step.refused for step in explanation.waterfall) == explanation.total_nodes


def _check_picture(explanation: Explanation, expected: dict[str, Any]) -> None:
    drawn = explanation.picture
    assert drawn is not None
    statuses: dict[str, dict[str, Any]] = {}
    for node, row in zip(drawn.nodes, drawn.cells, strict=True):
        for plugin, cell in zip(drawn.plugins, row, strict=True):
            if cell >= 0:
                verdict = drawn.verdicts[cell]
                status = {"code": verdict.code, **({"reasons": sorted(verdict.reasons)} if verdict.reasons else {})}
                statuses.setdefault(plugin, {})[node] = status
    assert statuses == {plugin: refusals for plugin, refusals in expected["filterByPlugin"].items() if refusals}


def _check_nearest(explanation: Explanation, expected: dict[str, Any]) -> None:
    """Near nodes are told with all that refuse them, and none comes before one that eviction might open."""
    hopeless = []
    for near in explanation.nearest:
        alone = {plugin for plugin, refusals in expected["filterByPlugin"].items() if near.node in refusals}
        assert alone <= set(near.plugins)
        recorded_reasons = set(expected["filter"][near.node].get("reasons", ()))
        # Where PreFilter left the node out, the Filters by themselves say more.
        assert recorded_reasons & set(near.reasons) or any(reason.startswith(LEFT_OUT) for reason in recorded_reasons)
        codes = {expected["filterByPlugin"][plugin][near.node]["code"] for plugin in alone}
        codes.add(expected["filter"][near.node]["code"])
        hopeless.append("UnschedulableAndUnresolvable" in codes)
    assert hopeless == sorted(hopeless)


def _check_preemption(answer: PreemptionAnswer | None, expected: dict[str, Any] | None) -> None:
    if expected is None:
        assert answer is None
        return
    if answer is None:
        # Another PostFilter plugin has settled it.
        assert (expected["candidates"], expected["message"]) == ({}, "")
        return
    assert (answer.eligible, answer.num_candidates) == (expected["eligible"], len(expected["candidates"]))
    if not expected["eligible"]:
        assert answer.message == expected["message"]
        return
    assert (answer.node in expected["bestSet"]) if expected["bestSet"] else (answer.node == "")
    for rank, candidate in enumerate(answer.candidates):
        recorded = expected["candidates"][candidate.node]
        assert [f"{victim.pod.namespace}/{victim.pod.name}" for victim in candidate.victims] == recorded["victims"]
        assert candidate.num_pdb_violations == recorded["numPDBViolations"]
        assert sum(bool(victim.violates) for victim in candidate.victims) == recorded["numPDBViolations"]
        assert (candidate.why_not == "") == (rank == 0)
        assert candidate.why_not.startswith("ties with") == (rank > 0 and candidate.node in expected["bestSet"])
    closed: Counter[str] = Counter(
        reason for status in expected["nodeStatuses"].values() for reason in status.get("reasons", ())
    )
    not_helpful = {row.reason: row.nodes for row in answer.not_helpful}
    assert {reason: count for reason, count in closed.items() if not_helpful.get(reason, 0) < count} == {}
