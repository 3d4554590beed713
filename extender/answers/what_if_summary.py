"""The sentence above the answer to a what-if."""

from collections.abc import Sequence
from typing import Final

from extender.answers.types import Eviction, EvictionLoop, Placement, PodName

_WITHDRAWN: Final = {"scaled down": "deleted, for fewer are wanted", "replaced": "replaced by pods of the new template"}
"""By their controllers: why -> in words."""


def summary(
    placements: Sequence[Placement], evictions: Sequence[Eviction], loops: Sequence[EvictionLoop], further: Sequence[str] = ()
) -> str:
    """One sentence, or more if something needs attention.

    Arguments:
        further: what else becomes of pods, which placements and evictions do not show.
    """
    asked = [placement for placement in placements if placement.cause != "evicted"]
    withdrawn = [each for each in evictions if each.why in _WITHDRAWN]
    at_once = [each for each in evictions if not each.waits_for and each.why not in _WITHDRAWN]
    waiting = [each for each in evictions if each.waits_for]
    if not placements and not evictions:
        return " ".join(f"{each}." for each in further) if further else "Nothing would change."
    parts = []
    if len(asked) == 1:
        parts.append(_one(asked[0]))
    elif asked:
        parts.append(_of_several(asked))
    if at_once:
        parts.append(_of_evictions(at_once))
    parts += [_of_those_withdrawn(those, how) for why, how in _WITHDRAWN.items() if (those := [e for e in withdrawn if e.why == why])]
    sentences = [_capital(", and ".join(parts)) + "."] if parts else []
    sentences += [f"{each}." for each in further]
    if waiting:
        sentences.append(_of_those_who_wait(waiting))
    violating = [eviction for eviction in evictions if eviction.victim.violates]
    if violating:
        one = _key(violating[0].victim.pod)
        subject = f"the eviction of {one} violates" if len(violating) == 1 else f"{len(violating)} evictions violate"
        names = [f"{each.victim.pod.namespace}/{name}" for each in violating for name in each.victim.violates]
        sentences.append(_capital(f"{subject} {_budgets(names)}."))
    if loops:
        sentences.append("Pods would evict each other for ever.")
    return " ".join(sentences)


def _one(placement: Placement) -> str:
    name = _key(placement.pod)
    if not placement.node:
        return f"{name} would find no place: {placement.message.rstrip('.')}" if placement.message else f"{name} would find no place"
    return f"{name} would go to {placement.node}"


def _of_those_withdrawn(evictions: Sequence[Eviction], how: str) -> str:
    who = _key(evictions[0].victim.pod) if len(evictions) == 1 else f"{len(evictions)} pods"
    return f"{who} would be {how}"


def _of_several(placements: Sequence[Placement]) -> str:
    number, placed = len(placements), sum(bool(placement.node) for placement in placements)
    if placed == number:
        return f"{'both' if number == 2 else f'all {number}'} pods would find a place"
    if not placed:
        return "neither pod would find a place" if number == 2 else f"none of {number} pods would find a place"
    return f"{placed} of {number} pods would find a place"


def _of_evictions(evictions: Sequence[Eviction]) -> str:
    if len(evictions) == 1:
        eviction = evictions[0]
        return f"{_key(eviction.victim.pod)} would be evicted from {eviction.node} and {_outcome(eviction)}"
    return f"{len(evictions)} pods would be evicted ({', '.join(_outcomes(evictions))})"


def _of_those_who_wait(evictions: Sequence[Eviction]) -> str:
    """Pods that a drain cannot evict as things are."""
    names = [f"{each.victim.pod.namespace}/{name}" for each in evictions for name in each.waits_for]
    drain = f"The drain would wait for {_budgets(names)}"
    if len(evictions) == 1:
        eviction = evictions[0]
        return f"{drain} before {_key(eviction.victim.pod)} may leave {eviction.node}; then it would {_outcome(eviction)}."
    return f"{drain} before {len(evictions)} pods may leave (then {', '.join(_outcomes(evictions))})."


def _outcome(eviction: Eviction) -> str:
    return f"land on {eviction.lands_on}" if eviction.lands_on else "find no place" if eviction.returns else "not be made again"


def _outcomes(evictions: Sequence[Eviction]) -> list[str]:
    lost = sum(not eviction.returns for eviction in evictions)
    homeless = sum(eviction.returns and not eviction.lands_on for eviction in evictions)
    landed = len(evictions) - lost - homeless
    return [
        *([f"{landed} would land elsewhere"] if landed else []),
        *([f"{homeless} would find no place"] if homeless else []),
        *([f"{lost} would not be made again"] if lost else []),
    ]


def _budgets(names: Sequence[str]) -> str:
    """Each with its kind, by which whoever hides names knows it."""
    *others, last = [f"PodDisruptionBudget {name}" for name in dict.fromkeys(names)]
    return f"{', '.join(others)} and {last}" if others else last


def _key(name: PodName) -> str:
    return f"{name.namespace}/{name.name}"


def _capital(text: str) -> str:
    # Names of pods stay as they are.
    return text if "/" in text.split(" ", 1)[0] else text[:1].upper() + text[1:]
