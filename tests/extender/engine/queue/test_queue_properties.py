"""After any steps every pod is in exactly one place, and none is lost."""

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from extender.engine.framework import QueueingHint, QueueingHintFn
from extender.engine.framework.events import EVENT_UNSCHEDULED_POD_UPDATE
from extender.engine.queue import QueuedPodInfo
from extender.testing import make_node, make_pod
from extender.values.objects.pod import Pod
from tests.extender.engine.queue.clocked_queue import NODE_ADD, POD_LABEL, ClockedQueue, always, never
from tests.kit.examples import examples

PLUGINS = ("Always", "Never", "Odd")
MAX_WAIT = 60.0


def odd(pod: Pod, old: object, new: object) -> QueueingHint:
    return QueueingHint.QUEUE if pod.labels.get("number", "0") in "13579" else QueueingHint.QUEUE_SKIP


HINTS: dict[str, QueueingHintFn] = {"Always": always, "Never": never, "Odd": odd}


def gate(pod: Pod) -> str:
    return "Gate" if pod.labels.get("gate") == "closed" else ""


class Queue(RuleBasedStateMachine):
    """A cluster in which pods come, change, are tried, refused, bound and deleted, and the set of those that wait or
    are tried.
    """

    def __init__(self) -> None:
        super().__init__()
        self.clocked = ClockedQueue(
            {NODE_ADD: HINTS, POD_LABEL: HINTS | {"Gate": always}}, gate=gate, max_in_unschedulable_pods=MAX_WAIT
        )
        self.alive: dict[str, Pod] = {}
        self.in_flight: dict[str, QueuedPodInfo] = {}
        self.created = 0

    @rule(name=st.sampled_from("abcdef"), priority=st.integers(0, 2), is_gated=st.booleans())
    def create(self, name: str, priority: int, is_gated: bool) -> None:
        if name in self.alive:
            return
        self.created += 1
        pod = (
            make_pod(name)
            .uid(f"{name}-{self.created}")
            .priority(priority)
            .label(gate="closed" if is_gated else "open")
            .obj()
        )
        self.alive[name] = self.clocked.store[pod.key] = pod
        self.clocked.queue.add(pod)

    @precondition(lambda self: self.alive)
    @rule(data=st.data(), is_gated=st.booleans(), number=st.integers(0, 9))
    def change(self, data: st.DataObject, is_gated: bool, number: int) -> None:
        old = self.alive[data.draw(st.sampled_from(sorted(self.alive)))]
        new = (
            make_pod(old.name)
            .uid(old.uid)
            .priority(old.priority)
            .label(gate="closed" if is_gated and old.labels["gate"] == "closed" else "open", number=str(number))
            .obj()
        )
        self.alive[old.name] = self.clocked.store[new.key] = new
        self.clocked.queue.update(old, new, [POD_LABEL if old.labels != new.labels else EVENT_UNSCHEDULED_POD_UPDATE])

    @precondition(lambda self: self.alive)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        pod = self.alive.pop(data.draw(st.sampled_from(sorted(self.alive))))
        del self.clocked.store[pod.key]
        self.clocked.queue.delete(pod)

    @rule()
    def attempt(self) -> None:
        order = [info.key for info in (*self.clocked.queue.pods_in_active_q(), *self.clocked.queue.pods_in_backoff_q())]

        info = self.clocked.queue.pop_nowait()

        assert (info.key if info is not None else None) == next(iter(order), None)
        if info is not None:
            self.in_flight[info.pod.uid] = info

    @precondition(lambda self: self.in_flight)
    @rule(data=st.data(), plugins=st.sets(st.sampled_from(PLUGINS)), pending=st.sets(st.sampled_from(PLUGINS)))
    def refuse(self, data: st.DataObject, plugins: set[str], pending: set[str]) -> None:
        info = self.in_flight.pop(data.draw(st.sampled_from(sorted(self.in_flight))))
        current = self.alive.get(info.pod.name)
        if current is None or current.uid != info.pod.uid:
            self.clocked.queue.done(info.pod.uid)
            return
        info.pod = current
        info.set_rejector_plugins(plugins, pending - plugins)
        self.clocked.queue.add_unschedulable_if_not_present(info)

    @precondition(lambda self: self.in_flight)
    @rule(data=st.data())
    def bind(self, data: st.DataObject) -> None:
        info = self.in_flight.pop(data.draw(st.sampled_from(sorted(self.in_flight))))
        self.clocked.queue.done(info.pod.uid)
        if info.pod.name in self.alive and self.alive[info.pod.name].uid == info.pod.uid:
            del self.alive[info.pod.name]

    @rule()
    def a_node_comes(self) -> None:
        self.clocked.queue.move_all_to_active_or_backoff_queue(NODE_ADD, None, make_node("n").obj())

    @precondition(lambda self: self.alive)
    @rule(data=st.data())
    def activate(self, data: st.DataObject) -> None:
        self.clocked.queue.activate([self.alive[data.draw(st.sampled_from(sorted(self.alive)))]])

    @rule(seconds=st.sampled_from((0.0, 0.3, 1.0, 7.0, 61.0)))
    def time_passes(self, seconds: float) -> None:
        self.clocked.now += seconds

        self.clocked.queue.flush_backoff_q_completed()
        self.clocked.queue.flush_unschedulable_pods_leftover()

        now, queue = self.clocked.now, self.clocked.queue
        pausing = [*queue.pods_in_backoff_q(), *queue.pods_in_backoff_q(failed=True)]
        assert all((queue.backoff_time(info) or 0) >= int(now) for info in pausing)
        assert all(info.is_gated or now - info.timestamp <= MAX_WAIT for info in queue.unschedulable_pods())

    @invariant()
    def every_pod_is_in_exactly_one_place(self) -> None:
        queue = self.clocked.queue
        waiting = [
            *queue.pods_in_active_q(),
            *queue.pods_in_backoff_q(),
            *queue.pods_in_backoff_q(failed=True),
            *queue.unschedulable_pods(),
        ]
        flying = {uid for uid, info in self.in_flight.items() if self.alive.get(info.pod.name, info.pod).uid == uid}
        expected = {pod.uid for pod in self.alive.values()} - flying

        assert sorted(info.pod.uid for info in waiting) == sorted(expected)
        assert [info.pod.uid for info in queue.in_flight_pods()] == [*self.in_flight]
        assert {info.pod.uid: info.pod for info in waiting} == {
            pod.uid: pod for pod in self.alive.values() if pod.uid in expected
        }
        assert sum(queue.pending_counts().values()) == len(waiting)

    @invariant()
    def important_pods_come_first(self) -> None:
        ranks = [(-info.pod.priority, info.timestamp) for info in self.clocked.queue.pods_in_active_q()]

        assert ranks == sorted(ranks)

    @invariant()
    def only_closed_gates_hold_pods_back(self) -> None:
        queue = self.clocked.queue

        assert all(info.pod.labels["gate"] == "closed" for info in queue.unschedulable_pods() if info.is_gated)
        assert not any(info.is_gated for info in (*queue.pods_in_active_q(), *queue.pods_in_backoff_q()))

    @invariant()
    def changes_are_kept_for_pods_in_flight_alone(self) -> None:
        log = self.clocked.queue.in_flight_log()

        assert isinstance(log[0], QueuedPodInfo) if log else not self.in_flight


Queue.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)
TestQueue = Queue.TestCase
