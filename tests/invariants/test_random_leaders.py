"""Whatever happens to replicas and to what lies between them and the API server, only one leads, and only who
leads writes.

Each run is a seed. Replicas are cut off, fall asleep, die, are told to end, lose the lease, and others come; pods come
all the time.
"""

import asyncio
import os
import random
from contextlib import suppress
from typing import Final, final

import httpx
import pytest

from extender.rules.api_resources import LEASES
from extender.rules.statuses import ApiStatus
from extender.values.config.configuration import Configuration
from tests.invariants.oracle import neglected_pods
from tests.invariants.worlds import World, a_world, now
from tests.kit.faults import Action, Call, Fault, answers
from tests.kit.replicas import Replica

SEEDS: Final = range(int(os.environ.get("INVARIANT_SEEDS", "3")))
STEPS: Final = 50
ELECTION: Final = Configuration().leader_election
HAPPENINGS: Final = (
    "pod", "pod", "pod", "end", "lease", "lease", "other", "cut off", "asleep", "killed", "told to end", "lost",
)  # fmt: skip
LEASE_FAULTS: Final[tuple[Action, ...]] = (
    answers.status(500),
    answers.status(409),
    answers.status(403),
    answers.black_hole(),
    answers.commit_then_drop(),
    answers.drop_before_commit(),
    answers.delay(4),
)
OTHER_FAULTS: Final[tuple[Action, ...]] = (
    answers.delay(3),
    answers.commit_then_drop(),
    answers.status(500),
    answers.black_hole(),
)


@final
class LeaderMonitor(httpx.AsyncBaseTransport):
    """In front of the API server, for one replica: says when it has written without being the one who may."""

    def __init__(self, name: str, world: World) -> None:
        self.complaints: list[str] = []
        self.num_writes = 0
        self.name = name
        self._world = world
        self._renewed = -1e9

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        call = Call.of(request, now())
        response = await self._world.monitor.handle_async_request(request)
        if request.method == "GET" or response.status_code >= 300:
            return response
        if call.resource == "leases":
            self._renewed = now()
            return response
        self.num_writes += 1
        spec = self._world.registry.get(LEASES, "kube-system", "kube-scheduler")["spec"]
        if spec.get("holderIdentity") != self.name:
            self.complaints.append(
                f"leader only: {self.name} has written to {call.resource}, and {spec.get('holderIdentity')!r} leads"
            )
        if now() - self._renewed > ELECTION.lease_duration.seconds:
            self.complaints.append(
                f"leader only: {self.name} has written {now() - self._renewed:.0f} s after it had renewed its lease"
            )
        return response

    async def aclose(self) -> None:
        """The server stays."""


@final
class Company:
    """Replicas that come and go, two at a time."""

    def __init__(self, world: World, seed: int) -> None:
        self.replicas: list[Replica] = []
        self.monitors: list[LeaderMonitor] = []
        self._world = world
        self._rng = random.Random(seed)

    async def fill_up(self) -> None:
        """Whoever has ended is replaced, as a Deployment does."""
        for replica in [replica for replica in self.replicas if replica.why_over]:
            await self.dismiss(replica, kindly=True)
        while len(self.replicas) < 2:
            monitor = LeaderMonitor(f"r{len(self.monitors) + 1}", self._world)
            self.monitors.append(monitor)
            self.replicas.append(await Replica(monitor.name, monitor).start())

    async def dismiss(self, replica: Replica, *, kindly: bool) -> None:
        self.replicas.remove(replica)
        await (replica.stop() if kindly else replica.kill())

    async def something_happens(self) -> None:
        rng, replica = self._rng, self._rng.choice(self.replicas)
        with suppress(ApiStatus):
            match rng.choice(HAPPENINGS):
                case "pod":
                    self._world.new_pod(
                        f"p{rng.randrange(30)}", rng.choice(("500m", "1")), terminationGracePeriodSeconds=0
                    )
                case "end":
                    self._world.delete(rng.choice(self._world.names()) if self._world.names() else "", at_once=True)
                case "lease":
                    fault = Fault(rng.choice(LEASE_FAULTS), resource="leases", times=rng.choice((1, 4, 20)))
                    replica.transport.add(fault)
                case "other":
                    replica.transport.add(
                        Fault(rng.choice(OTHER_FAULTS), resource="pods", verb="create", times=rng.choice((1, 3)))
                    )
                case "cut off":
                    replica.transport.go_down()
                    await asyncio.sleep(rng.choice((1, 5, 12, 25)))
                    replica.transport.come_up()
                case "asleep":
                    replica.slept += rng.choice((3, 9, 11, 30))
                case "killed":
                    await self.dismiss(replica, kindly=False)
                case "told to end":
                    await self.dismiss(replica, kindly=True)
                # Who has never seen who leads cannot know that somebody does: nothing guards against that but time.
                case "lost" if len({peer.elector.leader for peer in self.replicas}) == 1:
                    self._world.registry.delete(LEASES, "kube-system", "kube-scheduler")
        await asyncio.sleep(rng.choice((0, 0.1, 1, 3)))
        await self.fill_up()

    def complaints(self) -> list[str]:
        by_leaders = [complaint for monitor in self.monitors for complaint in monitor.complaints]
        return by_leaders + self._world.monitor.complaints

    def mend(self) -> None:
        for replica in self.replicas:
            replica.transport.faults.clear()


async def a_run(seed: int) -> Company:
    async with a_world(seed) as world:
        await world.life.kill()
        for number in range(3):
            world.new_node(f"n{number}", "4")
        company = Company(world, seed)
        await company.fill_up()
        for _ in range(STEPS):
            await company.something_happens()
        company.mend()
        await asyncio.sleep(60)
        await company.fill_up()
        await asyncio.sleep(30)
        assert len([replica for replica in company.replicas if replica.elector.fence() is None]) == 1
        assert list(neglected_pods(world)) == []
        for replica in [*company.replicas]:
            await company.dismiss(replica, kindly=True)
        return company


@pytest.mark.parametrize("seed", SEEDS)
async def test_only_the_leader_writes(seed: int) -> None:
    """And the monitor has nothing to say, whoever has decided."""
    company = await a_run(seed)

    assert company.complaints() == []
    assert sum(monitor.num_writes > 0 for monitor in company.monitors) >= 2


async def test_write_after_the_lease_was_taken_is_reported() -> None:
    """Somebody takes the lease away, which its holder can only learn when it renews it."""
    async with a_world() as world:
        await world.life.kill()
        world.new_node("n")
        monitor = LeaderMonitor("first", world)
        replica = await Replica("first", monitor).start()
        await asyncio.sleep(9)
        lease = world.registry.get(LEASES, "kube-system", "kube-scheduler")
        lease["spec"]["holderIdentity"] = "thief"
        world.registry.update(LEASES, "kube-system", "kube-scheduler", lease)
        world.new_pod("web")
        await asyncio.sleep(1)
        await replica.kill()

    assert "leader only: first has written to pods, and 'thief' leads" in monitor.complaints
