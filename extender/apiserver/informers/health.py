"""What a reflector says of itself."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

from extender.objects.cluster import Key


@final
@dataclass(frozen=True, slots=True)
class Health:
    """How one resource is doing, for a readiness page."""

    resource: str
    """As RBAC names it."""
    synced: bool
    """All objects were known at one moment, and have been kept up since."""
    is_served: bool
    """False if the server does not know the resource: it counts as empty."""
    silent_for: float | None
    """Seconds since the server said anything about it; None if it never did."""
    last_error: str
    """Why it is being tried again; empty while all is well."""
    failing_for: float | None
    """Seconds since when nothing about it could be learnt; None while all is well."""
    unreadable: Mapping[Key, str]
    """Objects that could not be read, and why: what was known of them before still holds."""


@final
@dataclass(slots=True)
class ReflectorCounters:
    """What has happened since the start."""

    lists: int = 0
    """Lists begun, streamed ones included."""
    watches: int = 0
    events: int = 0
    cuts: int = 0
    """Watches that broke off, perhaps in the middle of a line."""
    unreadable: int = 0
    """Objects that could not be read, once each time."""
    went_back: int = 0
    """Lists older than the one before."""
    on_changes_failed: int = 0
    """Exceptions of whoever was told of changes."""
    errors: Counter[str] = field(default_factory=Counter)
    """Failures by class."""
