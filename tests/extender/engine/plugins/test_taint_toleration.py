import pytest

from extender.engine.framework import SUCCESS, Status, unresolvable
from extender.engine.plugins.taints import TaintToleration
from extender.testing import NodeBuilder, PodBuilder, filter_nodes, make_node, make_pod, make_snapshot, score_nodes

UNTOLERATED = unresolvable("node(s) had untolerated taint(s)")


@pytest.mark.parametrize(
    ("node", "pod", "answer"),
    [
        pytest.param(make_node(), make_pod(), SUCCESS, id="no taint"),
        pytest.param(make_node().taint("gpu"), make_pod(), UNTOLERATED, id="NoSchedule"),
        pytest.param(make_node().taint("gpu", effect="NoExecute"), make_pod(), UNTOLERATED, id="NoExecute"),
        pytest.param(
            make_node().taint("gpu", effect="PreferNoSchedule"), make_pod(), SUCCESS, id="PreferNoSchedule is a wish"
        ),
        pytest.param(make_node().taint("gpu", "a"), make_pod().toleration("gpu", "a"), SUCCESS, id="equal value"),
        pytest.param(make_node().taint("gpu", "a"), make_pod().toleration("gpu", "b"), UNTOLERATED, id="other value"),
        pytest.param(
            make_node().taint("gpu", "a"), make_pod().toleration("gpu", operator="Exists"), SUCCESS, id="any value"
        ),
        pytest.param(
            make_node().taint("gpu", "a"), make_pod().toleration("", "a"), SUCCESS, id="no key compares values alone"
        ),
        pytest.param(
            make_node().taint("gpu", "a"),
            make_pod().toleration("gpu", "a", "NoExecute"),
            UNTOLERATED,
            id="other effect",
        ),
        pytest.param(
            make_node().taint("gpu").taint("fpga"), make_pod().toleration("gpu"), UNTOLERATED, id="one of two"
        ),
        pytest.param(
            make_node().taint("n", "5"),
            make_pod().toleration("n", "9", operator="Gt"),
            UNTOLERATED,
            id="Gt is switched off",
        ),
    ],
)
def test_filter(node: NodeBuilder, pod: PodBuilder, answer: Status) -> None:
    """A pod runs on a node when it tolerates all of its NoSchedule and NoExecute taints."""
    assert filter_nodes(TaintToleration(), make_snapshot(node), pod.obj()) == {"n": answer}


@pytest.mark.parametrize(
    ("pod", "scores"),
    [
        pytest.param(make_pod(), {"none": 100, "one": 50, "two": 0}, id="every taint counts"),
        pytest.param(
            make_pod().toleration("a", effect="PreferNoSchedule"),
            {"none": 100, "one": 100, "two": 0},
            id="but tolerated ones",
        ),
        pytest.param(
            make_pod().toleration("a", effect="NoSchedule"), {"none": 100, "one": 50, "two": 0}, id="effect matters"
        ),
        pytest.param(
            make_pod().toleration(operator="Exists"), {"none": 100, "one": 100, "two": 100}, id="tolerates everything"
        ),
    ],
)
def test_score(pod: PodBuilder, scores: dict[str, int]) -> None:
    """The fewer PreferNoSchedule taints a pod has to put up with, the better."""
    none = make_node("none").taint("c", effect="NoSchedule")
    one = make_node("one").taint("a", effect="PreferNoSchedule")
    two = make_node("two").taint("a", effect="PreferNoSchedule").taint("b", effect="PreferNoSchedule")

    assert score_nodes(TaintToleration(), make_snapshot(none, one, two), pod.obj()) == scores
