"""What preempt is asked."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

from msgspec import Raw

from api.json_limits import check_json, check_number_of_values
from api.refusals import Refusal
from api.wire.extender_args import MAX_BYTES_WITHOUT_NODES, read_pod
from api.wire.names import check_names
from api.wire.reading import is_null, members, read
from extender.objects.pod import Pod
from extender.verbs.verbs import Victims

_MAX_VIOLATIONS: Final = 2**63 - 1


@final
@dataclass(frozen=True, slots=True)
class AskedPreemption:
    """A preemptor, and the victims on each node; a node whose victims cannot be read is not there."""

    pod: Pod
    candidates: Mapping[str, Victims]


def read_preemption_args(body: bytes) -> AskedPreemption:
    """ExtenderPreemptionArgs.

    Raises:
        Refusal: 400 or 413, see the table of bad input in the tests.
    """
    if len(body) > MAX_BYTES_WITHOUT_NODES:
        check_number_of_values(body)
    pod, in_full, by_uid = members(body, "Pod", "NodeNameToVictims", "NodeNameToMetaVictims")
    check_json(body)
    nodes_in_full = None if in_full is None else _nodes("NodeNameToVictims", in_full)
    nodes_by_uid = None if by_uid is None else _nodes("NodeNameToMetaVictims", by_uid)
    if nodes_in_full is not None and nodes_by_uid is not None and nodes_in_full.keys() != nodes_by_uid.keys():
        raise Refusal(400, "NodeNameToVictims and NodeNameToMetaVictims name different nodes")
    nodes = nodes_by_uid if nodes_by_uid is not None else nodes_in_full or {}
    candidates = {}
    for place, (node, document) in enumerate(nodes.items()):
        victims = _victims(f"victims of node {place}", document, is_in_full=nodes_by_uid is None)
        if victims is not None:
            candidates[node] = victims
    _check_each_victim_is_on_one_node(candidates)
    return AskedPreemption(read_pod(pod), candidates)


def _nodes(what: str, document: Raw) -> dict[str, Raw]:
    nodes = read(dict[str, Raw], document, what)
    check_names(what, list(nodes))
    return nodes


def _victims(what: str, document: Raw, *, is_in_full: bool) -> Victims | None:
    """None where nulls stand for victims: kube-scheduler could not have meant an answer for such a node."""
    if is_null(document):
        return None
    pods, violations = members(document, "Pods", "NumPDBViolations", what=what)
    count = 0 if violations is None else read(int, violations, f"{what}: NumPDBViolations")
    if not 0 <= count <= _MAX_VIOLATIONS:
        raise Refusal(400, f"{what}: NumPDBViolations is out of range")
    if pods is None:
        return None
    items = read(list[Raw], pods, f"{what}: Pods")
    if any(map(is_null, items)):
        return None
    uids = [_uid(f"{what}: Pods[{place}]", item, is_in_full) for place, item in enumerate(items)]
    return Victims(tuple(dict.fromkeys(uids)), count)


def _uid(what: str, document: Raw, is_in_full: bool) -> str:
    """The UID of a victim; empty, which is nobody's, if it has none."""
    if is_in_full:
        (metadata,) = members(document, "metadata", what=what)
        uid = None if metadata is None else members(metadata, "uid", what=what)[0]
    else:
        (uid,) = members(document, "UID", what=what)
    return "" if uid is None else read(str, uid, what)


def _check_each_victim_is_on_one_node(candidates: Mapping[str, Victims]) -> None:
    places = Counter(uid for victims in candidates.values() for uid in victims.uids if uid)
    if places and max(places.values()) > 1:
        raise Refusal(400, "one pod is a victim on several nodes")
