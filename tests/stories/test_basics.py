"""What every cluster relies on. Upstream: test/integration/scheduler, TestHostPorts; test/e2e/scheduling/predicates.go."""

import pytest

from extender.rules.api_resources import NODES, Object
from tests.kit.objects import node, pod
from tests.kit.pod_specs import port
from tests.kit.scene import a_scene


@pytest.mark.parametrize(
    ("first", "second", "is_free"),
    [
        pytest.param(port(8080), port(8080), False, id="the same"),
        pytest.param(port(8080), port(8081), True, id="another port"),
        pytest.param(port(8080), port(8080, "UDP"), True, id="another protocol"),
        pytest.param(port(8080, "UDP"), port(8080, "SCTP"), True, id="two more protocols"),
        pytest.param(port(8080, "SCTP"), port(8080, "SCTP"), False, id="the same, of a rarer protocol"),
        pytest.param(port(8080, ip="127.0.0.1"), port(8080, ip="127.0.0.1"), False, id="the same address"),
        pytest.param(port(8080, ip="127.0.0.1"), port(8080, ip="127.0.0.2"), True, id="another address"),
        pytest.param(port(8080, ip="0.0.0.0"), port(8080, ip="127.0.0.1"), False, id="all addresses first"),
        pytest.param(port(8080, ip="127.0.0.1"), port(8080, ip="0.0.0.0"), False, id="all addresses second"),
        pytest.param(port(8080, ip="127.0.0.1"), port(8080), False, id="no address means all"),
        pytest.param(port(8080), port(8080, ip="127.0.0.1"), False, id="no address first"),
        pytest.param(port(8080, ip="0.0.0.0"), port(8080), False, id="both mean all"),
        pytest.param(
            port(8080, ip="0.0.0.0"), port(8080, "UDP", "0.0.0.0"), True, id="all addresses, another protocol"
        ),
        pytest.param(port(8080, ip="127.0.0.1"), port(8081, ip="0.0.0.0"), True, id="all addresses, another port"),
        pytest.param(
            port(8080, "UDP", "127.0.0.1"), port(8080, "UDP", "0.0.0.0"), False, id="all addresses, the same protocol"
        ),
    ],
)
@pytest.mark.anywhere
async def test_two_pods_share_a_node_unless_their_ports_do_not(first: Object, second: Object, is_free: bool) -> None:
    """TestHostPorts."""
    async with a_scene(node("n")) as scene:
        await scene.has(pod("first", "100m", container=first), pod("second", "100m", container=second), within=3)

        assert scene.node_of("first") == "n"
        assert (scene.node_of("second") == "n") is is_free
        if not is_free:
            assert scene.refused_by("second") == {"NodePorts"}


@pytest.mark.over_a_socket
async def test_a_cordoned_node_gets_no_pods_until_it_is_opened() -> None:
    """TestUnschedulableNodes."""
    async with a_scene(node("n", unschedulable=True)) as scene:
        await scene.has(pod("p"))
        assert scene.node_of("p") == ""

        await scene.changes("n", lambda obj: obj["spec"].pop("unschedulable"), resource=NODES)

        assert scene.node_of("p") == "n"


@pytest.mark.anywhere
async def test_resource_limits_are_respected_to_the_last_millicore() -> None:
    """e2e: validates resource limits of pods that are allowed to run."""
    async with a_scene(node("n", "1"), node("m", "1")) as scene:
        await scene.has(*(pod(f"filler-{number}", "700m") for number in range(2)))
        await scene.has(pod("exact", "300m"), pod("another", "300m"), pod("too-much", "1m"))

        assert scene.node_of("exact") != "" != scene.node_of("another")
        assert scene.node_of("too-much") == ""


@pytest.mark.over_a_socket
async def test_pods_go_where_their_node_selector_says() -> None:
    """e2e: validates that NodeSelector is respected if matching, and if not."""
    async with a_scene(node("n"), node("chosen", labels={"disk": "ssd"})) as scene:
        await scene.has(
            pod("matching", nodeSelector={"disk": "ssd"}), pod("not-matching", nodeSelector={"disk": "tape"})
        )

        assert scene.node_of("matching") == "chosen"
        assert scene.node_of("not-matching") == ""
