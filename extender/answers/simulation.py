"""Simulation: a cluster played through until nothing more would happen. Pods are placed, push others out, and those look for a place again.

Every decision is that of the scheduling cycle: the same algorithm, the same preemption, the same order of the queue. Time does not pass:
a pod that has to go is gone at once, and one that a controller makes again is there at once. Nothing is written anywhere, and other
extenders are not asked.
"""

import heapq
from collections.abc import Mapping
from typing import Final, Literal, final

from extender import framework as fwk
from extender.answers.courses import Course, LostPlace, Why
from extender.answers.eviction_loops import Evictions
from extender.answers.leaving import belongs_to_node, give_back_claims, is_made_again, made_again, take_from_budgets
from extender.answers.preemption_answer import MAX_CANDIDATES, preemption_answer, victim
from extender.answers.refused_alike import Refusal, RefusedAlike
from extender.answers.types import Eviction, EvictionLoop, Placement, PreemptionAnswer, Victim
from extender.answers.waiting import pod_name
from extender.cache.cluster import Cluster
from extender.concurrency.abandoned import AbandonedError, IsWanted, always_wanted
from extender.klog.logger import Logger
from extender.objects.decoding import replaced
from extender.objects.pod import Pod
from extender.objects.preemption_messages import STILL_TERMINATING
from extender.preemption import OUTCOME
from extender.runtime.errors import PluginError
from extender.runtime.framework import Framework
from extender.runtime.from_reserve_to_bind import run_reserve_plugins, run_unreserve_plugins
from extender.runtime.nominations import Nominations
from extender.scheduler.schedule_pod import FitError, SchedulingAlgorithm
from extender.scheduler.world import refused_on_one_node

STEPS: Final = 10_000
"""What a simulation may cost: a pod that finds room is one step, one that does not is ten."""
_STEPS_WITHOUT_ROOM: Final = 10
_TOLD_IN_FULL: Final = 50
"""Preemptions of which the runners-up are told, too; of more nobody reads them."""

_LOG: Final = Logger(__name__)


