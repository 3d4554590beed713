"""Anything may happen to a cluster, and anything may go wrong between it and its scheduler: once it is quiet, all is as
it should be.

Each run is a seed. It has phases: for a while things happen and faults come and go; then all is mended, and the oracle
looks.
"""

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, final

import pytest

from extender.client.informers.reflector import SHORT_WATCH
from extender.rules.api_resources import NODES
from extender.rules.statuses import ApiStatus
from extender.testing import virtual_time
from tests.invariants.oracle import settles, wrong_at_rest
from tests.invariants.planted_bugs import BUGS
from tests.invariants.possible_faults import LATE, LISTS, WATCHES, WRITES, begins_with_no_list
from tests.invariants.worlds import NO_BUGS, RELIST, Bugs, World, a_world
from tests.kit.faults import Fault

SEEDS: Final = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 10))]
PHASES: Final = 3
STEPS: Final = 60
NODE_NAMES: Final = [f"n{number}" for number in range(5)]
POD_NAMES: Final = [f"p{number}" for number in range(40)]


@final
class Chaos:
    """What happens to a world, by chance."""

    def __init__(self, world: World, seed: int) -> None:
        self._world = world
        self._rng = random.Random(seed)
        self._acts: list[tuple[int, Callable[[], None]]] = [
            (30, self._a_pod_comes),
            (10, self._a_pod_goes),
            (5, self._a_pod_is_made_again),
            (5, self._a_pod_changes),
            (3, self._a_gate_opens),
            (4, self._a_node_comes),
            (2, self._a_node_goes),
            (3, self._a_node_is_cordoned_or_not),
            (2, world.budget_comes_or_goes),
            (8, self._a_fault_begins),
            (3, self._faults_end),
            (3, self._watches_break),
            (1, self._history_is_forgotten),
        ]

    async def happens(self) -> None:
        """One thing, and a while."""
        ((_, act),) = self._rng.choices(self._acts, [weight for weight, _ in self._acts])
        with suppress(ApiStatus):  # the API server would not have it
            act()
        if self._rng.random() < 0.02:
            self._world.faults.go_down()
            await asyncio.sleep(self._rng.choice((1, 15)))
            self._world.faults.come_up()
        await asyncio.sleep(self._rng.choice((0, 0, 0.01, 0.3, 1, 4)))

    async def is_killed(self) -> None:
        """The scheduler is killed and begins again; not while a binding is on its way that it could know nothing of."""
        self._faults_end()
        await asyncio.sleep(2 * LATE)
        await self._world.restart()

    def begins(self) -> None:
        """All nodes are there."""
        for name in NODE_NAMES:
            self._world.new_node(name)

    async def rages(self) -> None:
        """For a while; then all faults end, and whatever was still being said."""
        for _ in range(STEPS):
            await self.happens()
        self._faults_end()
        self._watches_break()

    def _a_pod_comes(self) -> None:
        free = sorted(set(POD_NAMES) - set(self._world.names()))
        if free:
            self._make(self._rng.choice(free))

    def _make(self, name: str) -> None:
        rng = self._rng
        spec: dict[str, Any] = {}
        if rng.random() < 0.1:
            spec["schedulingGates"] = [{"name": "wait"}]
        if rng.random() < 0.1:
            spec["nodeSelector"] = {"name": rng.choice(NODE_NAMES)}
        if rng.random() < 0.1:
            spec["container"] = {"ports": [{"containerPort": 80, "hostPort": rng.choice((80, 81))}]}
        cpu = rng.choice(("100m", "500m", "900m", "1500m", "3"))
        priority = rng.choice(("", "", "low", "middle", "high"))
        annotations = {"reprieve.dev/runs-for": "20s"} if rng.random() < 0.1 else {}
        self._world.new_pod(
            name,
            cpu,
            priority=priority,
            labels={"app": rng.choice("ab")},
            metadata={"annotations": annotations},
            restartPolicy="Never",
            terminationGracePeriodSeconds=rng.choice((0, 1, 30)),
            **spec,
        )

    def _a_pod_goes(self) -> None:
        names = self._world.names()
        if names:
            self._world.delete(self._rng.choice(names), at_once=self._rng.random() < 0.3)

    def _a_pod_is_made_again(self) -> None:
        names = self._world.names()
        if names:
            name = self._rng.choice(names)
            self._world.delete(name, at_once=True)
            self._make(name)

    def _a_pod_changes(self) -> None:
        names = self._world.names()
        if names:
            self._world.relabel(self._rng.choice(names), self._rng.choice("ab"))

    def _a_gate_opens(self) -> None:
        gated = self._world.gated()
        if gated:
            self._world.open_gates(self._rng.choice(gated))

    def _a_node_comes(self) -> None:
        free = sorted(set(NODE_NAMES) - set(self._world.names(NODES)))
        if free:
            self._world.new_node(self._rng.choice(free), cpu="2")

    def _a_node_goes(self) -> None:
        names = self._world.names(NODES)
        if len(names) > 1:
            self._world.delete(self._rng.choice(names), NODES)

    def _a_node_is_cordoned_or_not(self) -> None:
        names = self._world.names(NODES)
        if names:
            self._world.cordon_or_not(self._rng.choice(names))

    def _a_fault_begins(self) -> None:
        rng = self._rng
        verb = rng.choice(("create", "create", "patch", "delete", "list", "watch", "get"))
        make = rng.choice({"watch": WATCHES, "list": LISTS, "get": LISTS}.get(verb, WRITES))
        # In a list nothing is left out: who is lied to about what is there over-commits nodes, and so would
        # kube-scheduler.
        times, probability = rng.choice((1, 3, None)), rng.choice((0.3, 1.0))
        self._world.faults.add(
            Fault(make(), verb=verb, where=begins_with_no_list, times=times, probability=probability)
        )

    def _faults_end(self) -> None:
        self._world.faults.faults.clear()

    def _watches_break(self) -> None:
        self._world.faults.cut(cleanly=self._rng.random() < 0.5)

    def _history_is_forgotten(self) -> None:
        self._world.monitor.learn_nominations()
        store = self._world.registry.store
        store.compact(store.resource_version)


