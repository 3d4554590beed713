"""Scenarios: a pod and a cluster as plain values, evaluated by themselves: the input of `reprieve evaluate` and POST
/v1/evaluate; and the result as JSON.
"""

import random
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from extender.engine import framework as fwk
from extender.engine.cache.cluster import Cluster
from extender.engine.evaluation.evaluate import Evaluation, evaluate
from extender.engine.framework import PreemptionOutcome
from extender.engine.plugins import IN_TREE
from extender.engine.runtime.cycle import Cycle, Nominations, PreFilterOutcome
from extender.engine.runtime.framework import closed_at_the_end
from extender.engine.runtime.registry import Registry
from extender.values.config.configuration import Configuration
from extender.values.config.loading import load
from extender.values.objects import decoding
from extender.values.objects.cluster import ClusterState, identified
from extender.values.objects.decoding import DecodeError
from extender.values.objects.pod import Pod

Answer = dict[str, Any]


def answer(evaluation: Evaluation) -> Answer:
    """Returns the evaluation as JSON, under stable names. Lists without an order of their own are sorted."""
    names = [node.name for node in evaluation.snapshot.nodes.objects]
    result: Answer = {
        "nodeOrder": names,
        "prefilter": _pre_filter(evaluation.pre_filter, evaluation.skipped),
        "filter": _filter(evaluation, names),
        "filterByPlugin": {
            plugin: {names[row]: _status(verdicts.status_of(row)) for row in np.flatnonzero(~verdicts.ok).tolist()}
            for plugin, verdicts in (evaluation.by_plugin or {}).items()
        },
        **_scores(evaluation),
        "fitError": evaluation.fit_error,
        "preemption": _preemption(evaluation),
    }
    if evaluation.nominated_node_fits:
        result["nominatedNodeFits"] = evaluation.nominated_node_fits
    if evaluation.error:
        result["error"] = evaluation.error
    if evaluation.diagnosis is not None:
        result["unschedulablePlugins"] = sorted(evaluation.diagnosis.unschedulable_plugins)
        if evaluation.tries_preemption:
            result["fitErrorWithPostFilter"] = evaluation.message
    return result


def _pre_filter(outcome: PreFilterOutcome | None, skipped: frozenset[str]) -> Answer:
    if outcome is None:
        return {"status": {"code": ""}, "nodeNames": None, "skipped": []}
    names = outcome.node_names if outcome.status.is_success else None
    return {
        "status": _status(outcome.status),
        "nodeNames": None if names is None else sorted(names),
        "skipped": sorted(skipped),
    }


def _filter(evaluation: Evaluation, names: list[str]) -> Answer:
    statuses = evaluation.statuses
    if statuses is None:
        return {}
    feasible = frozenset(evaluation.feasible)
    return {name: _status(fwk.SUCCESS if name in feasible else statuses.of(name)) for name in names}


def _scores(evaluation: Evaluation) -> Answer:
    result: Answer = {"score": {}, "rawScore": {}, "scoreSkipped": [], "topNodes": []}
    if evaluation.score_error:
        result["scoreError"] = evaluation.score_error
    scores = evaluation.scores
    if scores is None:
        return result
    nodes = evaluation.feasible
    weighted = {plugin: per_row.tolist() for plugin, per_row in scores.weighted.items()}
    result["score"] = {
        node: {"total": total, "plugins": {plugin: per_row[row] for plugin, per_row in weighted.items()}}
        for row, (node, total) in enumerate(zip(nodes, scores.total.tolist(), strict=True))
    }
    result["rawScore"] = {
        plugin: dict(zip(nodes, per_row.tolist(), strict=True)) for plugin, per_row in scores.raw.items()
    }
    result["scoreSkipped"] = sorted(evaluation.skipped_scores)
    result["topNodes"] = list(evaluation.top_nodes)
    return result


