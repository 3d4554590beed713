"""A Job has as many pods at a time as it wants, until enough of them have succeeded."""

from typing import Any

from extender.rules.api_resources import JOBS, PODS, Object
from reprieve.cluster.registry.object_registry import ObjectRegistry
from tests.reprieve.cluster.controllers.running_cluster import (
    change,
    condition_of,
    names,
    phases,
    running_controllers,
    scheduled,
    settle,
    template,
)

RUNS = {"reprieve.dev/runs-for": "2s"}


def add_job(registry: ObjectRegistry, annotations: Any = None, **spec: Any) -> Object:
    of_pods = template(restartPolicy="Never")
    of_pods["metadata"]["annotations"] = annotations or {}
    return registry.create(JOBS, "default", {"metadata": {"name": "once"}, "spec": {"template": of_pods, **spec}})


def job(registry: ObjectRegistry) -> Object:
    return registry.get(JOBS, "default", "once")


async def test_a_job_runs_to_its_completions() -> None:
    async with running_controllers(node="a") as registry:
        add_job(registry, RUNS, parallelism=2, completions=3)
        await settle()
        at_first = len(names(registry, PODS))
        await scheduled(registry, 20)

        status = job(registry)["status"]

        assert at_first == 2
        assert (status["succeeded"], phases(registry)) == (3, ["Succeeded"] * 3)
        assert condition_of(job(registry), "Complete")["reason"] == "CompletionsReached"
        assert status["startTime"] <= status["completionTime"]


async def test_pods_carry_the_labels_of_their_job() -> None:
    async with running_controllers(node="a") as registry:
        new_job = add_job(registry)
        await settle()

        (pod,) = registry.list(PODS)

        assert pod["metadata"]["labels"]["job-name"] == "once"
        assert new_job["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()


async def test_an_indexed_job_has_a_pod_for_each_index() -> None:
    async with running_controllers(node="a") as registry:
        add_job(registry, RUNS, parallelism=2, completions=3, completionMode="Indexed")
        await scheduled(registry, 20)

        indexes = sorted(
            pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] for pod in registry.list(PODS)
        )

        assert indexes == ["0", "1", "2"]
        assert condition_of(job(registry), "Complete")["status"] == "True"


async def test_a_job_without_completions_is_done_when_one_has_succeeded_and_none_runs() -> None:
    async with running_controllers(node="a") as registry:
        add_job(registry, RUNS, parallelism=2)
        await scheduled(registry, 20)

        assert phases(registry) == ["Succeeded"] * 2
        assert condition_of(job(registry), "Complete")["status"] == "True"


async def test_failed_pods_are_replaced_until_the_limit() -> None:
    async with running_controllers(node="a", kubelet=False) as registry:
        add_job(registry, backoffLimit=1)
        for _ in range(2):
            await settle()
            running = [pod["metadata"]["name"] for pod in registry.list(PODS) if pod["status"]["phase"] == "Pending"]
            change(registry, PODS, running[0], lambda pod: pod["status"].update(phase="Failed"), subresource="status")
        await settle()

        assert phases(registry) == ["Failed"] * 2
        assert condition_of(job(registry), "Failed")["reason"] == "BackoffLimitExceeded"


async def test_with_the_replacement_policy_failed_a_pod_is_replaced_once_it_is_gone() -> None:
    replaced: dict[str, list[int]] = {}
    for policy in ("Failed", "TerminatingOrFailed"):
        async with running_controllers(node="a", kubelet=False) as registry:
            add_job(registry, podReplacementPolicy=policy)
            await settle()
            [first] = names(registry, PODS)
            change(registry, PODS, first, lambda pod: pod["metadata"].update(finalizers=["example.com/slow"]))
            registry.delete(PODS, "default", first, {})
            await settle()
            replaced[policy] = [len(names(registry, PODS)) - 1]
            change(registry, PODS, first, lambda pod: pod["metadata"].pop("finalizers"))
            await settle()
            replaced[policy].append(len(set(names(registry, PODS)) - {first}))

    assert replaced == {"Failed": [0, 1], "TerminatingOrFailed": [1, 1]}


async def test_a_suspended_job_has_no_pods() -> None:
    async with running_controllers(node="a") as registry:
        add_job(registry)
        await settle()

        change(registry, JOBS, "once", lambda obj: obj["spec"].update(suspend=True))
        await settle(10)

        assert names(registry, PODS) == []
        assert condition_of(job(registry), "Suspended")["status"] == "True"


async def test_a_job_that_ended_is_deleted_after_its_time() -> None:
    async with running_controllers(node="a") as registry:
        add_job(registry, RUNS, ttlSecondsAfterFinished=5)
        await scheduled(registry, 20)

        assert names(registry, JOBS) == []


async def test_a_job_that_somebody_else_manages_is_left_to_them() -> None:
    async with running_controllers(node="a") as registry:
        add_job(registry, managedBy="example.com/queue")
        await settle()

        assert names(registry, PODS) == []
