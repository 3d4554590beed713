"""Evaluations: in how many attempts each plugin had a say. Counted by who had none, so that an attempt costs next to nothing.

Upstream: the metric plugin_evaluation_total; framework/runtime/instrumented_plugins.go (v1.36.2).
"""

from collections import Counter
from collections.abc import Sequence
from typing import final


@final
class Evaluations:
    """Attempts by the plugins that were skipped in them: at PreFilter and Filter, and at PreScore and Score."""

    def __init__(self) -> None:
        self.pre_filtered: Counter[frozenset[str]] = Counter()
        self.filtered: Counter[frozenset[str]] = Counter()
        self.scored: Counter[frozenset[str]] = Counter()
        self._known: dict[frozenset[str], frozenset[str]] = {}

    def known(self, skipped: set[str]) -> frozenset[str]:
        """The same names, as one object for all attempts: whoever looks something up under it need not compare them."""
        names = frozenset(skipped)
        return self._known.setdefault(names, names)

    def by_plugin(
        self, pre_filter: Sequence[str], filter_: Sequence[str], pre_score: Sequence[str], score: Sequence[str]
    ) -> Counter[tuple[str, str]]:
        """(plugin, extension point) -> in how many attempts it had a say.

        A PreFilter that comes after one that refused a pod for good is counted, though it was not asked.

        Arguments:
            pre_filter, filter_, pre_score, score: names of the plugins there.
        """
        found: Counter[tuple[str, str]] = Counter()
        for point, names, attempts in (
            ("PreFilter", pre_filter, self.pre_filtered),
            ("Filter", filter_, self.filtered),
            ("PreScore", pre_score, self.scored),
            ("Score", score, self.scored),
        ):
            for skipped, times in attempts.items():
                for name in names:
                    if name not in skipped:
                        found[name, point] += times
        return found
