"""What a scheduler keeps and tells, and the file of its records."""

import asyncio
import logging
from collections.abc import Callable
from logging.handlers import BufferingHandler
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from msgspec.structs import replace

from extender.answers.records.file import kept_in
from extender.answers.records.records import Records
from extender.engine import framework as fwk
from extender.engine.framework.devices import LongWork
from extender.engine.preemption.victim_policy import Losses
from extender.engine.queue import QueuedPodInfo
from extender.engine.scheduler.pod_group_cycle import IgnoredAnnotations
from extender.testing import make_pod, make_snapshot
from extender.values.config.plugin_args import EvictionCost
from extender.values.objects.decoding import replaced
from extender.values.objects.pod import Pod
from tests.extender.answers.explain.test_preemption import PENDING, node, outcome_of, running
from tests.extender.engine.scheduler.test_scheduler import Thorough, ended, scheduled_by, until
from tests.kit.told_scheduler import NOON, ToldScheduler
from tests.limits.of_objects import group
from tests.limits.rows import Filled


class TwiceThorough(Thorough):
    """Works twice in the thread for each pod, once all have been tried. State: for which pods, in order."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.worked: list[str] = []
        self.untried = number

    def filter(self, state: fwk.CycleState, pod: Pod, rows: fwk.Rows) -> fwk.Verdicts:
        if self.rounds.get(pod.name, 0) < 2:
            self.untried -= 1
            if not self.untried:
                self.may_end.release(1000)

            def work(_: Callable[[], bool]) -> None:
                self.may_end.acquire()
                self.worked.append(pod.name)
                self.rounds[pod.name] = self.rounds.get(pod.name, 0) + 1

            raise LongWork(work)
        return fwk.accept(len(rows))


async def searched(number: int) -> int:
    """Returns for how many of so many pods work is done in the thread before it goes on for one of them."""
    thorough = TwiceThorough(number)
    _, scheduler = scheduled_by(thorough, *(make_pod(f"p{index}") for index in range(number)))
    scheduling = asyncio.ensure_future(scheduler.run())
    await until(lambda: len(thorough.bound) == number)
    await ended(scheduling)
    return next(index for index, name in enumerate(thorough.worked) if name in thorough.worked[:index])


def losses_are_kept(number: int) -> bool:
    """Whether the loss of a pod is kept beside so many, and not computed again, which is logged as it cannot be."""
    log, handler = logging.getLogger("extender.engine.preemption.victim_policy"), BufferingHandler(10**6)
    losses = Losses(EvictionCost(per_hour='double(annotations["price"])'), lambda: NOON)
    # One pod each, for which two are kept besides.
    snapshots = [make_snapshot(node("n"), pods=[running(f"p{index}", "n")]) for index in range(number + 2)]
    level = log.level
    log.addHandler(handler)
    log.setLevel(1)
    try:
        for snapshot in (*snapshots, snapshots[0]):
            losses.of(snapshot, np.array([0]))
    finally:
        log.setLevel(level)
        log.removeHandler(handler)
    return len(handler.buffer) == len(snapshots)


async def annotations_told(number: int) -> int:
    """Returns how often so many groups are told that an annotation is ignored, the first one asked about again."""
    ignored, scheduler = IgnoredAnnotations(), ToldScheduler()
    (framework,) = scheduler.alone.frameworks.values()
    groups = [
        replaced(ignored_group, metadata=replaced(ignored_group.metadata, name=f"g{index}", uid=f"g{index}"))
        for index, ignored_group in enumerate([group("soon")] * number)
    ]
    for ignored_group in (*groups, groups[0]):
        ignored.tell(framework, scheduler.alone.world, ignored_group)
    await asyncio.sleep(0)  # what was submitted is written
    return len(scheduler.writes.calls)


def takers(number: int) -> int:
    """Returns how many of the pods that took the room of a preemption are kept."""
    records, info = Records(now=NOON.timestamp), QueuedPodInfo(PENDING.obj(), 0.0)
    outcome = outcome_of(make_snapshot(node("n"), pods=[running("p", "n")]), PENDING.obj())
    came = tuple(make_pod(f"p{index}").obj() for index in range(number))
    records.preemption_tried(info.pod, outcome)
    records.failed(info, "default-scheduler", outcome.status, 0.0)
    records.preemption_tried(info.pod, replace(outcome, chosen=None, last_room_taken_by=came))
    (record,) = records.preemptions()
    return len(record.room_taken_by)


async def is_replaced(size: int) -> bool:
    """Whether a file of records that has so many bytes is replaced by one of at most half that length."""

    def noted(uid: str) -> None:
        pod = make_pod("p").uid(uid).obj()
        records.decided(QueuedPodInfo(pod, 0.0), "default-scheduler", "n", 1, 1, 0.0)

    with TemporaryDirectory() as folder:
        path = Path(folder) / "records"
        async with kept_in(path, now=NOON.timestamp) as records:
            noted("u")
            await asyncio.sleep(1.5)
            of_one = path.stat().st_size
            noted("u" * (1 + size - 3 * of_one))
            noted("u")
            await asyncio.sleep(1.5)
            return path.stat().st_size <= size // 2


async def waiting(number: int) -> list[str]:
    """Returns the first and the last of so many records that are written once the disk takes some."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "records"
        async with kept_in(path) as records:
            for index in range(number):
                info = QueuedPodInfo(make_pod(f"p{index}").obj(), 0.0)
                records.decided(info, "default-scheduler", "n", 1, 1, 0.0)
        async with kept_in(path) as restored:
            names = [attempt.record.pod.name for attempt in restored.attempts()]
    return [names[-1], names[0]]


SCHEDULING: dict[str, Filled] = {
    "DEVICE_SEARCHES": Filled(lambda n: asyncio.run(searched(n)), at=2, above=2, lowered_to=2),
    "LOSSES_KEPT": Filled(losses_are_kept, at=True, above=False, lowered_to=10),
    "IGNORED_ANNOTATIONS": Filled(annotations_told, at=1000, above=1002),
    "TAKERS_KEPT": Filled(takers, at=8, above=8),
    "RECORDS_FILE_BYTES": Filled(is_replaced, at=False, above=True, lowered_to=5000),
    "RECORDS_WAITING": Filled(waiting, at=["p0", "p9"], above=["p1", "p10"], lowered_to=10),
}
