"""Standalone: the parts of a scheduler that decides for a cluster by itself, put together."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import final

from extender import framework as fwk
from extender.cache.cluster import Cluster
from extender.config import Configuration
from extender.http_extender import Transports, make_extenders, no_transport
from extender.metrics import Metrics
from extender.objects.pod import Pod
from extender.plugins import IN_TREE
from extender.queue.scheduling_queue import DEFAULT_POD_MAX_IN_UNSCHEDULABLE_PODS, SchedulingQueue
from extender.records import NO_REPORTER, Guarded, Reporter
from extender.runtime.queueing_hints import gating_plugin, queueing_hint_map, registrations
from extender.runtime.registry import Registry
from extender.scheduler.event_handlers import EventHandlers
from extender.scheduler.scheduler import Scheduler
from extender.scheduler.world import PodsInPreBind, World


@final
@dataclass(frozen=True, slots=True)
class Standalone:
    """A scheduler and what keeps it informed."""

    scheduler: Scheduler
    handlers: EventHandlers
    world: World
    evaluations: Callable[[], Counter[tuple[str, str, str]]]
    """(plugin, extension point, profile) -> in how many attempts the plugin had a say."""


def standalone(
    configuration: Configuration,
    cluster: Cluster,
    dispatcher: fwk.Dispatcher,
    rng: random.Random,
    *,
    transports: Transports = no_transport,
    plugins: Registry | None = None,
    fence: Callable[[], str | None] = lambda: None,
    reporter: Reporter = NO_REPORTER,
    max_in_unschedulable_pods: float = DEFAULT_POD_MAX_IN_UNSCHEDULABLE_PODS,
) -> Standalone:
    """A scheduler for the profiles of the configuration, which asks the extenders of the configuration. Call it where its loop runs.

    Arguments:
        cluster: changed by the handlers alone from now on. With extenders, the scheduler decides over a cluster of its own: a cycle waits
            for them, and a snapshot does not survive that somebody else takes the next one of the same cache meanwhile.
        transports: what carries the calls to an extender; None for sockets.
        fence: why nothing may be written at the moment; None if it may. The dispatcher has to know by itself.
        max_in_unschedulable_pods: seconds after which a pod is tried again although nothing has changed that should help.
        plugins: those that profiles may name; None for ours and those of the installed distributions.
        reporter: who is told what is decided.

    Raises:
        ConfigErrors: what is wrong with the configuration, with its extenders or with a plugin, all at once.
    """
    extenders = make_extenders(configuration, transports)
    others = [cluster] if extenders else []
    if extenders:
        cluster = Cluster()
    frameworks = (plugins or Registry(IN_TREE)).make_frameworks(
        configuration,
        rng,
        [extender for extender in extenders if extender.supports_preemption],
        dispatcher=dispatcher,
        live=cluster.cache,
    )
    pods: dict[str, Pod] = {}
    first = next(iter(frameworks.values()))

    metrics = Metrics()
    first.shared(fwk.PLUGIN_METRICS, lambda: metrics.plugins)

    def gated_by(pod: Pod, last: str) -> str:
        began = perf_counter()
        gated = gating_plugin(frameworks[pod.scheduler_name].plugins.pre_enqueue, pod, last, metrics.plugins.sampled("PreEnqueue"))
        # Always Success, as upstream.
        metrics.points.observe(perf_counter() - began, "PreEnqueue", "Success", pod.scheduler_name)
        return gated

    queue = SchedulingQueue(
        first.plugins.queue_sort.sort_key,
        {
            name: queueing_hint_map(registrations(framework.plugins, has_extenders=bool(extenders)))
            for name, framework in frameworks.items()
        },
        gated_by,
        now=asyncio.get_running_loop().time,
        pod_lister=pods.get,
        initial_backoff=configuration.pod_initial_backoff_seconds,
        max_backoff=configuration.pod_max_backoff_seconds,
        max_in_unschedulable_pods=max_in_unschedulable_pods,
        metrics=metrics.plugins,
    )
    world = World(cluster, queue, first.waiting_pods, PodsInPreBind(), dispatcher, pods.get, extenders, fence, metrics, Guarded(reporter))
    scheduler = Scheduler(world, frameworks, configuration.percentage_of_nodes_to_score or 0)

    def evaluations() -> Counter[tuple[str, str, str]]:
        return Counter(
            {(*labels, profile): times for profile, framework in frameworks.items() for labels, times in framework.evaluations().items()}
        )

    return Standalone(scheduler, EventHandlers(world, frameworks, pods, others=others), world, evaluations)
