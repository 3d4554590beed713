"""What the plugin decides. `reprieve test` runs this, and so does pytest."""

import random

import pytest
from my_policy import MyPolicy

from reprieve.testing import check_filter, make_node, make_pod, make_snapshot, refusals, score_nodes

FAST, SLOW = make_node("fast").label({"disk": "ssd"}).obj(), make_node("slow").label({"disk": "hdd"}).obj()


@pytest.mark.parametrize(
    ("tier", "refused"),
    [
        pytest.param("front", {"slow": "node(s) had no SSD for the front tier"}, id="the front tier needs an SSD"),
        pytest.param("back", {}, id="others do not"),
    ],
)
def test_who_is_refused_where(tier, refused):
    pod = make_pod("web").label({"tier": tier}).obj()

    assert refusals(MyPolicy(), make_snapshot(FAST, SLOW), pod) == refused


def test_a_node_with_fewer_pods_scores_higher():
    snapshot = make_snapshot(FAST, SLOW, pods=[make_pod("other").node("slow").obj()])

    assert score_nodes(MyPolicy(), snapshot, make_pod("web").obj()) == {"fast": 100, "slow": 90}


@pytest.mark.parametrize("seed", range(20))
def test_plugin_keeps_the_laws_of_filters(seed):
    """
    What it says of a node with pods added or removed is what it says once they really came or went. Preemption relies
    on it.
    """
    pods = [make_pod(f"pod-{number}").node(name).obj() for number, name in enumerate(("fast", "slow", "slow"))]
    pod, arrivals = make_pod("web").label({"tier": "front"}).obj(), [make_pod("arrival").obj()]

    check_filter(MyPolicy(), make_snapshot(FAST, SLOW, pods=pods), pod, random.Random(seed), arrivals=arrivals)
