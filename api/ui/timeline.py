"""Decisions over time: bars up found a node, bars down did not, flags are preemptions. And the history's addresses."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec
from markupsafe import Markup

from api.ui.frame import address
from api.ui.node_drawing import drawing, element
from api.ui.wording import plural, preemption_words
from extender.answers.catalogue import HistoryQuestion
from extender.answers.history import BUCKETS, how_ended
from extender.answers.overviews import Count, OutcomeWanted, Past
from extender.answers.stories import Preemption
from extender.answers.types import Attempt
from extender.values.golang.times import moment_of, rfc3339

RANGES: Final[Mapping[str, str]] = {
    "15m": "15 minutes", "1h": "1 hour", "6h": "6 hours", "24h": "24 hours", "7d": "7 days", "all": "all",
}  # fmt: skip
"""Name in addresses -> words."""
OUTCOMES: Final[Mapping[OutcomeWanted, str]] = {
    "": "any outcome", "scheduled": "found a node", "unschedulable": "unschedulable", "error": "failed",
    "preempted": "preempted others",
    "asked": "calls by another scheduler",
}  # fmt: skip


_ANY: Final = HistoryQuestion()


def history_href(question: HistoryQuestion = _ANY, **changes: str | int | None) -> str:
    """Returns the address of the history with other values, from its first page on unless they name another."""
    parameters = msgspec.structs.asdict(question) | {"before": None} | changes
    return address("/ui/history", **parameters)


def _timestamp(time: datetime) -> str:
    return rfc3339(time.astimezone(UTC), "milliseconds")


WIDTH, HEIGHT = 1000, 166
_FLAGS, _LINE = 26, 120
_UP, _DOWN = _LINE - _FLAGS - 8, HEIGHT - _LINE - 2
_LEAST: Final = timedelta(seconds=BUCKETS)


def timeline(attempts: Sequence[Attempt], preemptions: Sequence[Preemption], now: datetime) -> Markup:
    times = [then for attempt in attempts if (then := moment_of(attempt.time)) is not None]
    begin = min([*times, now - _LEAST])
    length = max(now - begin, _LEAST)
    counts = [[0, 0, 0] for _ in range(BUCKETS)]
    for attempt in attempts:
        then = moment_of(attempt.time)
        if then is not None:
            place = max(0, min(BUCKETS - 1, int((then - begin) / length * BUCKETS)))
            counts[place][how_ended(attempt.outcome, attempt.evaluated, attempt.feasible)] += 1
    buckets = [Count(placed=placed, refused=refused, failed=failed) for placed, refused, failed in counts]
    return plotted(buckets, preemptions, begin, length)


def past_timeline(past: Past) -> Markup:
    begin = datetime.fromtimestamp(past.begin, UTC)
    length = max(datetime.fromtimestamp(past.end, UTC) - begin, timedelta(milliseconds=BUCKETS))
    return plotted(past.counts, past.preemptions, begin, length)


def plotted(counts: Sequence[Count], preemptions: Sequence[Preemption], begin: datetime, length: timedelta) -> Markup:
    """Returns the picture of counts over equal parts of a time. Every bar leads to the history of its part."""
    flags = [(then, record) for record in preemptions if (then := moment_of(record.time)) is not None]
    highest = max((max(count.placed, count.refused + count.failed) for count in counts), default=0) or 1
    wide = WIDTH / BUCKETS
    lines = (("scale", _LINE - _UP), ("scale", _LINE + _DOWN), ("axis", _LINE))
    parts = [element("line", class_=name, x1=0, x2=WIDTH, y1=y, y2=y) for name, y in lines]
    for place, count in enumerate(counts):
        begins = begin + length * place / BUCKETS
        bars = _bars(count, place * wide, wide, highest, begins)
        if bars:
            words = f"decisions from {begins.astimezone(UTC):%H:%M:%S}"
            href = history_href(since=_timestamp(begins), until=_timestamp(begins + length / BUCKETS))
            # Tab stops at the flags alone: a hundred bars are too many.
            parts.append(element("a", *bars, href=href, tabindex=-1, aria_label=words))
    for then, record in flags:
        if begin <= then <= begin + length:
            parts.append(_flag(record, WIDTH * min(1.0, (then - begin) / length)))
    total = sum(count.placed + count.refused + count.failed for count in counts)
    words = f"{plural(total, 'decision')} and {plural(len(flags), 'preemption')} since {begin:%H:%M:%S}"
    picture = drawing(WIDTH, HEIGHT, *parts, label=words, class_="timeline", role="group")
    # Texts stand beside the picture, because they would shrink in it with the width of the page.
    hours = element("div", *_hours(begin, length), class_="hours")
    return element("span", f"up to {highest:,}", class_="most") + picture + hours


def _bars(bucket: Count, x: float, wide: float, highest: int, begins: datetime) -> list[Markup]:
    tip = f"{begins.astimezone(UTC):%H:%M:%S} UTC\n{bucket.placed} found a node\n{bucket.refused} did not"
    if bucket.failed:
        tip += f"\n{bucket.failed} failed"
    up, down, error = (bucket.placed * _UP / highest, bucket.refused * _DOWN / highest, bucket.failed * _DOWN / highest)
    shared: dict[str, str | float] = {"x": x + 0.5, "width": wide - 1}
    bars = (("placed", up, _LINE - max(up, 2.0)), ("unplaced", down, _LINE), ("failed", error, _LINE + down))
    return [
        element("rect", class_=name, y=y, height=max(tall, 2.0), data_tip=tip, **shared)
        for name, tall, y in bars
        if tall
    ]


def _flag(record: Preemption, x: float) -> Markup:
    pole = element("line", class_="pole", x1=x, x2=x, y1=2, y2=_LINE)
    way = -1 if x > WIDTH - 40 else 1
    cloth = element(
        "path", class_=f"flag{' turned' * (way < 0)}", d=f"M{x:.1f} 2h{20 * way}l{-5 * way} 6l{5 * way} 6h{-20 * way}z"
    )
    href, words = f"/ui/history#preemption-{record.id}", preemption_words(record)
    return element("a", pole, cloth, href=href, data_tip=words, aria_label=words)


def _hours(begin: datetime, length: timedelta) -> list[Markup]:
    form = "%d %b %H:%M" if length > timedelta(days=1) else "%H:%M" if length > timedelta(minutes=20) else "%H:%M:%S"
    times = [(begin + length * place / 4).astimezone(UTC) for place in range(5)]
    return [element("span", f"{time:{form}}", data_time=_timestamp(time)) for time in times]
