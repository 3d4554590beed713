"""The loop: who is taken up, and when nobody is."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest

from extender.engine import framework as fwk
from extender.engine.framework.devices import LongWork
from extender.engine.scheduler.scheduler import PODS_IN_A_ROW, Scheduler
from extender.engine.scheduler.world import BindsInFlight
from extender.testing import PodBuilder, make_node, make_pod
from extender.values.objects.pod import Pod
from tests.extender.engine.scheduler.stage import PROFILE, Stage, a_stage


class Slow(fwk.PermitPlugin, fwk.BindPlugin):
    """Binds when it may. Pods with the label `waits` wait at Permit."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.may = asyncio.Event()

    def permit(self, state: fwk.CycleState, pod: Pod, node: str) -> tuple[fwk.Status, float]:
        return (fwk.Status(fwk.Code.WAIT), 600.0) if "waits" in pod.labels else (fwk.SUCCESS, 0.0)

    async def bind(self, state: fwk.CycleState, pod: Pod, node: str) -> fwk.Status:
        self.asked.append(pod.name)
        await self.may.wait()
        return fwk.SUCCESS


class DefaultBinder(Slow):
    """Has the name of a plugin of the tree, so that pods are decided in a row."""


async def ended(running: asyncio.Task[None]) -> None:
    running.cancel()
    await asyncio.wait([running])


def scheduling(max_binds: int, names: list[str], waiting: int = 0) -> tuple[Scheduler, Slow]:
    slow = DefaultBinder()
    stage = a_stage(slow)
    stage.node(make_node("n").capacity(cpu="64", pods="110"))
    for number in range(waiting):
        stage.tell(None, make_pod(f"waits{number}").label(waits="yes").priority(9))
    for name in names:
        stage.tell(None, make_pod(name))
    world = replace(stage.world, binds=BindsInFlight(max_binds))
    return Scheduler(world, {PROFILE: stage.framework}), slow


async def test_no_pod_is_popped_while_too_many_bindings_are_unanswered() -> None:
    """No unbounded growth of tasks while the API server is away; whoever waits at Permit keeps nobody from being
    tried.
    """
    scheduler, slow = scheduling(2, ["a", "b", "c", "d"], waiting=5)
    running = asyncio.ensure_future(scheduler.run())
    await asyncio.sleep(60)
    at_first = [*slow.asked]
    slow.may.set()
    await asyncio.sleep(60)
    await ended(running)

    assert at_first == ["a", "b"]
    assert slow.asked == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("pod", "plugins", "is_nominated", "in_a_row"),
    [
        (make_pod("p").req(cpu="1m"), [], False, PODS_IN_A_ROW),
        (make_pod("p").req(cpu="1"), [], False, 1),
        (make_pod("p").req(cpu="1m").annotation(long="x" * 5000), [], False, 1),
        (make_pod("p").req(cpu="1m"), [], True, 1),
        (make_pod("p").req(cpu="1m"), [Slow], False, 1),
    ],
    ids=["of pods that fit", "that fit nowhere", "of long pods", "while one is nominated", "by a plugin of one's own"],
)
async def test_other_tasks_get_a_turn_after_a_number(
    pod: PodBuilder, plugins: list[type[Slow]], is_nominated: bool, in_a_row: int
) -> None:
    """A long queue keeps out neither changes of the cluster nor requests. What may take long comes alone, and each pod
    while victims have to be seen to go.
    """
    stage = a_stage(*(plugin() for plugin in plugins))
    stage.node(make_node("n").capacity(cpu="100m", pods="110"))
    if is_nominated:
        preemptor = make_pod("preemptor").uid("preemptor").req(cpu="1").priority(-1)
        stage.tell(None, preemptor)
        stage.world.queue.add_nominated_pod(preemptor.obj(), "n")
    for number in range(40):
        stage.tell(None, pod.name(f"p{number}").uid(f"p{number}"))
    queue, lengths = stage.world.queue, list[int]()
    running = asyncio.ensure_future(Scheduler(stage.world, {PROFILE: stage.framework}).run())
    while not lengths or lengths[-1]:
        lengths.append(len(queue.pods_in_active_q()))
        await asyncio.sleep(0)
    await ended(running)

    assert max(before - after for before, after in pairwise(lengths)) == in_a_row


