"""Ranking: the feasible nodes of a decision with their total scores, and which of them is the best.

In a large cluster every pass over all nodes takes its time, and most of it goes into moving memory. Totals are
therefore as narrow as the weights allow, and nodes that are not feasible stay in the arrays, as zeros, instead of being
taken out of each.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, final

import numpy as np
import numpy.typing as npt

from extender.engine import framework as fwk
from extender.engine.snapshot import Rows
from extender.engine.snapshot.axes import Int64s

Totals = npt.NDArray[np.signedinteger]
"""Sums of weighted scores, of the type that `type_of_totals` returns."""

FEW_ROWS: Final = 8192
"""In as many rows the best ones are listed, which takes as long as counting them."""


def type_of_totals(weights: Iterable[int]) -> type[np.signedinteger]:
    """Returns the narrowest type for sums of scores of 0 to 100 with these weights, and one more."""
    highest = fwk.MAX_NODE_SCORE * sum(weights) + 1
    return next((kind for kind in (np.int16, np.int32) if highest <= np.iinfo(kind).max), np.int64)


@final
@dataclass(frozen=True, slots=True)
class Ranking:
    """R feasible rows with their total scores."""

    rows: Rows
    scores: Totals
    """(R,) the scores, less `common`; or (N,) the same plus one, and 0 for nodes that are no rows."""
    is_over_nodes: bool = False
    """Whether the scores are (N,)."""
    common: int = 0
    """What all rows get alike."""

    @property
    def total(self) -> Int64s:
        """(R,) the scores, as a new array."""
        if not self.is_over_nodes:
            return self.scores.astype(np.int64) + self.common
        # Taken first, widened then: R may be much smaller than N. The one is what marks feasible nodes, see
        # `RankedParts.ranking`.
        return self.scores.take(self.rows.node).astype(np.int64) + (self.common - 1)

    def best(self, rng: random.Random) -> int:
        """Returns the place on axis N of the row with the highest score; of a random one when several tie."""
        chosen = select_host(self.scores, rng)
        # Nodes that are not feasible hold 0 and rows at least 1, so that the highest of all N is a row, and ties are
        # among rows.
        return chosen if self.is_over_nodes else int(self.rows.node[chosen])


def select_host(total: Totals, rng: random.Random) -> int:
    """Returns the row with the highest total; a random one of them when several tie."""
    highest = int(total.argmax())
    is_best = total == total[highest]
    num_best = int(np.count_nonzero(is_best))
    if num_best == 1:
        return highest
    # One draw, however many tie, and of a rank instead of a place: nodes that are not feasible make no difference to
    # it.
    nth = rng.randrange(num_best)
    # The halves without it are dropped, so that in a large cluster the places of all equals are never listed.
    first, end = 0, len(is_best)
    while end - first > FEW_ROWS:
        middle = (first + end) // 2
        before = int(np.count_nonzero(is_best[first:middle]))
        if nth < before:
            end = middle
        else:
            nth, first = nth - before, middle
    return first + int(is_best[first:end].nonzero()[0][nth])
