"""What a question will take: its memory, estimated from what was sent before anything is built of it.

The estimates are above what was measured for large scenarios of each form, and a test keeps them there.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, final

from extender.values.golang.json import TooLargeError

_BYTES_A_COMMA: Final = 450
"""Memory of the values before a comma, when a body is decoded."""
_BYTES_A_VALUE: Final = 250
"""Memory of one value: decoded, and as a part of a typed object."""
_BYTES_A_NODE: Final = 4_000
"""Memory of a node beyond its values: its place in the columns, and in the answer."""
_BYTES_A_POD: Final = 5_000
_BYTES_A_TERM: Final = 1_000
"""Memory of an affinity term or a spread constraint, in the index of those that may match a pod."""
_BYTES_OF_A_CYCLE: Final = 40
"""Memory for each node of what is kept of a pod with claims, until it is known to stay where it is."""
_BYTES_OF_A_QUESTION: Final = 16
"""Memory for each node of a spread constraint, an affinity term, or a label or image that is looked up on all nodes;
half for a key.
"""
_QUESTIONS_KEPT: Final = 1_024
"""The tallies of pods that are kept at a time."""
_COPIED_FOR_ONE: Final = 8
"""The pods that are copied in the memory of a new one."""
_MOST_REPLICAS: Final = 5_000
"""Replicas that are counted: of more, none is made."""
_MIB: Final = 2**20


LARGE: Final = 2 * _MIB
"""The memory from which a question is worked on in a process of its own, which gives back all that it took."""
_LONG: Final = 2**20
"""The bytes from which a body is large, whatever is in it."""


def most_values(memory: int) -> int:
    """Returns with how many commas a body, once it is decoded, fits into this many bytes."""
    return memory // _BYTES_A_COMMA


def is_large(body: bytes) -> bool:
    """Returns whether the question in a body takes much memory as soon as it is decoded."""
    return len(body) > _LONG or body.count(b",") > most_values(LARGE)


@final
@dataclass(slots=True)
class Needs:
    """What a question is about, as far as memory goes; at first, about the cluster that it begins with."""

    nodes: int = 0
    pods: int = 0
    values: int = 0
    pods_with_claims: int = 0
    terms: int = 0
    """Affinity terms and spread constraints."""
    tallies: int = 0
    """Those of them that ask something about all nodes, each perhaps about other pods than the next."""
    look_ups: int = 0
    """Containers and expressions of node selectors: an image or a label that is looked up on all nodes."""
    keys: set[str] = field(default_factory=set)
    """Topology keys."""
    resources: set[str] = field(default_factory=set)
    """Resources that pods request."""
    offered: set[str] = field(default_factory=set)
    """Resources that nodes offer. Others have no column, no matter which pod requests them."""

    @property
    def bytes(self) -> int:
        """The memory in bytes, from above."""
        of_nodes = len(self.keys) // 2 + min(self.tallies, _QUESTIONS_KEPT) + min(self.look_ups, _QUESTIONS_KEPT)
        return (
            _BYTES_A_VALUE * self.values
            + _BYTES_A_NODE * self.nodes
            + _BYTES_A_POD * self.pods
            + _BYTES_A_TERM * self.terms
            + _BYTES_OF_A_QUESTION * self.nodes * of_nodes
            + _BYTES_OF_A_CYCLE * self.nodes * self.pods_with_claims
            # The columns of requests, which double when they grow.
            + 8 * len(self.resources & self.offered) * (3 * self.pods + 4 * self.nodes)
        )

    def check(self, limit: int) -> None:
        """Checks that the question takes no more than so many bytes.

        Raises:
            TooLargeError: it takes more; the message has the figures.
        """
        if self.bytes > limit:
            counts = {
                "nodes": self.nodes,
                "pods": self.pods,
                "pods with claims": self.pods_with_claims,
                "affinity terms and spread constraints": self.terms,
                "topology keys": len(self.keys),
                "resources": len(self.resources & self.offered),
                "values": self.values,
            }
            figures = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
            raise TooLargeError(
                f"the question would take about {-(-self.bytes // _MIB)} MiB of memory, and {limit // _MIB} MiB are "
                "allowed; "
                f"it is about {figures}"
            )

    def add_objects(self, objects: Iterable[Any]) -> None:
        """Counts Kubernetes objects; a List counts as its items."""
        for obj in objects:
            if not isinstance(obj, Mapping):
                continue
            kind = obj.get("kind")
            items = obj.get("items")
            if isinstance(kind, str) and kind.endswith("List") and isinstance(items, list):
                self.add_objects(items)
            elif kind == "Node":
                self.add_node(obj)
            else:
                self.add_pods(obj)

    def add_node(self, node: Any) -> None:
        self.nodes += 1
        self.walk(node)

    def add_pods(self, obj: Any) -> None:
        """Counts a pod, a workload with the pods that it makes, or another object."""
        spec = obj.get("spec") if isinstance(obj, Mapping) else None
        replicas = next(
            (number for each in ("replicas", "parallelism") if isinstance(number := _of(spec, each), int)), 1
        )
        times = min(max(replicas, 1), _MOST_REPLICAS)
        with_claims = self.walk(obj)
        self.pods += times
        self.pods_with_claims += times if with_claims else 0

    def walk(self, obj: Any) -> bool:
        """Counts what is in an object; returns whether a pod of it has claims."""
        waiting: list[Any] = [obj]
        with_claims = False
        while waiting:
            value = waiting.pop()
            self.values += 1
            if isinstance(value, list):
                waiting += value
                continue
            if not isinstance(value, Mapping):
                continue
            waiting += value.values()
            for name in _COUNTED.keys() & value.keys():
                found = value[name]
                match _COUNTED[name]:
                    case "keys" if isinstance(found, str):
                        self.keys.add(found)
                        self.terms += 1
                        self.tallies += 1
                    case "resources" if isinstance(found, Mapping):
                        self.resources.update(map(str, found))
                    case "offered" if isinstance(found, Mapping):
                        self.offered.update(map(str, found))
                    case "look ups" if isinstance(found, list):
                        self.look_ups += len(found)
                    case "claims" if found:
                        with_claims = True
        return with_claims


_COUNTED: Final[Mapping[str, str]] = {
    "topologyKey": "keys",
    "requests": "resources",
    "limits": "resources",
    "overhead": "resources",
    "allocatable": "offered",
    "capacity": "offered",
    "containers": "look ups",
    "initContainers": "look ups",
    "matchExpressions": "look ups",
    "matchFields": "look ups",
    "persistentVolumeClaim": "claims",
    "ephemeral": "claims",
    "resourceClaims": "claims",
    "volumeClaimTemplates": "claims",
}
"""Members by what they make a question take."""


def _of(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None


def needs_of_scenario(scenario: Mapping[str, Any]) -> Needs:
    """Returns what the evaluation of a scenario takes."""
    needs = Needs()
    objects = scenario.get("objects")
    for name, items in objects.items() if isinstance(objects, Mapping) else ():
        for item in items if isinstance(items, list) else ():
            if name == "nodes":
                needs.add_node(item)
            elif name == "pods":
                needs.add_pods(item)
            else:
                needs.walk(item)
    # Only the pod that is evaluated asks something about all nodes. Terms of the others that match it are counted
    # together by their key.
    needs.tallies = needs.look_ups = needs.pods_with_claims = 0
    nominated = scenario.get("nominated")
    for pod in (scenario.get("pod"), *(nominated if isinstance(nominated, list) else ())):
        needs.add_pods(pod)
    return needs


def needs_of_objects(objects: Iterable[Any], nodes: int, pods: int) -> Needs:
    """Returns what it takes to create objects in a copy of a cluster.

    Arguments:
        nodes, pods: the numbers of those that the cluster has.
    """
    # A copy shares the objects, so that a pod or node of it takes a fraction of a new one; what is asked about all
    # nodes does not.
    needs = Needs(nodes=nodes, pods=pods // _COPIED_FOR_ONE)
    needs.add_objects(objects)
    return needs
