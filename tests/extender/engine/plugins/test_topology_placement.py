import numpy as np
import pytest

from extender.engine import framework as fwk
from extender.engine.plugins.node_resources.fit import NodeResourcesFit
from extender.engine.plugins.pod_groups import PodGroupPodsCount, TopologyPlacementGenerator
from extender.engine.snapshot import Snapshot
from extender.testing import PodBuilder, make_node, make_pod, make_pod_group, make_snapshot
from tests.kit.tables import cases

ZONE = "zone"
NODES = (
    make_node("a").label(zone="z1").capacity(cpu="4", memory="4Gi"),
    make_node("b").label(zone="z2").capacity(cpu="2", memory="4Gi"),
    make_node("c").capacity(cpu="4", memory="4Gi"),
    make_node("d").label(zone="z1").capacity(cpu="4", memory="4Gi"),
)


def everywhere(snapshot: Snapshot) -> fwk.GroupPlacement:
    return fwk.GroupPlacement("", snapshot.all_nodes)


def placements(*scheduled: PodBuilder, key: str = ZONE) -> dict[str, set[str]]:
    snapshot = make_snapshot(*NODES)
    result = TopologyPlacementGenerator().generate_placements(
        make_pod_group(topology_key=key), [pod.obj() for pod in scheduled], everywhere(snapshot), snapshot
    )
    return {placement.name: {snapshot.nodes.objects[place].name for place in placement.nodes} for placement in result}


def test_each_value_of_the_label_is_a_placement() -> None:
    """Nodes without it are in none."""
    assert placements() == {"z1": {"a", "d"}, "z2": {"b"}}


def test_a_group_without_a_constraint_may_go_everywhere() -> None:
    assert placements(key="") == {"": {"a", "b", "c", "d"}}


def test_members_that_have_a_node_leave_the_placement_that_they_are_in() -> None:
    assert placements(make_pod("m").node("d"), make_pod("m2").node("a")) == {"z1": {"a", "d"}}


@cases(
    "nodes, why",
    ("in two domains", ["a", "b"], "more than 1 domain found for pod group: z1, z2"),
    ("in none", ["c"], "no topology domain found for pod default/m0"),
)
def test_members_in_no_domain_or_in_several_leave_no_placement(nodes: list[str], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        placements(*(make_pod(f"m{place}").node(node) for place, node in enumerate(nodes)))


def test_the_placement_with_most_pods_of_the_group_gets_100() -> None:
    snapshot = make_snapshot(*NODES)
    plugin, pods = PodGroupPodsCount(), tuple(make_pod(f"m{number}").obj() for number in range(3))
    scores = [
        plugin.score_placement(make_pod_group(), fwk.PlacedGroup(everywhere(snapshot), pods[:count], 1), snapshot)
        for count in (1, 2, 3)
    ]

    assert scores == [2, 3, 4]
    assert plugin.normalize_placement_scores(np.array(scores)).tolist() == [50, 75, 100]


def test_placements_without_any_pod_cannot_be_ranked() -> None:
    with pytest.raises(ValueError, match="no pods from pod group are assigned to any of the candidate placements"):
        PodGroupPodsCount().normalize_placement_scores(np.array([0, 0]))


def test_a_placement_that_the_group_fills_is_preferred_to_one_with_room() -> None:
    """One pod of 2 cpu: the node with 2 is full of it, the two with 4 each are a quarter full. Neither has much of its
    memory taken.
    """
    snapshot = make_snapshot(*NODES)
    plugin, pod = NodeResourcesFit(), make_pod("m").req(cpu="2", memory="1Gi").obj()

    def score(*places: int) -> int:
        placed = fwk.PlacedGroup(fwk.GroupPlacement("", np.array(places)), (pod,), 0)
        return plugin.score_placement(make_pod_group(), placed, snapshot)

    assert score(1) == (100 + 25) // 2
    assert score(0, 3) == (25 + 12) // 2