def _preemption(evaluation: Evaluation) -> Answer | None:
    outcome, post_filter = evaluation.preemption, evaluation.post_filter
    if post_filter is None or not evaluation.tries_preemption:
        return None
    return {
        "eligible": outcome is None or outcome.why_not_eligible is None,
        "message": "" if outcome is None else outcome.why_not_eligible or "",
        **_candidates(outcome),
        "postFilterCode": str(post_filter.status.code),
        "postFilterMessage": post_filter.status.message,
        "clearsNomination": post_filter.nominated_node == "",
    }


def _candidates(outcome: PreemptionOutcome | None) -> Answer:
    if outcome is None or outcome.candidates is None:
        return {"potentialNodes": [], "candidates": {}, "nodeStatuses": {}, "bestSet": [], "best": ""}
    listed = outcome.candidates.listed()
    explicit = {} if outcome.statuses is None else outcome.statuses.explicit
    best_set = [] if outcome.best is None else sorted(listed[place].node for place in outcome.best.tolist())
    return {
        "potentialNodes": sorted(outcome.potential_nodes),
        "candidates": {
            candidate.node: {
                "victims": [pod.key for pod in candidate.victims],
                "numPDBViolations": candidate.num_pdb_violations,
            }
            for candidate in listed
        },
        "nodeStatuses": {name: _status(status) for name, status in explicit.items()},
        "bestSet": best_set,
        "best": best_set[0] if best_set else "",
    }


def _status(status: fwk.Status) -> Answer:
    result: Answer = {"code": str(status.code)}
    if status.plugin:
        result["plugin"] = status.plugin
    if status.reasons:
        result["reasons"] = sorted(status.reasons)
    return result


async def evaluate_scenario(scenario: Mapping[str, Any], configuration: Configuration) -> dict[str, Any]:
    """Returns the evaluation of `scenario["pod"]` in the scenario's cluster.

    Its `config` takes precedence over `configuration`; `objects`, `nominated` and `id` are optional.

    Raises DecodeError, which says where, if the scenario has the wrong form, ConfigErrors for its configuration.
    """
    if scenario.get("pod") is None:
        raise DecodeError("pod is required")
    pod = identified(decoding.convert(Pod, _member(scenario, "pod", dict)))
    state = ClusterState.decode(_member(scenario, "objects", dict))
    cluster = Cluster.of(state)
    if scenario.get("config") is not None:
        configuration = load(msgspec.json.encode(_member(scenario, "config", dict)), configuration.feature_gates)
    frameworks = Registry(IN_TREE).make_frameworks(
        configuration, random.Random(0), live=cluster.cache, is_exhaustive=True
    )
    with closed_at_the_end(frameworks):
        framework = frameworks.get(pod.scheduler_name)
        nominations = Nominations(cluster.nominees(frameworks, _nominated(scenario)))
        if cluster.unreadable:
            raise DecodeError("; ".join(f"pod {key}: {why}" for key, why in cluster.unreadable.values()))
        snapshot = cluster.cache.update_snapshot()
        if framework is None:
            evaluation = Evaluation(snapshot, error=f"profile not found for scheduler name {pod.scheduler_name!r:.260}")
        else:
            evaluation = await evaluate(Cycle(framework, snapshot, pod, nominations))
        result = answer(evaluation)
    return {"id": scenario["id"], **result} if "id" in scenario else result


def _nominated(scenario: Mapping[str, Any]) -> list[tuple[Pod, str]]:
    entries = _member(scenario, "nominated", list)
    nominations: list[tuple[Pod, str]] = []
    for place, entry in enumerate(entries):
        if not isinstance(entry, dict) or not isinstance(entry.get("nodeName"), str):
            raise DecodeError(f"nominated[{place}]: expected a pod and a nodeName")
        nominations.append((identified(decoding.convert(Pod, entry.get("pod"))), entry["nodeName"]))
    return nominations


def _member(scenario: Mapping[str, Any], name: str, kind: type) -> Any:
    value = scenario.get(name)
    if value is None:
        return kind()
    if not isinstance(value, kind):
        raise DecodeError(f"{name}: expected {'an object' if kind is dict else 'a list'}")
    return value
