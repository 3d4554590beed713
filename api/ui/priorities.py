"""The colours of priorities: up to seven steps of one scale, shared by everything on a page."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
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
    classes: Mapping[str, int] = field(default_factory=dict)
    """PriorityClass -> its value."""

    @staticmethod
    def of(values: Iterable[int], classes: Mapping[str, int] | None = None) -> "Priorities":
        """Returns a scale for these priorities: up to seven have a step each, more share steps in equal parts."""
        distinct = sorted(set(values))
        used = min(len(distinct), STEPS)
        starts = tuple(distinct[place * len(distinct) // used] for place in range(used))
        # Few priorities are spread over the scale, so that two of them differ as much as they can.
        steps = (
            tuple(round(place * (STEPS - 1) / (used - 1)) for place in range(used))
            if used > 1
            else (STEPS // 2,) * used
        )
        return Priorities(starts, steps, len(distinct) > STEPS, classes or {})

    def css(self, priority: int) -> str:
        """Returns the CSS class of a pod of this priority."""
        if not self.starts:
            return f"p{STEPS // 2}"
        return f"p{self.steps[max(0, bisect_right(self.starts, priority) - 1)]}"

    def words(self, priority: int) -> str:
        """Returns the names of the classes that have this priority; the number if there are none, or more than two."""
        names = sorted(name for name, value in self.classes.items() if value == priority)
        return " / ".join(names) if 0 < len(names) <= 2 else priority_words(priority)

    @property
    def legend(self) -> tuple[tuple[str, str], ...]:
        """(class, words) of each step, highest first."""
        words = [f"{'≥ ' * self.shares}{self.words(start)}" for start in self.starts]
        return tuple(reversed([(f"p{step}", word) for step, word in zip(self.steps, words, strict=True)]))
