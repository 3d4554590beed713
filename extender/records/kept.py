"""What is kept of attempts and preemptions, as plain values. Nothing in here points into a cluster."""

from typing import Final, Literal, final

import msgspec

from extender.records.arrays import KeptScores, KeptVerdicts

Outcome = Literal["Scheduled", "Unschedulable", "Error", "Filter", "Prioritize", "Preempt"]
"""What an attempt came to. The last three: what another scheduler asked of the extender."""

Telling = Literal["deciding", "told", "failed"]
"""Whether the victims of a preemption were told to go."""


class Kept(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """What the values in here have in common. They form no cycles, so that the collector need not look at them."""


@final
class PodId(Kept, frozen=True, gc=False):
    """A pod, by its names."""

    namespace: str
    name: str
    uid: str = ""
    priority: int = 0

    @property
    def key(self) -> str:
        """namespace/name."""
        return f"{self.namespace}/{self.name}"


@final
class AttemptMade(Kept, frozen=True, gc=False, tag="attempt"):
    """One attempt, without its arrays."""

    id: int
    time: float
    """Seconds since 1970."""
    pod: PodId
    profile: str
    outcome: Outcome
    number: int = 0
    """Of this pod's attempts, from 1; 0 if another scheduler asked."""
    node: str = ""
    message: str = ""
    evaluated: int = 0
    feasible: int = 0
    seconds: float = 0.0
    woken_by: str = ""
    no_preemption: str = ""
    """Why nobody was to be evicted for the pod; empty if somebody was, or if that was not asked."""
    may_preempt: bool = True
    """False if the pod was not eligible to preempt anybody."""


@final
class Leaving(Kept, frozen=True, gc=False):
    """A victim."""

    pod: PodId
    started: str | None = None
    """status.startTime, as it was written."""
    owner: str = ""
    """Kind/name of its controller."""
    violates: tuple[str, ...] = ()
    """Names of the budgets that its going breaks."""
    cpu: int = 0
    """Millicores that it held."""
    memory: int = 0
    """Bytes that it held."""


@final
class Room(Kept, frozen=True, gc=False):
    """A node that would take the preemptor once its victims have gone."""

    node: str
    victims: tuple[Leaving, ...]
    """The most important ones."""
    num_victims: int
    num_pdb_violations: int
    costs: tuple[int, ...] = ()
    """What choosing it would cost: `preemption.costs.Costs`."""


@final
class PreemptionMade(Kept, frozen=True, gc=False, tag="preemption"):
    """A preemption that was decided, under the id of its attempt."""

    id: int
    time: float
    by: PodId
    node: str
    """Empty while another scheduler has not said which it took."""
    victims: tuple[Leaving, ...]
    num_pdb_violations: int = 0
    candidates: tuple[Room, ...] = ()
    """The chosen one first, then the others as far as they are kept, best first."""
    num_candidates: int = 0
    outcome: Telling = "deciding"


@final
class Details(msgspec.Struct, frozen=True, gc=False):
    """What is kept of an attempt only while there is room."""

    verdicts: KeptVerdicts | None = None
    scores: KeptScores | None = None
    best: tuple[tuple[str, int], ...] = ()
    """(node, score) of the best, where another scheduler asked for scores."""
    not_helpful: tuple[tuple[str, int], ...] = ()
    """(reason, nodes) where the dry run found no room."""

    @property
    def size(self) -> int:
        """Bytes, about, without those of shared names."""
        size = DETAILS_OVERHEAD + 120 * len(self.best) + sum(130 + len(reason) for reason, _ in self.not_helpful)
        if self.scores is not None:
            size += self.scores.size
        if self.verdicts is not None:
            size += self.verdicts.size
        return size


@final
class KeptAttempt(msgspec.Struct, frozen=True, gc=False):
    """One attempt with what there still is of it."""

    made: AttemptMade
    details: Details | None = None
    preemption: PreemptionMade | None = None


DETAILS_OVERHEAD: Final = 250
"""Bytes of details without numbers and texts."""
ATTEMPT_OVERHEAD: Final = 600
"""Bytes of an attempt without its texts: values, and its places in the indexes."""
LEAVING_SIZE: Final = 450
"""Bytes of a victim with texts of ordinary length."""


def size_of_attempt(made: AttemptMade) -> int:
    """Bytes, about."""
    pod = made.pod
    return ATTEMPT_OVERHEAD + len(pod.namespace) + 2 * len(pod.name) + len(pod.uid) + len(made.message) + len(made.no_preemption)


def size_of_preemption(made: PreemptionMade) -> int:
    """Bytes, about."""
    leaving = sum(len(room.victims) for room in made.candidates)
    if not made.candidates or made.victims is not made.candidates[0].victims:
        leaving += len(made.victims)
    return 600 + 250 * len(made.candidates) + LEAVING_SIZE * leaving
