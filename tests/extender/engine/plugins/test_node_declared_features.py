import pytest

from extender.engine.framework import SKIP, SUCCESS, Status, unresolvable
from extender.engine.plugins.node_declared_features import NodeDeclaredFeatures
from extender.testing import PodBuilder, filter_nodes, make_node, make_pod, make_snapshot
from extender.values.objects.pod import Container, RestartPolicyRule

USER_NAMESPACES, RESTART_ALL = "UserNamespacesHostNetworkSupport", "RestartAllContainersOnContainerExits"
MISSING = unresolvable("node(s) didn't match Pod's required features")


def restarting(action: str) -> Container:
    return Container(restart_policy_rules=[RestartPolicyRule(action=action)])


@pytest.mark.parametrize(
    ("pod", "features", "answer"),
    [
        pytest.param(make_pod(), [], SKIP, id="an ordinary pod needs none"),
        pytest.param(make_pod().host_network(), [], SKIP, id="host network alone"),
        pytest.param(make_pod().host_network(host_users=True), [], SKIP, id="host users on the host network"),
        pytest.param(make_pod().host_network(host_users=False), [], MISSING, id="a user namespace on the host network"),
        pytest.param(make_pod().host_network(host_users=False), [USER_NAMESPACES], SUCCESS, id="it is declared"),
        pytest.param(
            make_pod().host_network(host_users=False), ["Other", RESTART_ALL], MISSING, id="others are declared"
        ),
        pytest.param(make_pod().container(restarting("Restart")), [], SKIP, id="a container that restarts itself"),
        pytest.param(make_pod().container(restarting("RestartAllContainers")), [], MISSING, id="one that restarts all"),
        pytest.param(
            make_pod().init_container(restarting("RestartAllContainers")),
            [RESTART_ALL],
            SUCCESS,
            id="an init container, too",
        ),
        pytest.param(
            make_pod().container(restarting("RestartAllContainers")).host_network(host_users=False),
            [RESTART_ALL],
            MISSING,
            id="one of two",
        ),
    ],
)
def test_features(pod: PodBuilder, features: list[str], answer: Status) -> None:
    """A node must declare every feature that the pod's spec relies on."""
    assert filter_nodes(NodeDeclaredFeatures(), make_snapshot(make_node().declared_features(*features)), pod.obj()) == {
        "n": answer
    }
