"""What extenders are sent: Go's field names, nothing that is empty, and nodes written once."""

import json

import pytest

from extender.testing import make_node, make_pod
from extender.values.objects.decoding import decode, replaced
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod
from extender.values.protocol.node_lists import EncodedNodes
from extender.values.protocol.verb_arguments import binding_args, extender_args, preemption_args
from extender.values.protocol.wire_types import Victims

POD = {
    "metadata": {"name": "p", "namespace": "web", "uid": "u", "labels": {"app": "x"}, "annotations": {"a": "b"}},
    "spec": {
        "containers": [{"name": "c", "resources": {"limits": {"example.com/gpu": "0"}}, "ports": [{"hostPort": 80}]}],
        "priority": 0,
        "tolerations": [{"operator": "Exists"}],
    },
    "status": {"nominatedNodeName": "n"},
}


def test_nodes_go_by_name_or_in_full() -> None:
    nodes = [make_node("a").obj(), make_node("b").obj()]
    pod = decode(Pod, json.dumps(POD).encode())

    assert json.loads(extender_args(pod, nodes, None)) == {"Pod": POD, "Nodes": None, "NodeNames": ["a", "b"]}
    in_full = json.loads(extender_args(pod, nodes, EncodedNodes()))
    assert (in_full["Pod"], in_full["NodeNames"], in_full["Nodes"]["metadata"]) == (POD, None, {})
    assert [decode(Node, json.dumps(item).encode()) for item in in_full["Nodes"]["items"]] == nodes


def test_priority_of_zero_is_written_and_a_missing_one_is_not() -> None:
    """A priority of 0 is there, one that nobody gave is not."""
    assert "priority" not in json.loads(extender_args(make_pod("p").obj(), [], None))["Pod"]["spec"]
    assert json.loads(extender_args(make_pod("p").priority(0).obj(), [], None))["Pod"]["spec"]["priority"] == 0


def test_a_node_that_has_not_changed_is_not_written_again() -> None:
    bodies = EncodedNodes()
    a, b = make_node("a").obj(), make_node("b").obj()
    first = bodies.of([a, b])

    second = bodies.of([a, replaced(b, spec=replaced(b.spec, unschedulable=True))])

    assert second[0] is first[0]
    assert json.loads(bytes(second[1]))["spec"] == {"unschedulable": True}


def test_encoded_nodes_are_dropped_once_many_newer_ones_were_encoded() -> None:
    bodies = EncodedNodes()
    old = make_node("old").obj()
    first = bodies.of([old])
    bodies.of([make_node(f"n{number}").obj() for number in range(1003)])

    later = bodies.of([old])

    assert later[0] is not first[0]


@pytest.mark.parametrize("by_uid", [True, False])
def test_victims_go_by_uid_or_in_full(by_uid: bool) -> None:
    victim = decode(Pod, json.dumps(POD).encode())

    arguments = json.loads(preemption_args(victim, {"n": Victims((victim,), 2)}, by_uid=by_uid))

    assert arguments == {
        "Pod": POD,
        "NodeNameToVictims": None if by_uid else {"n": {"Pods": [POD], "NumPDBViolations": 2}},
        "NodeNameToMetaVictims": {"n": {"Pods": [{"UID": "u"}], "NumPDBViolations": 2}} if by_uid else None,
    }


def test_no_victims_are_an_empty_list_by_uid_and_null_in_full() -> None:
    """As Go writes them."""
    by_uid, in_full = (
        json.loads(preemption_args(make_pod("p").obj(), {"n": Victims(None, 0)}, by_uid=form)) for form in (True, False)
    )

    assert by_uid["NodeNameToMetaVictims"] == {"n": {"Pods": [], "NumPDBViolations": 0}}
    assert in_full["NodeNameToVictims"] == {"n": {"Pods": None, "NumPDBViolations": 0}}


def test_a_binding_names_the_pod_by_all_it_has() -> None:
    pod = decode(Pod, json.dumps(POD).encode())

    assert json.loads(binding_args(pod, "n")) == {"PodName": "p", "PodNamespace": "web", "PodUID": "u", "Node": "n"}
