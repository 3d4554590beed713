"""Preferred terms, both ways, and what required affinity of pods that run is worth: summed up over topology domains.

Upstream: framework/plugins/interpodaffinity/scoring.go (v1.36.2).
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from extender import framework as fwk
from extender.plugins.inter_pod_affinity.counting import Question, meant_by_each, said_by
from extender.plugins.inter_pod_affinity.existing_terms import Classes, Said
from extender.plugins.inter_pod_affinity.terms import WeightedTerm
from extender.snapshot.axes import Int64s
from extender.snapshot.columns import LabelColumn, sums_by_value


@final
@dataclass(frozen=True, slots=True)
class Worth:
    """What a node is worth by its value of a topology key."""

    column: LabelColumn
    by_value: Int64s
    """(V + 1,) by value; the place after the last, for nodes without the label, holds 0."""


def worths(snapshot: fwk.Snapshot, preferred: Sequence[WeightedTerm], said: Said) -> Sequence[Worth]:
    """What each topology key has to say; nothing at all if no pod meets a term that concerns the two.

    Arguments:
        preferred: the terms of the pod to be placed, their namespaces looked up.
        said: what other pods say about it.

    Upstream: scoring.go, PreScore.
    """
    found = _by_key(snapshot, preferred, said.wishes)
    if any(worth.by_value.any() for worth in found):
        return found
    # All sums are zero. Are there no terms, or do they cancel out? That shows only when they are counted rather than weighed.
    counted = _by_key(snapshot, [WeightedTerm(1, weighted.term) for weighted in preferred], said.wishers)
    return found if any(worth.by_value.any() for worth in counted) else ()


def _by_key(snapshot: fwk.Snapshot, preferred: Sequence[WeightedTerm], said: Sequence[Classes]) -> Sequence[Worth]:
    terms: defaultdict[str, list[WeightedTerm]] = defaultdict(list)
    for weighted in preferred:
        terms[weighted.term.topology_key].append(weighted)
    questions: defaultdict[str, list[Question]] = defaultdict(list)
    for key, of_key in terms.items():
        questions[key].append(meant_by_each(snapshot, of_key))
    for classes in said:
        questions[classes.topology_key].append(said_by(snapshot, classes))
    return [_worth(snapshot, key, asked) for key, asked in questions.items()]


def _worth(snapshot: fwk.Snapshot, topology_key: str, questions: Sequence[Question]) -> Worth:
    first, *others = questions
    per_node = snapshot.tally(*first).per_node
    for question in others:
        per_node = per_node + snapshot.tally(*question).per_node
    column = snapshot.nodes.label(topology_key)
    by_value = sums_by_value(column, per_node)
    by_value[-1] = 0
    return Worth(column, by_value)


def raw_scores(rows: fwk.Rows, found: Sequence[Worth]) -> Int64s:
    """(R,) what the row's values are worth together; below zero where anti-affinity prevails. Upstream: scoring.go, Score."""
    scores = np.zeros(len(rows), np.int64)
    for worth in found:
        scores += worth.by_value[rows.codes_of_nodes(worth.column.codes)]
    return scores


def normalized(scores: Int64s) -> Int64s:
    """(R,) 0 for the least, 100 for the most, the others in between; all 0 if they do not differ. Upstream: scoring.go, NormalizeScore."""
    if not len(scores) or scores.min() == scores.max():
        return np.zeros_like(scores)
    least = scores.min()
    shares = (scores - least).astype(np.float64) / float(scores.max() - least)
    # Truncated as Go converts: 0.29 * 100 is 28.999..., and counts 28.
    result: Int64s = (fwk.MAX_NODE_SCORE * shares).astype(np.int64)
    return result
