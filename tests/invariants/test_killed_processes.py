"""Real processes, real signals, real sockets: a scheduler is killed, or told to end, at each moment that matters, and another one comes.

Whoever comes afterwards finds what the first one has left at the API server, and nothing else. Time is real, and decides nothing.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from extender.embedded.api_resources import LEASES, PODS
from extender.testing.faults import Action, Call, Fault, answers
from tests.api.test_following import free_port, kubeconfig_for
from tests.invariants.door import SECONDS, Door, Hold, a_door
from tests.invariants.processes import Nursery, Scheduler, a_nursery, a_scheduler
from tests.invariants.worlds import World, a_world

CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {{leaderElect: {elects}, leaseDuration: 3s, renewDeadline: 2s, retryPeriod: 200ms}}
profiles:
- plugins: {{multiPoint: {{enabled: [{{name: Moments}}]}}}}
"""
POD = "web"
LOW = ("a", "b", "c")
"""Whoever has to go where room is made."""


@dataclass(frozen=True)
class Moment:
    """When a scheduler is stopped: a request of it that is held."""

    where: dict[str, Any]
    which: Callable[[Call], bool] | None = None
    skip: int = 0
    is_done: bool = False
    """The request is held after the server has done it, not before."""
    makes_room: bool = False
    """The pod fits only where others go."""
    waits: bool = False
    """The pod is to wait at Permit."""


def said(point: str) -> Moment:
    """The plugin says so."""
    return Moment({}, lambda call: call.request.url.path == f"/moments/{point}/{POD}")


def promises(call: Call) -> bool:
    return b"nominatedNodeName" in call.request.content


def announces(call: Call) -> bool:
    return b'"Scheduled"' in call.request.content


BINDING: dict[str, Any] = {"verb": "create", "resource": "pods", "subresource": "binding"}
PROMISE: dict[str, Any] = {"verb": "patch", "resource": "pods", "name": POD}
VICTIM: dict[str, Any] = {"verb": "delete", "resource": "pods"}

MOMENTS = {
    "it was popped": said("popped"),
    "it is assumed": said("assumed"),
    "it waits at Permit": Moment(PROMISE, promises, is_done=True, waits=True),
    "it is prepared": said("preparing"),
    "its binding was sent": Moment(BINDING),
    "its binding is done": Moment(BINDING, is_done=True),
    "its binding is known to be done": said("bound"),
    "its event is told": Moment({"verb": "create", "resource": "events"}, announces),
    "room is promised to it": Moment(PROMISE, promises, makes_room=True),
    "the promise is written": Moment(PROMISE, promises, is_done=True, makes_room=True),
    "its first victim is told": Moment(VICTIM, makes_room=True),
    "its second victim is told": Moment(VICTIM, skip=1, makes_room=True),
    "its second victim was told": Moment(VICTIM, skip=1, is_done=True, makes_room=True),
    "its last victim was told": Moment(VICTIM, skip=2, is_done=True, makes_room=True),
}
each_moment = pytest.mark.parametrize("moment", MOMENTS.values(), ids=MOMENTS.keys())
MORE_OF_THE_SAME = ("its event is told", "room is promised to it", "its first victim is told", "its second victim was told")


@pytest.fixture(scope="module")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    with a_nursery({"Moments": "tests.invariants.moments:Moments"}, tmp_path_factory.mktemp("distribution")) as found:
        yield found


class Stage:
    """A cluster, its API server, and schedulers that come and go."""

    def __init__(self, world: World, door: Door, nursery: Nursery, folder: Path) -> None:
        self.world = world
        self.door = door
        self.metrics = f"http://127.0.0.1:{(port := free_port())}/metrics"
        self._port = port
        self._nursery = nursery
        self._folder = folder
        self._started = 0

    @asynccontextmanager
    async def a_scheduler(self, *, elects: bool = False) -> AsyncIterator[Scheduler]:
        """A process. With an election it has to lead first."""
        self._started += 1
        config = self._folder / "config.yaml"
        config.write_text(CONFIGURATION.format(elects=str(elects).lower()))
        kubeconfig = kubeconfig_for(int(self.door.url.rpartition(":")[2]), self._folder)
        arguments = ["serve", "--schedule", "--port", str(self._port), "--kubeconfig", str(kubeconfig), "--config", str(config)]
        log = self._folder / f"{self._started}.log"
        async with a_scheduler(self._nursery, arguments, {"MOMENTS": self.door.url}, log) as scheduler:
            yield scheduler

    def holder(self) -> str:
        """Who leads."""
        return str(self.world.registry.get(LEASES, "kube-system", "kube-scheduler")["spec"]["holderIdentity"])

    def hold(self, moment: Moment) -> Hold:
        """The request of that moment is held."""
        hold = Hold()
        if moment.waits:
            there = Fault(answers.answer("{}"), where=lambda call: call.request.url.path == f"/moments/permit/{POD}")
            self.door.faults.add(there)
        action: Action = hold.after() if moment.is_done else hold.before()
        self.door.faults.add(Fault(action, **moment.where, where=moment.which, skip=moment.skip))
        return hold

    def fill(self, moment: Moment) -> None:
        """The cluster as it is before the pod comes: its nodes are full, unless there is to be room."""
        world = self.world
        for node, priority, names in (("n", "low", LOW), ("m", "middle", ("x", "y", "z"))):
            world.node(node, "3")
            for name in names:
                world.pod(name, "1", priority=priority, nodeSelector={"name": node}, terminationGracePeriodSeconds=0)
        for name in ("a", "b", "c", "x", "y", "z"):
            world.bind(name, "n" if name in LOW else "m")
        if not moment.makes_room:
            world.node("k", "3")
        world.pod(POD, "3", priority="high")

    async def converges(self) -> None:
        """V1, V2, V3, V4, V13; and V6 and V8 as far as the process that is there now says."""
        world = self.world
        async with httpx.AsyncClient(trust_env=False) as client:
            await eventually(lambda: self._is_idle(client))
        assert world.witness.complaints == []
        assert len([write for write in world.witness.done("binding") if write.name == POD]) == 1

    async def _is_idle(self, client: httpx.AsyncClient) -> bool:
        if not all(pod["spec"].get("nodeName") for pod in self.world.registry.list(PODS)):
            return False
        try:
            text = (await client.get(self.metrics)).text
        except httpx.TransportError:
            return False
        figures = dict(line.rpartition(" ")[::2] for line in text.splitlines() if not line.startswith("#"))
        waiting = [float(value) for name, value in figures.items() if name.startswith("scheduler_pending_pods{")]
        return bool(waiting) and sum(waiting) == 0 and float(figures['scheduler_cache_size{type="assumed_pods"}']) == 0


