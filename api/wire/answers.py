"""What the verbs answer, as JSON. Names are Go's, numbers are integers, and no null stands where Go would follow it.

A node that was sent in full goes back byte for byte as it came.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Raw

from api.wire.extender_args import AskedNodes
from api.wire.types import (
    ExtenderBindingResult,
    ExtenderFilterResult,
    ExtenderPreemptionResult,
    HostPriority,
    MetaPod,
    MetaVictims,
    NodeList,
)
from extender.verbs.verbs import FilterResult, Victims

MAX_TEXT: Final = 1024
"""Characters of an error or a reason; the note of an event holds no more."""

_ENCODE: Final = msgspec.json.Encoder().encode


def filter_answer(asked: AskedNodes, result: FilterResult) -> bytes:
    """The nodes that passed, in the form (or both forms) in which they were asked, and the reasons of the others."""
    nodes = names = None
    if asked.bodies is not None:
        nodes = NodeList[Raw](items=[asked.bodies[place] for place in result.kept])
    if asked.named is not None and asked.names is not None:
        if asked.named is asked.names:
            names = [asked.names[place] for place in result.kept] if len(result.kept) < len(asked.names) else list(asked.names)
        else:
            kept = {asked.names[place] for place in result.kept}
            names = [name for name in asked.named if name in kept]
    return _ENCODE(
        ExtenderFilterResult(
            nodes=nodes,
            node_names=names,
            failed_nodes=_capped(result.failed),
            failed_and_unresolvable_nodes=_capped(result.failed_and_unresolvable),
        )
    )


def filter_error(text: str) -> bytes:
    """The whole call failed; the text ends up in the pod's condition and event."""
    return _ENCODE(ExtenderFilterResult[Raw](error=_cap(text)))


def prioritize_answer(names: Sequence[str], scores: Sequence[int]) -> bytes:
    """One entry for each node that was asked."""
    return _ENCODE([HostPriority(host, score) for host, score in zip(names, scores, strict=True)])


def preempt_answer(chosen: Mapping[str, Victims]) -> bytes:
    """The victims by UID. A node without victims is left out: kube-scheduler takes one for an error."""
    return _ENCODE(
        ExtenderPreemptionResult(
            {
                node: MetaVictims([MetaPod(uid) for uid in victims.uids], victims.num_pdb_violations)
                for node, victims in chosen.items()
                if victims.uids
            }
        )
    )


def bind_answer(error: str = "") -> bytes:
    """Bound, or why not."""
    return _ENCODE(ExtenderBindingResult(_cap(error)))


def _capped(reasons: Mapping[str, str]) -> dict[str, str]:
    return {node: _cap(reason) for node, reason in reasons.items()}


def _cap(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