@final
class Simulation:
    """State: the cluster, the pods that were submitted and what became of them, who is reserved what, and how much has happened."""

    def __init__(
        self, cluster: Cluster, frameworks: Mapping[str, Framework], steps: int = STEPS, is_wanted: IsWanted = always_wanted
    ) -> None:
        """Nothing has happened yet.

        Arguments:
            cluster: changed by the simulation, and by nobody else.
            frameworks: by scheduler name; of nobody else.
            steps: see STEPS.
            is_wanted: asked before every step.
        """
        self.cluster = cluster
        self._frameworks = frameworks
        self._algorithm = SchedulingAlgorithm()
        self._steps = steps
        self._is_wanted = is_wanted
        self._courses: dict[str, Course] = {}
        self._queue: list[tuple[object, int, str]] = []
        self._evictions = Evictions()
        self._loops: list[EvictionLoop] = []
        self._reserved: dict[str, tuple[Framework, fwk.CycleState, Pod]] = {}
        self._refused = RefusedAlike()
        self._num_preemptions = 0
        self._happened = 0

    # What is asked.

    def submit(self, pod: Pod, cause: Literal["created", "pending"]) -> None:
        """A pod without a node, to be placed."""
        self._enqueue(Course(pod, cause, len(self._courses)))

    def remove_node(self, name: str) -> None:
        """The node is no more, nor are its pods; those of controllers come again elsewhere."""
        pods = self._pods_on(name)
        self.cluster.drop_node(name)
        for pod in pods:
            if pod.is_terminating or belongs_to_node(pod):
                self._take_away(pod)
            else:
                take_from_budgets(self.cluster, pod)  # nobody asks them, but they have one pod less
                self._evict(pod, "node removed")
        self._happened += 1

    def drain_node(self, name: str) -> None:
        """The node takes no more pods, and those that do not belong to it leave: last those for which the drain waits, for a budget."""
        node = self.cluster.nodes[name]
        self.cluster.set_node(replaced(node, spec=replaced(node.spec, unschedulable=True)))
        leaving = [pod for pod in self._pods_on(name) if not (pod.is_terminating or belongs_to_node(pod))]
        budgets = [(pod, take_from_budgets(self.cluster, pod)) for pod in leaving]
        for pod, waits_for in sorted(budgets, key=lambda each: bool(each[1])):
            self._evict(pod, "drained", waits_for=waits_for)

    def withdraw(self, pod: Pod, why: Literal["scaled down", "replaced"]) -> None:
        """The pod's controller does without it from now on, wherever it is by now. Budgets are not asked."""
        known = self.cluster.cache.pod(pod.uid) or self.cluster.pending.get(pod.uid)
        self._courses.pop(pod.uid, None)
        if known is None:
            return
        lost = LostPlace(victim=victim(known), node=known.spec.node_name, why=why, by=None, returns=False, depth=1)
        self._evictions.add(lost)
        self._take_away(known)
        self._happened += 1

    async def run(self) -> None:
        """Place everybody, until nothing more changes or all steps are used up.

        Raises:
            AbandonedError: nobody wants to know any more.
        """
        while self._steps > 0:
            if not self._is_wanted():
                raise AbandonedError
            if self._queue:
                await self._place(self._courses[heapq.heappop(self._queue)[2]])
            elif not self._try_again():
                break

    # What has come of it.

    @property
    def is_complete(self) -> bool:
        """False if somebody was still to be placed when the steps were used up."""
        return not self._queue and not any(map(self._is_worth_another_try, self._courses.values()))

    @property
    def placements(self) -> tuple[Placement, ...]:
        """What became of every pod: those that were asked about first, then those that had to leave."""
        courses = sorted(self._courses.values(), key=lambda course: (course.cause == "evicted", course.turn))
        return tuple(course.as_answer() for course in courses)

    @property
    def evictions(self) -> tuple[Eviction, ...]:
        """In the order in which they would happen."""
        return tuple(lost.as_answer() for lost in self._evictions.all)

    @property
    def loops(self) -> tuple[EvictionLoop, ...]:
        """Pods that would push each other out for ever."""
        return tuple(self._loops)

    # The queue.

    def _enqueue(self, course: Course) -> None:
        self._courses[course.pod.uid] = course
        course.failed_at = None
        framework = self._frameworks.get(course.pod.scheduler_name)
        if framework is None:
            self._fail(course, f'no profile here for schedulerName "{course.pod.scheduler_name}"', is_final=True)
            return
        key = framework.plugins.queue_sort.sort_key(course.pod, float(course.turn))
        heapq.heappush(self._queue, (key, course.turn, course.pod.uid))

    def _try_again(self) -> bool:
        """Queue those who have heard of something new since they were refused; False if there are none."""
        again = [course for course in self._courses.values() if self._is_worth_another_try(course)]
        for course in again:
            self._enqueue(course)
        return bool(again)

    def _is_worth_another_try(self, course: Course) -> bool:
        return not course.is_final and course.failed_at is not None and course.failed_at < self._happened

    # One pod.

    async def _place(self, course: Course) -> None:
        framework = self._frameworks[course.pod.scheduler_name]
        why_gated = _why_gated(framework, course.pod)
        if why_gated:
            self._fail(course, why_gated)
            return
        has_room = False
        while not has_room and course.failed_at is None and self._steps > 0:
            has_room = await self._attempt(framework, course)
        if not has_room and course.failed_at is None:
            self._enqueue(course)  # it has made room, and there are no steps left to take it

    async def _attempt(self, framework: Framework, course: Course) -> bool:
        """Whether the pod has a node now. If not, it has failed, or others have made room for it."""
        pod, known = course.pod, self._refused.told(course.pod, self._happened)
        if known is not None:
            self._steps -= 1
            self._fail(course, known.message, known.preemption)
            return False
        nominations = Nominations(self.cluster.nominees(self._frameworks))
        snapshot = self.cluster.cache.update_snapshot()
        state = framework.begin_cycle(snapshot, nominations)
        try:
            result = self._algorithm.schedule_pod(framework, snapshot, pod, nominations, state=state)
        except FitError as exc:
            self._steps -= _STEPS_WITHOUT_ROOM
            await self._make_room(framework, state, course, exc)
            return False
        except (PluginError, fwk.NoNodesAvailableError) as exc:
            self._steps -= 1
            self._fail(course, str(exc))
            return False
        self._steps -= 1
        return self._take(framework, state, course, result.suggested_host)

    def _take(self, framework: Framework, state: fwk.CycleState, course: Course, node: str) -> bool:
        try:
            assumed = self.cluster.assume(course.pod.uid, node)
        except ValueError as exc:
            self._fail(course, str(exc), is_final=True)
            return False
        if assumed is None:
            raise LookupError(f"pod {course.pod.key} is not pending")
        status = run_reserve_plugins(framework.plugins, state, assumed, node)
        if not status.is_success:
            run_unreserve_plugins(framework.plugins, state, assumed, node)
            self.cluster.forget(course.pod.uid)
            self._fail(course, refused_on_one_node(status).status.message if status.is_rejected else status.message)
            return False
        self._reserved[course.pod.uid] = framework, state, assumed
        self._happened += 1
        course.node = node
        if course.lost is not None:
            course.lost.lands_on, course.lost.message = node, ""
        return True

    async def _make_room(self, framework: Framework, state: fwk.CycleState, course: Course, refusal: FitError) -> None:
        """No node takes the pod as things are. Others go for it, or it has failed."""
        try:
            found = await framework.run_post_filter_plugins(state, course.pod, refusal.diagnosis.statuses)
        except PluginError as exc:
            found = fwk.PostFilterResult(fwk.error(str(exc)))
        said = "" if found.status.is_success or not framework.plugins.post_filter else found.status.message
        diagnosis = refusal.diagnosis
        told = fwk.Diagnosis(diagnosis.statuses, pre_filter_message=diagnosis.pre_filter_message, post_filter_message=said)
        message = fwk.fit_error_message(refusal.num_all_nodes, told)
        outcome = state.find(OUTCOME)
        preemption = None
        if outcome is not None:
            self._num_preemptions += 1
            limit = MAX_CANDIDATES if self._num_preemptions <= _TOLD_IN_FULL else 1
            preemption = preemption_answer(outcome, framework.snapshot, course.pod, limit)
        victims = found.victims
        if outcome is not None and outcome.why_not_eligible == STILL_TERMINATING:
            # It has made room before, and those who have to go are about to be gone.
            course.message, course.preemption = message, preemption
            for leaving in self._pods_on(course.pod.status.nominated_node_name):
                if leaving.is_terminating:
                    self._take_away(leaving)
            self._happened += 1
        elif victims is None or not victims.pods or not found.nominated_node:
            self._refused.tell(course.pod, self._happened, Refusal(message, preemption))
            self._fail(course, message, preemption, promise=found.nominated_node)
        elif (loop := self._evictions.loop(course.pod, victims)) is not None:
            self._loops.append(loop)
            self._fail(course, message, is_final=True)
        else:
            if course.preemption is None or not course.preemption.node:
                # What is said first is what people will see; it may take more than one round until there is room.
                course.message, course.preemption = course.message or message, preemption
            self._preempt(course, victims, preemption)

    def _preempt(self, course: Course, victims: fwk.NodeVictims, preemption: PreemptionAnswer | None) -> None:
        known = {} if preemption is None else {each.pod.uid: each for each in preemption.victims}
        for pod in victims.pods:
            take_from_budgets(self.cluster, pod)
            gone = known.get(pod.uid) or victim(pod)
            course.evicts.append(gone)
            self._evict(pod, "preempted", gone=gone, by=course)
        self._promise(course, victims.node)

    def _promise(self, course: Course, node: str) -> None:
        """Room on this node, and on no other, is kept for the pod; on none if it is empty."""
        if course.pod.status.nominated_node_name != node:
            promised = replaced(course.pod, status=replaced(course.pod.status, nominated_node_name=node))
            self.cluster.changed("pods", course.pod, promised)
            course.pod = promised

    def _fail(
        self,
        course: Course,
        message: str,
        preemption: PreemptionAnswer | None = None,
        *,
        promise: str | None = "",
        is_final: bool = False,
    ) -> None:
        """The pod stays where it is: nowhere.

        Arguments:
            promise: the node that it is promised from now on; None to leave that as it is.
        """
        if promise is not None:
            self._promise(course, promise)
        course.message, course.failed_at = message, self._happened
        course.preemption = preemption or course.preemption
        course.is_final = course.is_final or is_final
        if course.lost is not None:
            course.lost.message = message

    # Pods that leave.

    def _pods_on(self, node: str) -> list[Pod]:
        return [pod for pod in self.cluster.cache.pods if pod.spec.node_name == node]

    def _evict(self, pod: Pod, why: Why, *, gone: Victim | None = None, by: Course | None = None, waits_for: tuple[str, ...] = ()) -> None:
        node, returns = pod.spec.node_name, is_made_again(pod)
        lost = LostPlace(
            victim=gone or victim(pod),
            node=node,
            why=why,
            by=None if by is None else pod_name(by.pod),
            returns=returns,
            depth=1 if by is None else by.depth + 1,
            waits_for=waits_for,
        )
        self._evictions.add(lost)
        self._take_away(pod)
        self._happened += 1
        course = self._courses.get(pod.uid)
        if course is None and returns:
            course = Course(pod, "evicted", len(self._courses))
        if course is None:
            return
        course.node, course.message, course.preemption = "", "", None
        course.lost, course.depth = lost, lost.depth
        course.waits_for = course.waits_for or waits_for
        if returns:
            course.pod = made_again(pod)
            self.cluster.changed("pods", None, course.pod)
            self._enqueue(course)
        else:
            course.message, course.is_final = "it is evicted, and nobody makes it again", True

    def _take_away(self, pod: Pod) -> None:
        self.cluster.changed("pods", pod, None)
        give_back_claims(self.cluster, pod)
        kept = self._reserved.pop(pod.uid, None)
        if kept is not None:
            framework, state, assumed = kept
            run_unreserve_plugins(framework.plugins, state, assumed, assumed.spec.node_name)


def _why_gated(framework: Framework, pod: Pod) -> str:
    """Why the pod would not be tried at all; empty if it would."""
    for plugin in framework.plugins.pre_enqueue:
        try:
            status = plugin.pre_enqueue(pod)
        except Exception as exc:
            _LOG.error(exc, "PreEnqueue plugin failed", plugin=plugin.name, pod=pod.key)
            return str(exc)
        if not status.is_success:
            return status.message
    return ""
