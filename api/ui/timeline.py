"""Decisions over time: bars above the line found a node, bars below it did not, and flags are preemptions."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, final

from markupsafe import Markup

from api.ui.svg import drawing, element
from api.ui.wording import plural, preemption_words
from extender.answers.types import Attempt, Preemption
from extender.golang.times import moment_of

WIDTH, HEIGHT = 1000, 190
BUCKETS: Final = 100
_FLAGS, _LINE = 26, 120
_UP, _DOWN = _LINE - _FLAGS - 8, HEIGHT - _LINE - 26
_LEAST: Final = timedelta(seconds=BUCKETS)

_PLACED: Final = frozenset(("Scheduled", "Filter", "Prioritize"))


@final
@dataclass(slots=True)
class _Bucket:
    placed: int = 0
    refused: int = 0
    failed: int = 0

    def count(self, attempt: Attempt) -> None:
        """Counts one more attempt."""
        if attempt.outcome in _PLACED and not (attempt.outcome == "Filter" and attempt.evaluated and not attempt.feasible):
            self.placed += 1
        elif attempt.outcome == "Error":
            self.failed += 1
        else:
            self.refused += 1


def timeline(attempts: Sequence[Attempt], preemptions: Sequence[Preemption], now: datetime) -> Markup:
    """Returns the picture, from the oldest attempt to now."""
    times = [then for attempt in attempts if (then := moment_of(attempt.time)) is not None]
    flags = [(then, record) for record in preemptions if (then := moment_of(record.time)) is not None]
    begin = min([*times, now - _LEAST])
    length = max(now - begin, _LEAST)
    buckets = [_Bucket() for _ in range(BUCKETS)]
    for attempt in attempts:
        then = moment_of(attempt.time)
        if then is not None:
            buckets[_place(then, begin, length)].count(attempt)
    most = max((max(bucket.placed, bucket.refused + bucket.failed) for bucket in buckets), default=0) or 1
    wide = WIDTH / BUCKETS
    parts = [element("line", class_="axis", x1=0, x2=WIDTH, y1=_LINE, y2=_LINE)]
    for place, bucket in enumerate(buckets):
        parts += _bars(bucket, place * wide, wide, most, begin + length * place / BUCKETS)
    for then, record in flags:
        if then >= begin:
            parts.append(_flag(record, WIDTH * min(1.0, (then - begin) / length)))
    parts += _hours(begin, length)
    words = f"{plural(len(attempts), 'decision')} and {plural(len(flags), 'preemption')} since {begin:%H:%M:%S}"
    return drawing(WIDTH, HEIGHT, *parts, label=words, class_="timeline", role="group")


def _place(then: datetime, begin: datetime, length: timedelta) -> int:
    return max(0, min(BUCKETS - 1, int((then - begin) / length * BUCKETS)))


def _bars(bucket: _Bucket, x: float, wide: float, most: int, begins: datetime) -> list[Markup]:
    tip = f"{begins.astimezone(UTC):%H:%M:%S} UTC\n{bucket.placed} found a node\n{bucket.refused} did not"
    if bucket.failed:
        tip += f"\n{bucket.failed} failed"
    up, down, error = (bucket.placed * _UP / most, bucket.refused * _DOWN / most, bucket.failed * _DOWN / most)
    shared: dict[str, str | float] = {"x": x + 0.5, "width": wide - 1}
    found = []
    if up:
        found.append(element("rect", class_="placed", y=_LINE - max(up, 2.0), height=max(up, 2.0), data_tip=tip, **shared))
    if down:
        found.append(element("rect", class_="unplaced", y=_LINE + 1, height=max(down, 2.0), data_tip=tip, **shared))
    if error:
        found.append(element("rect", class_="failed", y=_LINE + 1 + down, height=max(error, 2.0), data_tip=tip, **shared))
    return found


def _flag(record: Preemption, x: float) -> Markup:
    pole = element("line", class_="pole", x1=x, x2=x, y1=8, y2=_LINE)
    cloth = element("path", class_="flag", d=f"M{x:.1f} 6l{-12 if x > WIDTH - 12 else 12} 6L{x:.1f} 18z")
    return element(
        "a", pole, cloth, href=f"/ui/history#preemption-{record.id}", data_tip=preemption_words(record), aria_label=preemption_words(record)
    )


def _hours(begin: datetime, length: timedelta) -> list[Markup]:
    """Returns five times along the line."""
    form = "%H:%M" if length > timedelta(minutes=20) else "%H:%M:%S"
    anchors = ("start", "middle", "middle", "middle", "end")
    return [
        element(
            "text", f"{(begin + length * place / 4).astimezone(UTC):{form}}", class_="when", x=WIDTH * place / 4, y=HEIGHT - 4,
            text_anchor=anchors[place],
        )
        for place in range(5)
    ]  # fmt: skip
