"""GroupMembers: the pods of each pod group, whether they have a node or not, and whether the group exists or not.

Upstream: pkg/scheduler/backend/cache/podgroupstate.go.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from types import MappingProxyType
from typing import Final, final

from extender.values.objects.grouping import GroupKey, group_of
from extender.values.objects.pod import Pod

_NONE: Final[Mapping[str, Pod]] = MappingProxyType({})


@final
class GroupMembers:
    """Group -> UID -> pod, in order of arrival. A pod without a group takes no place."""

    def __init__(self) -> None:
        self._members: dict[GroupKey, dict[str, Pod]] = {}

    def copy(self) -> "GroupMembers":
        other = GroupMembers()
        other._members = {key: pods.copy() for key, pods in self._members.items()}
        return other

    def put(self, pod: Pod) -> None:
        key = group_of(pod)
        if key is not None:
            self._members.setdefault(key, {})[pod.uid] = pod

    def drop(self, pod: Pod) -> None:
        """Removes a member. Idempotent."""
        key = group_of(pod)
        if key is not None and key in self._members:
            self._members[key].pop(pod.uid, None)
            if not self._members[key]:
                del self._members[key]

    def uids(self) -> Iterator[str]:
        return chain.from_iterable(self._members.values())

    def of(self, key: GroupKey) -> Mapping[str, Pod]:
        """Returns UID -> pod of a group's members; a view."""
        return self._members.get(key, _NONE)
