"""Taints as `kubectl taint` writes them.

Upstream: kubectl/pkg/cmd/taint/utils.go, parseTaints, parseTaint, reorganizeTaints.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from extender.values.objects.node import Taint
from reprieve.arguments import ReprieveError

_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_PART: Final = r"[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?"
_SPEC: Final = re.compile(rf"(?P<key>{_PART})(=(?P<value>({_PART})?))?(:(?P<effect>\w+))?(?P<off>-)?")


def tainted(taints: Sequence[Taint], specs: Iterable[str]) -> list[Taint]:
    """Returns the taints of a node after `kubectl taint --overwrite` with these words."""
    left = [*taints]
    for spec in specs:
        found = _SPEC.fullmatch(spec)
        if found is None or (found["off"] and found["value"]) or not (found["effect"] or found["off"]):
            raise ReprieveError(f"invalid taint spec: {spec}; write key=value:Effect, key:Effect, key:Effect- or key-")
        key, effect = found["key"], found["effect"]
        if effect and effect not in _EFFECTS:
            raise ReprieveError(f"invalid taint effect: {effect}, unsupported; it is one of {', '.join(_EFFECTS)}")
        others = [taint for taint in left if taint.key != key or (effect and taint.effect != effect)]
        if found["off"] and len(others) == len(left):
            raise ReprieveError(f'taint "{spec[:-1]}" not found')
        left = others if found["off"] else [*others, Taint(key=key, value=found["value"] or "", effect=effect)]
    return left
