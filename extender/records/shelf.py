"""Shelf: what is kept of attempts and preemptions, and what goes when there is too much. State: all of it."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import final

from extender.records.kept import AttemptMade, KeptAttempt, PreemptionMade, size_of_preemption
from extender.records.names import Naming

Made = AttemptMade | PreemptionMade


@final
@dataclass(frozen=True, slots=True)
class Limits:
    """How much is kept. Of what is too much the oldest goes first: arrays, then attempts, then preemptions."""

    attempts: int = 10_000
    preemptions: int = 1_000
    attempts_of_a_pod: int = 16
    """So that a pod that is tried again and again does not push the others out."""
    size: int = 64 * 2**20
    """Bytes, about, of everything together."""


@final
class Shelf:
    """Attempts and preemptions by id, which rises with time."""

    def __init__(self, limits: Limits) -> None:
        self.naming = Naming()
        """Names of nodes, for arrays that are put here."""
        self._limits = limits
        self._attempts: OrderedDict[int, KeptAttempt] = OrderedDict()
        self._with_arrays: OrderedDict[int, KeptAttempt] = OrderedDict()
        self._of_pod: dict[str, list[int]] = {}
        self._preemptions: OrderedDict[int, PreemptionMade] = OrderedDict()
        self._last_preemption: dict[str, int] = {}
        self._size = 0

    @property
    def size(self) -> int:
        """Bytes, about."""
        return self._size + self.naming.size

    @property
    def oldest(self) -> int:
        """The id of the oldest attempt; 0 if there is none."""
        return next(iter(self._attempts), 0)

    def attempts(self, pod: str | None, uid: str | None, before: int | None) -> Iterator[KeptAttempt]:
        """See `Records.attempts`."""
        ids: Iterable[int] = reversed(self._attempts) if pod is None else reversed(self._of_pod.get(pod, []))
        for each in ids:
            attempt = self._attempts[each]
            if (before is None or each < before) and (uid is None or attempt.made.pod.uid == uid):
                yield attempt

    def preemptions(self, pod: str | None, before: int | None) -> Iterator[PreemptionMade]:
        """See `Records.preemptions`."""
        for each, made in reversed(self._preemptions.items()):
            if (before is None or each < before) and (pod is None or made.by.key == pod or is_victim(pod, made)):
                yield made

    def preemption(self, number: int) -> PreemptionMade | None:
        """The preemption that the attempt of this id decided; None if it did not, or if it is not kept (any more)."""
        return self._preemptions.get(number)

    def last_preemption_for(self, uid: str) -> PreemptionMade | None:
        """The last one that made room for the pod of this UID."""
        number = self._last_preemption.get(uid)
        return None if number is None else self._preemptions.get(number)

    def everything(self) -> list[Made]:
        """All of it without arrays, each kind oldest first."""
        return [*self._preemptions.values(), *(attempt.made for attempt in self._attempts.values())]

    # What comes and changes.

    def put(self, attempt: KeptAttempt) -> None:
        """A new attempt, the newest."""
        made = attempt.made
        self._attempts[made.id] = attempt
        if attempt.verdicts is not None or attempt.scores is not None:
            self._with_arrays[made.id] = attempt
            for arrays in (attempt.verdicts, attempt.scores):
                if arrays is not None:
                    self.naming.used(arrays.nodes)
        attempt.size = attempt.measured()
        self._size += attempt.size
        ids = self._of_pod.setdefault(made.pod.key, [])
        ids.append(made.id)
        if len(ids) > self._limits.attempts_of_a_pod:
            self._drop(ids[0])
        self._keep_within_limits()

    def change(self, attempt: KeptAttempt, made: AttemptMade) -> None:
        """More is known of an attempt."""
        attempt.made = made
        self._size -= attempt.size
        attempt.size = attempt.measured()
        self._size += attempt.size

    def put_preemption(self, made: PreemptionMade) -> None:
        """A new preemption, or more is known of one."""
        known = self._preemptions.get(made.id)
        self._size += size_of_preemption(made) - (size_of_preemption(known) if known is not None else 0)
        self._preemptions[made.id] = made
        self._last_preemption[made.by.uid] = max(made.id, self._last_preemption.get(made.by.uid, 0))
        attempt = self._attempts.get(made.id)
        if attempt is not None:
            attempt.preemption = made
        self._keep_within_limits()

    # What goes.

    def _keep_within_limits(self) -> None:
        limits = self._limits
        while len(self._attempts) > limits.attempts:
            self._drop(next(iter(self._attempts)))
        while len(self._preemptions) > limits.preemptions:
            self._drop_preemption()
        while self.size > limits.size:
            if self._with_arrays:
                self._let_go_of_arrays(next(iter(self._with_arrays.values())))
            elif self._attempts:
                self._drop(next(iter(self._attempts)))
            elif self._preemptions:
                self._drop_preemption()
            else:
                return

    def _drop(self, number: int) -> None:
        attempt = self._attempts.pop(number)
        if number in self._with_arrays:
            self._let_go_of_arrays(attempt)
        self._size -= attempt.size
        key = attempt.made.pod.key
        ids = self._of_pod[key]
        ids.remove(number)
        if not ids:
            del self._of_pod[key]

    def _let_go_of_arrays(self, attempt: KeptAttempt) -> None:
        del self._with_arrays[attempt.made.id]
        for arrays in (attempt.verdicts, attempt.scores):
            if arrays is not None:
                self.naming.unused(arrays.nodes)
        attempt.verdicts = attempt.scores = None
        self.change(attempt, attempt.made)

    def _drop_preemption(self) -> None:
        number, made = self._preemptions.popitem(last=False)
        self._size -= size_of_preemption(made)
        if self._last_preemption.get(made.by.uid) == number:
            del self._last_preemption[made.by.uid]
        attempt = self._attempts.get(number)
        if attempt is not None:
            attempt.preemption = None


def is_victim(pod: str, made: PreemptionMade) -> bool:
    """Whether namespace/name had to go."""
    return any(victim.pod.key == pod for victim in made.victims)
