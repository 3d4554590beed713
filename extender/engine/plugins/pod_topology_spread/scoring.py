"""Score: the fewer matching pods in a row's domains, the better.

Upstream: framework/plugins/podtopologyspread/scoring.go.
"""

import math
from collections.abc import Sequence
from typing import final

import msgspec
import numpy as np

from extender.engine import framework as fwk
from extender.engine.plugins.pod_topology_spread.constraints import (
    CompiledConstraint,
    Inclusion,
    columns_of,
    pods_counted,
    with_all_keys,
)
from extender.engine.snapshot.axes import Codes, Floats, Int64s, Mask
from extender.engine.snapshot.columns import LabelColumn, sums_by_value
from extender.values.objects.node import HOSTNAME_LABEL


@final
class ConstraintScore(msgspec.Struct, frozen=True):
    """The part of a constraint in the scores of nodes."""

    scores: Floats
    """(V + 1,) by value of the topology key, or for hostnames (N,) by node. Nodes without the label get 0."""
    place: Codes | None
    """(N,) the index of a node's score; None if that is its own place."""


@final
class TopologyScores(msgspec.Struct, frozen=True):
    """The scores of all constraints of a pod."""

    ignored: Mask | None
    """(N,) the nodes that lack a topology key and get no score; None for no node."""
    of_constraints: tuple[ConstraintScore, ...]


def weigh(
    rows: fwk.Rows, pod: fwk.Pod, constraints: Sequence[CompiledConstraint], *, all_keys_needed: bool
) -> TopologyScores:
    """Counts the matching pods of the feasible rows' domains, and weighs constraints by how many of these there are
    (PreScore).

    The pods of all nodes are counted. With `all_keys_needed`, nodes that lack a topology key get no score at all,
    rather than none for that constraint.
    """
    snapshot = rows.snapshot
    if all_keys_needed and any(constraint.topology_key not in snapshot.nodes.label_keys for constraint in constraints):
        return TopologyScores(np.ones(len(snapshot.nodes), np.bool_), ())
    columns = columns_of(snapshot, constraints)
    with_keys = with_all_keys(columns) if all_keys_needed else None
    # Domains are those of feasible nodes only, though pods are counted on all: upstream weighs a key by how many
    # domains the pod could choose from.
    scored = rows.node if with_keys is None else rows.node[with_keys[rows.node]]
    inclusion = Inclusion(snapshot, pod, with_keys)
    of_constraints: list[ConstraintScore] = []
    for constraint, column in zip(constraints, columns, strict=True):
        pods_on_nodes = pods_counted(snapshot, pod.namespace, constraint.selector)
        if constraint.topology_key == HOSTNAME_LABEL:
            # Each node is its own domain, so that the counts of nodes are those of domains. As upstream, the number of
            # domains is that of feasible nodes, whatever their labels say.
            scores = _scores(constraint, pods_on_nodes, num_domains=len(scored))
            scores[column.codes < 0] = 0
            of_constraints.append(ConstraintScore(scores, None))
        else:
            counts = sums_by_value(column, pods_on_nodes * inclusion.of(constraint))
            of_constraints.append(_domain_score(constraint, column, counts, column.codes[scored]))
    return TopologyScores(None if with_keys is None else ~with_keys, tuple(of_constraints))


def _domain_score(
    constraint: CompiledConstraint, column: LabelColumn, counts: Int64s, scored: Codes
) -> ConstraintScore:
    """Returns the score of a constraint: (V + 1,) pods in its domains, `scored` (S,) those with feasible nodes."""
    is_feasible = np.zeros(len(counts), np.bool_)
    is_feasible[scored] = True
    num_domains = int(is_feasible.sum())
    empty = column.values.code_of("")
    if empty >= 0:
        # Upstream reads a missing label as an empty one, except when it scores the node itself.
        counts[empty] += counts[-1]
        num_domains -= int(is_feasible[empty] and is_feasible[-1])
    scores = _scores(constraint, counts, num_domains)
    scores[-1] = 0
    return ConstraintScore(scores, column.codes)


def _scores(constraint: CompiledConstraint, counts: Int64s, num_domains: int) -> Floats:
    """Returns the score of each count, before it is normalized (scoreForCount, topologyNormalizingWeight)."""
    weight = math.log(num_domains + 2)
    return np.multiply(counts, weight, dtype=np.float64) + float(constraint.max_skew - 1)


def raw_scores(rows: fwk.Rows, scores: TopologyScores) -> Int64s:
    """(R,) the matching pods in the row's domains, weighed and summed over the constraints; 0 for ignored nodes."""
    # Summed in floats and in the order of constraints, as in Go: rounding each one, or another order, would give other
    # integers.
    total: Floats = np.zeros(len(rows), np.float64)
    for constraint_score in scores.of_constraints:
        total += constraint_score.scores[
            rows.node if constraint_score.place is None else rows.codes_of_nodes(constraint_score.place)
        ]
    if scores.ignored is not None:
        total[scores.ignored[rows.node]] = 0
    return _rounded(total)


def normalized(scores: Int64s, ignored: Mask | None) -> Int64s:
    """(R,) 100 for the row with the fewest pods, less for others, 0 for ignored ones (NormalizeScore)."""
    considered = scores if ignored is None else scores[~ignored]
    highest = int(considered.max(initial=0))
    result = np.full_like(scores, fwk.MAX_NODE_SCORE)
    if highest > 0:
        # In integers and in this order, as upstream: 100 * (highest + lowest - score) / highest, cut off. The row with
        # the fewest pods gets 100, and the one with the most 100 * lowest / highest.
        result = result * (highest + int(considered.min()) - scores) // highest
    if ignored is not None:
        result[ignored] = 0
    return result


def _rounded(scores: Floats) -> Int64s:
    """(R,) the nearest integers, halves away from zero as in Go; numpy would round them to even."""
    whole = np.trunc(scores)
    return (whole + np.where(np.abs(scores - whole) >= 0.5, np.sign(scores), 0)).astype(np.int64)
