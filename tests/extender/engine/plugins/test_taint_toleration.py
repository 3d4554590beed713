from extender.engine.framework import SUCCESS, Status, unresolvable
from extender.engine.plugins.taints import TaintToleration
from extender.testing import NodeBuilder, PodBuilder, filter_nodes, make_node, make_pod, make_snapshot, score_nodes
from tests.kit.tables import cases

tainted, tolerating = make_node().taint, make_pod().toleration
UNTOLERATED = unresolvable("node(s) had untolerated taint(s)")


@cases(
    "node, pod, answer",
    ("no taint", make_node(), make_pod(), SUCCESS),
    ("NoSchedule", tainted("gpu"), make_pod(), UNTOLERATED),
    ("NoExecute", tainted("gpu", effect="NoExecute"), make_pod(), UNTOLERATED),
    ("PreferNoSchedule is a wish", tainted("gpu", effect="PreferNoSchedule"), make_pod(), SUCCESS),
    ("equal value", tainted("gpu", "a"), tolerating("gpu", "a"), SUCCESS),
    ("other value", tainted("gpu", "a"), tolerating("gpu", "b"), UNTOLERATED),
    ("any value", tainted("gpu", "a"), tolerating("gpu", operator="Exists"), SUCCESS),
    ("no key compares values alone", tainted("gpu", "a"), tolerating("", "a"), SUCCESS),
    ("other effect", tainted("gpu", "a"), tolerating("gpu", "a", "NoExecute"), UNTOLERATED),
    ("one of two", tainted("gpu").taint("fpga"), tolerating("gpu"), UNTOLERATED),
    ("Gt is switched off", tainted("n", "5"), tolerating("n", "9", operator="Gt"), UNTOLERATED),
)
def test_filter(node: NodeBuilder, pod: PodBuilder, answer: Status) -> None:
    """A pod runs on a node when it tolerates all of its NoSchedule and NoExecute taints."""
    assert filter_nodes(TaintToleration(), make_snapshot(node), pod.obj()) == {"n": answer}


@cases(
    "pod, scores",
    ("every taint counts", make_pod(), [100, 50, 0]),
    ("but tolerated ones", tolerating("a", effect="PreferNoSchedule"), [100, 100, 0]),
    ("effect matters", tolerating("a", effect="NoSchedule"), [100, 50, 0]),
    ("tolerates everything", tolerating(operator="Exists"), [100, 100, 100]),
)
def test_score(pod: PodBuilder, scores: list[int]) -> None:
    """The fewer PreferNoSchedule taints a pod has to put up with, the better: nodes with none, one and two."""
    none = make_node("none").taint("c", effect="NoSchedule")
    one = make_node("one").taint("a", effect="PreferNoSchedule")
    two = make_node("two").taint("a", effect="PreferNoSchedule").taint("b", effect="PreferNoSchedule")

    assert [*score_nodes(TaintToleration(), make_snapshot(none, one, two), pod.obj()).values()] == scores
