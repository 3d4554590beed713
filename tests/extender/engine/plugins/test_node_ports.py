import random

import pytest

from extender.engine.framework import SKIP, SUCCESS, CycleState, Rows, Status, unschedulable
from extender.engine.plugins.node_ports import NodePorts
from extender.testing import PodBuilder, check_filter, filter_nodes, make_node, make_pod, make_snapshot
from tests.extender.moves import moves, slot_of
from tests.kit.tables import cases

TAKEN = unschedulable("node(s) didn't have free ports for the requested pod ports")
ANY = "0.0.0.0"
wanting, other = make_pod().host_port, make_pod("r").host_port


@cases(
    "pod, running, answer",
    ("wants none", make_pod(), other(80), SKIP),
    ("all are free", wanting(80), make_pod("r"), SUCCESS),
    ("another port", wanting(80), other(81), SUCCESS),
    ("the same port", wanting(80), other(80), TAKEN),
    ("one of two", wanting(80).host_port(81), other(81), TAKEN),
    ("another protocol", wanting(80, "UDP"), other(80, "TCP"), SUCCESS),
    ("no protocol is TCP", wanting(80, ""), other(80, "TCP"), TAKEN),
    ("another address", wanting(80, ip="10.0.0.1"), other(80, ip="10.0.0.2"), SUCCESS),
    ("the same address", wanting(80, ip="10.0.0.1"), other(80, ip="10.0.0.1"), TAKEN),
    ("wants every address", wanting(80, ip=ANY), other(80, ip="10.0.0.2"), TAKEN),
    ("every address is taken", wanting(80, ip="10.0.0.1"), other(80), TAKEN),
    ("its own ports are not compared", wanting(80).host_port(80), make_pod("r"), SUCCESS),
)
def test_conflicts(pod: PodBuilder, running: PodBuilder, answer: Status) -> None:
    """A host port is taken if the same number and protocol are in use on the same address, or on every address."""
    snapshot = make_snapshot(make_node("n"), pods=[running.node("n")])

    assert filter_nodes(NodePorts(), snapshot, pod.obj()) == {"n": answer}


@pytest.mark.parametrize("number", [1, 30])
@pytest.mark.parametrize("seed", range(20))
def test_hypotheses_about_pods_with_many_ports(number: int, seed: int) -> None:
    """Pods with many host ports free and take them as pods with one do."""
    chance = random.Random(seed)

    def pod_with_ports(name: str) -> PodBuilder:
        pod = make_pod(name)
        for port in chance.sample(range(1, 40), number):
            pod = pod.host_port(port, ip=chance.choice(("", "10.0.0.1", "10.0.0.2")))
        return pod

    nodes = [make_node(f"n{place}") for place in range(3)]
    running = [pod_with_ports(f"r{place}").node(f"n{chance.randrange(3)}") for place in range(4)]
    arrivals = [pod_with_ports(f"a{place}").obj() for place in range(2)]

    check_filter(NodePorts(), make_snapshot(*nodes, pods=running), pod_with_ports("p").obj(), chance, arrivals=arrivals)


@pytest.mark.parametrize("running", [["r"], ["r", "also"]], ids=["the only one", "one of two that somehow share it"])
def test_a_pod_that_leaves_frees_its_port(running: list[str]) -> None:
    """Preemption can help. A port is used or free, as upstream has it: how many pods hold it is not counted."""
    snapshot = make_snapshot(make_node("n"), pods=[make_pod(name).host_port(80).node("n") for name in running])
    pod, state, plugin = make_pod().host_port(80).obj(), CycleState(), NodePorts()
    plugin.pre_filter(state, pod, snapshot)
    departure = moves((0, slot_of(snapshot, "r"), -1))

    verdicts = plugin.filter(state, pod, Rows.of(snapshot).changed(departure))

    assert verdicts.all_ok
