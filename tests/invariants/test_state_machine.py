"""Whatever happens to a cluster, in whatever order, with whatever faults: a state machine, driven by hypothesis, which
shrinks what fails.

Everything is real but time and the network: the queue, the cache, the reflectors, the dispatcher, the bindings, the API
server. What must hold at any time is looked at after each step; what must hold at rest, whenever all is mended and has
had time to settle.

`INVARIANT_EXAMPLES=2000` makes it try so many stories, other ones each time.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any, Final, TypeVar

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from extender.client.informers.reflector import SHORT_WATCH
from extender.engine.queue.scheduling_queue import DEFAULT_POD_MAX_IN_UNSCHEDULABLE_PODS, FLUSH_UNSCHEDULABLE_EVERY
from extender.rules.api_resources import NODES, PODS, Object, Resource
from extender.rules.statuses import ApiStatus
from extender.testing import virtual_time
from extender.values.klog.setup import TextFormatter
from tests.invariants.odd_plugins import BROKEN, HOLDS, with_odd_plugin
from tests.invariants.oracle import queued, wrong_at_any_time, wrong_at_rest
from tests.invariants.planted_bugs import BUGS, SECRET
from tests.invariants.possible_faults import FORGED, LATE, LISTS, WATCHES, WRITES, begins_with_no_list
from tests.invariants.worlds import NO_BUGS, RELIST, Bugs, World, a_world, now
from tests.kit.faults import Fault, answers

T = TypeVar("T")

NODE_NAMES: Final = ("n0", "n1", "n2")
POD_NAMES: Final = tuple(f"p{number}" for number in range(12))
ELSEWHERE: Final = "elsewhere"
"""A node that is not for us: others bind to it."""
T_RETRY: Final = DEFAULT_POD_MAX_IN_UNSCHEDULABLE_PODS + FLUSH_UNSCHEDULABLE_EVERY
LOUD: Final = logging.INFO - 5

numbers = st.integers(0, 11)
pods = st.fixed_dictionaries(
    {
        "cpu": st.sampled_from(("100m", "900m", "1500m", "3")),
        "priority": st.sampled_from(("", "low", "middle", "high")),
    },
    optional={
        "schedulingGates": st.just([{"name": "wait"}]),
        "nodeSelector": st.sampled_from(NODE_NAMES).map(lambda name: {"name": name}),
        "container": st.sampled_from((80, 81)).map(lambda port: {"ports": [{"containerPort": 80, "hostPort": port}]}),
        "terminationGracePeriodSeconds": st.sampled_from((0, 1, 30)),
        "labels": st.just({"app": "a"}),
    },
)


class Listener(logging.Handler):
    """Keeps what would be in the log."""

    def __init__(self) -> None:
        super().__init__(LOUD)
        self.setFormatter(TextFormatter())
        self.lines: list[str] = []
        self._logger = logging.getLogger("extender")
        self._level = self._logger.level

    def begin(self) -> None:
        self._logger.addHandler(self)
        self._logger.setLevel(LOUD)
        self._logger.propagate = False

    def end(self) -> None:
        self._logger.removeHandler(self)
        self._logger.setLevel(self._level)
        self._logger.propagate = True

    def emit(self, record: logging.LogRecord) -> None:
        self.lines += self.format(record).split("\n")

    def leaks(self) -> list[str]:
        """Lines that tell a secret, and lines that somebody else has written."""
        return [line for line in self.lines if SECRET in line or line.startswith(FORGED)]


class Cluster(RuleBasedStateMachine):
    """A cluster, its scheduler, and the faults between them."""

    bugs: Bugs = NO_BUGS
    relist = RELIST

    def __init__(self) -> None:
        super().__init__()
        self.runner = virtual_time.runner()
        self.stack = AsyncExitStack()
        self.listener = Listener()
        self.listener.begin()
        self.world: World = self.run(
            self.stack.enter_async_context(a_world(bugs=self.bugs, relist=self.relist, **with_odd_plugin()))
        )

    def run(self, what: Coroutine[Any, Any, T]) -> T:
        """Time passes only here."""
        return self.runner.run(what)

    def act(self, what: Callable[[], object], then: float = 0) -> None:
        """Somebody does something; the API server may refuse. Then a while passes."""

        async def acting() -> None:
            with suppress(ApiStatus):
                what()
            await asyncio.sleep(then)

        self.run(acting())

    def one(self, resource: Resource, number: int) -> Object | None:
        objects = [obj for obj in self.world.registry.list(resource) if obj["metadata"]["name"] != ELSEWHERE]
        return objects[number % len(objects)] if objects else None

    # What happens.

    @initialize(cpus=st.lists(st.sampled_from(("1", "2")), min_size=1, max_size=3))
    def begins(self, cpus: list[str]) -> None:
        async def beginning() -> None:
            for name, cpu in zip(NODE_NAMES, cpus, strict=False):
                self.world.new_node(name, cpu)
            self.world.new_node(ELSEWHERE, "99", unschedulable=True)
            await asyncio.sleep(1)

        self.run(beginning())

    def make(self, number: int, pod: dict[str, Any]) -> None:
        spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, **pod}
        container = {"env": [{"name": "PASSWORD", "value": SECRET}], **spec.pop("container", {})}
        name, metadata = POD_NAMES[number % len(POD_NAMES)], {"annotations": {"said": f"x\n{FORGED}"}}
        self.world.new_pod(name, metadata=metadata, container=container, **spec)

    @rule(crowd=st.lists(st.tuples(numbers, pods), min_size=1, max_size=3))
    def pods_come(self, crowd: list[tuple[int, dict[str, Any]]]) -> None:
        for number, pod in crowd:
            self.act(lambda number=number, pod=pod: self.make(number, pod))  # type: ignore[misc]

    @rule(number=numbers, at_once=st.booleans())
    def a_pod_goes(self, number: int, at_once: bool) -> None:
        pod = self.one(PODS, number)
        if pod is not None:
            self.act(lambda: self.world.delete(pod["metadata"]["name"], at_once=at_once))

    @rule(number=numbers, spec=pods)
    def a_pod_is_made_again(self, number: int, spec: dict[str, Any]) -> None:
        pod = self.one(PODS, number)
        if pod is not None:
            self.act(lambda: self.world.delete(pod["metadata"]["name"], at_once=True))
            self.act(lambda: self.make(POD_NAMES.index(pod["metadata"]["name"]), spec))

    @rule(number=numbers, app=st.sampled_from("ab"))
    def a_pod_changes(self, number: int, app: str) -> None:
        pod = self.one(PODS, number)
        if pod is not None:
            self.act(lambda: self.world.relabel(pod["metadata"]["name"], app))

    @rule()
    def gates_open(self) -> None:
        for name in self.world.gated():
            self.act(lambda name=name: self.world.open_gates(name))  # type: ignore[misc]

    @rule(number=numbers)
    def somebody_else_binds(self, number: int) -> None:
        pod = self.one(PODS, number)
        if pod is not None:
            self.act(lambda: self.world.bind(pod["metadata"]["name"], ELSEWHERE))

    @rule(number=numbers)
    def a_node_comes_or_goes(self, number: int) -> None:
        name = NODE_NAMES[number % len(NODE_NAMES)]
        if name in self.world.names(NODES):
            self.act(lambda: self.world.delete(name, NODES))
        else:
            self.act(lambda: self.world.new_node(name, "2"))

    @rule(number=numbers)
    def a_node_is_cordoned_or_not(self, number: int) -> None:
        node = self.one(NODES, number)
        if node is not None:
            self.act(lambda: self.world.cordon_or_not(node["metadata"]["name"]))

    @rule(number=numbers)
    def a_node_grows(self, number: int) -> None:
        node = self.one(NODES, number)
        if node is not None:
            self.act(lambda: self.world.grow(node["metadata"]["name"], "2500m"))

    @rule()
    def a_budget_comes_or_goes(self) -> None:
        self.act(self.world.budget_comes_or_goes)

    @rule(seconds=st.sampled_from((0, 0, 0.01, 0.3, 1, 4, 12)))
    def time_passes(self, seconds: float) -> None:
        self.run(asyncio.sleep(seconds))

    # What goes wrong.

    @rule(
        verb=st.sampled_from(("create", "create", "patch", "delete", "list", "watch", "get")),
        which=numbers,
        times=st.sampled_from((1, 3, None)),
        skip=st.sampled_from((0, 0, 1)),
    )
    def a_fault_begins(self, verb: str, which: int, times: int | None, skip: int) -> None:
        kinds = {"watch": WATCHES, "list": LISTS, "get": LISTS}.get(verb, WRITES)
        # In a list nothing is left out: who is lied to about what is there over-commits nodes, and so would
        # kube-scheduler.
        self.world.faults.add(
            Fault(kinds[which % len(kinds)](), verb=verb, times=times, skip=skip, where=begins_with_no_list)
        )
        if verb == "watch":
            self.act(self.world.faults.cut)

    @rule(
        point=st.sampled_from(
            ("preFilter", "filter", "preScore", "score", "reserve", "permit", "preBind", "bind", "postBind", HOLDS)
        )
    )
    def a_plugin_breaks(self, point: str) -> None:
        BROKEN.add(point)

    @precondition(lambda self: bool(BROKEN))
    @rule()
    def plugins_are_mended(self) -> None:
        BROKEN.clear()

    @precondition(lambda self: bool(self.world.faults.faults))
    @rule()
    def faults_end(self) -> None:
        self.world.faults.faults.clear()

    @rule(cleanly=st.booleans())
    def watches_break(self, cleanly: bool) -> None:
        self.act(lambda: self.world.faults.cut(cleanly=cleanly))

    @rule()
    def history_is_forgotten(self) -> None:
        def forget() -> None:  # at one moment, so that the monitor has read all that was written
            store = self.world.registry.store
            self.world.monitor.learn_nominations()
            store.compact(store.resource_version)
            self.world.faults.cut()

        self.act(forget)

    @rule(seconds=st.sampled_from((1, 15)))
    def the_server_is_away(self, seconds: float) -> None:
        self.act(self.world.faults.go_down, then=seconds)
        self.world.faults.come_up()

    @rule()
    def the_scheduler_is_killed(self) -> None:
        """Not while a binding is on its way that the next one could know nothing of."""
        self.faults_end()
        self.run(asyncio.sleep(2 * LATE))
        self.run(self.world.restart())

    # What must hold.

    @invariant()
    def nothing_is_wrong(self) -> None:
        wrong = wrong_at_any_time(self.world)
        assert not wrong, "; ".join(wrong)

    @rule()
    def it_settles(self) -> None:
        """Once all is mended, and whatever comes late has come."""
        self.mend()
        self.run(asyncio.sleep(2 * RELIST + SHORT_WATCH))
        for _ in range(60):
            if not wrong_at_rest(self.world):
                break
            self.run(asyncio.sleep(1))
        wrong = [
            *wrong_at_rest(self.world),
            *wrong_at_any_time(self.world),
            *(f"log: {line}" for line in self.listener.leaks()),
        ]
        assert not wrong, "; ".join(wrong)

    def mend(self) -> None:
        BROKEN.clear()
        self.faults_end()
        self.act(self.world.faults.cut)
        # Whoever was refused by a plugin that is in order again hears of nothing: something has to happen.
        self.act(
            lambda: self.world.new_node("news", "0", taints=[{"key": "not", "value": "yet", "effect": "NoSchedule"}])
        )
        self.act(lambda: self.world.delete("news", NODES), then=1)

    def teardown(self) -> None:
        """All are tried again and the work is bounded, once more at rest; then the end."""
        try:
            self.it_settles()
            self.nothing_is_neglected_and_nothing_spins()
        finally:
            self.run(self.stack.aclose())
            self.runner.close()
            self.listener.end()

    def nothing_is_neglected_and_nothing_spins(self) -> None:
        alone = self.world.life.alone
        before = {info.pod.uid: info.attempts for info in queued(alone) if not info.is_gated}
        cycle, calls, tasks = alone.world.queue.scheduling_cycle, len(self.world.faults.calls), self.tasks()
        began = self.run(time_now())
        self.run(asyncio.sleep(T_RETRY + 11))
        minutes = (self.run(time_now()) - began) / 60
        later = {info.pod.uid: info.attempts for info in queued(alone)}
        untried = [uid for uid, attempts in before.items() if later.get(uid, attempts + 1) <= attempts]
        assert not untried, f"tried again: {untried} were not tried in {T_RETRY} s"
        attempts = alone.world.queue.scheduling_cycle - cycle
        assert attempts <= 3 * len(before) + 3, (
            f"bounded: {attempts} attempts of {len(before)} pods in {minutes} minutes"
        )
        new_calls = self.world.faults.calls[calls:]
        writes = [call for call in new_calls if call.verb in ("create", "update", "patch", "delete")]
        assert len(writes) <= 3 * attempts + 3, f"bounded: {len(writes)} writes for {attempts} attempts"
        lists = len(new_calls) - len(writes)
        kinds = len(self.world.life.running.informers.reflectors)
        assert lists <= kinds * minutes * 60 / RELIST * 3, f"bounded: {lists} reads in {minutes} minutes"
        assert self.tasks() <= tasks + 2, f"bounded: {self.tasks()} tasks, and {tasks} before"

    def tasks(self) -> int:
        return len(asyncio.all_tasks(self.runner.get_loop()))


async def time_now() -> float:
    return now()


EXAMPLES: Final = int(os.environ.get("INVARIANT_EXAMPLES", "0"))
QUICK: Final = settings(
    max_examples=12,
    stateful_step_count=40,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.slow
def test_invariants_hold_in_any_order_of_changes_and_faults() -> None:
    """Some invariants are looked at after each step, all at rest."""
    chosen = settings(QUICK, max_examples=EXAMPLES, derandomize=False, stateful_step_count=60) if EXAMPLES else QUICK

    run_state_machine_as_test(Cluster, settings=chosen)


# Controls.


def complaints_about(bugs: Bugs) -> list[str]:
    """What is found wrong in one story that has something of everything."""
    machine = type("Buggy", (Cluster,), {"bugs": bugs, "relist": 1800.0})()
    wrong: list[str] = []
    try:
        machine.begins(["1", "1"])
        for step in STORY:
            step(machine)
            machine.nothing_is_wrong()
    except AssertionError as exc:
        wrong.append(str(exc))
    try:
        machine.teardown()
    except AssertionError as exc:
        wrong.append(str(exc))
    return wrong


def a_list_is_needed(machine: Cluster) -> None:
    """What was said while nobody listened is not said again."""
    machine.world.faults.go_down()
    machine.a_pod_goes(0, at_once=True)
    machine.pods_come([(7, {"cpu": "100m", "priority": ""})])
    machine.history_is_forgotten()
    machine.world.faults.come_up()


STORY: Final[Sequence[Callable[[Cluster], None]]] = (
    lambda machine: machine.pods_come(
        [(0, {"cpu": "900m", "priority": "low"}), (1, {"cpu": "900m", "priority": "low"})]
    ),
    lambda machine: machine.time_passes(4),
    lambda machine: machine.pods_come([(2, {"cpu": "900m", "priority": "low"})]),
    lambda machine: machine.time_passes(4),
    lambda machine: machine.pods_come([(3, {"cpu": "900m", "priority": "high"})]),
    lambda machine: machine.time_passes(12),
    lambda machine: machine.world.faults.add(Fault(answers.status(403), verb="create", subresource="binding")),
    lambda machine: machine.pods_come([(4, {"cpu": "100m", "priority": "", "labels": {"only": "here"}})]),
    lambda machine: machine.time_passes(0.3),
    lambda machine: machine.time_passes(12),
    a_list_is_needed,
    lambda machine: machine.pods_come(
        [(8, {"cpu": "900m", "priority": "low"}), (9, {"cpu": "900m", "priority": "low"})]
    ),
    lambda machine: machine.time_passes(4),
)


def test_without_a_bug_nothing_is_wrong_with_that_story() -> None:
    assert complaints_about(NO_BUGS) == []


@pytest.mark.parametrize("name", BUGS)
def test_a_bug_does_not_go_unnoticed(name: str) -> None:
    found_by, bugs = BUGS[name]

    assert f"{found_by}: " in "; ".join(complaints_about(bugs))


@pytest.mark.slow
def test_a_bug_is_found_by_chance() -> None:
    _, bugs = BUGS["some pods are never heard of"]

    with pytest.raises(AssertionError, match=r"\bnot lost: "):
        run_state_machine_as_test(
            type("Buggy", (Cluster,), {"bugs": bugs}),
            settings=settings(QUICK, phases=[Phase.generate], report_multiple_bugs=False),
        )
