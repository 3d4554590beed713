"""What a path is about.

Upstream: apiserver/pkg/endpoints/request/requestinfo.go (v1.36.2).
"""

from dataclasses import dataclass
from typing import final

from extender.embedded import statuses
from extender.embedded.resources import NAMESPACES, RESOURCES, Resource, find


@final
@dataclass(frozen=True, slots=True)
class Target:
    """A collection, an object, or what lies below one.

    Attributes:
        namespace: empty: all of them, or the kind has none.
        is_watch: by the old paths, `/api/v1/watch/pods`.
    """

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    is_watch: bool = False


def target_of(path: str) -> Target | None:
    """What the path is about; None: no resource, but perhaps a document.

    Raises:
        ApiStatus: 404, the group and version are served, but not this.
    """
    match [part for part in path.split("/") if part]:
        case ["api", version, *rest]:
            group = ""
        case ["apis", group, version, *rest]:
            pass
        case _:
            return None
    if not rest or not any((each.group, each.version) == (group, version) for each in RESOURCES):
        return None
    target = _below(group, version, rest)
    if target is None:
        raise statuses.page_not_found()
    return target


def _below(group: str, version: str, parts: list[str]) -> Target | None:
    is_watch = len(parts) > 1 and parts[0] == "watch"
    if is_watch:
        parts = parts[1:]
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 2:
        # What comes third may belong to the namespace itself.
        if not group and len(parts) == 3 and NAMESPACES.subresource(parts[2]) is not None:
            return Target(NAMESPACES, "", parts[1], parts[2])
        namespace, parts = parts[1], parts[2:]
    resource = find(group, version, parts[0])
    if resource is None or len(parts) > 3:
        return None
    if bool(namespace) != resource.namespaced and (namespace or len(parts) > 1):
        return None
    name, subresource = (*parts[1:], "", "")[:2]
    return Target(resource, namespace, name, subresource, is_watch)
