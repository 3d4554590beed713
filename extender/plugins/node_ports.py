"""NodePorts: two pods of a node cannot listen on the same host port."""

from collections import defaultdict
from collections.abc import Iterable, Sequence, Set
from typing import Final, final

import numpy as np

from extender import framework as fwk
from extender.snapshot.axes import Mask
from extender.snapshot.pod_attributes import ANY_ADDRESS, HostPort, host_ports

REASON: Final = "node(s) didn't have free ports for the requested pod ports"

_IN_THE_WAY: Final = fwk.StateKey[frozenset[HostPort]]("PreFilterNodePorts")


@final
class NodePorts(fwk.PreFilterPlugin, fwk.FilterPlugin):
    """Refuses nodes on which a pod holds a host port that this pod wants. What one pod wants twice is not looked at.

    Upstream: framework/plugins/nodeports/node_ports.go; framework/types.go, HostPortInfo (v1.36.2).
    """

    looks_at_room = True
    looks_only_at_node = True

    def events_to_register(self) -> Sequence[fwk.ClusterEventWithHint]:
        """A pod that held one of the ports is gone, or a node came. The ports of a pod never change."""
        return [
            fwk.on(fwk.EventResource.POD, fwk.ActionType.DELETE, _after_pod_deletion),
            fwk.on(fwk.EventResource.NODE, fwk.ActionType.ADD),
        ]

    def pre_filter(self, state: fwk.CycleState, pod: fwk.Pod, snapshot: fwk.Snapshot) -> fwk.PreFilterResult:
        """Skip for pods without host ports."""
        wanted = host_ports(pod)
        if not wanted:
            return fwk.PreFilterResult(fwk.SKIP)
        known = {port for used in snapshot.tallies.symbols[fwk.Attribute.HOST_PORTS] if isinstance(used, tuple) for port in used}
        state.write(_IN_THE_WAY, in_the_way(wanted, known))
        return fwk.PreFilterResult(fwk.SUCCESS)

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        """Refused as long as a port of the row is in the way."""
        refused: Mask = np.zeros(len(rows), np.bool_)
        for port in state.read(_IN_THE_WAY):
            refused |= rows.uses_port(port)
        return fwk.reject(refused, REASON)


def in_the_way(wanted: Sequence[HostPort], used: Iterable[HostPort]) -> frozenset[HostPort]:
    """The used ports that keep a wanted one from being had: same protocol and number, and the same address or any address on either side.

    Upstream: framework/types.go, HostPortInfo.CheckConflict.
    """
    addresses: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
    for address, protocol, number in wanted:
        addresses[protocol, number].add(address)
    return frozenset(port for port in used if port[1:] in addresses and _collide(addresses[port[1:]], port[0]))


def _collide(wanted: Set[str], used: str) -> bool:
    """Whether one of the wanted addresses cannot be had beside the used one."""
    return used == ANY_ADDRESS or used in wanted or ANY_ADDRESS in wanted


def _after_pod_deletion(pod: fwk.Pod, old: fwk.Pod, new: None) -> fwk.QueueingHint:
    if not old.spec.node_name and not old.status.nominated_node_name:
        return fwk.QueueingHint.QUEUE_SKIP
    return fwk.queue_if(bool(in_the_way(host_ports(pod), host_ports(old))))