async def test_stopped_scheduler_pops_no_pod_and_finishes_its_bindings() -> None:
    scheduler, slow = scheduling(2, ["a", "b", "c"])
    running = asyncio.ensure_future(scheduler.run())
    await asyncio.sleep(60)
    scheduler.stop()
    asyncio.get_running_loop().call_later(3, slow.may.set)
    await running

    assert slow.asked == ["a", "b"]
    assert asyncio.get_running_loop().time() == pytest.approx(63)


class Thorough(fwk.FilterPlugin, fwk.BindPlugin):
    """Works in the thread for pods with the label `long`, as often as it says."""

    looks_at_pods = False

    def __init__(self) -> None:
        super().__init__()
        self.rounds: dict[str, int] = {}
        self.bound: list[str] = []
        self.at_work = threading.Semaphore(0)
        self.may_end = threading.Semaphore(0)

    def filter(self, state: fwk.CycleState, pod: Pod, rows: fwk.Rows) -> fwk.Verdicts:
        if self.rounds.get(pod.name, 0) < int(pod.labels.get("long", 0)):

            def work(is_wanted: Callable[[], bool]) -> None:
                self.at_work.release()
                self.may_end.acquire()
                self.rounds[pod.name] = self.rounds.get(pod.name, 0) + 1

            raise LongWork(work)
        return fwk.accept(len(rows))

    async def bind(self, state: fwk.CycleState, pod: Pod, node: str) -> fwk.Status:
        self.bound.append(pod.name)
        return fwk.SUCCESS


async def until(holds: Callable[[], bool]) -> None:
    """Waits in real time, because threads are at work."""
    while not holds():  # noqa: ASYNC110  (nothing signals it)
        await asyncio.sleep(0.001)


def scheduled_by(thorough: Thorough, *pods: PodBuilder) -> tuple[Stage, Scheduler]:
    stage = a_stage(thorough)
    stage.node(make_node("n").capacity(cpu="64", pods="110"))
    for pod in pods:
        stage.tell(None, pod)
    return stage, Scheduler(stage.world, {PROFILE: stage.framework})


def test_other_pods_are_scheduled_while_a_plugin_works_on_one() -> None:
    """The pod keeps its place before the others, and its attempts count as one."""

    async def main() -> tuple[list[str], list[str], float]:
        thorough = Thorough()
        stage, scheduler = scheduled_by(thorough, make_pod("long").label(long="2").priority(9), make_pod("short"))
        running = asyncio.ensure_future(scheduler.run())
        await asyncio.to_thread(thorough.at_work.acquire)
        await asyncio.sleep(0)
        await until(lambda: bool(thorough.bound))
        meanwhile = [*thorough.bound]
        thorough.may_end.release(2)
        await until(lambda: len(thorough.bound) == 2)
        await ended(running)
        return meanwhile, thorough.bound, stage.world.metrics.attempts["scheduled", PROFILE]

    assert asyncio.run(main()) == (["short"], ["short", "long"], 2)


@pytest.mark.parametrize("is_deleted", [True, False], ids=["deleted", "changed"])
def test_a_pod_changes_while_a_plugin_works_on_it(is_deleted: bool) -> None:
    """A deleted pod is not tried again. A changed one is tried as it is then."""

    async def main() -> tuple[list[str], int]:
        thorough = Thorough()
        pod = make_pod("long").label(long="1")
        stage, scheduler = scheduled_by(thorough, pod)
        running = asyncio.ensure_future(scheduler.run())
        await asyncio.to_thread(thorough.at_work.acquire)
        stage.tell(pod, None if is_deleted else make_pod("long").uid(pod.obj().uid).label(changed="yes"))
        thorough.may_end.release()
        await until(lambda: not stage.world.queue.in_flight_pods() and (is_deleted or bool(thorough.bound)))
        await ended(running)
        return thorough.bound, len(list(stage.world.queue.pods_in_active_q()))

    assert asyncio.run(main()) == ([] if is_deleted else ["long"], 0)


def test_a_plugin_that_fails_in_the_thread_loses_no_pod() -> None:
    async def main() -> bool:
        thorough = Thorough()
        thorough.may_end = threading.Semaphore(99)
        thorough.at_work = None  # type: ignore[assignment]  # so that the work raises
        pod = make_pod("long").label(long="1")
        stage, scheduler = scheduled_by(thorough, pod)
        running = asyncio.ensure_future(scheduler.run())
        await until(lambda: not stage.world.queue.in_flight_pods() and stage.waits(pod))
        await ended(running)
        return stage.waits(pod)

    assert asyncio.run(main())
