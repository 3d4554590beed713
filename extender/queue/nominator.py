"""Nominator: which pending pods were promised room on which node. What the API server says of it may lag behind.

Upstream: pkg/scheduler/backend/queue/nominator.go (v1.36.2).
"""

from collections.abc import Callable
from typing import final

from extender.objects.pod import Pod

PodLister = Callable[[str], Pod | None]
"""namespace/name -> the pod as the API server has it, None if there is none."""


@final
class Nominator:
    """Promises by node and by pod. A pod has at most one."""

    def __init__(self, pod_lister: PodLister) -> None:
        self._pod_lister = pod_lister
        # Node -> UID -> the pod when it was nominated, in order of nomination.
        self._pods_on: dict[str, dict[str, Pod]] = {}
        self._node_of: dict[str, str] = {}

    def add(self, pod: Pod, node: str | None) -> None:
        """Promise room to the pod, instead of what it was promised before. A pod that is gone or has a node gets no promise.

        Arguments:
            node: None for the node in its status, and for no promise if there is none.
        """
        self.delete(pod.uid)
        if node is None:
            node = pod.status.nominated_node_name
            if not node:
                return
        known = self._pod_lister(pod.key)
        if known is None or known.spec.node_name:
            return
        self._node_of[pod.uid] = node
        self._pods_on.setdefault(node, {})[pod.uid] = pod

    def update(self, old: Pod, new: Pod) -> None:
        """The pod changed. A promise that only we know of stays; what its status says, or no longer says, counts.

        Upstream: UpdateNominatedPod.
        """
        node = None
        if not old.status.nominated_node_name and not new.status.nominated_node_name:
            # The API server may not have heard of the promise yet.
            node = self._node_of.get(old.uid)
        self.delete(old.uid)
        self.add(new, node)

    def delete(self, uid: str) -> None:
        """Take the promise back, if there is one."""
        node = self._node_of.pop(uid, None)
        if node is None:
            return
        pods = self._pods_on[node]
        del pods[uid]
        if not pods:
            del self._pods_on[node]

    def pods_for_node(self, node: str) -> list[Pod]:
        """The pods that were promised room on the node, in order of nomination, as they were then."""
        return [*self._pods_on.get(node, {}).values()]

    def by_node(self) -> dict[str, list[Pod]]:
        """All promises: node -> pods in order of nomination, as they were then."""
        return {node: [*pods.values()] for node, pods in self._pods_on.items()}
