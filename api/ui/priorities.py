"""The colours of priorities: up to seven steps of one scale, shared by everything on a page."""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, final

from api.ui.wording import priority_words

STEPS: Final = 7


@final
@dataclass(frozen=True, slots=True)
class Priorities:
    """The step of the scale that each priority has. Higher priorities are never paler than lower ones."""

    starts: tuple[int, ...]
    """The lowest priority of each step in use, lowest first."""
    steps: tuple[int, ...]
    shares: bool
    """Whether a step stands for several priorities."""

    @staticmethod
    def of(values: Iterable[int]) -> "Priorities":
        """Returns a scale for these priorities: up to seven have a step each, more share steps in equal parts."""
        distinct = sorted(set(values))
        used = min(len(distinct), STEPS)
        starts = tuple(distinct[place * len(distinct) // used] for place in range(used))
        # Few priorities are spread over the scale, so that two of them differ as much as they can.
        steps = tuple(round(place * (STEPS - 1) / (used - 1)) for place in range(used)) if used > 1 else (STEPS // 2,) * used
        return Priorities(starts, steps, len(distinct) > STEPS)

    def css(self, priority: int) -> str:
        """Returns the CSS class of a pod of this priority."""
        if not self.starts:
            return f"p{STEPS // 2}"
        return f"p{self.steps[max(0, bisect_right(self.starts, priority) - 1)]}"

    @property
    def legend(self) -> tuple[tuple[str, str], ...]:
        """(class, words) of each step, highest first."""
        words = [f"{'≥ ' * self.shares}{priority_words(start)}" for start in self.starts]
        return tuple(reversed([(f"p{step}", word) for step, word in zip(self.steps, words, strict=True)]))
