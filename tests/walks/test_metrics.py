"""What has happened in a cluster can be read from the metrics."""

import asyncio
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from extender.assembly.backend import Backend
from extender.values.config.configuration import Configuration
from extender.values.config.loading import load
from tests.kit.faults import Fault
from tests.kit.faults.answers import black_hole
from tests.kit.objects import node, pod, priority_class
from tests.kit.replicas import Replica, replicas
from tests.kit.scene.followed import a_followed_cluster


def value(backend: Backend | None, name: str, /, **labels: str) -> float | None:
    assert backend is not None
    families = text_string_to_metric_families(backend.metrics().decode())
    return next(
        (one.value for family in families for one in family.samples if one.name == name and one.labels == labels), None
    )


async def test_a_pod_that_is_bound_one_that_fits_nowhere_and_one_that_is_gated() -> None:
    async with a_followed_cluster(node("a")) as (cluster, backend):
        for created in (pod("web"), pod("big", "7"), pod("gated", schedulingGates=[{"name": "wait"}])):
            cluster.create(created)
        await asyncio.sleep(5)

        profile = {"profile": "default-scheduler"}
        assert value(backend, "scheduler_schedule_attempts_total", result="scheduled", **profile) == 1
        assert value(backend, "scheduler_schedule_attempts_total", result="unschedulable", **profile) == 1
        assert value(backend, "scheduler_pod_scheduling_attempts_count") == 1
        assert value(backend, "scheduler_pod_scheduling_sli_duration_seconds_count", attempts="1") == 1
        assert value(backend, "scheduler_scheduling_algorithm_duration_seconds_count") == 2
        assert value(backend, "scheduler_pod_scheduled_after_flush_total") == 0
        queues = [
            value(backend, "scheduler_pending_pods", queue=name)
            for name in ("active", "backoff", "unschedulable", "gated")
        ]
        assert queues == [0, 0, 1, 1]
        assert value(backend, "scheduler_queue_incoming_pods_total", queue="active", event="UnschedulablePodAdd") == 2
        assert value(backend, "scheduler_unschedulable_pods", plugin="NodeResourcesFit", **profile) == 1
        assert value(backend, "scheduler_unschedulable_pods", plugin="SchedulingGates", **profile) == 1
        sizes = [value(backend, "scheduler_cache_size", type=name) for name in ("nodes", "pods", "assumed_pods")]
        assert sizes == [1, 1, 0]
        for point in ("PreEnqueue", "PreFilter", "Filter", "Reserve", "Permit", "Bind", "PostBind"):
            name = "scheduler_framework_extension_point_duration_seconds_count"
            assert value(backend, name, extension_point=point, status="Success", **profile), point
        assert value(backend, "scheduler_goroutines", operation="binding") == 0
        binding_labels = {"call_type": "pod_binding", "result": "success"}
        assert value(backend, "scheduler_async_api_call_execution_total", **binding_labels) == 1
        assert value(backend, "scheduler_async_api_call_execution_duration_seconds_count", **binding_labels) == 1
        assert value(backend, "process_cpu_seconds_total")
        handled = "scheduler_event_handling_duration_seconds_count"
        assert [value(backend, handled, event=event) for event in ("NodeAdd", "UnschedulablePodAdd")] == [1, 3]
        assert value(backend, "scheduler_preemption_attempts_total") == 1
        assert value(backend, "scheduler_inflight_events", event="PodPopped") is None
        assert value(backend, "reprieve_reflector_lists_total", resource="pods") == 1
        assert value(backend, "reprieve_limbo_bindings") == 0


async def test_attempts_take_time_even_where_the_loop_stands_still() -> None:
    """What is worked out is measured by a clock that runs meanwhile; a loop in virtual time has none, nor has one that
    reads it once a turn.
    """
    async with a_followed_cluster(node("a")) as (cluster, backend):
        for created in (pod("web"), pod("big", "7")):
            cluster.create(created)
        await asyncio.sleep(5)

        for result in ("scheduled", "unschedulable"):
            name = "scheduler_scheduling_attempt_duration_seconds_sum"
            assert value(backend, name, result=result, profile="default-scheduler") > 0  # type: ignore[operator]


async def test_victims_are_counted() -> None:
    high = priority_class("high", 1000)
    async with a_followed_cluster(high, node("a", "2")) as (cluster, backend):
        for name in ("low-1", "low-2"):
            cluster.create(pod(name, terminationGracePeriodSeconds=0))
        await asyncio.sleep(2)
        cluster.create(pod("high", "2", priorityClassName="high"))
        await asyncio.sleep(60)

        assert value(backend, "scheduler_preemption_attempts_total") == 1
        assert value(backend, "scheduler_preemption_victims_count") == 1
        assert value(backend, "scheduler_preemption_victims_sum") == 2
        assert value(backend, "scheduler_preemption_goroutines_execution_total", result="success") == 1
        assert value(backend, "scheduler_preemption_goroutines_duration_seconds_count", result="success") == 1


