"""Messages of plugins that raise, without where they did, which is tested in one place (test_plugin_calls)."""

import re
from dataclasses import replace

from extender.engine.framework import Status

_PLACE = re.compile(r" \(\w+, \S+\.py, line \d+\)")


def without_place(message: str) -> str:
    return _PLACE.sub("", message)


def status_without_place(status: Status) -> Status:
    return replace(status, reasons=tuple(map(without_place, status.reasons)))
