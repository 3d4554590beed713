"""The faults of a seed: what happens to whom, when, and for how long."""

import random
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """What can happen; to replicas, unless it is named after the API server."""

    CUT = "all connections are reset"
    RESETS = "connections are reset before, in and after TLS handshakes"
    SLOW = "requests and answers are delayed"
    COPIES = "requests arrive twice"
    LOST = "answers are lost, or break off"
    BLACK_HOLE = "nothing passes; afterwards it goes on"
    BLACK_HOLE_AND_CUT = "nothing passes; afterwards connections are reset"
    DEAF = "no answers pass"
    NO_LEASE = "nothing about leases passes"
    PAUSED = "SIGSTOP, SIGCONT"
    KILLED = "SIGKILL"
    TOLD_TO_END = "SIGTERM"
    FULL_DISK = "the disk is full"
    CLOCK = "the clock on the wall steps"
    SERVER_PAUSED = "API server: SIGSTOP, SIGCONT"
    SERVER_RESTARTED = "API server: SIGTERM, and another one"
    SERVER_CRASHED = "API server: SIGKILL, and another one"
    SERVER_CANNOT_SAVE = "API server: the disk is full when it is told to end"
    SERVER_CLOCK = "API server: the clock on the wall steps, and it is told to end"


SERVER_KINDS: Final = frozenset(kind for kind in Kind if kind.name.startswith("SERVER"))
_WEIGHTS: Final = {
    Kind.SERVER_CRASHED: 0.5,
    Kind.SERVER_CANNOT_SAVE: 0.5,
    Kind.SERVER_CLOCK: 0.5,
    Kind.FULL_DISK: 0.5,
    Kind.CLOCK: 0.5,
}
_INSTANTANEOUS: Final = frozenset((Kind.CUT, Kind.KILLED, Kind.TOLD_TO_END, *SERVER_KINDS)) - {Kind.SERVER_PAUSED}

FAULTY_SECONDS: Final = 7.0
"""The time within which faults begin."""
STEPS: Final = (-3600, -30, 30, 3600)
"""Seconds by which a clock steps."""


@dataclass(frozen=True)
class Fault:
    """Something that happens.

    Attributes:
        to_leader: whether it happens to the replica that leads by then, or to the other one.
        seconds: how long it lasts.
    """

    begin: float
    kind: Kind
    to_leader: bool
    seconds: float
    step: int


def schedule(seed: int, seconds: float = FAULTY_SECONDS) -> list[Fault]:
    """Returns the faults of a seed that begin within this time, in order."""
    rng = random.Random(seed)
    faults: list[Fault] = []
    begin = rng.uniform(0.2, 1.0)
    while begin < seconds:
        kind = rng.choices([*Kind], [_WEIGHTS.get(kind, 1.0) for kind in Kind])[0]
        lasts = 0.0 if kind in _INSTANTANEOUS else rng.choice((0.3, 1.0, 2.5, 3.5))
        faults.append(Fault(round(begin, 2), kind, rng.random() < 0.7, lasts, rng.choice(STEPS)))
        # Often while the one before lasts.
        begin += rng.choice((0.1, 0.5, 1.5, 2.5))
    return faults