CLAIM = {"name": "data", "persistentVolumeClaim": {"claimName": "missing"}}
NO_PREEMPTION = load(
    "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    "profiles: [{plugins: {multiPoint: {disabled: [{name: DefaultPreemption}]}}}]"
)


@pytest.mark.parametrize(
    ("configuration", "created", "attempts"),
    [
        pytest.param(Configuration(), pod("big", "7"), 1, id="there is no victim"),
        pytest.param(
            Configuration(),
            pod("claims", volumes=[CLAIM]),
            0,
            id="a claim is missing, so that DynamicResources ends the chain",
        ),
        pytest.param(NO_PREEMPTION, pod("big", "7"), 0, id="preemption is switched off"),
    ],
)
async def test_a_run_of_post_filter_is_an_attempt_to_preempt_only_if_preemption_is_tried(
    configuration: Configuration, created: dict[str, Any], attempts: int
) -> None:
    async with a_followed_cluster(node("a"), configuration=configuration) as (cluster, backend):
        cluster.create(created)
        await asyncio.sleep(5)

        labels = {"result": "unschedulable", "profile": "default-scheduler"}
        assert value(backend, "scheduler_schedule_attempts_total", **labels) == 1
        assert value(backend, "scheduler_preemption_attempts_total") == attempts


async def test_victims_that_are_leaving_already_are_no_preemption() -> None:
    high = priority_class("high", 1000)
    async with a_followed_cluster(high, node("a", "1")) as (cluster, backend):
        low = pod("low")
        low["metadata"]["finalizers"] = ["example.com/stay"]
        cluster.create(low)
        await asyncio.sleep(5)
        cluster.delete("low")
        cluster.create(pod("high", priorityClassName="high"))
        await asyncio.sleep(5)

        assert cluster.pod("high")["status"]["nominatedNodeName"] == "a"
        assert value(backend, "scheduler_preemption_attempts_total") == 1
        assert value(backend, "scheduler_preemption_victims_count") == 0
        assert value(backend, "scheduler_preemption_goroutines_execution_total", result="success") is None


async def test_plugins_are_timed_in_one_cycle_of_ten_and_counted_in_each() -> None:
    async with a_followed_cluster(node("a", "100"), node("b", "100")) as (cluster, backend):
        for number in range(20):
            cluster.create(pod(f"web-{number}"))
        await asyncio.sleep(5)

        fit = {"plugin": "NodeResourcesFit"}
        timed = "scheduler_plugin_execution_duration_seconds_count"
        # The second cycle that is timed, of an equal pod, reuses the answers of PreFilter and PreScore.
        for point, count in (("PreFilter", 1), ("PreScore", 1), ("Score", 2)):
            assert value(backend, timed, extension_point=point, status="Success", **fit) == count, point
        assert value(backend, timed, plugin="DefaultBinder", extension_point="Bind", status="Success") == 2
        assert value(backend, timed, plugin="SchedulingGates", extension_point="PreEnqueue", status="Success") == 2
        assert value(backend, timed, plugin="VolumeBinding", extension_point="PreFilter", status="Skip") == 1
        total = "scheduler_plugin_evaluation_total"
        for point in ("PreFilter", "Filter", "PreScore", "Score"):
            assert value(backend, total, extension_point=point, profile="default-scheduler", **fit) == 20, point
        assert (
            value(backend, total, extension_point="Filter", profile="default-scheduler", plugin="VolumeBinding") is None
        )


async def test_hints_are_timed_by_what_they_say() -> None:
    async with a_followed_cluster(node("small", "500m")) as (cluster, backend):
        cluster.create(pod("web"))
        await asyncio.sleep(5)
        for name, cpu in (("small-2", "500m"), ("big", "2")):
            cluster.create(node(name, cpu))
        await asyncio.sleep(5)

        labels = {"plugin": "NodeResourcesFit", "event": "NodeAdd"}
        hints = "scheduler_queueing_hint_execution_duration_seconds_count"
        assert [value(backend, hints, hint=hint, **labels) for hint in ("QueueSkip", "Queue")] == [1, 1]


async def test_leadership_and_unconfirmed_bindings_are_exported_as_metrics() -> None:
    stuck = Fault(black_hole(), verb="create", subresource="binding", times=None)
    async with replicas(node("a"), first=[stuck]) as (cluster, first, second):
        cluster.create(pod("web"))
        await asyncio.sleep(8)

        def master(replica: Replica) -> float | None:
            return value(replica.following, "leader_election_master_status", name="kube-scheduler")

        assert (master(first), master(second)) == (1, 0)
        assert value(first.following, "reprieve_limbo_bindings") == 1
        assert 0 < (value(first.following, "reprieve_limbo_binding_age_seconds") or 0) < 8
        assert value(first.following, "scheduler_cache_size", type="assumed_pods") == 1
