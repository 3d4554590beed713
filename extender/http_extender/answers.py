"""What extenders answer. Numbers that Go takes at their word are looked at: scores are 0..10, violations at least 0.

Upstream: staging/src/k8s.io/kube-scheduler/extender/v1, types.go (v1.36.2).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

import msgspec
from msgspec import Raw

from extender.framework import ExtenderError
from extender.golang.int64 import MAX_INT64, MIN_INT64
from extender.http_extender.go_json import entries, first_value, int64, items, members, quickly, text
from extender.objects import decoding
from extender.objects.node import Node
from extender.objects.quantity import QuantityError, quantity_of

MAX_SCORE: Final = 10
"""Upstream: MaxExtenderPriority."""

MAX_TEXT: Final = 1024
"""Characters of an error or a reason; the note of an event holds no more."""


@final
@dataclass(frozen=True, slots=True)
class FilterAnswer:
    """ExtenderFilterResult, but for its error."""

    node_names: Sequence[str] | None
    nodes: Sequence[Node] | None
    failed: Mapping[str, str]
    """Node name -> reason; preemption might help there."""
    failed_and_unresolvable: Mapping[str, str]


@final
class HostScore(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """HostPriority."""

    host: str = msgspec.field(name="Host")
    score: int = msgspec.field(name="Score")


@final
@dataclass(frozen=True, slots=True)
class MetaVictims:
    """The victims on one node by UID; None where the answer has a null."""

    uids: Sequence[str | None] | None
    num_pdb_violations: int = 0


def read_filter_answer(body: bytes) -> FilterAnswer:
    """ExtenderFilterResult.

    Raises:
        ExtenderError: it cannot be read, or is an error.
    """
    of = "ExtenderFilterResult"
    nodes, names, failed, unresolvable, error = members(
        first_value(body), of, "Nodes", "NodeNames", "FailedNodes", "FailedAndUnresolvableNodes", "Error"
    )
    answer = FilterAnswer(
        None if names is None else _names(names, f"{of}.NodeNames"),
        None if nodes is None else _nodes(nodes, f"{of}.Nodes"),
        _reasons(failed, f"{of}.FailedNodes"),
        _reasons(unresolvable, f"{of}.FailedAndUnresolvableNodes"),
    )
    _raise(text(error, f"{of}.Error"))
    return answer


def read_prioritize_answer(body: bytes) -> list[HostScore]:
    """HostPriorityList.

    Raises:
        ExtenderError: it cannot be read, or a score is not from 0 to 10.
    """
    document = first_value(body)
    scores = quickly(list[HostScore], document)
    if scores is None or not all(MIN_INT64 <= each.score <= MAX_INT64 for each in scores):
        scores = [_score(entry, "HostPriorityList") for entry in items(document, "HostPriorityList of type HostPriorityList")]
    for each in scores:
        if not 0 <= each.score <= MAX_SCORE:
            raise ExtenderError(f"score {each.score} is out of the range [0, {MAX_SCORE}]")
    return scores


def read_preempt_answer(body: bytes) -> dict[str, MetaVictims]:
    """ExtenderPreemptionResult: node name -> victims.

    Raises:
        ExtenderError: it cannot be read.
    """
    of = "ExtenderPreemptionResult.NodeNameToMetaVictims"
    (by_node,) = members(first_value(body), "ExtenderPreemptionResult", "NodeNameToMetaVictims")
    return {node: _victims(victims, of) for node, victims in entries(by_node, of).items()}


def read_bind_answer(body: bytes) -> None:
    """ExtenderBindingResult.

    Raises:
        ExtenderError: it cannot be read, or is an error.
    """
    (error,) = members(first_value(body), "ExtenderBindingResult", "Error")
    _raise(text(error, "ExtenderBindingResult.Error"))


def _names(document: Raw, of: str) -> list[str]:
    names = quickly(list[str], document)
    return names if names is not None else [text(name, of) for name in items(document, f"{of} of type []string")]


def _score(document: Raw, of: str) -> HostScore:
    host, score = members(document, of, "Host", "Score")
    return HostScore(text(host, f"{of}.Host"), int64(score, f"{of}.Score"))


def _nodes(document: Raw, of: str) -> list[Node]:
    (listed,) = members(document, of, "items")
    nodes = []
    for item in items(listed, f"{of}.items"):
        try:
            node = Node() if bytes(item) == b"null" else decoding.decode(Node, item)
            for amount in (*node.status.allocatable.values(), *node.status.capacity.values()):
                quantity_of(amount)
        except (decoding.DecodeError, QuantityError) as exc:
            raise ExtenderError(f"json: cannot unmarshal {of}.items: {exc}") from exc
        nodes.append(node)
    return nodes


def _reasons(document: Raw | None, of: str) -> dict[str, str]:
    reasons = quickly(dict[str, str], document) if document is not None else {}
    if reasons is None:
        reasons = {node: text(reason, of) for node, reason in entries(document, of).items()}
    return {node: _capped(reason) for node, reason in reasons.items()}


def _victims(document: Raw, of: str) -> MetaVictims:
    if bytes(document) == b"null":
        return MetaVictims(None)
    pods, violations = members(document, of, "Pods", "NumPDBViolations")
    uids = [_uid(pod, f"{of}.Pods") for pod in items(pods, f"{of}.Pods")]
    return MetaVictims(uids, int64(violations, f"{of}.NumPDBViolations"))


def _uid(document: Raw, of: str) -> str | None:
    if bytes(document) == b"null":
        return None
    (uid,) = members(document, of, "UID")
    return text(uid, f"{of}.UID")


def _raise(error: str) -> None:
    if error:
        raise ExtenderError(_capped(error))


def _capped(words: str) -> str:
    return words if len(words) <= MAX_TEXT else words[: MAX_TEXT - 1] + "…"
