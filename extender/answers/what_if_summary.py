"""The sentence above the answer to a what-if."""

from collections.abc import Sequence

from extender.answers.types import Eviction, EvictionLoop, Placement, PodName


def summary(placements: Sequence[Placement], evictions: Sequence[Eviction], loops: Sequence[EvictionLoop]) -> str:
    """One sentence, or one more if something needs attention."""
    asked = [placement for placement in placements if placement.cause != "evicted"]
    if not placements and not evictions:
        return "Nothing would change."
    parts = []
    if len(asked) == 1:
        parts.append(_one(asked[0]))
    elif asked:
        placed = sum(bool(placement.node) for placement in asked)
        parts.append(f"{'all' if placed == len(asked) else placed if placed else 'none'} of {len(asked)} pods would find a place")
    if evictions:
        parts.append(_of_evictions(evictions))
    text = ", and ".join(parts)
    warnings = [_capital(text) + "."]
    violating = sum(bool(eviction.victim.violates) for eviction in evictions)
    if violating:
        warnings.append(f"{violating} {'eviction violates' if violating == 1 else 'evictions violate'} a PodDisruptionBudget.")
    if loops:
        warnings.append("Pods would evict each other for ever.")
    return " ".join(warnings)


def _one(placement: Placement) -> str:
    name = _key(placement.pod)
    if not placement.node:
        return f"{name} would find no place: {placement.message.rstrip('.')}" if placement.message else f"{name} would find no place"
    return f"{name} would go to {placement.node}"


def _of_evictions(evictions: Sequence[Eviction]) -> str:
    if len(evictions) == 1:
        eviction = evictions[0]
        return f"{_key(eviction.victim.pod)} would be evicted{_outcome(eviction)}"
    lost = sum(not eviction.returns for eviction in evictions)
    homeless = sum(eviction.returns and not eviction.lands_on for eviction in evictions)
    landed = len(evictions) - lost - homeless
    outcomes = [
        *([f"{landed} would land elsewhere"] if landed else []),
        *([f"{homeless} would find no place"] if homeless else []),
        *([f"{lost} would not be made again"] if lost else []),
    ]
    return f"{len(evictions)} pods would be evicted ({', '.join(outcomes)})"


def _outcome(eviction: Eviction) -> str:
    if eviction.lands_on:
        return f" from {eviction.node} and land on {eviction.lands_on}"
    return f" from {eviction.node} and {'find no place' if eviction.returns else 'not be made again'}"


def _key(name: PodName) -> str:
    return f"{name.namespace}/{name.name}"


def _capital(text: str) -> str:
    # Names of pods stay as they are.
    return text if "/" in text.split(" ", 1)[0] else text[:1].upper() + text[1:]
