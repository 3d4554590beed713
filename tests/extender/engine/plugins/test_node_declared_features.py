from extender.engine.framework import SKIP, SUCCESS, Status, unresolvable
from extender.engine.plugins.node_declared_features import NodeDeclaredFeatures
from extender.testing import PodBuilder, filter_nodes, make_node, make_pod, make_snapshot
from extender.values.objects.pod import Container, RestartPolicyRule
from tests.kit.tables import cases

USER_NAMESPACES, RESTART_ALL = "UserNamespacesHostNetworkSupport", "RestartAllContainersOnContainerExits"
MISSING = unresolvable("node(s) didn't match Pod's required features")


def restarting(action: str) -> Container:
    return Container(restart_policy_rules=[RestartPolicyRule(action=action)])


@cases(
    "pod, features, answer",
    ("an ordinary pod needs none", make_pod(), [], SKIP),
    ("host network alone", make_pod().host_network(), [], SKIP),
    ("host users on the host network", make_pod().host_network(host_users=True), [], SKIP),
    ("a user namespace on the host network", make_pod().host_network(host_users=False), [], MISSING),
    ("it is declared", make_pod().host_network(host_users=False), [USER_NAMESPACES], SUCCESS),
    ("others are declared", make_pod().host_network(host_users=False), ["Other", RESTART_ALL], MISSING),
    ("a container that restarts itself", make_pod().container(restarting("Restart")), [], SKIP),
    ("one that restarts all", make_pod().container(restarting("RestartAllContainers")), [], MISSING),
    ("an init container, too", make_pod().init_container(restarting("RestartAllContainers")), [RESTART_ALL], SUCCESS),
    (
        "one of two",
        make_pod().container(restarting("RestartAllContainers")).host_network(host_users=False),
        [RESTART_ALL],
        MISSING,
    ),
)
def test_features(pod: PodBuilder, features: list[str], answer: Status) -> None:
    """A node must declare every feature that the pod's spec relies on."""
    assert filter_nodes(NodeDeclaredFeatures(), make_snapshot(make_node().declared_features(*features)), pod.obj()) == {
        "n": answer
    }
