"""Details that are kept of a few attempts a second: encoded at once, since their arrays hold for one snapshot only."""

import zlib
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Final

import msgspec
import numpy as np

from extender.answers.explain.preemption import best_first, victim
from extender.answers.explain.verdict_tables import OTHER_REASONS, node_score, step
from extender.answers.records.record_store import CandidateRecord, Details
from extender.answers.types import NodePicture, NodeScore, PluginVerdict, WaterfallStep
from extender.engine.framework import Candidate, Candidates, Code, Status
from extender.engine.preemption.budgets import broken_budgets
from extender.engine.preemption.costs import costs_of
from extender.engine.runtime.findings import Findings, out_of_play_reason
from extender.engine.runtime.scoring import Choice
from extender.values import limits
from extender.values.objects.pod import Pod

EXTENDERS: Final = "extenders"
"""Stands for the configured extenders, in place of a plugin."""
BEST_NODES: Final = 16
"""The number of nodes of which scores are kept."""


def picture_of(details: Details) -> NodePicture | None:
    """Returns every node with the first plugin that refused it; the others were not asked."""
    return msgspec.msgpack.decode(zlib.decompress(details.picture), type=NodePicture) if details.picture else None


# What the Filters said.


def verdict_details(findings: Findings, *, refuses_all: bool) -> Details:
    """Returns what PreFilter, the Filters and the extenders said, without a node that was asked about twice."""
    keep = partial(step, most=limits.REASONS_KEPT)
    names, status = tuple(findings.rows.snapshot.nodes.index), findings.pre_filter
    narrowing = ", ".join(findings.narrowed_by)
    if not status.is_success:
        return Details((keep(status.plugin or narrowing, {status: len(names)}, 0),))
    asked, rows = np.unique(findings.rows.node, return_index=True)
    left, steps = len(asked), list[WaterfallStep]()
    if left < len(names) and narrowing:  # other nodes outside were not in question
        outside = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (out_of_play_reason(findings.narrowed_by),))
        steps.append(keep(narrowing, {outside: len(names) - left}, left))
    refused = findings.verdicts.codes[rows] != Code.SUCCESS
    # Many nodes have one of a few statuses; `which` says which.
    statuses, which = findings.verdicts.distinct_statuses(rows[refused])
    counts = np.bincount(which, minlength=len(statuses)).tolist()
    plugins = tuple(dict.fromkeys(plugin for plugin, _ in findings.verdicts.refused_by))
    for plugin in plugins:
        of_plugin = {said: nodes for said, nodes in zip(statuses, counts, strict=True) if said.plugin == plugin}
        left -= sum(of_plugin.values())
        if of_plugin:
            steps.append(keep(plugin, of_plugin, left))
    if refuses_all and left and findings.by_extenders:
        steps.append(keep(EXTENDERS, Counter(findings.by_extenders.values()), 0, refused=left))
    if not len(asked):
        return Details(tuple(steps))
    verdicts = dict[PluginVerdict, int]()
    place_of = [verdicts.setdefault(_verdict(said), len(verdicts)) for said in statuses]
    cells = [(-1,) * len(plugins)] * len(names)
    cells_of = [
        tuple(place if plugin == said.plugin else -1 for plugin in plugins)
        for said, place in zip(statuses, place_of, strict=True)
    ]
    for node, said_of_node in zip(asked[refused].tolist(), which.tolist(), strict=True):
        cells[node] = cells_of[said_of_node]
    picture = NodePicture(plugins=plugins, nodes=names, verdicts=tuple(verdicts), cells=tuple(cells))
    return Details(tuple(steps), zlib.compress(msgspec.msgpack.encode(picture), 1))


def _verdict(status: Status) -> PluginVerdict:
    reasons = tuple(dict.fromkeys(status.reasons))
    if len(reasons) > limits.REASONS_KEPT:
        reasons = (*reasons[: limits.REASONS_KEPT], OTHER_REASONS)
    return PluginVerdict(plugin=status.plugin, code=str(status.code), reasons=reasons)


# Scores.


def best_scores(choice: Choice) -> tuple[NodeScore, ...]:
    """Returns the scores of the chosen node, then of the other best, best first; equals in the order of the nodes."""
    total, chosen = choice.total, choice.chosen
    best = np.argsort(-total, kind="stable")[:BEST_NODES].tolist()
    at = np.array([chosen, *(row for row in best if row != chosen)][:BEST_NODES], np.intp)
    scores = choice.scores_at(at)
    return tuple(
        node_score(row, name, total[at], scores.weights, scores.raw, scores.weighted)
        for row, name in enumerate(choice.rows.take(at).names)
    )


# Candidates of a preemption.


def keep_candidates(
    candidates: Candidates, preemptor: Pod, now: float, chosen: str | None = None
) -> tuple[CandidateRecord, ...]:
    """Returns the best candidates, the chosen one first; while any may be chosen, all victims of each are kept."""
    if not len(candidates):
        return ()
    kept = best_first(candidates, chosen, limits.CANDIDATES_KEPT)
    violates = broken_budgets(kept.snapshot, kept.node, preemptor, kept.rules)
    most = limits.VICTIMS_KEPT if chosen is None else limits.OTHER_VICTIMS_KEPT
    return tuple(
        keep_candidate(each, now, violates, limits.VICTIMS_KEPT if not place else most, costs)
        for place, (each, costs) in enumerate(zip(kept.listed(), costs_of(kept), strict=True))
    )


def keep_candidate(
    candidate: Candidate,
    now: float,
    violates: Mapping[str, tuple[str, ...]] = {},
    most: int = limits.VICTIMS_KEPT,
    costs: tuple[int, ...] = (),
) -> CandidateRecord:
    """Returns one candidate; `violates` has the names of the budgets that the eviction of a UID violates."""
    victims = tuple(victim(pod, now, violates.get(pod.uid, ())) for pod in candidate.victims[:most])
    return CandidateRecord(candidate.node, victims, candidate.num_pdb_violations, costs=costs)
