"""The loops: they begin on any state, survive what they cannot digest, and let others have their turn."""

import asyncio
import logging
from random import Random

import pytest

from extender.rules.api_resources import DEPLOYMENTS, NAMESPACES, NODES, PODS, REPLICA_SETS, Object
from reprieve.cluster.controllers.cluster_view import ClusterView
from reprieve.cluster.controllers.controller_loop import Controller, ControllerContext, ControllerLoops, Steps
from reprieve.cluster.controllers.controller_writes import Create
from reprieve.cluster.controllers.observed_objects import Key, Observed, ObservedPod
from reprieve.cluster.registry.object_registry import ObjectRegistry
from tests.reprieve.cluster.controllers.running_cluster import (
    add_deployment,
    add_node,
    bind_all,
    change,
    empty_registry,
    names,
    now,
    phases,
    running_controllers,
    scale,
    scheduled,
    settle,
    workload,
)


class Labeller(Controller):
    """Makes a node of each namespace; chokes on some."""

    name = "labeller"

    def observe(self, old: Observed | None, new: Observed | None) -> None:
        if new is not None and new.name == "senseless":
            raise KeyError("spec")
        if new is not None and new.resource is NAMESPACES:
            self.queue.add(new.key)

    def observe_pod(self, old: ObservedPod | None, new: ObservedPod | None) -> None:
        pass

    def reconcile(self, key: Key) -> Steps:
        if key[1].startswith("bad"):
            raise RuntimeError("indigestible")
        if self.cluster.node(key[1]) is None:
            yield Create(NODES, "", {"metadata": {"name": key[1]}})


def labelling(registry: ObjectRegistry) -> ControllerLoops:
    cluster = ClusterView()
    return ControllerLoops(registry, cluster, [Labeller(ControllerContext(cluster, now, Random(1)))])


async def test_controllers_take_up_a_state_in_which_others_left_the_cluster() -> None:
    async with running_controllers(node="a") as registry:
        add_deployment(registry, "web", 2)
        await settle(1)
    scale(registry, DEPLOYMENTS, "web", 3)
    bind_all(registry)
    async with running_controllers(registry):
        await scheduled(registry, 5)

        assert phases(registry) == ["Running"] * 3


async def test_two_runs_on_a_settled_cluster_write_nothing() -> None:
    async with running_controllers(node="a") as registry:
        add_deployment(registry, "web", 2)
        await scheduled(registry, 5)
    version = registry.store.resource_version
    async with running_controllers(registry):
        await settle(60)

        assert registry.store.resource_version == version


async def test_failing_object_does_not_stop_the_controller(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    registry = empty_registry()
    for name in ("bad", "good", "senseless", "worse"):
        registry.create(NAMESPACES, "", {"metadata": {"name": name}})
    running = asyncio.create_task(labelling(registry).run())
    await settle(10)
    running.cancel()

    assert names(registry, NODES) == ["good", "worse"]

    failures = [record for record in caplog.records if "failed" in record.getMessage()]
    assert "Labeller.observe cannot make sense of ('namespaces', '', 'senseless')" in caplog.text
    assert 3 < len(failures) < 15, "it is tried again, more and more rarely"
    assert "indigestible" in str(failures[0].exc_info)


async def test_controller_that_was_overtaken_by_changes_reads_everything_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """More happens at once than the store remembers; what was deleted meanwhile is noticed, too."""
    caplog.set_level(logging.WARNING)
    registry = empty_registry(history=8)
    async with running_controllers(registry):
        registry.create(REPLICA_SETS, "default", workload(REPLICA_SETS, "web", 1))
        await settle()
        (first,) = names(registry, PODS)
        registry.delete(PODS, "default", first, {})
        for number in range(100):
            add_node(registry, f"n{number}")
            registry.create(PODS, "default", _unrelated(f"p{number}"))
        await settle()

        pod_names = [name for name in names(registry, PODS) if name.startswith("web")]
        ready = [node["status"]["conditions"][-1]["type"] for node in registry.list(NODES)]
        assert len(pod_names) == 1
        assert pod_names != [first]
        assert ready == ["Ready"] * 100

    assert "controllers were overtaken by changes" in caplog.text


async def test_controller_yields_between_its_keys() -> None:
    async with running_controllers() as registry:
        for number in range(20):
            registry.create(REPLICA_SETS, "default", workload(REPLICA_SETS, f"web-{number}", 1))
        pod_counts = [0]
        while pod_counts[-1] < 20 and len(pod_counts) < 1000:
            await asyncio.sleep(0)
            pod_counts.append(len(registry.store.read(PODS)))

        assert len(set(pod_counts)) > 10


async def test_a_write_that_comes_second_is_made_again_from_what_is_there_now() -> None:
    """Somebody scales the Deployment in every turn; nothing is lost, and in the end it has what was asked for last."""
    async with running_controllers(node="a") as registry:
        add_deployment(registry, "web", 1)
        for replicas in range(1, 30):
            scale(registry, DEPLOYMENTS, "web", replicas % 5)
            change(registry, DEPLOYMENTS, "web", lambda obj: obj["metadata"].update(labels={"turn": "x"}))
            await asyncio.sleep(0.02)
        await scheduled(registry, 5)

        assert len(names(registry, PODS)) == 29 % 5


def _unrelated(name: str) -> Object:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
