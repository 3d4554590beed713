"""Pods of the front tier run on nodes with an SSD, and best where few pods are."""

from reprieve import plugin as fwk


class MyPolicy(fwk.EachNodeFilterPlugin, fwk.EachNodeScorePlugin):
    """Both methods get the pod, and one node with the pods on it. Change them, and `reprieve dev --reload` shows what
    that would change.
    """

    def filter(self, state, pod, node):
        """Returns None if the node may have the pod, else why not, in the words of the pod's event."""
        if pod.labels.get("tier") == "front" and node.labels.get("disk") != "ssd":
            # Evicting other pods does not help. Where it might, return fwk.unschedulable(...).
            return fwk.unresolvable("node(s) had no SSD for the front tier")
        return None

    def score(self, state, pod, node):
        """Returns how good the node is for the pod, from 0 to 100."""
        return max(100 - 10 * len(node.pods), 0)


# If one method is enough, a function is, too, in place of the class (tests/ names the class):
#
#     @fwk.node_filter
#     def my_policy(pod, node):
#         return None if node.labels.get("disk") == "ssd" else "node(s) had no SSD"
