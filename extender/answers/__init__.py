"""Answers for people: why a pod is pending, who would be evicted, what would happen if.

The engine that decides computes every answer, and an answer is a plain value (`types`). Nothing here changes a cluster:
an explanation reads the live columns, and a what-if works on a copy. `Questions` is loaded when it is asked for: a
scheduler has pods to bind when it starts.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from extender.answers.questions import Questions


def __getattr__(name: str) -> Any:
    if name != "Questions":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.questions").Questions