async def a_run(seed: int) -> World:
    """A world that has been through all of it, and has settled after each phase."""
    async with a_world(seed) as world:
        chaos = Chaos(world, seed)
        chaos.begins()
        for phase in range(PHASES):
            await chaos.rages()
            # Bindings that come late do, and a new list heals what was never said.
            await settles(world, but_first=2 * RELIST + SHORT_WATCH)
            if phase == 0:
                await chaos.is_killed()
                await settles(world, but_first=10)
        return world


async def what_is_found(seed: int, bugs: Bugs) -> set[str]:
    """The invariants that do not hold in a world with bugs."""
    async with a_world(seed, bugs=bugs) as world:
        chaos = Chaos(world, seed)
        chaos.begins()
        await chaos.rages()
        await asyncio.sleep(2 * RELIST)
        return {complaint.partition(":")[0] for complaint in [*world.monitor.complaints, *wrong_at_rest(world)]}


@pytest.mark.parametrize("seed", SEEDS)
def test_invariants_hold_after_random_changes_and_faults(seed: int) -> None:
    """The monitor looks at each write, the oracle whenever it is quiet."""
    world = virtual_time.run(a_run(seed))

    assert len(world.monitor.done("binding")) > 10


@pytest.mark.slow
def test_a_run_can_be_repeated() -> None:
    """The same seed, the same writes at the same time."""
    first, second = (virtual_time.run(a_run(7)).monitor.writes for _ in range(2))

    assert first == second


# Controls: what is planted must be found.


def test_without_a_bug_nothing_is_found() -> None:
    assert virtual_time.run(what_is_found(3, NO_BUGS)) == set()


@pytest.mark.parametrize(
    "name",
    [
        "bindings and deletions name no UID",
        "bound pods take no room",
        "some pods are never heard of",
        "bound pods never end",
    ],
)
def test_a_bug_does_not_go_unnoticed(name: str) -> None:
    invariant, bugs = BUGS[name]

    assert invariant in virtual_time.run(what_is_found(3, bugs))
