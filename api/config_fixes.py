"""What to do about a wrong configuration, after kube-scheduler's own words for it."""

import re
from difflib import get_close_matches
from importlib.metadata import entry_points
from typing import Final

from extender.engine.runtime.registry import ENTRY_POINTS
from extender.values.config import IN_TREE_POINTS, ConfigErrors

_UNKNOWN: Final = re.compile(r'\w+Plugin "(?P<name>[^"]+)" does not exist')
_NOT_THERE: Final = re.compile(r'plugin "(?P<name>[^"]+)" does not extend (?P<point>\w+) plugin')


def with_fix(exc: ConfigErrors) -> str:
    """Returns the errors, and what to do about a plugin that does not exist, or not at that point."""
    text = str(exc)
    if unknown := _UNKNOWN.search(text):
        known = sorted({*IN_TREE_POINTS, *(entry.name for entry in entry_points(group=ENTRY_POINTS))})
        near = get_close_matches(unknown["name"], known, 1)
        if near:
            return f"{text}; did you mean {near[0]}?"
        return f"{text}; install the distribution that has it beside reprieve (`reprieve plugins` lists what is there)"
    if elsewhere := _NOT_THERE.search(text):
        return (
            f"{text}; enable {elsewhere['name']} at multiPoint, or at one of its points, which `reprieve plugins "
            "--all` lists"
        )
    return text
