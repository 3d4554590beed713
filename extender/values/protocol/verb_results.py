"""The results of the four verbs, written to bytes, and those of other extenders, read from bytes.

Results are written with Go's names and integers, and without null where Go would dereference it; a node that was sent
in full is sent back byte for byte. Results are read as Go reads them.

Upstream: kube-scheduler/extender/v1, types.go.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Final, TypeVar, final

import msgspec
from msgspec import Raw

from extender.values import limits
from extender.values.golang.int64 import MAX_INT64, MIN_INT64
from extender.values.golang.json import JsonError
from extender.values.golang.json_bytes import entries, first_value, int64, is_null, items, members, quickly, text
from extender.values.objects import decoding
from extender.values.objects.node import Node
from extender.values.objects.quantity import QuantityError, quantity_of
from extender.values.protocol.verb_arguments import AskedNodes
from extender.values.protocol.wire_types import (
    ExtenderBindingResult,
    ExtenderFilterResult,
    ExtenderPreemptionResult,
    HostPriority,
    MetaVictims,
    NodeList,
)
from extender.values.reasons import ExtenderError

T = TypeVar("T")

_ENCODE: Final = msgspec.json.Encoder().encode
_NO_ITEMS: Final = b'"items":[]'


def filter_result(
    nodes: AskedNodes, places: Sequence[int], failed: Mapping[str, str], failed_and_unresolvable: Mapping[str, str]
) -> list[bytes]:
    """Writes the nodes that passed, in the form (or both forms) in which they were given, and others' reasons.

    `places` are those in `nodes.names`. Of the parts of the answer, nodes in full are one, so that they need not be
    copied.
    """
    names = None
    if nodes.node_names is not None and nodes.names is not None:
        if nodes.node_names is nodes.names:
            names = [nodes.names[place] for place in places]
        else:
            passed = {nodes.names[place] for place in places}
            names = [name for name in nodes.node_names if name in passed]
    answer = _ENCODE(
        ExtenderFilterResult(
            nodes=None if nodes.in_full is None else NodeList[Raw](items=[]),
            node_names=names,
            failed_nodes=_all_capped(failed),
            failed_and_unresolvable_nodes=_all_capped(failed_and_unresolvable),
        )
    )
    if nodes.in_full is None:
        return [answer]
    before, after = answer.split(_NO_ITEMS, 1)  # a quote in a reason would be escaped, and what has reasons comes later
    return [before + _NO_ITEMS[:-1], nodes.in_full.text(places), _NO_ITEMS[-1:] + after]


def filter_error(error: str) -> bytes:
    """Writes that the whole call failed; the text ends up in the pod's condition and event."""
    return _ENCODE(ExtenderFilterResult[Raw](error=_capped(error)))


def prioritize_result(names: Sequence[str], scores: Sequence[int]) -> bytes:
    return _ENCODE([HostPriority(host, score) for host, score in zip(names, scores, strict=True)])


def preemption_result(chosen: Mapping[str, MetaVictims]) -> bytes:
    return _ENCODE(ExtenderPreemptionResult(dict(chosen)))


def binding_result(error: str = "") -> bytes:
    return _ENCODE(ExtenderBindingResult(_capped(error)))


@final
class Filtered(msgspec.Struct, frozen=True):
    """The result of an extender's filter: the nodes that pass, by name and in full, None for a form that is not given;
    and the reasons of others by name, where preemption might help and where it cannot.
    """

    node_names: Sequence[str] | None
    nodes: Sequence[Node] | None
    failed: Mapping[str, str]
    failed_and_unresolvable: Mapping[str, str]


def _raising_extender_errors(read: Callable[[bytes], T]) -> Callable[[bytes], T]:
    @wraps(read)
    def raising(body: bytes) -> T:
        try:
            return read(body)
        except JsonError as exc:
            raise ExtenderError(str(exc)) from exc

    return raising


