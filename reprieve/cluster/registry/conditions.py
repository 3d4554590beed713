"""Conditions in a status, which are lists of JSON objects."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from extender.rules.api_resources import Object
from extender.values.golang.times import moment_of, rfc3339


def timestamp(moment: datetime) -> str:
    return _printed(int(moment.timestamp()))


@lru_cache(maxsize=64)
def _printed(second: int) -> str:
    # Cached: a thousand pods may become ready in the same second.
    return rfc3339(datetime.fromtimestamp(second, UTC))


def seconds_since(text: str | None, now: datetime) -> float | None:
    """Returns how many seconds ago a timestamp was; None if there is none."""
    moment = moment_of(text)
    return None if moment is None else (now - moment).total_seconds()


def condition(conditions: Iterable[Mapping[str, Any]] | None, kind: str) -> Mapping[str, Any] | None:
    return next((condition for condition in conditions or () if condition.get("type") == kind), None)


def with_condition(conditions: Iterable[Object] | None, new: Object, now: datetime) -> list[Object]:
    """Returns the conditions with the new one in place of the old one of its type, or at the end.

    `lastTransitionTime` stays while the status does. Other fields of the old condition are dropped.
    """
    result = list(conditions or ())
    for place, old in enumerate(result):
        if old.get("type") == new["type"]:
            same = old.get("status") == new["status"] and old.get("lastTransitionTime")
            result[place] = {**new, "lastTransitionTime": old["lastTransitionTime"] if same else timestamp(now)}
            return result
    return [*result, {**new, "lastTransitionTime": timestamp(now)}]


def without_condition(conditions: Iterable[Object] | None, kind: str) -> list[Object]:
    return [condition for condition in conditions or () if condition.get("type") != kind]
