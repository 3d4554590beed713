"""Conditions in a status, as lists of JSON objects."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from extender.embedded.api_resources import Object


def timestamp(moment: datetime) -> str:
    """As metav1.Time prints it: whole seconds, UTC."""
    return _printed(int(moment.timestamp()))


@lru_cache(maxsize=64)
def _printed(second: int) -> str:
    # A thousand pods become ready in the same second.
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parsed_time(text: str | None) -> datetime | None:
    """The moment that a timestamp of the API names; None if there is none or it is not readable."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def seconds_since(text: str | None, now: datetime) -> float | None:
    """How long ago a timestamp was; None if there is none."""
    moment = parsed_time(text)
    return None if moment is None else (now - moment).total_seconds()


def condition(conditions: Iterable[Mapping[str, Any]] | None, kind: str) -> Mapping[str, Any] | None:
    """The condition of this type."""
    return next((each for each in conditions or () if each.get("type") == kind), None)


def with_condition(conditions: Iterable[Object] | None, wanted: Object, now: datetime) -> list[Object]:
    """The conditions with this one in place of the one of its type, or at the end.

    `lastTransitionTime` is kept while the status stays what it was. What the old condition had beyond the wanted fields goes.
    """
    result = list(conditions or ())
    for place, old in enumerate(result):
        if old.get("type") == wanted["type"]:
            same = old.get("status") == wanted["status"] and old.get("lastTransitionTime")
            result[place] = {**wanted, "lastTransitionTime": old["lastTransitionTime"] if same else timestamp(now)}
            return result
    return [*result, {**wanted, "lastTransitionTime": timestamp(now)}]


def without_condition(conditions: Iterable[Object] | None, kind: str) -> list[Object]:
    """The conditions but for the one of this type."""
    return [each for each in conditions or () if each.get("type") != kind]
