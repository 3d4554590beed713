"""The health and the counters of a reflector."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

from extender.values.objects.cluster import Key


@final
@dataclass(frozen=True, slots=True)
class Health:
    """The state of one resource, for a readiness page."""

    resource: str
    """The name of the resource in RBAC."""
    synced: bool
    """Whether all objects have been listed once."""
    is_served: bool
    """False if the server does not know the resource, or does not let an optional one be read. It counts as empty then.
    """
    silent_for: float | None
    """Seconds since the last byte about the resource; None before the first."""
    last_error: str
    """The error after which it is being retried; empty if the last request succeeded."""
    failing_for: float | None
    """Seconds for which nothing could be learnt about the resource; None if requests succeed."""
    unreadable: Mapping[Key, str]
    """Objects that could not be read, with the reason. Their last readable version is kept."""


@final
@dataclass(slots=True)
class ReflectorCounters:
    """Counters since the start."""

    lists: int = 0
    """Lists begun, including streamed ones."""
    watches: int = 0
    events: int = 0
    cuts: int = 0
    """Watches that were cut, perhaps in the middle of a line."""
    unreadable: int = 0
    """Objects that could not be read, counted each time."""
    went_back: int = 0
    """Lists older than the one before."""
    on_changes_failed: int = 0
    """Exceptions of `on_changes`."""
    errors: Counter[str] = field(default_factory=Counter)
    """Failures by the class of the error."""
