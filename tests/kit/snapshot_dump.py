"""A snapshot in the form of `NodeDump`, to be compared with the cache that it was taken of."""

from collections import Counter, defaultdict

from extender.engine.cache.dump import NodeDump, by_name, node_dump
from extender.engine.snapshot import Snapshot
from extender.values.objects.resource_amounts import allocatable


def dump_snapshot(snapshot: Snapshot) -> dict[str, NodeDump]:
    """Returns every node of a snapshot, in visiting order, read back from its columns."""
    names = list(snapshot.resources)
    unoffered: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for name, amount_by_slot in snapshot.pods.unoffered.items():
        for slot, amount in amount_by_slot.items():
            unoffered[int(snapshot.pods.node[slot])][name] += amount
    dumps: dict[str, NodeDump] = {}
    for place, node in enumerate(snapshot.nodes.objects):
        pods = [snapshot.pod_at(slot) for slot in snapshot.pods.on_node[place]]
        requested = dict(zip(names, snapshot.nodes.requested[place].tolist(), strict=False)) | unoffered[place]
        dumps[node.name] = node_dump(
            has_node=True,
            requested={name: amount for name, amount in requested.items() if amount},
            non_zero=(
                int(snapshot.nodes.non_zero_requested[place, 0]),
                int(snapshot.nodes.non_zero_requested[place, 1]),
            ),
            allocatable={} if place in snapshot.nodes.invalid else by_name(allocatable(node)[0]),
            allowed_pods=int(snapshot.nodes.allowed_pods[place]),
            pods=pods,
            used_ports=snapshot.nodes.used_ports[place],
            images=snapshot.nodes.images_on[place],
        )
    return dumps
