"""Evictions in the order in which they happen, and the loops among them: pods that would push each other out for ever."""

from collections.abc import Mapping, Sequence
from typing import final

from extender import framework as fwk
from extender.answers.courses import LostPlace
from extender.answers.types import EvictionLoop, PodName
from extender.answers.waiting import pod_name
from extender.objects.pod import Pod


@final
class Evictions:
    """State: all of them, and when who last pushed whom from where."""

    def __init__(self) -> None:
        self._all: list[LostPlace] = []
        self._last_time: dict[tuple[str, str, str], int] = {}
        """UIDs of who and whom, and from which node -> the place in `_all`."""

    def add(self, lost: LostPlace) -> None:
        """Somebody has lost his place."""
        if lost.by is not None:
            self._last_time[lost.by.uid, lost.victim.pod.uid, lost.node] = len(self._all)
        self._all.append(lost)

    @property
    def all(self) -> Sequence[LostPlace]:
        """The first one first."""
        return self._all

    def loop(self, pod: Pod, victims: fwk.NodeVictims) -> EvictionLoop | None:
        """The loop that would begin anew if these victims went for the pod; None if there is none.

        They went for it before, from the same node, and nobody had to do with it since but those that were evicted themselves: so
        everything is as it was then.
        """
        times = [self._last_time.get((pod.uid, victim.uid, victims.node)) for victim in victims.pods]
        known = [at for at in times if at is not None]
        turn = self._all[min(known) :] if known else []
        by = {lost.by.uid if lost.by is not None else "" for lost in turn}
        if not turn or by - {lost.victim.pod.uid for lost in turn} - {pod.uid}:
            return None
        steps = [f"{_key(lost.by)} evicts {_key(lost.victim.pod)} from {lost.node}" for lost in turn if lost.by is not None]
        steps.append(f"{pod.key} would evict {victims.pods[0].key} from {victims.node} again")
        return EvictionLoop(pods=tuple(_names(pod, turn).values()), text=f"{', then '.join(steps)}, and so on for ever")


def _names(pod: Pod, turn: Sequence[LostPlace]) -> Mapping[str, PodName]:
    """Everybody who is in it, once; the pod first."""
    names = {pod.uid: pod_name(pod)}
    for lost in turn:
        names.setdefault(lost.victim.pod.uid, lost.victim.pod)
    return names


def _key(name: PodName) -> str:
    return f"{name.namespace}/{name.name}"