async def eventually(holds: Callable[[], Coroutine[Any, Any, bool]]) -> None:
    deadline = asyncio.get_running_loop().time() + SECONDS
    while not await holds():
        assert asyncio.get_running_loop().time() < deadline
        await asyncio.sleep(0.02)


def on_a_stage(nursery: Nursery, folder: Path, tell: Callable[[Stage], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        async with a_world() as world, a_door(world) as door:
            await tell(Stage(world, door, nursery, folder))

    asyncio.run(run())


@each_moment
def test_the_next_process_carries_on_where_one_was_killed(moment: Moment, nursery: Nursery, tmp_path: Path) -> None:
    """
    F28: kill -9. Nobody is bound twice, no more victims go than had to, and everybody runs in the end.
    """

    async def tell(stage: Stage) -> None:
        hold = stage.hold(moment)
        stage.fill(moment)
        async with stage.a_scheduler() as first:
            async with asyncio.timeout(SECONDS):
                await hold.reached.wait()
            first.told(signal.SIGKILL)
            assert await first.ends() == -signal.SIGKILL
        hold.drop()
        async with stage.a_scheduler():
            await stage.converges()

        gone = {"a", "b", "c", "x", "y", "z"} - set(stage.world.names())
        assert gone == (set(LOW) if moment.makes_room else set())

    on_a_stage(nursery, tmp_path, tell)


@pytest.mark.parametrize("name", [name for name in MOMENTS if name not in MORE_OF_THE_SAME])
def test_who_is_told_to_end_does_what_was_decided_and_leaves_the_rest(name: str, nursery: Nursery, tmp_path: Path) -> None:
    """
    F29: SIGTERM. It ends by itself and in order: nothing that it could still do is left when the lease is given back.
    """
    moment, elects = MOMENTS[name], name in ("its binding was sent", "its second victim is told")

    async def tell(stage: Stage) -> None:
        hold = stage.hold(moment)
        stage.fill(moment)
        async with stage.a_scheduler(elects=elects) as first:
            async with asyncio.timeout(SECONDS):
                await hold.reached.wait()
            first.told(signal.SIGTERM)
            await asyncio.sleep(0.1)
            hold.go()
            assert await first.ends() == 0
            assert "Traceback" not in first.said()
            assert not elects or stage.holder() == ""
            if not (moment.waits or moment.makes_room):
                assert stage.world.node_of(POD)  # decided is decided
        async with stage.a_scheduler():
            await stage.converges()

        gone = {"a", "b", "c", "x", "y", "z"} - set(stage.world.names())
        assert gone == (set(LOW) if moment.makes_room else set())

    on_a_stage(nursery, tmp_path, tell)


@pytest.mark.parametrize("name", ["it is prepared", "its binding was sent", "its binding is done", "its second victim is told"])
def test_told_a_second_time_it_ends_at_once(name: str, nursery: Nursery, tmp_path: Path) -> None:
    """
    F29: what is under way is left to the next one, as if it had been killed; the exit code and the last line say so.
    """

    async def tell(stage: Stage) -> None:
        hold = stage.hold(MOMENTS[name])
        stage.fill(MOMENTS[name])
        async with stage.a_scheduler() as first:
            async with asyncio.timeout(SECONDS):
                await hold.reached.wait()
            first.told(signal.SIGTERM)
            await eventually(first.says("Shutting down"))
            first.told(signal.SIGTERM)
            assert await first.ends() == 1
            assert first.said().splitlines()[-1].startswith("reprieve: told to end a second time")
        hold.drop()
        async with stage.a_scheduler():
            await stage.converges()

    on_a_stage(nursery, tmp_path, tell)


def test_told_again_when_it_has_finished_it_ends_as_it_was_going_to(nursery: Nursery, tmp_path: Path) -> None:
    """
    F29: or says that it was told a second time; but the signal does not kill it.
    """

    async def tell(stage: Stage) -> None:
        async with stage.a_scheduler() as first:
            await eventually(first.says("Application startup complete"))
            first.told(signal.SIGTERM)
            while "Finished server process" not in first.said():  # noqa: ASYNC110 - another process writes it
                await asyncio.sleep(0)
            first.told(signal.SIGTERM)
            assert await first.ends() in (0, 1)

    on_a_stage(nursery, tmp_path, tell)
