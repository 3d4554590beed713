"""Making the room that was promised. Upstream: preemption/executor_test.go, TestPrepareCandidate,
TestAsyncPreemptionFailure.
"""

import asyncio
from typing import Any, cast

import pytest

from extender.engine import framework as fwk
from extender.engine.cache import Cache
from extender.engine.cache.cluster import Cluster
from extender.engine.preemption.preemptions import RunningPreemptions
from extender.engine.queue.scheduling_queue import SchedulingQueue
from extender.engine.runtime.waiting_pods import WaitingPodsMap
from extender.engine.scheduler.executor import Executor, PreparedCandidate
from extender.engine.scheduler.world import PodsInPreBind, World
from extender.testing import PodBuilder, make_cache, make_framework, make_node, make_pod
from extender.values.objects.pod import Pod
from tests.kit.tables import cases
from tests.kit.told_scheduler import ToldScheduler
from tests.kit.writes import RecordedWrites

PREEMPTOR = make_pod("preemptor").priority(100).obj()
FIRST, SECOND, THIRD = (make_pod(name).node("n").obj() for name in ("first", "second", "third"))


class Events:
    """Takes what is recorded about pods."""

    def __init__(self, notes: list[tuple[str, str]]) -> None:
        self.notes = notes

    def submit(self, call: Any) -> None:
        assert isinstance(call, fwk.RecordEvent)
        self.notes.append((call.regarding.name, call.note))


class Eviction:
    """What the executor did, and what it said."""

    def __init__(self, *, in_memory: tuple[Pod, ...] = ()) -> None:
        self.writes = RecordedWrites(make_cache(make_node("n")))
        self.preemptions = RunningPreemptions()
        self.notes: list[tuple[str, str]] = []
        self._in_memory = in_memory
        self._framework = make_framework(dispatcher=Events(self.notes))  # type: ignore[arg-type]
        self.world = World(
            cluster=Cluster(),
            queue=cast("SchedulingQueue", None),
            waiting_pods=WaitingPodsMap(),
            pods_in_pre_bind=PodsInPreBind(),
            dispatcher=self.writes,
            pod_by_key=lambda key: None,
        )

    async def evict(self, *victims: Pod, lower: tuple[Pod, ...] = ()) -> bool:
        for pod in self._in_memory:
            self.world.waiting_pods.add(pod, {})
        self.preemptions.begin(PREEMPTOR.uid)
        candidate = fwk.Candidate("n", victims, 0)
        prepared = PreparedCandidate(self._framework, PREEMPTOR, candidate, "DefaultPreemption", lower)
        try:
            await Executor(self.world, self.preemptions).evict_victims(prepared)
        except fwk.CallError:
            return False
        finally:
            await asyncio.sleep(0)
        return True

    def told_to_go(self) -> list[str]:
        return [call.name for call in self.writes.calls if isinstance(call, fwk.DeletePod)]


async def test_victim_gets_its_disruption_condition_before_it_is_deleted() -> None:
    eviction = Eviction()

    assert await eviction.evict(FIRST)

    patch, delete = eviction.writes.calls
    assert isinstance(patch, fwk.PatchPodStatus)
    (condition,) = patch.conditions
    assert (condition.type, condition.status, condition.reason, condition.message) == (
        "DisruptionTarget",
        "True",
        "PreemptionByScheduler",
        "default-scheduler: preempting to accommodate a higher priority pod",
    )
    assert isinstance(delete, fwk.DeletePod)
    assert (delete.uid, delete.grace_period_seconds) == (FIRST.uid, None)
    assert eviction.notes == [("first", f"Preempted by pod {PREEMPTOR.uid} on node n")]


async def test_the_last_victim_goes_last() -> None:
    eviction = Eviction()

    assert await eviction.evict(FIRST, SECOND, THIRD)

    assert eviction.told_to_go()[-1] == "third"
    assert sorted(eviction.told_to_go()) == ["first", "second", "third"]


