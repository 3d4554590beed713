"""NodePorts: two pods of a node cannot listen on the same host port."""

from collections.abc import Sequence
from typing import Final, final

from extender import framework as fwk
from extender.snapshot.pod_attributes import ANY_ADDRESS, HostPort, PodSymbol, host_ports

REASON: Final = "node(s) didn't have free ports for the requested pod ports"

_WANTED: Final = fwk.StateKey[tuple[HostPort, ...]]("PreFilterNodePorts")


@final
class NodePorts(fwk.PreFilterPlugin, fwk.FilterPlugin):
    """Refuses nodes on which a pod holds a host port that this pod wants. What one pod wants twice is not looked at.

    Upstream: framework/plugins/nodeports/node_ports.go; framework/types.go, HostPortInfo (v1.36.2).
    """

    def pre_filter(self, state: fwk.CycleState, pod: fwk.Pod, snapshot: fwk.Snapshot) -> fwk.PreFilterResult:
        """Skip for pods without host ports."""
        wanted = host_ports(pod)
        if not wanted:
            return fwk.PreFilterResult(fwk.SKIP)
        state.write(_WANTED, wanted)
        return fwk.PreFilterResult(fwk.SUCCESS)

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        """Refused as long as one pod of the row is in the way."""
        wanted = state.read(_WANTED)

        def is_in_the_way(used: PodSymbol) -> int:
            return isinstance(used, tuple) and conflict(wanted, used)

        in_the_way = rows.tally(fwk.Attribute.HOST_PORTS, (self.name, wanted), is_in_the_way)
        return fwk.reject(in_the_way > 0, REASON)


def conflict(wanted: Sequence[HostPort], used: Sequence[HostPort]) -> bool:
    """True if a wanted port is in use: same protocol, same number, and the same address or any address on either side.

    Upstream: framework/types.go, HostPortInfo.CheckConflict.
    """
    return any(
        protocol == other_protocol and port == other_port and (address == other or ANY_ADDRESS in (address, other))
        for address, protocol, port in wanted
        for other, other_protocol, other_port in used
    )
