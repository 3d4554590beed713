"""Finds the ResourceClaimTemplates of a cluster, which no scheduler watches."""

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, final

from extender.rules.api_resources import RESOURCE_CLAIM_TEMPLATES, Object

TemplateOf = Callable[[str, str], Object | None]
"""(namespace, name) -> the ResourceClaimTemplate of a cluster, if there is one."""


def no_template(namespace: str, name: str) -> Object | None:
    """Returns None, for clusters whose ResourceClaimTemplates are unknown."""
    return None


@final
class ClaimTemplates:
    """Finds the ResourceClaimTemplates of a cluster in a file, as a `TemplateOf`."""

    def __init__(self, objects: Iterable[Mapping[str, Any]]) -> None:
        self.found: Final[dict[tuple[str, str], Mapping[str, Any]]] = {}
        for obj in objects:
            metadata = obj.get("metadata")
            if (
                obj.get("kind") == RESOURCE_CLAIM_TEMPLATES.kind
                and isinstance(metadata, Mapping)
                and isinstance(obj.get("spec"), Mapping)
            ):
                self.found[str(metadata.get("namespace") or "default"), str(metadata.get("name"))] = obj

    def __call__(self, namespace: str, name: str) -> Object | None:
        obj = self.found.get((namespace, name))
        # A caller may complete its copy.
        return None if obj is None else copy.deepcopy(dict(obj))
