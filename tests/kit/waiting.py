"""Waiting for what is going to happen. A test that waits ends as soon as it has; how long it might take says nothing."""

import re
import time
from collections.abc import Callable
from typing import Final, TypeVar

import httpx

DEADLINE: Final = 120.0
"""Seconds after which a test gives up, whatever it waits for: far more than any machine needs for it."""
PAUSE: Final = 0.05
"""Seconds between two looks."""
GLANCES: Final = 6
APART: Final = 0.25
"""So many looks in a row, so many seconds apart, find a service unchanged that is at rest. In all that is longer than the
second in which a deleted pod says goodbye to its kubelet.
"""
_BUSY: Final = re.compile(
    r"^scheduler_(?:pending_pods\{queue=\"(?:active|backoff)\"\}|inflight_events\{[^}]*\}) (?!0\.0$)", re.MULTILINE
)
"""Pods that are going to be tried, or are being tried."""

T = TypeVar("T")


def until(comes: Callable[[], T], what: str = "it has not come", *, pause: float = PAUSE) -> T:
    """Returns what comes, once it is true."""
    ends = time.monotonic() + DEADLINE
    while not (value := comes()):
        assert time.monotonic() < ends, what
        time.sleep(pause)
    return value


def until_at_rest(url: str) -> None:
    """Waits until nothing is going to happen in a service by itself: no pod is about to be tried, and what it shows has
    not changed for a while. Each look is answered by the event loop on which changes are made, so that they go on
    in between, however slow the machine is.
    """
    versions: list[str] = []

    def is_at_rest() -> bool:
        version = _version(url)
        if not version or versions[-1:] != [version]:
            versions.clear()
        versions.append(version)
        return len(versions) > GLANCES

    until(is_at_rest, f"{url} does not come to rest", pause=APART)


def _version(url: str) -> str:
    """The version of what a service shows; empty while there is something to do."""
    with httpx.Client(base_url=url, timeout=DEADLINE, trust_env=False) as client:
        if _BUSY.search(client.get("/metrics").text):
            return ""
        match = re.search(r'data-version="([^"]+)"', client.get("/").text)
    return match[1] if match else ""
