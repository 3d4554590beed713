"""Kinds that are no part of Kubernetes, as charts bring them along with workloads: nothing is known of them here."""

from collections.abc import Callable, Iterable
from typing import Any

from extender.values.objects.meta import Object
from extender.values.workloads.expansion import JOB_SET


def is_custom(obj: Object, api_version_of: Callable[[str], str | None]) -> bool:
    """Returns whether the object's kind is left out: of a group with a domain, and none that an API server has itself.

    `api_version_of` returns the apiVersion of a kind that it has.
    """
    kind, group = obj.get("kind"), _group(obj.get("apiVersion"))
    is_our_own = kind == JOB_SET[1] or _group(api_version_of(str(kind))) == group
    return "." in group and not is_our_own


def left_out(objects: Iterable[Object]) -> str:
    """Returns a sentence about objects that are left out; empty if there are none."""
    kinds = dict.fromkeys(f"{obj.get('kind')} ({obj.get('apiVersion')})" for obj in objects)
    return f"left out, since no pods are known to come of them: {', '.join(kinds):.400}" if kinds else ""


def _group(api_version: Any) -> str:
    return str(api_version or "").rpartition("/")[0]
