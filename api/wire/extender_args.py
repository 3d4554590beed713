"""What filter and prioritize are asked."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from msgspec import UNSET, Raw, Struct, UnsetType, field

from api.json_limits import check_json, check_number_of_values
from api.refusals import Refusal
from api.wire.names import check_names, is_name
from api.wire.node_bodies import NodeBodies
from api.wire.reading import is_null, members, read, read_object
from extender.objects.node import Node
from extender.objects.pod import Pod

MAX_BYTES_WITHOUT_NODES: Final = 8 * 2**20
"""Of everything in a body but the nodes in full. 15,000 names are about 1 MB."""


@final
@dataclass(frozen=True, slots=True)
class AskedNodes:
    """A pod, and the nodes it is to be placed on; those named twice count once.

    Attributes:
        names: the nodes in the order of the call; None if none were given in either form.
        nodes: the same in full, if they were sent in full.
        bodies: what was written for each of `nodes`.
        named: the names in the order of `NodeNames`, if that form was sent.
    """

    pod: Pod
    names: Sequence[str] | None = None
    nodes: Sequence[Node] | None = None
    bodies: Sequence[Raw] | None = None
    named: Sequence[str] | None = None


class _NodeList(Struct, frozen=True, gc=False):
    items: list[Raw] | UnsetType | None = UNSET


class _Args(Struct, frozen=True, gc=False):
    """The names as kube-scheduler spells them. An absent Raw is empty."""

    pod: Raw = field(name="Pod", default=Raw())
    nodes: _NodeList | UnsetType | None = field(name="Nodes", default=UNSET)
    node_names: Raw = field(name="NodeNames", default=Raw())


def read_extender_args(body: bytes, known_bodies: NodeBodies) -> AskedNodes:
    """ExtenderArgs.

    Raises:
        Refusal: 400 or 413, see the table of bad input in the tests.
    """
    if len(body) > MAX_BYTES_WITHOUT_NODES:
        check_number_of_values(body)
    pod_document, bodies, names_document = _parts(body)
    rest = _without(body, bodies) if bodies else body
    if len(rest) > MAX_BYTES_WITHOUT_NODES:
        raise Refusal(413, f"the body has more than {MAX_BYTES_WITHOUT_NODES} bytes besides the nodes in full")
    check_json(rest)
    pod = read_pod(pod_document)
    nodes = None if bodies is None else known_bodies.nodes_of(bodies)
    named = None if names_document is None else _read_names(names_document)
    if nodes is None or bodies is None:
        return AskedNodes(pod, names=named, named=named)
    names = [node.name for node in nodes]
    if len(set(names)) < len(names):
        places = {name: place for place, name in reversed(list(enumerate(names)))}
        kept = sorted(places.values())
        names, nodes, bodies = [names[place] for place in kept], [nodes[place] for place in kept], [bodies[place] for place in kept]
    if named is not None and set(named) != set(names):
        raise Refusal(400, "Nodes and NodeNames name different nodes")
    return AskedNodes(pod, names, nodes, bodies, named)


def read_pod(document: Raw | None) -> Pod:
    """The pod of any of the verbs.

    Raises:
        Refusal: 400, there is none, or it has no name that a pod can have.
    """
    if document is None:
        raise Refusal(400, "pod is required")
    pod = read_object(Pod, document, "Pod")
    if not pod.name:
        raise Refusal(400, "Pod: metadata.name is required")
    if not is_name(pod.name) or not is_name(pod.namespace):
        raise Refusal(400, "Pod: metadata.name or metadata.namespace is not a name that a pod can have")
    return pod


def _parts(body: bytes) -> tuple[Raw | None, list[Raw] | None, Raw | None]:
    """Pod, Nodes.items and NodeNames; None for each that is missing or null."""
    args = read(_Args, body)
    if args.nodes is UNSET or (args.nodes is not None and args.nodes.items is UNSET) or not args.pod or not args.node_names:
        return _parts_in_any_case(body)
    bodies = None if args.nodes is None else args.nodes.items or []
    return None if is_null(args.pod) else args.pod, bodies, None if is_null(args.node_names) else args.node_names


def _parts_in_any_case(body: bytes) -> tuple[Raw | None, list[Raw] | None, Raw | None]:
    pod, nodes, names = members(body, "Pod", "Nodes", "NodeNames")
    if nodes is None:
        return pod, None, names
    (items,) = members(nodes, "items", what="Nodes")
    return pod, [] if items is None else read(list[Raw], items, "Nodes.items"), names


def _read_names(document: Raw) -> list[str]:
    names = read(list[str], document, "NodeNames")
    check_names("NodeNames", names)
    return names if len(set(names)) == len(names) else list(dict.fromkeys(names))


def _without(body: bytes, parts: Sequence[Raw]) -> bytes:
    """The body with the stretch from the first to the last part cut out. The parts are views of it, in order."""
    start = _address(parts[0]) - _address(body)
    end = _address(parts[-1]) - _address(body) + len(parts[-1])
    return body[:start] + body[end:]


def _address(view: bytes | Raw) -> int:
    address: int = np.frombuffer(view, np.uint8).__array_interface__["data"][0]
    return address
