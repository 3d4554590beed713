"""The arguments of the four verbs, read from bytes and written to bytes.

JsonError tells what cannot be read, as the table of bad input in the tests shows. Upstream: kube-scheduler/extender/v1,
types.go.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Final, final

import msgspec
import numpy as np
from msgspec import UNSET, Raw, UnsetType, field

from extender.values import limits
from extender.values.golang.int64 import MAX_INT64
from extender.values.golang.json import JsonError, TooLargeError
from extender.values.golang.json_bytes import check_json, check_number_of_values, is_null, members, quickly, read
from extender.values.objects import decoding
from extender.values.objects.name_syntax import dns_label_errors, subdomain_errors
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod
from extender.values.objects.whole import in_full
from extender.values.protocol.arriving_nodes import ArrivedBody, Run
from extender.values.protocol.node_lists import (
    DecodedNodes,
    EncodedNodes,
    NodesInFull,
    check_node_names,
    check_number_of_names,
    check_times,
    names_known,
)
from extender.values.protocol.wire_types import (
    UID,
    ExtenderBindingArgs,
    MetaVictims,
    NodeList,
    Victims,
)

_UID: Final = re.compile(UID)
_ENCODE: Final = msgspec.json.Encoder().encode


@final
class AskedNodes(msgspec.Struct, frozen=True):
    """The arguments of filter and prioritize: a pod, and the nodes to place it on, each once.

    `names` are in the order of the call, None if none were given in either form; `node_names` in that of `NodeNames`.
    """

    pod: Pod
    names: Sequence[str] | None = None
    in_full: NodesInFull | None = None
    node_names: Sequence[str] | None = None

    @property
    def nodes(self) -> Sequence[Node] | None:
        return None if self.in_full is None else self.in_full.nodes


@final
class AskedPreemption(msgspec.Struct, frozen=True):
    """A preemptor, and the victims on each node; nodes whose victims cannot be read are left out."""

    pod: Pod
    candidates: Mapping[str, MetaVictims]
    documents: Mapping[str, Raw]
    """UID -> the pod, of victims in full."""

    def victim(self, uid: str) -> Pod | None:
        """Returns a victim that came in full; None if it came by UID, or is no pod that can be read."""
        with suppress(JsonError):
            return _read_pod(self.documents[uid]) if uid in self.documents else None
        return None


class _NodeItems(msgspec.Struct, frozen=True, gc=False):
    items: list[Raw] | UnsetType | None = UNSET


class _Args(msgspec.Struct, frozen=True, gc=False):
    """ExtenderArgs under the names that kube-scheduler writes. An absent Raw is empty."""

    pod: Raw = field(name="Pod", default=Raw())
    nodes: _NodeItems | UnsetType | None = field(name="Nodes", default=UNSET)
    node_names: Raw = field(name="NodeNames", default=Raw())


class _ExactVictim(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    uid: str = field(name="UID")


class _ExactVictims(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """MetaVictims as kube-scheduler writes them. Any others are read piece by piece, as Go reads them."""

    pods: list[_ExactVictim] | None = field(name="Pods", default=None)
    violations: Annotated[int, msgspec.Meta(ge=0, le=MAX_INT64)] = field(name="NumPDBViolations", default=0)


async def read_extender_args(body: ArrivedBody, decoded: DecodedNodes) -> AskedNodes:
    document, (pod_document, items, names_document), runs = _arrived_parts(body)
    # The nodes have limits of their own, which are checked when one is decoded for the first time.
    start, end = _stretch(document, items) if items else (0, 0)
    rest = document[:start] + document[end:]
    if len(rest) > limits.VERB_BYTES:
        raise TooLargeError(f"the body has more than {limits.VERB_BYTES} bytes without the full nodes")
    node_names = None if names_document is None else names_known(names_document)
    if node_names is not None and names_document is not None and not items:
        start, end = _stretch(document, [names_document])
        rest = document[:start] + document[end:]
    check_json(rest)
    pod = _read_pod(pod_document)
    in_full = None if items is None else await decoded.of(items, runs)
    if node_names is None and names_document is not None:
        node_names = _read_names(names_document)
    if in_full is None:
        return AskedNodes(pod, names=node_names, node_names=node_names)
    if node_names is not None and set(node_names) != set(in_full.names):
        raise JsonError("Nodes and NodeNames name different nodes")
    return AskedNodes(pod, in_full.names, in_full, node_names)


def read_preemption_args(body: bytes) -> AskedPreemption:
    """Reads ExtenderPreemptionArgs. Nodes whose victims cannot be read are left out."""
    if len(body) > limits.VERB_BYTES:
        check_number_of_values(body)
    pod, in_full, by_uid = members(_object(body, "the body"), "Pod", "NodeNameToVictims", "NodeNameToMetaVictims")
    if by_uid is not None:  # its names and UIDs have no commas
        check_number_of_values(bytes(by_uid), 2 * limits.NODE_NAMES + limits.VICTIMS, "NodeNameToMetaVictims")
    check_json(body)
    nodes_in_full = None if in_full is None else _victims_by_node("NodeNameToVictims", in_full)
    nodes_by_uid = None if by_uid is None else _victims_by_node("NodeNameToMetaVictims", by_uid)
    if nodes_in_full is not None and nodes_by_uid is not None and nodes_in_full.keys() != nodes_by_uid.keys():
        raise JsonError("NodeNameToVictims and NodeNameToMetaVictims name different nodes")
    nodes = nodes_by_uid if nodes_by_uid is not None else nodes_in_full or {}
    candidates: dict[str, MetaVictims] = {}
    documents: dict[str, Raw] = {}
    exact = None if by_uid is None else quickly(dict[str, _ExactVictims], by_uid)
    if exact is not None:
        candidates = {
            node: MetaVictims.of(dict.fromkeys([pod.uid for pod in victims.pods or ()]), victims.violations)
            for node, victims in exact.items()
        }
        nodes = {}
    for place, (node, document) in enumerate(nodes.items()):
        victims = _read_victims(f"victims of node {place}", document, None if nodes_by_uid is not None else documents)
        if victims is not None:
            candidates[node] = victims
    uids = [uid for victims in candidates.values() for uid in victims.uids if uid]
    if len(uids) > limits.VICTIMS:
        raise TooLargeError(f"the body has more than {limits.VICTIMS} victims")
    if max(map(len, uids), default=0) > limits.UID_CHARACTERS:
        raise TooLargeError(f"the UID of a victim has more than {limits.UID_CHARACTERS} characters")
    if len(set(uids)) < len(uids):
        raise JsonError("one pod is a victim on several nodes")
    return AskedPreemption(_read_pod(pod), candidates, documents)


def read_binding_args(body: bytes) -> ExtenderBindingArgs:
    """Reads ExtenderBindingArgs. All is required: without a UID another pod of that name could be hit."""
    if len(body) > limits.BINDING_BYTES:
        raise TooLargeError(f"a binding may have {limits.BINDING_BYTES} bytes")
    name, namespace, uid, node = members(_object(body, "the body"), "PodName", "PodNamespace", "PodUID", "Node")
    check_json(body)
    return ExtenderBindingArgs(
        pod_name=_checked("PodName", name, _is_name),
        pod_namespace=_checked("PodNamespace", namespace, lambda text: not dns_label_errors(text)),
        pod_uid=_checked(
            "PodUID", uid, lambda text: len(text) <= limits.UID_CHARACTERS and _UID.fullmatch(text) is not None
        ),
        node=_checked("Node", node, _is_name),
    )


def extender_args(pod: Pod, nodes: Sequence[Node], encoded: EncodedNodes | None) -> bytes:
    """Writes ExtenderArgs, with nodes by name without `encoded`, and null for the other form."""
    names = [node.name for node in nodes] if encoded is None else None
    items = None if encoded is None else NodeList({}, encoded.of(nodes) or None)
    return _ENCODE({"Pod": in_full(pod), "Nodes": items, "NodeNames": names})


def preemption_args(pod: Pod, victims: Mapping[str, Victims], *, by_uid: bool) -> bytes:
    """Writes ExtenderPreemptionArgs, with the victims of each node by UID or in full."""
    of_nodes: dict[str, object] = {}
    for node in sorted(victims):
        pods, violations = victims[node].pods, victims[node].num_pdb_violations
        if by_uid:
            of_nodes[node] = MetaVictims.of((pod.uid for pod in pods or ()), violations)
        else:
            of_nodes[node] = {
                "Pods": [in_full(pod) for pod in pods] if pods else pods,
                "NumPDBViolations": violations,
            }
    forms = (None, of_nodes) if by_uid else (of_nodes, None)
    return _ENCODE({"Pod": in_full(pod), "NodeNameToVictims": forms[0], "NodeNameToMetaVictims": forms[1]})


def binding_args(pod: Pod, node: str) -> bytes:
    return _ENCODE(ExtenderBindingArgs(pod.name, pod.namespace, pod.uid, node))


_Parts = tuple[Raw | None, list[Raw] | None, Raw | None]
"""The raw Pod, the items of Nodes, and NodeNames; None for what the arguments do not have."""


def _arrived_parts(body: ArrivedBody) -> tuple[bytes, _Parts, Sequence[Run]]:
    """Returns a document, its parts, and the runs of nodes that marks among its items stand for."""
    if body.runs:
        marked = body.marked()
        with suppress(JsonError):  # what is wrong, and where, the whole body says
            _check_size(marked)
            parts = _parts(marked)
            if body.is_right(parts[1] or ()):
                return marked, parts, body.runs
    whole = body.whole()
    _check_size(whole)
    return whole, _parts(whole), ()


def _check_size(document: bytes) -> None:
    if len(document) > limits.VERB_BYTES:
        check_number_of_values(document)


def _parts(body: bytes) -> _Parts:
    args = read(_Args, body)
    if (
        args.nodes is UNSET
        or (args.nodes is not None and args.nodes.items is UNSET)
        or not args.pod
        or not args.node_names
    ):
        return _parts_in_any_case(body)
    bodies = None if args.nodes is None else args.nodes.items or []
    return None if is_null(args.pod) else args.pod, bodies, None if is_null(args.node_names) else args.node_names


def _parts_in_any_case(body: bytes) -> _Parts:
    pod, nodes, names = members(_object(body, "the body"), "Pod", "Nodes", "NodeNames")
    if nodes is None:
        return pod, None, names
    (items,) = members(_object(nodes, "Nodes"), "items")
    return pod, [] if items is None else read(list[Raw], items, "Nodes.items"), names


def _object(document: bytes | Raw, what: str) -> dict[str, Raw]:
    return read(dict[str, Raw], document, what)


def _read_pod(document: Raw | None) -> Pod:
    if document is None:
        raise JsonError("pod is required")
    try:
        pod = decoding.decode(Pod, document)
    except decoding.DecodeError as exc:
        raise JsonError(f"Pod: {exc}") from exc
    if not pod.name:
        raise JsonError("Pod: metadata.name is required")
    if not _is_name(pod.name) or not _is_name(pod.namespace):
        raise JsonError("Pod: metadata.name or metadata.namespace is not a name that a pod can have")
    if len(pod.metadata.uid) > limits.UID_CHARACTERS:
        raise JsonError(f"Pod: metadata.uid has more than {limits.UID_CHARACTERS} characters")
    check_times("Pod", pod)
    return pod


def _read_names(document: Raw) -> list[str]:
    names = read(list[str], document, "NodeNames")
    check_node_names("NodeNames", names)
    return names if len(set(names)) == len(names) else list(dict.fromkeys(names))


def _stretch(body: bytes, parts: Sequence[Raw]) -> tuple[int, int]:
    """Returns where in the body the first part begins and the last ends; parts are views of it, in order."""
    first = _address(body)
    return _address(parts[0]) - first, _address(parts[-1]) - first + len(parts[-1])


def _address(view: bytes | Raw) -> int:
    address: int = np.frombuffer(view, np.uint8).__array_interface__["data"][0]
    return address


def _victims_by_node(what: str, document: Raw) -> dict[str, Raw]:
    nodes = _object(document, what)
    check_number_of_names(len(nodes))
    check_node_names(what, list(nodes))
    return nodes


def _read_victims(what: str, document: Raw, documents: dict[str, Raw] | None) -> MetaVictims | None:
    """Returns None where a null stands for a victim or for all there is to a node, which asks nothing.

    Pods that are null or missing are an empty list, as Go writes and reads it. `documents` are None
    of victims by UID; else they take those in full.
    """
    if is_null(document):
        return None
    pods, violations = members(_object(document, what), "Pods", "NumPDBViolations")
    count = 0 if violations is None else read(int, violations, f"{what}: NumPDBViolations")
    if not 0 <= count <= MAX_INT64:
        raise JsonError(f"{what}: NumPDBViolations is out of range")
    items = [] if pods is None else read(list[Raw], pods, f"{what}: Pods")
    if any(map(is_null, items)):
        return None
    uids = [_uid(f"{what}: Pods[{place}]", item, documents is not None) for place, item in enumerate(items)]
    if documents is not None:
        documents.update(zip(uids, items, strict=True))
    return MetaVictims.of(dict.fromkeys(uids), count)


def _uid(what: str, document: Raw, is_in_full: bool) -> str:
    pod = _object(document, what)
    if is_in_full:
        (metadata,) = members(pod, "metadata")
        uid = None if metadata is None else members(_object(metadata, what), "uid")[0]
    else:
        (uid,) = members(pod, "UID")
    return "" if uid is None else read(str, uid, what)


def _is_name(text: str) -> bool:
    return not subdomain_errors(text)


def _checked(what: str, document: Raw | None, is_right: Callable[[str], bool]) -> str:
    text = "" if document is None else read(str, document, what)
    if not text:
        raise JsonError(f"{what} is required")
    if not is_right(text):
        raise JsonError(f"{what} is not a name that the API server accepts")
    return text
