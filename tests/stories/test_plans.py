"""Plans that are carried out on a cluster, move by move; and where there is none, a search of all distributions of its
pods finds none.
"""

import random
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, final

import pytest

from extender.rules.api_resources import NODES, POD_DISRUPTION_BUDGETS, PODS, Object
from extender.rules.trial_registry import TrialRegistry
from extender.values.config.configuration import Configuration
from reprieve.lab.plan.plan import plan
from reprieve.lab.plan.plan_answer import PlanAnswer, PlanRequest
from tests.kit.objects import budget, node, pod, resource_of
from tests.kit.pod_specs import away_from
from tests.kit.scene import Scene, a_scene

CLUSTERS: Final = 200
AT_ONCE: Final = 10
ON_A_LANDING: Final = 20
"""The clusters of one test."""
REPLICA_SETS: Final = resource_of({"apiVersion": "apps/v1", "kind": "ReplicaSet"})


@final
@dataclass(frozen=True)
class App:
    """Pods that are alike, made by a ReplicaSet; those that stay were made by nobody.

    Attributes:
        keeps_apart: whether no two of them may be on one node.
        zone: where they have to be; empty for anywhere.
        min_available: of its PodDisruptionBudget; None without one.
    """

    name: str
    cpu: int
    nodes: tuple[str, ...]
    stays: bool = False
    keeps_apart: bool = False
    zone: str = ""
    min_available: int | None = None

    @property
    def may_move(self) -> bool:
        return not self.stays and (self.min_available is None or len(self.nodes) > self.min_available)

    def spec(self) -> Object:
        spec: Object = {}
        if self.keeps_apart:
            spec["affinity"] = away_from(app=self.name)
        if self.zone:
            spec["nodeSelector"] = {"zone": self.zone}
        return spec

    def pod(self, name: str, node: str = "") -> Object:
        obj = pod(name, str(self.cpu), labels={"app": self.name})
        obj["spec"] |= self.spec() | ({"nodeName": node} if node else {})
        return obj


@final
@dataclass(frozen=True)
class Sizes:
    """A cluster before anything happens in it, and the pod that is to fit."""

    cpu: Mapping[str, int]
    zones: Mapping[str, str]
    apps: Sequence[App]
    wanted_cpu: int
    wanted_zone: str
    placed: Mapping[tuple[int, int], str] = field(default_factory=dict)


def cluster_of(seed: int) -> Sizes:
    """Returns a random cluster that is rather full."""
    rng = random.Random(seed)
    cpu = {f"n{number}": rng.randint(3, 6) for number in range(rng.randint(2, 4))}
    zones = {name: rng.choice("ab") for name in cpu}
    free = dict(cpu)
    apps: list[App] = []
    for number in range(rng.randint(2, 5)):
        size, count = rng.randint(1, 3), rng.randint(1, 3)
        keeps_apart = rng.random() < 0.25
        zone = rng.choice(list(zones.values())) if rng.random() < 0.2 else ""
        nodes: list[str] = []
        for _ in range(count):
            fitting = [
                name
                for name in cpu
                if free[name] >= size and not (keeps_apart and name in nodes) and zone in ("", zones[name])
            ]
            if fitting:
                nodes.append(rng.choice(fitting))
                free[nodes[-1]] -= size
        budget = rng.randint(0, len(nodes)) if nodes and rng.random() < 0.4 else None
        if nodes:
            apps.append(App(f"app-{number}", size, tuple(nodes), rng.random() < 0.15, keeps_apart, zone, budget))
    wanted_cpu = min(max(free.values()) + rng.randint(1, 2), max(cpu.values()))
    return Sizes(cpu, zones, apps, wanted_cpu, rng.choice(list(zones.values())) if rng.random() < 0.3 else "")


# Every distribution of the pods, by arithmetic alone.


State = tuple[tuple[str, ...], ...]
"""The nodes of the pods of each app, sorted."""


def fits_after_moves(sizes: Sizes) -> bool:
    """Returns whether any moves lead to a distribution in which the wanted pod fits."""
    first: State = tuple(tuple(sorted(app.nodes)) for app in sizes.apps)
    visited, queue = {first}, deque([first])
    while queue:
        state = queue.popleft()
        free = free_in(sizes, state)
        if any(free[name] >= sizes.wanted_cpu and sizes.wanted_zone in ("", sizes.zones[name]) for name in sizes.cpu):
            return True
        for after in moved(sizes, state, free):
            if after not in visited:
                visited.add(after)
                queue.append(after)
    return False


def free_in(sizes: Sizes, state: State) -> dict[str, int]:
    free = dict(sizes.cpu)
    for app, nodes in zip(sizes.apps, state, strict=True):
        for name in nodes:
            free[name] -= app.cpu
    return free


