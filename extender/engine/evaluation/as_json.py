"""Evaluations as plain values for JSON: the answer of `reprieve evaluate` and POST /v1/evaluate."""

from typing import Any

import numpy as np

from extender.engine import framework as fwk
from extender.engine.evaluation.evaluate import Evaluation
from extender.engine.framework import PreemptionOutcome
from extender.engine.runtime.cycle import PreFilterOutcome
from extender.engine.snapshot.axes import Int64s

Answer = dict[str, Any]


def answer(evaluation: Evaluation) -> Answer:
    """Returns everything that was found out, under stable names. Lists without an order of their own are sorted."""
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
    result["rawScore"] = {plugin: _by_node(nodes, per_row) for plugin, per_row in scores.raw.items()}
    result["scoreSkipped"] = sorted(evaluation.skipped_scores)
    result["topNodes"] = list(evaluation.top_nodes)
    return result


def _by_node(nodes: tuple[str, ...], per_row: Int64s) -> dict[str, int]:
    return dict(zip(nodes, per_row.tolist(), strict=True))


def _preemption(evaluation: Evaluation) -> Answer | None:
    outcome, post_filter = evaluation.preemption, evaluation.post_filter
    if post_filter is None or not evaluation.tries_preemption:
        return None
    result: Answer = {
        "eligible": outcome is None or outcome.why_not_eligible is None,
        "message": "" if outcome is None else outcome.why_not_eligible or "",
        **_candidates(outcome),
        "postFilterCode": str(post_filter.status.code),
        "postFilterMessage": post_filter.status.message,
        "clearsNomination": post_filter.nominated_node == "",
    }
    return result


def _candidates(outcome: PreemptionOutcome | None) -> Answer:
    if outcome is None or outcome.candidates is None:
        return {"potentialNodes": [], "candidates": {}, "nodeStatuses": {}, "bestSet": [], "best": ""}
    listed = outcome.candidates.listed()
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
        "nodeStatuses": {
            name: _status(status)
            for name, status in (outcome.statuses.explicit if outcome.statuses is not None else {}).items()
        },
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
