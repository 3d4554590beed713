"""Trial: a copy of a cluster in which things are tried. Pods are scheduled, preempt, are evicted and put back.

Every decision is that of the scheduling cycle: the same algorithm, the same preemption, the same Reserve. Nothing is
written, no extender is called, no Permit is asked, and no time passes. What was done can be taken back without a trace.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar, final

import numpy as np

from extender.answers.profiles import simulated_frameworks
from extender.answers.standing import placed_on
from extender.answers.types import QuestionError
from extender.engine import framework as fwk
from extender.engine.cache.cluster import Cluster
from extender.engine.preemption.budgets import Disruptions
from extender.engine.queue.scheduling_queue import SchedulingQueue
from extender.engine.runtime.cycle import Cycle, Nominations
from extender.engine.runtime.findings import run_post_filter_plugins
from extender.engine.runtime.framework import Framework, closed_at_the_end
from extender.engine.runtime.plugin_calls import PluginError, told
from extender.engine.runtime.reserve_to_bind import run_reserve_plugins, run_unreserve_plugins
from extender.engine.runtime.scoring import Choice
from extender.engine.runtime.waiting_pods import WaitingPodsMap
from extender.engine.scheduler.pod_group_cycle import decided, result_of, why_not_together
from extender.engine.scheduler.pod_group_trial import GroupResult, PodGroupTrial
from extender.engine.scheduler.schedule_pod import FitError, SchedulingAlgorithm
from extender.engine.scheduler.world import Failure, PodsInPreBind, World, refused_on_one_node
from extender.engine.snapshot.axes import Index
from extender.engine.snapshot.pod_attributes import HostPort
from extender.values import limits
from extender.values.config.configuration import Configuration
from extender.values.klog.logger import Logger
from extender.values.objects.cluster import identified
from extender.values.objects.decoding import replaced
from extender.values.objects.grouping import GroupKey
from extender.values.objects.meta import HasMetadata
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod, PodStatus

T = TypeVar("T")

MakeFrameworks = Callable[..., Mapping[str, Framework]]
"""Makes frameworks for a copy of a cluster, which is given as `cluster`; see `simulated_frameworks`."""

_LOG: Final = Logger(__name__)


@final
@dataclass(frozen=True, slots=True)
class TrialAttempt:
    """The outcome of an attempt to schedule a pod."""

    cycle: Cycle
    node: str = ""
    """Where the pod is from now on; empty if it has none."""
    message: str = ""
    """Why it has none, before preemption is tried."""
    refusal: FitError | None = None
    """Why no node takes it; None if it has one, or if no eviction can help."""
    choice: Choice | None = None
    """The nodes to choose from, until the next cycle begins; None if there were not several."""


@final
class Trial:
    """State: the cluster, steps that take back what was done, and cycles that have reserved something."""

    def __init__(
        self, cluster: Cluster, frameworks: Mapping[str, Framework], make: MakeFrameworks = simulated_frameworks
    ) -> None:
        """Nothing is tried yet. The cluster, and its frameworks by scheduler name, are used by the trial alone.

        Arguments:
            make: what made the frameworks, their configuration given.
        """
        self.cluster: Final = cluster
        self.frameworks: Final = frameworks
        self._make: Final = make
        self._algorithm: Final = SchedulingAlgorithm()
        self._reserved: Final[dict[str, Cycle]] = {}
        self._steps: Final[list[Callable[[], None]]] = []
        self._open = 0
        self._among: Collection[str] | None = None
        self._places: tuple[object, Index] = None, np.zeros(0, np.intp)
        """The nodes of the last snapshot, and which of them `_among` names."""

    @staticmethod
    @contextmanager
    def of(
        cluster: Cluster,
        configuration: Configuration,
        *,
        plugins: Mapping[str, type[fwk.Plugin]] | None = None,
        for_everybody: bool = False,
    ) -> Iterator["Trial"]:
        """Opens a trial in a copy of the cluster, with `simulated_frameworks` of its own. Raises ConfigErrors."""
        make = partial(simulated_frameworks, configuration, plugins=plugins, for_everybody=for_everybody)
        copy = cluster.fork()
        with _opened(copy, make) as trial:
            for uid, pod in [*copy.pending.items()] if for_everybody else ():
                # Whom another scheduler has placed holds its room, and may be evicted, before it is bound.
                if (node := placed_on(pod, copy.cache.objects)) in copy.nodes:
                    copy.assume(uid, node)
            yield trial

    @contextmanager
    def fork(self) -> Iterator["Trial"]:
        """Opens a trial that begins as this one is now, with frameworks of its own. Steps before it stay done in it.

        Raises QuestionError if a plugin does not reserve for a pod again what it has reserved for it here.
        """
        copy = self.cluster.fork()
        copy.changes = self.cluster.changes  # what is drawn from here on differs from what was drawn before
        with _opened(copy, self._make) as other:
            for mine, of_other in zip(self.frameworks.values(), other.frameworks.values(), strict=True):
                of_other.random.setstate(mine.random.getstate())
            for uid, cycle in self._reserved.items():
                if (assumed := copy.cache.pod(uid)) is not None:
                    other._reserve_again(assumed, cycle)
            yield other

    # What is taken back.

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Takes back at the end of the block what was done in it, the last step first."""
        begin = len(self._steps)
        self._open += 1
        chance = [(framework.random, framework.random.getstate()) for framework in self.frameworks.values()]
        try:
            yield
        finally:
            while len(self._steps) > begin:
                self._steps.pop()()
            self._open -= 1
            for source, state in chance:
                source.setstate(state)

    def commit(self) -> None:
        """Makes everything that was done so far final, and keeps nothing of it, unless a transaction is open."""
        if self._open:
            return
        self._steps.clear()
        self._reserved.clear()

    @contextmanager
    def among(self, nodes: Collection[str] | None) -> Iterator[None]:
        """Has cycles look at these nodes only, until the end of the block; None: at all."""
        self._among, self._places = nodes, (None, np.zeros(0, np.intp))
        try:
            yield
        finally:
            self._among = None

    # Objects.

    def changed(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        """Applies a change: an object was added (`old` is None), updated, or deleted (`new` is None)."""
        cluster, item = self.cluster, old if new is None else new
        match item:
            case None:
                return
            case Pod():
                step = self._pod_back(identified(item).uid, old, new)
            case Node() if new is None and (node := cluster.nodes.get(item.name)) is not None:
                step = partial(cluster.restore_node, node, cluster.cache.visiting_order, dict(cluster.nodes))
            case Node():
                step = partial(cluster.changed, new, cluster.nodes.get(item.name))
            case _:
                step = partial(cluster.changed, new, cluster.cache.objects.known(item))
        cluster.changed(old, new)
        self._steps.append(step)

    # Pods.

    def cycle(self, pod: Pod) -> Cycle:
        """Begins a scheduling cycle of the pod, as things are."""
        nominations = Nominations(self.cluster.nominees(self.frameworks))
        cycle = Cycle(self.frameworks[pod.scheduler_name], self.cluster.cache.update_snapshot(), pod, nominations)
        if self._among is not None:
            nodes = cycle.snapshot.nodes
            if self._places[0] is not nodes.objects:
                places = sorted({nodes.index[name] for name in self._among if name in nodes.index})
                self._places = nodes.objects, np.array(places, np.intp)
            cycle.placement = self._places[1]
        return cycle

    def why_gated(self, pod: Pod) -> str:
        """Returns why PreEnqueue keeps the pod from the queue; empty if it does not."""
        for plugin in self.frameworks[pod.scheduler_name].plugins.pre_enqueue:
            try:
                status = plugin.pre_enqueue(pod)
            except Exception as exc:
                _LOG.error(exc, "PreEnqueue plugin failed", plugin=plugin.name, pod=pod.key)
                return str(PluginError(plugin.name, "PreEnqueue", told(exc)))
            if not status.is_success:
                return status.message
        return ""

    def schedule(self, pod: Pod) -> TrialAttempt:
        """Puts a pending pod on the node that the scheduler would choose, at random among equals."""
        cycle = self.cycle(pod)
        try:
            result = self._algorithm.schedule_pod(cycle)
        except FitError as exc:
            return TrialAttempt(cycle, message=str(exc), refusal=exc)
        except (PluginError, fwk.NoNodesAvailableError) as exc:
            return TrialAttempt(cycle, message=str(exc))
        return self.place(cycle, result.suggested_host, result.choice)

    def place(self, cycle: Cycle, node: str, choice: Choice | None = None) -> TrialAttempt:
        """Puts the cycle's pending pod on a node that has passed its Filters, and reserves what it needs there."""
        pod = cycle.pod
        try:
            assumed = self.cluster.assume(pod.uid, node)
        except ValueError as exc:
            return TrialAttempt(cycle, message=str(exc))
        if assumed is None:
            raise LookupError(f"pod {pod.key} is not pending")
        status = run_reserve_plugins(cycle, assumed, node)
        if not status.is_success:
            run_unreserve_plugins(cycle, assumed, node)
            self.cluster.forget(pod.uid)
            refusal = refused_on_one_node(status).status if status.is_rejected else status
            return TrialAttempt(cycle, message=refusal.message)
        self.cluster.cache.annotate(pod.uid, cycle.find(fwk.BINDING_ANNOTATIONS))
        if any(plugin.name not in cycle.skip_filter_plugins for plugin in cycle.framework.plugins.reserve):
            # A plugin that skipped the pod in PreFilter reserves nothing for it. The cycles of many pods, with arrays
            # along all nodes, would take gigabytes.
            self._reserved[pod.uid] = cycle
        self._steps.append(partial(self._take_off, assumed))
        for plugin in cycle.framework.plugins.reserve:
            for bound in plugin.as_bound(cycle, assumed, node):
                self.changed(self.cluster.cache.objects.known(bound), bound)
        return TrialAttempt(cycle, node, choice=choice)

    async def preempt(self, attempt: TrialAttempt) -> tuple[fwk.PostFilterResult, str]:
        """Returns whom PostFilter would evict for a pod that fits nowhere, and the event's message."""
        cycle, refusal = attempt.cycle, attempt.refusal
        if refusal is None:
            raise LookupError(f"pod {cycle.pod.key} was not refused by nodes")
        try:
            result = await run_post_filter_plugins(cycle, refusal.diagnosis.statuses)
        except PluginError as exc:
            result = fwk.PostFilterResult(fwk.error(str(exc)))
        return result, refusal.message_after(result.status) if cycle.framework.plugins.post_filter else str(refusal)

    async def try_group(
        self, key: GroupKey, pods: Sequence[Pod], *, preempts: bool = True
    ) -> tuple[GroupResult, fwk.Candidate | None]:
        """Returns what is decided about a pod group, and its victims; its pods are tried in this order."""
        why_not = why_not_together(pods)
        if why_not:
            return GroupResult(fwk.error(why_not)), None
        framework = self.frameworks[pods[0].scheduler_name]
        group = self.cluster.cache.objects.pod_groups.get(key)
        attempt = PodGroupTrial(self._world(framework), self._algorithm, framework, key, group, pods)
        return await result_of(attempt) if preempts else (await attempt.run(post_filters=False), None)

    def place_group(self, result: GroupResult, num_members: int) -> Iterator[tuple[str, str]]:
        """Puts a group's members on the nodes that were found. Yields for each its node, or why it has none."""
        for place in range(num_members):
            outcome = decided(result, place)
            if isinstance(outcome, Failure):
                yield "", outcome.status.message
            else:
                cycle, chosen = outcome
                cycle.write(fwk.GROUP_CYCLE, None)
                attempt = self.place(cycle, chosen.suggested_host)
                yield attempt.node, attempt.message

    def evict(self, pod: Pod) -> Pod | None:
        """Removes a pod from its node. Returns it as its controller recreates it, pending; None if it has none."""
        cycle = self._reserved.get(pod.uid)
        annotations = None if cycle is None else cycle.find(fwk.BINDING_ANNOTATIONS)
        self.remove(pod)
        if not is_recreated(pod):
            return None
        recreated_pod = recreated(pod, but=annotations or ())
        self.changed(None, recreated_pod)
        return recreated_pod

    def remove(self, pod: Pod) -> None:
        """Deletes a pod, pending or not. What was reserved for it is free again."""
        objects = self.cluster.cache.objects
        self.changed(pod, None)
        special = pod.status.extended_resource_claim_status
        if special is not None:
            special_claim = objects.resource_claims.get((pod.namespace, special.resource_claim_name))
            if special_claim is not None:
                self.changed(special_claim, None)
        for claim in list(objects.resource_claims.values()) if pod.spec.resource_claims else ():
            consumers = [consumer for consumer in claim.status.reserved_for if consumer.uid != pod.uid]
            if len(consumers) < len(claim.status.reserved_for):
                # A claim without reservations releases its devices.
                allocation = claim.status.allocation if consumers else None
                status = replaced(claim.status, reserved_for=consumers, allocation=allocation)
                self.changed(claim, replaced(claim, status=status))

    def disrupt(self, pods: Sequence[Pod]) -> list[tuple[str, ...]]:
        """Counts evictions of pods with nodes, one by one; returns for each the first budgets that allow none."""
        if not pods or not self.cluster.cache.objects.pdbs:
            return [()] * len(pods)
        snapshot = self.cluster.cache.update_snapshot()
        disruptions = Disruptions(snapshot, np.array([snapshot.pods.slots[pod.uid] for pod in pods], np.intp))
        exhausted = [tuple(budget.metadata.name for budget in disruptions.evict(place)) for place in range(len(pods))]
        for budget, disruptions_left in zip(disruptions.budgets, disruptions.left, strict=True):
            allowed = min(budget.status.disruptions_allowed, max(disruptions_left, 0))
            if allowed != budget.status.disruptions_allowed:
                status = replaced(budget.status, disruptions_allowed=allowed)
                self.changed(budget, replaced(budget, status=status))
        return [names[: limits.BUDGETS_NAMED] for names in exhausted]

    # Steps back.

    def _pod_back(self, uid: str, old: HasMetadata | None, new: HasMetadata | None) -> Callable[[], None]:
        """Returns what takes back a coming change of a pod; one placed here leaves its node, unless it stays."""
        cluster, cache = self.cluster, self.cluster.cache
        pending, placed = cluster.pending.get(uid), cache.pod(uid)
        if placed is None:
            return partial(cluster.changed, new, pending or (old if uid in cluster.unreadable else None))
        ports = cache.used_ports(placed.spec.node_name)
        if pending is None:
            return partial(self._put_back, new, placed, ports)
        if isinstance(new, Pod) and not new.spec.node_name and not new.is_terminal:
            return partial(cluster.changed, new, pending)
        step = partial(self._place_again, placed, ports, self._reserved.get(uid))
        self._take_off(placed)
        self._steps.append(step)
        return partial(cluster.changed, new, pending)

    def _put_back(self, new: HasMetadata | None, running: Pod, ports: frozenset[HostPort]) -> None:
        self.cluster.changed(new, running)
        self.cluster.cache.restore_ports(running.spec.node_name, ports)

    def _take_off(self, assumed: Pod) -> None:
        cycle = self._reserved.pop(assumed.uid, None)
        if cycle is not None:
            run_unreserve_plugins(cycle, assumed, assumed.spec.node_name)
        self.cluster.forget(assumed.uid)

    def _place_again(self, assumed: Pod, ports: frozenset[HostPort], cycle: Cycle | None) -> None:
        self.cluster.assume(assumed.uid, assumed.spec.node_name)
        self.cluster.cache.restore_ports(assumed.spec.node_name, ports)
        if cycle is not None:
            self.cluster.cache.annotate(assumed.uid, cycle.find(fwk.BINDING_ANNOTATIONS))
            self._reserve_again(assumed, cycle)

    def _reserve_again(self, assumed: Pod, cycle: Cycle) -> None:
        # The cycle knows what it has chosen. Filters are not asked again: they might refuse the pod now, for the sake
        # of others that came after it. What it wrote then stays, whatever a plugin would choose now.
        snapshot = self.cluster.cache.update_snapshot()
        framework, slot = self.frameworks[assumed.scheduler_name], snapshot.pods.slots[assumed.uid]
        cycle, chosen = cycle.again(framework, snapshot, slot), cycle.find(fwk.BINDING_ANNOTATIONS)
        status = run_reserve_plugins(cycle, assumed, assumed.spec.node_name)
        if chosen is not None:
            cycle.write(fwk.BINDING_ANNOTATIONS, chosen)
        if not status.is_success:
            raise QuestionError(f"what was reserved for {assumed.key} cannot be reserved again: {status.message}")
        self._reserved[assumed.uid] = cycle

    def _world(self, framework: Framework) -> World:
        cluster, sort_key = self.cluster, framework.plugins.queue_sort.sort_key
        queue = SchedulingQueue(sort_key, {}, lambda pod, last_gated_by: "", now=float, pod_lister=cluster.find)
        for node, nominees in cluster.nominees(self.frameworks).items():
            for _, pod in nominees:
                queue.add_nominated_pod(pod, node)
        return World(
            cluster=cluster,
            queue=queue,
            waiting_pods=WaitingPodsMap(),
            pods_in_pre_bind=PodsInPreBind(),
            dispatcher=_NoWrites(),
            pod_by_key=cluster.find,
            has_groups=True,
        )


@contextmanager
def _opened(cluster: Cluster, make: MakeFrameworks) -> Iterator[Trial]:
    frameworks = make(cluster=cluster)
    with closed_at_the_end(frameworks):
        trial = Trial(cluster, frameworks, make)
        try:
            yield trial
        finally:
            trial._steps.clear()  # nobody sees what would be taken back


@final
class _NoWrites(fwk.Dispatcher):
    async def perform(self, call: fwk.ApiCall[T]) -> T:
        raise fwk.CallError("nothing is written in a trial")

    def submit(self, call: fwk.ApiCall[T]) -> "asyncio.Future[T | None]":
        raise fwk.CallError("nothing is written in a trial")


# Which pods are recreated.

MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"


def is_recreated(pod: Pod) -> bool:
    """Returns whether a controller recreates the pod on any node. A static pod is recreated by its kubelet only."""
    return any(owner.controller and owner.kind != "Node" for owner in pod.metadata.owner_references)


def belongs_to_node(pod: Pod) -> bool:
    """Returns whether a drain leaves the pod alone: a DaemonSet's pod, or a static pod of the kubelet."""
    return MIRROR_ANNOTATION in pod.annotations or any(
        owner.controller and owner.kind in ("DaemonSet", "Node") for owner in pod.metadata.owner_references
    )


def recreated(pod: Pod, but: Collection[str] = ()) -> Pod:
    """Returns the pod as its controller recreates it: without a node, and `but` for annotations that plugins wrote when
    it was bound. Its UID stays, so that it can be followed.
    """
    claims = pod.status.resource_claim_statuses
    annotations = {key: value for key, value in pod.annotations.items() if key not in but}
    return replaced(
        pod,
        metadata=replaced(pod.metadata, deletion_timestamp=None, annotations=annotations),
        spec=replaced(pod.spec, node_name=""),
        status=PodStatus(phase="Pending", resource_claim_statuses=claims),
    )
