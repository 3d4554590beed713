"""Finds the ResourceClaimTemplates of a cluster, of which no scheduler knows."""

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from extender.rules.api_resources import RESOURCE_CLAIM_TEMPLATES, Object

TemplateOf = Callable[[str, str], Object | None]
"""(namespace, name) -> the ResourceClaimTemplate of a cluster, if there is one."""


def no_template(namespace: str, name: str) -> Object | None:
    """Returns None: nothing is known of a cluster's ResourceClaimTemplates."""
    return None


def templates_among(objects: Iterable[Mapping[str, Any]]) -> TemplateOf:
    """Returns what finds the ResourceClaimTemplates of a cluster in a file."""
    found = {}
    for obj in objects:
        metadata = obj.get("metadata")
        if (
            obj.get("kind") == RESOURCE_CLAIM_TEMPLATES.kind
            and isinstance(metadata, Mapping)
            and isinstance(obj.get("spec"), Mapping)
        ):
            found[str(metadata.get("namespace") or "default"), str(metadata.get("name"))] = obj

    def template_of(namespace: str, name: str) -> Object | None:
        obj = found.get((namespace, name))
        # A caller may complete its copy.
        return None if obj is None else copy.deepcopy(dict(obj))

    return template_of
