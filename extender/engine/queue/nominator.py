"""Nominator: the nominations of pending pods to nodes. It may be ahead of the pods' status in the API server.

Upstream: pkg/scheduler/backend/queue/nominator.go.
"""

from collections.abc import Callable
from typing import final

from extender.values.objects.pod import Pod

PodLister = Callable[[str], Pod | None]
"""Returns the pod namespace/name as the API server has it, None if there is none."""


@final
class Nominator:
    """Holds the nominations by node and by pod. A pod has at most one."""

    def __init__(self, pod_lister: PodLister) -> None:
        self._pod_lister = pod_lister
        # Node -> UID -> the pod when it was nominated, in order of nomination.
        self._pods_on: dict[str, dict[str, Pod]] = {}
        self._node_of: dict[str, str] = {}

    def add(self, pod: Pod, node: str | None) -> None:
        """Nominates the pod to the node, by default that in its status, instead of an earlier one; not once it has a
        node.
        """
        self.delete(pod.uid)
        if node is None:
            node = pod.status.nominated_node_name
            if not node:
                return
        current = self._pod_lister(pod.key)
        if current is None or current.spec.node_name:
            return
        self._node_of[pod.uid] = node
        self._pods_on.setdefault(node, {})[pod.uid] = pod

    def update(self, old: Pod, new: Pod) -> None:
        """Updates the pod, keeping nominations that only this process knows (UpdateNominatedPod)."""
        node = None
        if not old.status.nominated_node_name and not new.status.nominated_node_name:
            # The API server may not have the nomination yet.
            node = self._node_of.get(old.uid)
        self.delete(old.uid)
        self.add(new, node)

    def delete(self, uid: str) -> None:
        """Withdraws the pod's nomination, if there is one."""
        node = self._node_of.pop(uid, None)
        if node is None:
            return
        pods = self._pods_on[node]
        del pods[uid]
        if not pods:
            del self._pods_on[node]

    def by_node(self) -> dict[str, list[Pod]]:
        """Returns all nominations: node -> pods in order of nomination, as they were then."""
        return {node: [*pods.values()] for node, pods in self._pods_on.items()}
