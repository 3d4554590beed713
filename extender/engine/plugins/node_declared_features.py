"""NodeDeclaredFeatures: keeps pods off nodes whose kubelet lacks a feature that they need."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, final

import numpy as np

from extender.engine import framework as fwk
from extender.engine.snapshot.axes import Mask
from extender.values.objects.pod import Pod

REASON: Final = "node(s) didn't match Pod's required features"

_HAS_FEATURES: Final = fwk.StateKey[Mask]("PreFilterNodeDeclaredFeatures")


@final
class NodeDeclaredFeatures(fwk.SignPlugin, fwk.PreFilterPlugin, fwk.FilterPlugin):
    """Refuses nodes whose status.declaredFeatures lacks a feature that the pod's spec requires.

    Upstream: framework/plugins/nodedeclaredfeatures/nodedeclaredfeatures.go;
    component-helpers/nodedeclaredfeatures/framework.go.
    """

    looks_at_pods = False
    looks_only_at_node = True

    def events_to_register(self) -> Sequence[fwk.ClusterEventWithHint]:
        return [
            fwk.on(
                fwk.EventResource.NODE,
                fwk.ActionType.ADD | fwk.ActionType.UPDATE_NODE_DECLARED_FEATURE,
                _after_node_change,
            ),
            fwk.on(fwk.EventResource.POD, fwk.ActionType.UPDATE, _after_pod_update),
        ]

    def sign_pod(self, pod: fwk.Pod) -> frozenset[str]:
        return required_features(pod)

    def pre_filter(self, state: fwk.CycleState, pod: fwk.Pod, snapshot: fwk.Snapshot) -> fwk.PreFilterResult:
        """Skips pods that require no feature."""
        required = required_features(pod)
        if not required:
            return fwk.PreFilterResult(fwk.SKIP_EQUAL_PODS)
        # This loops over the nodes: few pods require a feature, so that features are not a column of the snapshot.
        nodes = snapshot.nodes.objects
        has_features = np.fromiter(
            (required.issubset(node.status.declared_features) for node in nodes), np.bool_, len(nodes)
        )
        state.write(_HAS_FEATURES, has_features)
        return fwk.PreFilterResult(fwk.SUCCESS)

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        """Refusals are unresolvable, since removing pods adds no feature."""
        return fwk.reject(~state.read(_HAS_FEATURES)[rows.node], REASON, unresolvable=True)


def required_features(pod: Pod) -> frozenset[str]:
    """Returns the features that the node must declare. Features that only matter to updates of pods are left out."""
    return frozenset(name for name, is_needed in _FEATURES.items() if is_needed(pod))


def _has_user_namespace_on_host_network(pod: Pod) -> bool:
    """Upstream: features/usernamespaceshostnetwork/user_namespaces_host_network.go."""
    return pod.spec.host_network and pod.spec.host_users is False


def _restarts_all_containers(pod: Pod) -> bool:
    """Upstream: features/restartallcontainers/restart_all_containers.go."""
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    return any(
        rule.action == "RestartAllContainers" for container in containers for rule in container.restart_policy_rules
    )


_FEATURES: Final[Mapping[str, Callable[[Pod], bool]]] = MappingProxyType(
    {
        "RestartAllContainersOnContainerExits": _restarts_all_containers,
        "UserNamespacesHostNetworkSupport": _has_user_namespace_on_host_network,
    }
)


def _after_node_change(pod: Pod, old: fwk.Node | None, new: fwk.Node) -> fwk.QueueingHint:
    return fwk.queue_if(old is None or old.status.declared_features != new.status.declared_features)


def _after_pod_update(pod: Pod, old: Pod, new: Pod) -> fwk.QueueingHint:
    return fwk.queue_if(new.uid == pod.uid and required_features(old) != required_features(new))
