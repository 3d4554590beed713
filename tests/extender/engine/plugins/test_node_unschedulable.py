import pytest

from extender.engine.framework import SUCCESS, Status, unresolvable
from extender.engine.plugins.taints import NodeUnschedulable
from extender.testing import NodeBuilder, PodBuilder, filter_nodes, make_node, make_pod, make_snapshot

KEY = "node.kubernetes.io/unschedulable"
SHUT, tolerating = make_node().unschedulable(), make_pod().toleration
CORDONED = unresolvable("node(s) were unschedulable")


@pytest.mark.parametrize(
    ("node", "pod", "answer"),
    [
        pytest.param(make_node(), make_pod(), SUCCESS, id="an open node"),
        pytest.param(SHUT, make_pod(), CORDONED, id="a cordoned node"),
        pytest.param(make_node().taint(KEY), make_pod(), SUCCESS, id="the taint alone is TaintToleration's matter"),
        pytest.param(SHUT, tolerating(KEY, operator="Exists"), SUCCESS, id="the taint is tolerated"),
        pytest.param(SHUT, tolerating(operator="Exists"), SUCCESS, id="everything is tolerated"),
        pytest.param(SHUT, tolerating(KEY, "", "NoSchedule"), SUCCESS, id="its value is empty"),
        pytest.param(SHUT, tolerating(KEY, "x"), CORDONED, id="another value"),
        pytest.param(SHUT, tolerating(KEY, "", "NoExecute"), CORDONED, id="another effect"),
    ],
)
def test_cordoned_nodes(node: NodeBuilder, pod: PodBuilder, answer: Status) -> None:
    assert filter_nodes(NodeUnschedulable(), make_snapshot(node), pod.obj()) == {"n": answer}