async def test_terminating_victim_is_not_evicted_again() -> None:
    eviction = Eviction()

    assert await eviction.evict(make_pod("leaving").node("n").terminating().obj(), FIRST)

    assert eviction.told_to_go() == ["first"]


async def test_nothing_is_written_when_all_victims_are_terminating() -> None:
    """Lower nominations stay. Upstream: prepareCandidateAsync, which returns before it clears them."""
    eviction = Eviction()

    lower = make_pod("lower").nominated_node("n").obj()
    assert await eviction.evict(make_pod("leaving").node("n").terminating().obj(), lower=(lower,))

    assert eviction.writes.calls == []


async def test_a_victim_that_is_not_bound_yet_loses_its_room_in_memory() -> None:
    eviction = Eviction(in_memory=(FIRST,))

    assert await eviction.evict(FIRST, SECOND)

    assert eviction.told_to_go() == ["second"]
    assert eviction.notes[0] == ("first", f"Preempted by pod {PREEMPTOR.uid} on node n (in kube-scheduler memory).")


async def test_lower_nominations_are_cleared() -> None:
    eviction = Eviction()
    lower = make_pod("lower").nominated_node("n").obj()

    assert await eviction.evict(FIRST, lower=(lower,))

    (patch,) = [call for call in eviction.writes.calls if isinstance(call, fwk.PatchPodStatus) and call.name == "lower"]
    assert patch.nominated_node_name == ""


async def test_lower_nomination_that_cannot_be_cleared_changes_nothing() -> None:
    eviction = Eviction()
    eviction.writes.fail(fwk.PatchPodStatus, fwk.CallError("refused"), after=0)

    assert await eviction.evict(FIRST, lower=(make_pod("lower").nominated_node("n").obj(),))


@pytest.mark.parametrize("refusal", [fwk.CallNotFound("gone"), fwk.CallConflict("another pod")], ids=str)
@pytest.mark.parametrize("call", [fwk.PatchPodStatus, fwk.DeletePod])
async def test_victim_that_is_already_gone_is_no_failure_and_records_no_event(
    call: type[Any], refusal: fwk.CallError
) -> None:
    eviction = Eviction()
    eviction.writes.fail(call, refusal)

    assert await eviction.evict(FIRST)

    assert eviction.notes == []


@cases(
    "victims, told_to_go",
    ("one of two", (FIRST, SECOND), ["second"]),
    ("the other one of two", (SECOND, FIRST), ["first"]),
    ("the only one", (FIRST,), []),
)
async def test_a_victim_that_another_preemption_evicts_is_no_failure(
    victims: tuple[Pod, ...], told_to_go: list[str]
) -> None:
    """The newer call for it includes this one. The other preemption deletes it, and records the event."""
    eviction = Eviction()
    eviction.writes.fail(fwk.PatchPodStatus, fwk.CallMerged("a call of the same type was enqueued for this object"))

    assert await eviction.evict(*victims)

    assert (eviction.told_to_go(), [pod for pod, *_ in eviction.notes]) == (told_to_go, told_to_go)


async def test_a_victim_that_is_bound_meanwhile_is_a_failure() -> None:
    """The more important call for it is no eviction."""
    eviction = Eviction()
    eviction.writes.fail(
        fwk.PatchPodStatus, fwk.CallSkipped("a more relevant call is already enqueued for this object")
    )

    assert not await eviction.evict(FIRST)


@pytest.mark.parametrize("call", [fwk.PatchPodStatus, fwk.DeletePod])
async def test_last_victim_stays_when_another_cannot_be_evicted(call: type[Any]) -> None:
    """The preemptor is tried again then."""
    eviction = Eviction()
    eviction.writes.fail(call, fwk.CallError("refused"))

    assert not await eviction.evict(FIRST, SECOND, THIRD)

    assert "third" not in eviction.told_to_go()
    assert not eviction.preemptions.is_running(PREEMPTOR.uid, None)


