"""NodePorts: keeps pods with the same host port on different nodes."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, final

from extender.engine import framework as fwk
from extender.engine.framework.interface import listed, with_containers
from extender.engine.snapshot.pod_attributes import ANY_ADDRESS, HostPort, host_ports
from extender.engine.snapshot.symbols import HostPortIndex
from extender.values import limits
from extender.values.objects.decoding import replaced
from extender.values.objects.pod import Container

REASON: Final = "node(s) didn't have free ports for the requested pod ports"

_CONFLICTS: Final = fwk.StateKey[frozenset[HostPort]]("PreFilterNodePorts")


@final
class NodePorts(fwk.SignPlugin, fwk.PreFilterPlugin, fwk.FilterPlugin, fwk.AdvicePlugin):
    """Refuses nodes on which another pod uses a host port of this pod. Conflicts between ports of the pod itself are
    not checked.

    Upstream: framework/plugins/nodeports/node_ports.go; framework/types.go, HostPortInfo.
    """

    looks_only_at_node = True

    def events_to_register(self) -> Sequence[fwk.ClusterEventWithHint]:
        """Registers for deletions of pods and new nodes. The ports of a pod never change."""
        return [
            fwk.on(fwk.EventResource.POD, fwk.ActionType.DELETE, _after_pod_deletion),
            fwk.on(fwk.EventResource.NODE, fwk.ActionType.ADD),
        ]

    def sign_pod(self, pod: fwk.Pod) -> tuple[HostPort, ...]:
        return host_ports(pod)

    def pre_filter(self, state: fwk.CycleState, pod: fwk.Pod, snapshot: fwk.Snapshot) -> fwk.PreFilterResult:
        """Skips pods without host ports."""
        ports = host_ports(pod)
        if not ports:
            return fwk.PreFilterResult(fwk.SKIP_EQUAL_PODS)
        port_index = snapshot.tallies.index(fwk.Attribute.HOST_PORTS, HostPortIndex)
        state.write(
            _CONFLICTS,
            frozenset(used for port in ports for used in port_index.like(port) if _collide(port[0], used[0])),
        )
        return fwk.PreFilterResult(fwk.SUCCESS)

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        return fwk.reject(rows.uses_any_port(state.read(_CONFLICTS)), REASON)

    def suggest(self, pod: fwk.Pod, rows: fwk.Rows) -> Iterator[fwk.Suggestion]:
        """The pod without each of its host ports, then without all of them."""
        ports = list(dict.fromkeys(host_ports(pod)))
        for port in ports[: limits.SUGGESTED_ONE_BY_ONE]:
            yield _without(pod, [port])
        if len(ports) > 1:
            yield _without(pod, ports)

    def suggest_for_node(self, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Suggestion | None:
        """The pod without any host port."""
        ports = list(dict.fromkeys(host_ports(pod)))
        return _without(pod, ports) if ports else None


def conflicting_ports(requested: Sequence[HostPort], used: Iterable[HostPort]) -> frozenset[HostPort]:
    """Returns the used ports that conflict with a requested one: protocol and number are equal, and the addresses are
    equal or one of them is any address.

    Upstream: framework/types.go, HostPortInfo.CheckConflict.
    """
    addresses: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
    for address, protocol, number in requested:
        addresses[protocol, number].add(address)
    return frozenset(
        port for port in used if any(_collide(address, port[0]) for address in addresses.get(port[1:], ()))
    )


def _collide(address: str, used_address: str) -> bool:
    return address == used_address or ANY_ADDRESS in (address, used_address)


def _without(pod: fwk.Pod, ports: Sequence[HostPort]) -> fwk.Suggestion:
    text = f"free or drop the {listed('host port', list(map(port_in_words, ports)))}"
    return fwk.Suggestion("ports", text, without_host_ports(pod, ports))


def port_in_words(port: HostPort) -> str:
    """Returns 80/TCP, or 10.0.0.1:80/TCP for one address."""
    address, protocol, number = port
    return f"{number}/{protocol}" if address == ANY_ADDRESS else f"{address}:{number}/{protocol}"


def without_host_ports(pod: fwk.Pod, ports: Iterable[HostPort]) -> fwk.Pod:
    removed = set(ports)

    def freed(container: Container) -> Container:
        remaining = [
            port
            for port in container.ports
            if (port.host_ip or ANY_ADDRESS, port.protocol or "TCP", port.host_port) not in removed
        ]
        return replaced(container, ports=remaining)

    return with_containers(pod, freed)


def _after_pod_deletion(pod: fwk.Pod, old: fwk.Pod, new: None) -> fwk.QueueingHint:
    if not old.spec.node_name and not old.status.nominated_node_name:
        return fwk.QueueingHint.QUEUE_SKIP
    return fwk.queue_if(bool(conflicting_ports(host_ports(pod), host_ports(old))))
