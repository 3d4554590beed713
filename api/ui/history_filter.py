"""The filter of the history: read from an address, and written into one."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, final, get_args
from urllib.parse import urlencode

import msgspec

from extender.answers.past import OutcomeWanted, PastQuery
from extender.values.golang.times import rfc3339

RANGES: Final[Mapping[str, tuple[str, float]]] = {
    "15m": ("15 minutes", 900), "1h": ("1 hour", 3600), "6h": ("6 hours", 21_600), "24h": ("24 hours", 86_400),
    "7d": ("7 days", 604_800), "all": ("all", math.inf),
}  # fmt: skip
"""Name in addresses -> (words, seconds)."""
OUTCOMES: Final[Mapping[OutcomeWanted, str]] = {
    "": "any outcome", "scheduled": "found a node", "unschedulable": "unschedulable", "error": "failed",
    "preempted": "preempted others",
    "asked": "calls by another scheduler",
}  # fmt: skip


class HistoryFilterError(ValueError):
    """The address asks for something that is not there; the message says what is."""


@final
class HistoryFilter(msgspec.Struct, frozen=True, kw_only=True):
    """What an address asks for, as it was written. Empty texts mean everything."""

    outcome: str = ""
    name: str = ""
    namespace: str = ""
    node: str = ""
    plugin: str = ""
    range: str = ""
    since: str = ""
    until: str = ""
    before: int | None = None

    def query(self, now: datetime) -> PastQuery:
        """Returns what to look for.

        Raises:
            HistoryFilterError: the outcome, the range or a time cannot be read.
        """
        if self.outcome not in get_args(OutcomeWanted):
            raise HistoryFilterError(f"outcome: one of {', '.join(filter(None, OUTCOMES))}")
        if self.range and self.range not in RANGES:
            raise HistoryFilterError(f"range: one of {', '.join(RANGES)}")
        ago = RANGES[self.range or "all"][1]
        since = _seconds("since", self.since) if self.since else 0.0 if math.isinf(ago) else now.timestamp() - ago
        return PastQuery(
            outcome=msgspec.convert(self.outcome, OutcomeWanted),
            name=self.name,
            namespace=self.namespace,
            node=self.node,
            plugin=self.plugin,
            since=since,
            until=_seconds("until", self.until) if self.until else math.inf,
            before=self.before,
        )

    def href(self, **changes: str | int | None) -> str:
        """Returns the address with other values, from its first page on unless they name another."""
        asked = msgspec.structs.asdict(self) | {"before": None} | changes
        return f"/ui/history?{urlencode({name: value for name, value in asked.items() if value})}"


def history_href(since: datetime, until: datetime) -> str:
    """Returns the address of the history of a time."""
    return HistoryFilter().href(since=_written(since), until=_written(until))


def _written(time: datetime) -> str:
    return rfc3339(time.astimezone(UTC), "milliseconds")


def _seconds(name: str, text: str) -> float:
    """Returns a time in seconds; without a zone it is UTC."""
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError) as exc:
        raise HistoryFilterError(f"{name}: a time such as 2026-01-31T12:00:00Z") from exc
