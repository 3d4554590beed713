"""Bringing scores to the scale 0..100."""

import numpy as np

from extender.framework.interface import MAX_NODE_SCORE
from extender.snapshot.axes import Int64s


def default_normalize_score(scores: Int64s, *, reverse: bool = False, highest: int = MAX_NODE_SCORE) -> Int64s:
    """(R,) each score as a share of the highest, in whole numbers from 0 to `highest`; reversed if less is better.

    Upstream: pkg/scheduler/framework/plugins/helper/normalize_score.go, DefaultNormalizeScore (v1.36).
    """
    top = int(scores.max(initial=0))
    if top == 0:
        return np.full_like(scores, highest) if reverse else scores
    # Raw scores are never negative, so that floor division is Go's truncation.
    shares = highest * scores // top
    return highest - shares if reverse else shares
