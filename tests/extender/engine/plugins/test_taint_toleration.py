import pytest

from extender.engine.framework import SUCCESS, Status, unresolvable
from extender.engine.plugins.taints import TaintToleration
from extender.testing import NodeBuilder, PodBuilder, filter_nodes, make_node, make_pod, make_snapshot, score_nodes

tainted, tolerating = make_node().taint, make_pod().toleration
UNTOLERATED = unresolvable("node(s) had untolerated taint(s)")


@pytest.mark.parametrize(
    ("node", "pod", "answer"),
    [
        pytest.param(make_node(), make_pod(), SUCCESS, id="no taint"),
        pytest.param(tainted("gpu"), make_pod(), UNTOLERATED, id="NoSchedule"),
        pytest.param(tainted("gpu", effect="NoExecute"), make_pod(), UNTOLERATED, id="NoExecute"),
        pytest.param(tainted("gpu", effect="PreferNoSchedule"), make_pod(), SUCCESS, id="PreferNoSchedule is a wish"),
        pytest.param(tainted("gpu", "a"), tolerating("gpu", "a"), SUCCESS, id="equal value"),
        pytest.param(tainted("gpu", "a"), tolerating("gpu", "b"), UNTOLERATED, id="other value"),
        pytest.param(tainted("gpu", "a"), tolerating("gpu", operator="Exists"), SUCCESS, id="any value"),
        pytest.param(tainted("gpu", "a"), tolerating("", "a"), SUCCESS, id="no key compares values alone"),
        pytest.param(tainted("gpu", "a"), tolerating("gpu", "a", "NoExecute"), UNTOLERATED, id="other effect"),
        pytest.param(tainted("gpu").taint("fpga"), tolerating("gpu"), UNTOLERATED, id="one of two"),
        pytest.param(tainted("n", "5"), tolerating("n", "9", operator="Gt"), UNTOLERATED, id="Gt is switched off"),
    ],
)
def test_filter(node: NodeBuilder, pod: PodBuilder, answer: Status) -> None:
    """A pod runs on a node when it tolerates all of its NoSchedule and NoExecute taints."""
    assert filter_nodes(TaintToleration(), make_snapshot(node), pod.obj()) == {"n": answer}


@pytest.mark.parametrize(
    ("pod", "scores"),
    [
        pytest.param(make_pod(), [100, 50, 0], id="every taint counts"),
        pytest.param(tolerating("a", effect="PreferNoSchedule"), [100, 100, 0], id="but tolerated ones"),
        pytest.param(tolerating("a", effect="NoSchedule"), [100, 50, 0], id="effect matters"),
        pytest.param(tolerating(operator="Exists"), [100, 100, 100], id="tolerates everything"),
    ],
)
def test_score(pod: PodBuilder, scores: list[int]) -> None:
    """The fewer PreferNoSchedule taints a pod has to put up with, the better: nodes with none, one and two."""
    none = make_node("none").taint("c", effect="NoSchedule")
    one = make_node("one").taint("a", effect="PreferNoSchedule")
    two = make_node("two").taint("a", effect="PreferNoSchedule").taint("b", effect="PreferNoSchedule")

    assert [*score_nodes(TaintToleration(), make_snapshot(none, one, two), pod.obj()).values()] == scores
