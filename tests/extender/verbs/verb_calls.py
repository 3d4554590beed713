"""Calls of the verbs by tests that have no event loop."""

import asyncio
from typing import Any

from extender.values.objects.pod import Pod
from extender.verbs import FilterResult, Verbs


def filtered(verbs: Verbs, pod: Pod, **arguments: Any) -> FilterResult:
    return asyncio.run(verbs.filter(pod, **arguments))


def scored(verbs: Verbs, pod: Pod, **arguments: Any) -> list[int]:
    return asyncio.run(verbs.prioritize(pod, **arguments))
