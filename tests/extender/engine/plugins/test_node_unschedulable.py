from extender.engine.framework import SUCCESS, Status, unresolvable
from extender.engine.plugins.taints import NodeUnschedulable
from extender.testing import NodeBuilder, PodBuilder, filter_nodes, make_node, make_pod, make_snapshot
from tests.kit.tables import cases

KEY = "node.kubernetes.io/unschedulable"
SHUT, tolerating = make_node().unschedulable(), make_pod().toleration
CORDONED = unresolvable("node(s) were unschedulable")


@cases(
    "node, pod, answer",
    ("an open node", make_node(), make_pod(), SUCCESS),
    ("a cordoned node", SHUT, make_pod(), CORDONED),
    ("the taint alone is TaintToleration's matter", make_node().taint(KEY), make_pod(), SUCCESS),
    ("the taint is tolerated", SHUT, tolerating(KEY, operator="Exists"), SUCCESS),
    ("everything is tolerated", SHUT, tolerating(operator="Exists"), SUCCESS),
    ("its value is empty", SHUT, tolerating(KEY, "", "NoSchedule"), SUCCESS),
    ("another value", SHUT, tolerating(KEY, "x"), CORDONED),
    ("another effect", SHUT, tolerating(KEY, "", "NoExecute"), CORDONED),
)
def test_cordoned_nodes(node: NodeBuilder, pod: PodBuilder, answer: Status) -> None:
    assert filter_nodes(NodeUnschedulable(), make_snapshot(node), pod.obj()) == {"n": answer}