async def test_when_the_last_one_cannot_be_told_the_preemptor_is_tried_again() -> None:
    eviction = Eviction()
    eviction.writes.fail(fwk.DeletePod, fwk.CallError("refused"), after=1)

    assert not await eviction.evict(FIRST, SECOND)


# How long the preemptor is held back.


def cache_with(*pods: Pod) -> Cache:
    return make_cache(make_node("n"), pods=pods)


def test_a_preemptor_is_held_back_until_its_last_victim_is_on_its_way_out() -> None:
    preemptions = RunningPreemptions()
    assert not preemptions.is_running("p", cache_with(FIRST))

    preemptions.begin("p")
    assert preemptions.is_running("p", cache_with(FIRST))

    preemptions.evict_last("p", FIRST)
    assert preemptions.is_running("p", cache_with(FIRST))
    assert not preemptions.is_running("p", cache_with(make_pod("first").node("n").terminating().obj()))
    assert not preemptions.is_running("p", cache_with())

    preemptions.end("p")
    preemptions.end("p")
    assert not preemptions.is_running("p", cache_with(FIRST))


async def test_preemption_ends_once_the_last_victim_terminates_before_its_answer() -> None:
    """The watch may show it on its way out before the API server's answer arrives; of the others that is not enough."""
    eviction, held_back = Eviction(), dict[str, bool]()
    perform = eviction.writes.perform

    async def noting(call: Any) -> Any:
        if isinstance(call, fwk.DeletePod):
            held_back[call.uid] = eviction.preemptions.is_running(PREEMPTOR.uid, cache_with())
        return await perform(call)

    eviction.writes.perform = noting  # type: ignore[method-assign]
    await eviction.evict(FIRST, SECOND)

    assert held_back == {FIRST.uid: True, SECOND.uid: False}


def test_preemption_stays_running_without_a_followed_cluster() -> None:
    preemptions = RunningPreemptions()
    preemptions.begin("p")
    preemptions.evict_last("p", FIRST)

    assert preemptions.is_running("p", None)


@cases("uid, cleared", ("the nominee", "lower", ["lower"]), ("another pod of its name", "another", []))
async def test_a_pod_that_has_the_name_of_a_lower_nominee_is_left_alone(uid: str, cleared: list[str]) -> None:
    scheduler = ToldScheduler()
    world, lower = scheduler.alone.world, make_pod("lower").priority(1)
    scheduler.comes(make_node("n"), lower.uid(uid))
    world.queue.add_nominated_pod(lower.uid("lower").obj(), "n")
    framework = scheduler.alone.frameworks["default-scheduler"]
    prepared = Executor(world, RunningPreemptions()).prepare(
        framework, PREEMPTOR, fwk.Candidate("n", (FIRST,), 0), "DefaultPreemption"
    )

    assert [pod.uid for pod in prepared.lower_nominees] == cleared


@cases(
    "builder, evicted",
    ("waits", make_pod("preemptor").priority(100), ["first"]),
    ("has a node", make_pod("preemptor").priority(100).node("m"), []),
    ("is gone", make_pod("somebody").priority(100), []),
)
async def test_victims_are_evicted_for_a_pod_that_still_waits_alone(builder: PodBuilder, evicted: list[str]) -> None:
    scheduler = ToldScheduler()
    scheduler.comes(make_node("n"), make_node("m"), builder)
    executor, candidate = Executor(scheduler.alone.world, RunningPreemptions()), fwk.Candidate("n", (FIRST,), 0)
    framework = scheduler.alone.frameworks["default-scheduler"]
    prepared = executor.prepare(framework, PREEMPTOR, candidate, "DefaultPreemption")
    await executor.execute(prepared, fwk.PatchPodStatus.of(PREEMPTOR, nominated_node_name="n"))

    assert [call.name for call in scheduler.writes.calls if isinstance(call, fwk.DeletePod)] == evicted
