"""Assembles a scheduler: profiles, queue, cycles and event handlers."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final, final

import msgspec

from extender.client.http_extender import Through, Transports, make_extenders, no_transport
from extender.engine import framework as fwk
from extender.engine.cache.cluster import Cluster
from extender.engine.plugins import IN_TREE
from extender.engine.queue.queued_pod_info import QueuedPodInfo
from extender.engine.queue.scheduling_queue import DEFAULT_POD_MAX_IN_UNSCHEDULABLE_PODS, SchedulingQueue
from extender.engine.reporter import NO_REPORTER, Reporter, Reporters
from extender.engine.runtime.framework import Framework
from extender.engine.runtime.plugin_calls import call_plugin
from extender.engine.runtime.queueing_hints import gating_plugin, hints_of_profile
from extender.engine.runtime.registry import Registry
from extender.engine.scheduler.event_handlers import EventHandlers
from extender.engine.scheduler.scheduler import Scheduler
from extender.engine.scheduler.world import PodsInPreBind, World
from extender.values.config.configuration import Configuration
from extender.values.klog.logger import Logger
from extender.values.metrics import Metrics
from extender.values.metrics.tracing import Tracer
from extender.values.objects.pod import Pod

_LOG: Final = Logger(__name__)


@final
class Scheduling(msgspec.Struct, frozen=True):
    """A scheduler, and the event handlers that keep it informed."""

    scheduler: Scheduler
    handlers: EventHandlers
    """Call them for every change of the cluster."""
    world: World
    frameworks: Mapping[str, Framework]

    def evaluations(self) -> Counter[tuple[str, str, str]]:
        """Returns (plugin, extension point, profile) -> the number of attempts in which the plugin was evaluated."""
        return Counter(
            {
                (*labels, profile): times
                for profile, framework in self.frameworks.items()
                for labels, times in framework.evaluation_counts().items()
            }
        )


def assemble_scheduler(
    configuration: Configuration,
    cluster: Cluster,
    dispatcher: fwk.Dispatcher,
    rng: random.Random,
    *,
    transports: Transports = no_transport,
    through: Through | None = None,
    plugins: Registry | None = None,
    fence: Callable[[], str | None] = lambda: None,
    reporter: Reporter = NO_REPORTER,
    tracer: Tracer | None = None,
    max_in_unschedulable_pods: float = DEFAULT_POD_MAX_IN_UNSCHEDULABLE_PODS,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Scheduling:
    """Returns a scheduler for the profiles of the configuration. Call it in the event loop that will run it. Raises
    ConfigErrors for all that is wrong with the configuration, with its extenders or with a plugin.

    With extenders in the configuration, the scheduler has a cluster of its own (`world.cluster`): a cycle waits for
    them, and its snapshot must not be replaced meanwhile.

    Arguments:
        cluster: changed by the handlers alone from now on, unless there are extenders.
        plugins: the plugins that profiles may name; None for the in-tree ones and those of installed distributions.
        fence: returns why nothing may be written at the moment; None if writing is allowed. The client needs it as
            well.
        max_in_unschedulable_pods: seconds after which an unschedulable pod is tried again without any event.
        now: the time of day, for plugins.
    """
    extenders = make_extenders(configuration, transports, through)
    if extenders:
        cluster = Cluster()
    frameworks = (plugins or Registry(IN_TREE)).make_frameworks(
        configuration,
        rng,
        [extender for extender in extenders if extender.supports_preemption],
        dispatcher=dispatcher,
        live=cluster.cache,
        now=now,
        may_defer=True,
    )
    # `pods` is filled by the event handlers, and read by the queue and the cycles. Plugins of all profiles share the
    # metrics.
    pods: dict[str, Pod] = {}
    metrics = Metrics()
    first = next(iter(frameworks.values()))
    first.shared(fwk.PLUGIN_METRICS, lambda: metrics.plugins)
    queue = _queue(configuration, frameworks, pods, metrics, bool(extenders), max_in_unschedulable_pods)
    enabled = configuration.feature_gates.enabled
    world = World(
        cluster=cluster,
        queue=queue,
        waiting_pods=first.waiting_pods,
        pods_in_pre_bind=PodsInPreBind(),
        dispatcher=dispatcher,
        pod_by_key=pods.get,
        extenders=extenders,
        fence=fence,
        metrics=metrics,
        reporter=Reporters(reporter, SlowAttempts(metrics)),
        nominates_before_binding=enabled("NominatedNodeNameForExpectation"),
        tracks_generations=enabled("PodObservedGenerationTracking"),
        tracer=tracer,
        has_groups=enabled("GenericWorkload"),
    )
    is_async = enabled("SchedulerAsyncPreemption")
    scheduler = Scheduler(
        world, frameworks, configuration.percentage_of_nodes_to_score or 0, preempts_meanwhile=is_async
    )
    return Scheduling(scheduler, EventHandlers(world, frameworks, pods), world, frameworks)


def _queue(
    configuration: Configuration,
    frameworks: Mapping[str, Framework],
    pods: Mapping[str, Pod],
    metrics: Metrics,
    has_extenders: bool,
    max_in_unschedulable_pods: float,
) -> SchedulingQueue:
    def gated_by(pod: Pod, last_gated_by: str) -> str:
        # The point is always observed as a Success, as upstream.
        with metrics.timed("PreEnqueue", pod.scheduler_name):
            plugins = frameworks[pod.scheduler_name].plugins.pre_enqueue
            return gating_plugin(plugins, pod, last_gated_by, metrics.plugins.sampled("PreEnqueue"))

    # All profiles sort alike, which `resolve_all` has checked.
    sort = next(iter(frameworks.values())).plugins.queue_sort
    return SchedulingQueue(
        lambda pod, timestamp: call_plugin(None, sort.name, "QueueSort", sort.sort_key, pod, timestamp),
        {
            name: hints_of_profile(framework.plugins, has_extenders=has_extenders)
            for name, framework in frameworks.items()
        },
        gated_by,
        now=asyncio.get_running_loop().time,
        pod_lister=pods.get,
        initial_backoff=configuration.pod_initial_backoff_seconds,
        max_backoff=configuration.pod_max_backoff_seconds,
        max_in_unschedulable_pods=max_in_unschedulable_pods,
        metrics=metrics.plugins,
        pops_from_backoff_q=configuration.feature_gates.enabled("SchedulerPopFromBackoffQ"),
    )


SLOW: Final = 0.1
"""Seconds from which on an attempt is logged. Upstream: schedulePod."""

_POINTS: Final = ("PreFilter", "Filter", "PostFilter", "PreScore", "Score", "Reserve", "Permit")
"""The points of an attempt; those of a binding may belong to another pod."""


@final
class SlowAttempts(Reporter):
    """Logs attempts that took long, with their steps, and empties the steps of the metrics after each attempt.

    Upstream: pkg/scheduler/schedule_one.go, schedulePod, whose trace is logged if it is long. Here extension points are
    the steps, and the remaining time was spent in between: on the snapshot, and on extenders.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def decided(
        self, info: QueuedPodInfo, profile: str, node: str, evaluated: int, feasible: int, seconds: float
    ) -> None:
        self._ended(info, seconds)

    def failed(self, info: QueuedPodInfo, profile: str, status: fwk.Status, seconds: float) -> None:
        self._ended(info, seconds)

    def _ended(self, info: QueuedPodInfo, seconds: float) -> None:
        # The steps of a pod group count for its first pod.
        if seconds >= SLOW:
            steps = {point: self._metrics.steps[point] for point in _POINTS if point in self._metrics.steps}
            in_words = {point: f"{took * 1000:.1f}ms" for point, took in steps.items()}
            if steps:
                _LOG.info(0, "Scheduling took long", pod=info.pod, total=f"{seconds * 1000:.1f}ms", **in_words)
        self._metrics.steps.clear()
