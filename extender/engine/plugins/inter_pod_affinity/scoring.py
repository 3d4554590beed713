"""Score: the weights of preferred terms, and of the required affinity of existing pods, summed over topology domains.

Upstream: framework/plugins/interpodaffinity/scoring.go.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from extender.engine import framework as fwk
from extender.engine.plugins.inter_pod_affinity.counting import (
    TallyQuestion,
    numbers_of_classes,
    questions_of,
)
from extender.engine.plugins.inter_pod_affinity.existing_terms import ClassNumbers, MatchingTerms
from extender.engine.plugins.inter_pod_affinity.terms import PodTerms
from extender.engine.snapshot.axes import Int64s, extremes
from extender.engine.snapshot.columns import LabelScores


def scores_by_key(snapshot: fwk.Snapshot, terms: PodTerms, existing: MatchingTerms) -> Sequence[LabelScores]:
    """Returns the scores for each topology key, given the pod's resolved terms and the matching ones of existing pods
    (PreScore); empty if no term matches any pod.
    """
    questions = questions_of(terms)
    key_scores = _by_key(snapshot, questions.preferred, existing.weights)
    if any(np.count_nonzero(scores.by_value) for scores in key_scores):
        return key_scores
    # All sums are zero: either nothing matches, or the weights cancel out. Counting the matches instead of weighing
    # them tells which.
    key_counts = _by_key(snapshot, questions.counts, existing.counts)
    return key_scores if any(np.count_nonzero(scores.by_value) for scores in key_counts) else ()


def _by_key(
    snapshot: fwk.Snapshot, of_pod: Mapping[str, TallyQuestion], existing: Sequence[ClassNumbers]
) -> Sequence[LabelScores]:
    keys = snapshot.nodes.label_keys  # a key that no node has changes no score
    questions: defaultdict[str, list[TallyQuestion]] = defaultdict(list)
    for key, question in of_pod.items():
        if key in keys:
            questions[key].append(question)
    for classes in existing:
        if classes.topology_key in keys:
            questions[classes.topology_key].append(numbers_of_classes(snapshot, classes))
    return [_scores(snapshot, key, of_key) for key, of_key in questions.items()]


def _scores(snapshot: fwk.Snapshot, topology_key: str, questions: Sequence[TallyQuestion]) -> LabelScores:
    column = snapshot.nodes.label(topology_key)
    by_value = np.zeros(len(column.values) + 1, np.int64)
    for question in questions:
        by_value += snapshot.tally(*question).by_value(column)
    # A node without the topology key is in no domain, and scores nothing for it.
    by_value[-1] = 0
    return LabelScores(column, by_value)


def normalized(scores: Int64s) -> Int64s:
    """(R,) scaled to 0 for the least and 100 for the most; all 0 if they are equal (NormalizeScore)."""
    if not len(scores):
        return scores
    lowest, highest = extremes(scores)
    if lowest == highest:
        return np.zeros_like(scores)
    # Truncated as in Go: 0.29 * 100 is 28.999..., which becomes 28. As nothing is negative, that is rounding down.
    result: Int64s = (fwk.MAX_NODE_SCORE * ((scores - lowest) / float(highest - lowest))).astype(np.int64)
    return result