def moved(sizes: Sizes, state: State, free: Mapping[str, int]) -> Iterator[State]:
    for number, (app, nodes) in enumerate(zip(sizes.apps, state, strict=True)):
        if not app.may_move:
            continue
        for place, node_name in enumerate(nodes):
            other_nodes = nodes[:place] + nodes[place + 1 :]
            for name in sizes.cpu:
                allowed = (
                    free[name] >= app.cpu
                    and app.zone in ("", sizes.zones[name])
                    and not (app.keeps_apart and name in other_nodes)
                )
                if name != node_name and allowed:
                    yield (*state[:number], tuple(sorted((*other_nodes, name))), *state[number + 1 :])


# The cluster.


def objects_of(sizes: Sizes) -> list[Object]:
    return [node(name, str(cpu), labels={"zone": sizes.zones[name]}) for name, cpu in sizes.cpu.items()]


async def filled(scene: Scene, sizes: Sizes) -> None:
    """Makes the pods, each on its node, with their ReplicaSets and budgets."""
    for app in sizes.apps:
        template = {key: value for key, value in app.pod("x").items() if key in ("metadata", "spec")}
        template["metadata"] = {"labels": {"app": app.name}}
        owner: list[Object] = []
        if not app.stays:
            spec = {"replicas": 0, "selector": {"matchLabels": {"app": app.name}}, "template": template}
            of_kind = {"apiVersion": "apps/v1", "kind": "ReplicaSet"}
            replica_set = scene.api.create(
                REPLICA_SETS, "default", {**of_kind, "metadata": {"name": app.name}, "spec": spec}
            )
            owner = [{**of_kind, "name": app.name, "uid": replica_set["metadata"]["uid"], "controller": True}]
        for number, name in enumerate(app.nodes):
            obj = app.pod(f"{app.name}-{number}", name)
            obj["metadata"]["ownerReferences"] = owner
            scene.api.create(PODS, "default", obj)
        if not app.stays:
            replica_set = scene.api.get(REPLICA_SETS, "default", app.name)
            replica_set["spec"]["replicas"] = len(app.nodes)
            scene.api.update(REPLICA_SETS, "default", app.name, replica_set)
        if app.min_available is not None:
            pod_budget = budget(app.name, {"matchLabels": {"app": app.name}}, minAvailable=app.min_available)
            scene.api.create(POD_DISRUPTION_BUDGETS, "default", pod_budget)
    await scene.passes(30)


def wanted_pod(sizes: Sizes) -> Object:
    obj = pod("wanted", str(sizes.wanted_cpu))
    if sizes.wanted_zone:
        obj["spec"]["nodeSelector"] = {"zone": sizes.wanted_zone}
    return obj


def planned(scene: Scene, sizes: Sizes) -> PlanAnswer:
    cluster = scene.alone.world.cluster.fork()
    request = PlanRequest(create=[wanted_pod(sizes)], max_moves=20)
    with ThreadPoolExecutor() as pool:  # it runs an event loop of its own
        return pool.submit(plan, cluster, Configuration(), request, TrialRegistry, lambda: datetime.now(UTC)).result()


async def carried_out(scene: Scene, answer: PlanAnswer) -> None:
    """Makes the moves in their order: an eviction request each, and the node that the plan names is the only one that
    is not cordoned.
    """
    names: dict[str, str] = {}  # the pods that have moved, as they are called now
    for move in answer.moves:
        name, before = names.get(move.pod.name, move.pod.name), scene.pods()
        assert scene.node_of(name) == move.from_node
        cordon(scene, besides=move.to_node)
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "default"}}
        await scene.setting.client.create(f"/api/v1/namespaces/default/pods/{name}/eviction", body)
        await scene.passes(60)
        (new,) = scene.pods() - before
        assert scene.node_of(new) == move.to_node
        assert scene.pods() == before - {name} | {new}
        names[move.pod.name] = new
        cordon(scene, besides=None)


def cordon(scene: Scene, besides: str | None) -> None:
    for obj in scene.api.list(NODES):
        obj["spec"]["unschedulable"] = besides is not None and obj["metadata"]["name"] != besides
        scene.api.update(NODES, "", obj["metadata"]["name"], obj)


def budgets(scene: Scene) -> dict[str, int]:
    """Returns by how many healthy pods each budget's app is above or below what it wants."""
    pdbs = scene.api.list(POD_DISRUPTION_BUDGETS, "default")
    return {pdb["metadata"]["name"]: pdb["status"]["currentHealthy"] - pdb["status"]["desiredHealthy"] for pdb in pdbs}


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(first, marks=[pytest.mark.slow] if first >= ON_A_LANDING else [])
        for first in range(0, CLUSTERS, AT_ONCE)
    ],
)
async def test_a_plan_can_be_carried_out_and_where_there_is_none_no_search_finds_one(first: int) -> None:
    for seed in range(first, first + AT_ONCE):
        sizes = cluster_of(seed)
        async with a_scene(*objects_of(sizes)) as scene:
            await filled(scene, sizes)
            answer = planned(scene, sizes)
            if not answer.fits:
                assert answer.is_complete, seed
                assert not fits_after_moves(sizes), seed
                continue
            await carried_out(scene, answer)
            await scene.has(wanted_pod(sizes), within=30)
            assert scene.node_of("wanted"), seed
            assert all(slack >= 0 for slack in budgets(scene).values()), seed
