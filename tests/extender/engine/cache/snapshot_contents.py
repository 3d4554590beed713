"""All that readers see of a snapshot, as plain values by name, to compare two snapshots."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from extender.engine.snapshot import Attribute, Rows, Snapshot
from extender.engine.snapshot.pod_attributes import HostPort, LabelClass, PodSymbol, VolumeClass
from extender.values.objects.pod import Pod

LABEL_KEYS = ("disk", "topology.kubernetes.io/zone", "kubernetes.io/hostname")
IMAGES = ("img-a", "img-b")
RESOURCES = ("cpu", "memory", *(f"example.com/{name}" for name in ("gpu", "fpga", "tpu")))
QUESTIONS = {
    "web": (Attribute.LABELS, lambda symbol: int(isinstance(symbol, LabelClass) and ("app", "web") in symbol.labels)),
    "terminating": (Attribute.LABELS, lambda symbol: 3 * int(isinstance(symbol, LabelClass) and symbol.is_terminating)),
    "ports": (Attribute.HOST_PORTS, lambda symbol: len(symbol) if isinstance(symbol, tuple) else 0),
    "affinity": (Attribute.AFFINITY, lambda symbol: 1),
    "volumes": (Attribute.VOLUMES, lambda symbol: len(symbol.claims) if isinstance(symbol, VolumeClass) else 0),
}

NodeSeen = dict[str, Any]


def view(snapshot: Snapshot, ports: Iterable[HostPort] = ()) -> dict[str, NodeSeen]:
    """Every node by name, with all that the columns say of it and of its pods. It asks for columns and tallies as a
    plugin would.
    """
    nodes, pods, rows = snapshot.nodes, snapshot.pods, Rows.of(snapshot)
    unoffered = {name: rows.requested_of(name) for name in pods.unoffered}
    per_node = {
        name: snapshot.tally(attribute, name, weight).per_node for name, (attribute, weight) in QUESTIONS.items()
    }
    result: dict[str, NodeSeen] = {}
    for place, node in enumerate(nodes.objects):
        assert nodes.index[node.name] == place
        result[node.name] = {
            "node": node,
            "allocatable": {name: int(rows.allocatable_of(name)[place]) for name in RESOURCES},
            "requested": {name: int(rows.requested_of(name)[place]) for name in RESOURCES},
            "requested by pods": amounts(snapshot, nodes.requested[place])
            | {name: int(sums[place]) for name, sums in unoffered.items() if sums[place]},
            "non zero": nodes.non_zero_requested[place].tolist(),
            "room": (int(nodes.allowed_pods[place]), int(nodes.pod_count[place])),
            "cordoned": bool(nodes.unschedulable[place]),
            "taints": nodes.taints_of(int(nodes.taint_set[place])),
            "invalid": nodes.invalid.get(place),
            "labels": {key: label_at(snapshot, key, place) for key in LABEL_KEYS},
            "ports": {port for port in ports if nodes.uses_port(port)[place]},
            "all ports": nodes.used_ports[place],
            "images": {
                name: (int(nodes.image(name).size[place]), int(nodes.image(name).num_nodes[place])) for name in IMAGES
            },
            "all images": dict(nodes.images_on[place]),
            "tallies": {name: int(sums[place]) for name, sums in per_node.items()},
            "pods": [pod_seen(snapshot, slot) for slot in pods.on_node[place]],
        }
    return result


def pod_seen(snapshot: Snapshot, slot: int) -> dict[str, Any]:
    """All that the columns say of the pod in a slot."""
    pods, pod = snapshot.pods, snapshot.pod_at(slot)
    return {
        "pod": pod,
        "requests": amounts(snapshot, pods.requests[slot])
        | {name: by_slot[slot] for name, by_slot in pods.unoffered.items() if by_slot.get(slot)},
        "non zero": pods.non_zero_requests[slot].tolist(),
        "priority": int(pods.priority[slot]),
        "started": int(pods.start_time[slot]),
        "symbols": [symbol_at(snapshot, attribute, slot) for attribute in Attribute],
    }


def slots_agree(snapshot: Snapshot) -> set[str]:
    """The UIDs of the pods on nodes, once it is certain that all columns agree on who is where: each pod on one node,
    with a rank of its own there.
    """
    pods = snapshot.pods
    uids: set[str] = set()
    for place, slots in enumerate(pods.on_node):
        by_uid = sorted(slots, key=lambda slot: snapshot.pod_at(slot).uid)
        assert pods.uid_ranks(np.array(by_uid, np.intp)).tolist() == list(range(len(slots)))
        for slot in slots:
            uid = snapshot.pod_at(slot).uid
            assert uid not in uids
            assert (pods.node[slot], pods.slots[uid]) == (place, slot)
            uids.add(uid)
    assert int((pods.node >= 0).sum()) == len(uids)
    return uids


def without_image_counts(nodes: dict[str, NodeSeen]) -> dict[str, NodeSeen]:
    """The same, but for the number of nodes that have an image, which is as of the node's last change."""
    return {
        name: {
            **node,
            "images": {image: size for image, (size, _) in node["images"].items()},
            "all images": {image: size for image, (size, _) in node["all images"].items()},
        }
        for name, node in nodes.items()
    }


def amounts(snapshot: Snapshot, per_resource: Iterable[Any]) -> dict[str, int]:
    names = list(snapshot.resources)
    return {names[place]: int(amount) for place, amount in enumerate(per_resource) if amount}


def label_at(snapshot: Snapshot, key: str, place: int) -> str | None:
    column = snapshot.nodes.label(key)
    code = int(column.codes[place])
    value = None if code < 0 else column.values[code]
    assert value == snapshot.nodes.objects[place].labels.get(key)
    return value


def symbol_at(snapshot: Snapshot, attribute: Attribute, slot: int) -> PodSymbol | None:
    code = int(snapshot.pods.codes[attribute, slot])
    return None if code < 0 else snapshot.tallies.symbols[attribute][code]


def on_node(snapshot: Snapshot, name: str) -> list[Pod]:
    return [snapshot.pod_at(slot) for slot in snapshot.pods.on_node[snapshot.nodes.index[name]]]
