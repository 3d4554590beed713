"""Shelf: what is kept of attempts and preemptions, and what goes when there is too much. State: all of it."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import final

from extender.records.kept import AttemptMade, Details, KeptAttempt, PreemptionMade, size_of_attempt, size_of_preemption
from extender.records.names import Naming

Made = AttemptMade | PreemptionMade


@final
@dataclass(frozen=True, slots=True)
class Limits:
    """How much is kept. Of what is too much the oldest goes first: details, then attempts, then preemptions."""

    attempts: int = 10_000
    preemptions: int = 1_000
    attempts_of_a_pod: int = 16
    """So that a pod that is tried again and again does not push the others out."""
    size: int = 64 * 2**20
    """Bytes, about, of everything together."""
    details_a_second: int = 10
    """Choices of which the scores are kept, refusals of which the verdicts, and preemptions of which the nodes that lost. More than that
    in a second are a crowd of pods, and what is kept of them would cost more than all the rest: of those the end alone is kept."""


@final
class Ration:
    """So many a second. State: how many are left of this one."""

    __slots__ = ("_a_second", "_left", "_now", "_second")

    def __init__(self, a_second: int, now: Callable[[], float]) -> None:
        self._a_second, self._left = a_second, 0
        self._now = now
        self._second = -1

    def take(self) -> bool:
        """Whether there was one left."""
        if self._left <= 0:
            second = int(self._now())
            if second == self._second:
                return False
            self._second, self._left = second, self._a_second
        self._left -= 1
        return self._left >= 0


@final
class Shelf:
    """Attempts, details and preemptions, by the id of the attempt, which rises with time."""

    def __init__(self, limits: Limits) -> None:
        self.naming = Naming()
        """Names of nodes, for details that are put here."""
        self._limits = limits
        self._attempts: OrderedDict[int, AttemptMade] = OrderedDict()
        self._of_pod: dict[str, tuple[int, ...]] = {}
        self._details: OrderedDict[int, tuple[Details, int]] = OrderedDict()  # with their size
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
        ids: Iterable[int] = reversed(self._attempts) if pod is None else reversed(self._of_pod.get(pod, ()))
        for number in ids:
            kept = self.attempt(number)
            if kept is not None and (before is None or number < before) and (uid is None or kept.made.pod.uid == uid):
                yield kept

    def attempt(self, number: int) -> KeptAttempt | None:
        """See `Records.attempt`."""
        made = self._attempts.get(number)
        if made is None:
            return None
        details, _ = self._details.get(number, (None, 0))
        return KeptAttempt(made, details, self._preemptions.get(number))

    def preemptions(self, pod: str | None, before: int | None) -> Iterator[PreemptionMade]:
        """See `Records.preemptions`."""
        for number, made in reversed(self._preemptions.items()):
            if (before is None or number < before) and (pod is None or made.by.key == pod or is_victim(pod, made)):
                yield made

    def last_preemption_for(self, uid: str) -> PreemptionMade | None:
        """The last one that made room for the pod of this UID."""
        number = self._last_preemption.get(uid)
        return None if number is None else self._preemptions.get(number)

    def everything(self) -> list[Made]:
        """All of it without details, each kind oldest first."""
        return [*self._preemptions.values(), *self._attempts.values()]

    # What comes and changes.

    def put(self, attempts: Iterable[AttemptMade]) -> None:
        """New attempts, newer than all others."""
        everything, of_pod, most = self._attempts, self._of_pod, self._limits.attempts_of_a_pod
        for made in attempts:
            number, key = made.id, made.pod.key
            everything[number] = made
            self._size += size_of_attempt(made)
            ids = of_pod.get(key)
            of_pod[key] = (number,) if ids is None else (*ids, number)
            if ids is not None and len(ids) >= most:
                self._drop(ids[0])
        self._keep_within_limits()

    def change(self, made: AttemptMade) -> None:
        """More is known of an attempt."""
        self._size += size_of_attempt(made) - size_of_attempt(self._attempts[made.id])
        self._attempts[made.id] = made
        self._keep_within_limits()

    def put_details(self, number: int, details: Details) -> None:
        """Details of the newest attempt, or of one that will be put here."""
        if number in self._details:
            self._drop_details(number)
        size = details.size
        self._details[number] = details, size
        self._size += size
        for arrays in (details.scores, details.verdicts):
            if arrays is not None:
                self.naming.used(arrays.nodes)
        self._keep_within_limits()

    def put_preemption(self, made: PreemptionMade) -> None:
        """A new preemption, or more is known of one."""
        known = self._preemptions.get(made.id)
        self._size += size_of_preemption(made) - (size_of_preemption(known) if known is not None else 0)
        self._preemptions[made.id] = made
        self._last_preemption[made.by.uid] = max(made.id, self._last_preemption.get(made.by.uid, 0))
        self._keep_within_limits()

    # What goes.

    def _keep_within_limits(self) -> None:
        limits = self._limits
        while len(self._attempts) > limits.attempts:
            self._drop(next(iter(self._attempts)))
        while len(self._details) > limits.attempts:
            self._drop_details(next(iter(self._details)))
        while len(self._preemptions) > limits.preemptions:
            self._drop_preemption()
        while self._size + self.naming.size > limits.size:
            if self._details:
                self._drop_details(next(iter(self._details)))
            elif self._attempts:
                self._drop(next(iter(self._attempts)))
            elif self._preemptions:
                self._drop_preemption()
            else:
                return

    def _drop(self, number: int) -> None:
        made = self._attempts.pop(number)
        self._size -= size_of_attempt(made)
        key = made.pod.key
        ids = self._of_pod[key]
        if len(ids) > 1:
            self._of_pod[key] = tuple(each for each in ids if each != number)
        else:
            del self._of_pod[key]
        if number in self._details:
            self._drop_details(number)

    def _drop_details(self, number: int) -> None:
        details, size = self._details.pop(number)
        self._size -= size
        for arrays in (details.scores, details.verdicts):
            if arrays is not None:
                self.naming.unused(arrays.nodes)

    def _drop_preemption(self) -> None:
        number, made = self._preemptions.popitem(last=False)
        self._size -= size_of_preemption(made)
        if self._last_preemption.get(made.by.uid) == number:
            del self._last_preemption[made.by.uid]


def is_victim(pod: str, made: PreemptionMade) -> bool:
    """Whether namespace/name had to go."""
    return any(victim.pod.key == pod for victim in made.victims)
