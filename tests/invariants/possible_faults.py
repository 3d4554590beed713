"""What goes wrong between a scheduler and its API server, where anything may."""

from collections.abc import Callable, Sequence
from typing import Final

from tests.kit.faults import Action, Call, answers, watches

LATE: Final = 20.0
"""Seconds by which a write may be late."""
FORGED: Final = "E0101 00:00:00.000000 forged"
"""Begins no line of a log, whatever an API server says."""

WRITES: Final[Sequence[Callable[[], Action]]] = [
    lambda: answers.status(500, f"injected\n{FORGED}"),
    lambda: answers.status(503, retry_after=1),
    lambda: answers.status(429, retry_after=2),
    lambda: answers.status(403),
    answers.refused,
    answers.drop_before_commit,
    answers.commit_then_drop,
    lambda: answers.commit_then(answers.status(500)),
    lambda: answers.commit_then(answers.answer("<html>", 502, content_type="text/html")),
    lambda: answers.delay(3),
    lambda: answers.commit_late(LATE),
    answers.black_hole,
]
LISTS: Final[Sequence[Callable[[], Action]]] = [
    lambda: answers.status(500),
    lambda: answers.status(410),
    lambda: answers.status(429, retry_after=3),
    answers.login_page,
    answers.refused,
    answers.too_large_resource_version,
    lambda: answers.truncate(300),
    lambda: answers.delay(5),
]
WATCHES: Final[Sequence[Callable[[], Action]]] = [
    lambda: watches.close_after(3),
    lambda: watches.reset_after(2, 20),
    lambda: watches.error_after(2, 410, reason="Expired"),
    lambda: watches.delayed(2),
    lambda: watches.repeating(3),
    lambda: watches.silent_after(5),
    lambda: watches.reordered(2, lambda event: event["type"] == "MODIFIED"),
    lambda: watches.skipping(lambda event: event["type"] == "DELETED"),
    lambda: watches.skipping(lambda event: event["type"] == "ADDED"),
]


def begins_with_no_list(call: Call) -> bool:
    """A watch may begin with all objects."""
    return "sendInitialEvents" not in call.params