@_raising_extender_errors
def read_filter_result(body: bytes) -> Filtered:
    """Reads ExtenderFilterResult. Raises ExtenderError if it cannot be read, or is an error."""
    path = "ExtenderFilterResult"
    nodes, names, failed, unresolvable, error = members(
        entries(first_value(body), path), "Nodes", "NodeNames", "FailedNodes", "FailedAndUnresolvableNodes", "Error"
    )
    result = Filtered(
        None if names is None else _read_names(names, f"{path}.NodeNames"),
        None if nodes is None else _read_nodes(nodes, f"{path}.Nodes"),
        _read_reasons(failed, f"{path}.FailedNodes"),
        _read_reasons(unresolvable, f"{path}.FailedAndUnresolvableNodes"),
    )
    _raise(text(error, f"{path}.Error"))
    return result


@_raising_extender_errors
def read_prioritize_result(body: bytes) -> list[HostPriority]:
    """Reads HostPriorityList. Raises ExtenderError."""
    document = first_value(body)
    scores = quickly(list[HostPriority], document)
    if scores is None or any(not MIN_INT64 <= score.score <= MAX_INT64 for score in scores):
        scores = [_read_score(entry) for entry in items(document, "HostPriorityList of type HostPriorityList")]
    return scores


@_raising_extender_errors
def read_preemption_result(body: bytes) -> dict[str, MetaVictims | None]:
    """Reads node name -> victims of ExtenderPreemptionResult, null as None. Raises ExtenderError."""
    path = "ExtenderPreemptionResult.NodeNameToMetaVictims"
    (by_node,) = members(entries(first_value(body), "ExtenderPreemptionResult"), "NodeNameToMetaVictims")
    return {node: _read_victims(victims, path) for node, victims in entries(by_node, path).items()}


@_raising_extender_errors
def read_binding_result(body: bytes) -> None:
    """Reads ExtenderBindingResult. Raises ExtenderError if it cannot be read, or is an error."""
    (error,) = members(entries(first_value(body), "ExtenderBindingResult"), "Error")
    _raise(text(error, "ExtenderBindingResult.Error"))


def _read_names(document: Raw, path: str) -> list[str]:
    names = quickly(list[str], document)
    return names if names is not None else [text(name, path) for name in items(document, f"{path} of type []string")]


def _read_score(document: Raw) -> HostPriority:
    host, score = members(entries(document, "HostPriorityList"), "Host", "Score")
    return HostPriority(text(host, "HostPriorityList.Host"), int64(score, "HostPriorityList.Score"))


def _read_nodes(document: Raw, path: str) -> list[Node]:
    (listed,) = members(entries(document, path), "items")
    nodes = []
    for item in items(listed, f"{path}.items"):
        try:
            node = Node() if is_null(item) else decoding.decode(Node, item)
            for amount in (*node.status.allocatable.values(), *node.status.capacity.values()):
                quantity_of(amount)
        except (decoding.DecodeError, QuantityError) as exc:
            raise JsonError(f"json: cannot unmarshal {path}.items: {exc}") from exc
        nodes.append(node)
    return nodes


def _read_reasons(document: Raw | None, path: str) -> dict[str, str]:
    reasons = quickly(dict[str, str], document) if document is not None else {}
    if reasons is None:
        reasons = {node: text(reason, path) for node, reason in entries(document, path).items()}
    return _all_capped(reasons)


def _read_victims(document: Raw, path: str) -> MetaVictims | None:
    if is_null(document):
        return None
    pods, violations = members(entries(document, path), "Pods", "NumPDBViolations")
    uids = [_read_uid(pod, f"{path}.Pods") for pod in items(pods, f"{path}.Pods")]
    num_pdb_violations = int64(violations, f"{path}.NumPDBViolations")
    return None if None in uids else MetaVictims.of((uid for uid in uids if uid is not None), num_pdb_violations)


def _read_uid(document: Raw, path: str) -> str | None:
    if is_null(document):
        return None
    (uid,) = members(entries(document, path), "UID")
    return text(uid, f"{path}.UID")


def _raise(error: str) -> None:
    if error:
        raise ExtenderError(_capped(error))


def _all_capped(reasons: Mapping[str, str]) -> dict[str, str]:
    return {node: _capped(reason) for node, reason in reasons.items()}


def _capped(words: str) -> str:
    return words if len(words) <= limits.EXTENDER_TEXT else words[: limits.EXTENDER_TEXT - 1] + "…"
