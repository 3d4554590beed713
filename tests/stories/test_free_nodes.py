"""Plans that free whole nodes are carried out on a cluster, with eviction requests: each pod lands where the plan says
because the scheduler puts it there, no budget is broken, and nobody is pending at the end.
"""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Final

import pytest

from extender.rules.api_resources import NODES, PODS
from extender.rules.trial_registry import TrialRegistry
from extender.values.config.configuration import Configuration
from reprieve.lab.plan.plan import plan
from reprieve.lab.plan.plan_answer import PlanAnswer, PlanRequest
from tests.kit.fleets import Fleet, random_fleet
from tests.kit.scene import Scene, a_scene
from tests.stories.test_plans import App, Sizes, budgets, filled, objects_of

CLUSTERS: Final = 200
AT_ONCE: Final = 4
ON_A_LANDING: Final = 12


def sizes_of(fleet: Fleet) -> Sizes:
    names = [f"n{place}" for place in range(len(fleet.cpu))]
    apps = [
        App(
            app.name,
            app.size,
            tuple(names[place] for place in app.nodes),
            app.stays,
            app.keeps_apart,
            app.zone,
            None if app.allowed is None else max(len(app.nodes) - app.allowed, 0),
        )
        for app in fleet.apps
    ]
    return Sizes(dict(zip(names, fleet.cpu, strict=True)), dict(zip(names, fleet.zones, strict=True)), apps, 1, "")


def planned(scene: Scene) -> PlanAnswer:
    cluster, request = (
        scene.alone.world.cluster.fork(),
        PlanRequest(free_nodes=len(scene.api.list(NODES)), max_moves=100),
    )
    with ThreadPoolExecutor() as pool:  # it runs an event loop of its own
        return pool.submit(plan, cluster, Configuration(), request, TrialRegistry, lambda: datetime.now(UTC)).result()


def cordon(scene: Scene, names: object, *, is_on: bool = True) -> None:
    for obj in scene.api.list(NODES):
        if obj["metadata"]["name"] in names:  # type: ignore[operator]
            obj["spec"]["unschedulable"] = is_on
            scene.api.update(NODES, "", obj["metadata"]["name"], obj)


async def carried_out(scene: Scene, answer: PlanAnswer) -> None:
    names: dict[str, str] = {}  # the pods that have moved, as they are called now
    cordon(scene, {free_node.node for free_node in answer.free})
    for move in answer.moves:
        name, before = names.get(move.pod.name, move.pod.name), scene.pods()
        assert scene.node_of(name) == move.from_node
        meanwhile = {*move.cordon} - {free_node.node for free_node in answer.free}
        cordon(scene, meanwhile)
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "default"}}
        await scene.setting.client.create(f"/api/v1/namespaces/default/pods/{name}/eviction", body)
        await scene.passes(60)
        (new,) = scene.pods() - before
        assert scene.node_of(new) == move.to_node
        names[move.pod.name] = new
        assert all(slack >= 0 for slack in budgets(scene).values())
        cordon(scene, meanwhile, is_on=False)


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(first, marks=[pytest.mark.slow] if first >= ON_A_LANDING else [])
        for first in range(0, CLUSTERS, AT_ONCE)
    ],
)
async def test_a_plan_that_frees_nodes_can_be_carried_out(first: int) -> None:
    for seed in range(first, first + AT_ONCE):
        sizes = sizes_of(random_fleet(seed))
        async with a_scene(*objects_of(sizes)) as scene:
            await filled(scene, sizes)
            answer = planned(scene)

            await carried_out(scene, answer)

            used = {obj["spec"].get("nodeName", "") for obj in scene.api.list(PODS, "default")}
            assert "" not in used, seed
            assert not used & {free_node.node for free_node in answer.free}, seed
