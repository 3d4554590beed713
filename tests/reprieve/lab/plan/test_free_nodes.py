"""Whole nodes back: as many as any moves can free, after as few; what keeps a node; and what comes of a question that
makes no sense.
"""

import json
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest

from extender.rules.api_resources import Object
from extender.values.config.configuration import Configuration
from reprieve import Cluster, ReprieveError, Trial
from reprieve.lab.plan.plan_answer import PlanAnswer
from reprieve.lab.simulation.playing import play
from reprieve.lab.simulation.report import SimulationReport
from reprieve.lab.simulation.sweeping import read_workloads
from tests.api.in_process import reprieve
from tests.kit.fleets import Fleet, FleetApp, fewest_moves, random_fleet
from tests.kit.objects import budget, node, pod, state_file
from tests.kit.pod_specs import away_from
from tests.kit.tables import cases

CLUSTERS: Final = 200
AT_ONCE: Final = 2
ON_A_LANDING: Final = 16
"""The clusters of one test."""


def chunks(on_a_landing: int = ON_A_LANDING) -> list[Any]:
    return [
        pytest.param(first, marks=[pytest.mark.slow] if first >= on_a_landing else [], id=f"{first}-")
        for first in range(0, CLUSTERS, AT_ONCE)
    ]


def free_now(trial: Trial) -> set[str]:
    used = {on for name, on in trial.pods.items() if on and not name.endswith("/daemon")}
    return {name for name in trial.nodes().names if name not in used}


def replayed(trial: Trial, answer: PlanAnswer) -> None:
    """Makes the moves as the script does: what the plan does not cordon the scheduler may choose, and it chooses as the
    plan says.
    """
    pending = {name for name, on in trial.pods.items() if not on}
    trial.cordon([entry.node for entry in answer.free])
    for move in answer.moves:
        assert trial.pods[move.pod.key] == move.from_node
        trial.cordon(move.cordon)
        (waits_for,) = trial.evict(move.pod.key).values()
        assert waits_for == move.waits_for
        (placed,) = trial.schedule(move.pod.key)
        assert placed.node == move.to_node, placed.message
        trial.cordon([name for name in move.cordon if name not in {entry.node for entry in answer.free}], is_on=False)
    assert {name for name, on in trial.pods.items() if not on} == pending
    assert {entry.node for entry in answer.free} <= free_now(trial)


def simulated(objects: Sequence[Object], answer: PlanAnswer, folder: Path) -> SimulationReport:
    """Plays the cluster, and then the moves as the script makes them: a pod is deleted, and created again without a
    node. Evictions there are none in a workload: those of tests/stories keep to the budgets.
    """
    files: list[Object] = []
    operations: list[Object] = []
    obj_by_name = {(obj["kind"], obj["metadata"]["name"]): obj for obj in objects}

    def operation(opcode: str, template: str, obj: Object, **more: Any) -> None:
        operations.append({"opcode": opcode, "count": 1, template: f"{len(files)}.json", **more})
        files.append(obj)

    def created(name: str, on: str = "") -> None:
        obj = obj_by_name["Pod", name]
        labels, spec = {**obj["metadata"]["labels"], "pod": name}, {**obj["spec"], "nodeName": on}
        manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": labels}, "spec": spec}
        operation("createPods", "podTemplatePath", manifest, namespace="default")

    def cordoned(names: Iterable[str], *, is_on: bool = True) -> None:
        for name in names:
            operation("updateAny", "templatePath", {**obj_by_name["Node", name], "spec": {"unschedulable": is_on}})

    for (kind, name), obj in obj_by_name.items():
        if kind == "Pod":
            created(name, obj["spec"]["nodeName"])
        elif kind == "Node":
            operation("createAny", "templatePath", obj)
    free = {entry.node for entry in answer.free}
    cordoned(free)
    for move in answer.moves:
        cordoned({*move.cordon} - free)
        operations.append({"opcode": "deletePods", "namespace": "default", "labelSelector": {"pod": move.pod.name}})
        operations.append({"opcode": "sleep", "duration": "1m"})
        created(move.pod.name)
        cordoned({*move.cordon} - free, is_on=False)
    for number, obj in enumerate(files):
        (folder / f"{number}.json").write_text(json.dumps(obj))
    path = folder / "performance-config.yaml"
    path.write_text(json.dumps([{"name": "plan", "workloadTemplate": operations, "workloads": [{"name": "moves"}]}]))
    (workload,) = read_workloads(path)
    return play(workload, Configuration()).report


@pytest.mark.parametrize("first", chunks(on_a_landing=8))
def test_nobody_is_pending_once_a_plan_has_been_simulated(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + AT_ONCE):
        objects = random_fleet(seed).objects()
        with Cluster.load(objects).trial() as trial:
            answer = trial.free_nodes(len(trial.nodes().names), max_moves=100)
        report = simulated(objects, answer, tmp_path)

        assert (report.placed, report.refused, report.notes) == (len(answer.moves), 0, ()), seed


@pytest.mark.parametrize("first", chunks())
def test_as_many_nodes_are_free_as_any_moves_can_free_after_at_most_one_move_more(first: int) -> None:
    equal: Counter[str] = Counter()
    for seed in range(first, first + AT_ONCE):
        fleet = random_fleet(seed)
        number, moves = fewest_moves(fleet)
        with Cluster.load(fleet.objects()).trial() as trial:
            answer = trial.free_nodes(max(number, 1), max_moves=100)
            if number < len(fleet.cpu):
                assert len(trial.free_nodes(number + 1, max_moves=100).free) == number, seed
            replayed(trial, answer)

        assert (answer.fits, len(answer.free)) == (number > 0, number), seed
        assert moves <= len(answer.moves) <= moves + 1, seed
        assert len(answer.moves) == moves or not answer.is_complete, seed
        equal["as few moves" if len(answer.moves) == moves else "one move more"] += 1
    print(dict(equal))


def by_greed(trial: Trial) -> int:
    """Drains the nodes one after the other, those with the least on them first, as long as all their pods land."""
    nodes, freed = trial.nodes(), 0
    used = dict(zip(nodes.names, nodes.requested[:, nodes.resources.index("cpu")].tolist(), strict=True))
    for name in sorted(used, key=used.__getitem__):
        pod_keys = [key for key, on in trial.pods.items() if on == name]
        try:
            with trial.step():
                trial.drain(name)
                if len(placed := trial.schedule()) < len(pod_keys) or not all(placement.node for placement in placed):
                    raise InterruptedError
            freed += 1
        except InterruptedError:
            pass
    return freed


@pytest.mark.parametrize("first", chunks(on_a_landing=8))
def test_in_larger_clusters_never_fewer_nodes_are_free_than_by_greed(first: int) -> None:
    more: Counter[int] = Counter()
    for seed in range(first, first + AT_ONCE):
        fleet = random_fleet(1000 + seed, most_nodes=40, pods_per_node=2.2, most_pods=200)
        # Budgets do not hold greed back; where none allows nothing, both may move the same pods.
        apps = (FleetApp(app.name, app.size, app.nodes, app.stays, app.keeps_apart, app.zone) for app in fleet.apps)
        fleet = Fleet(fleet.cpu, fleet.zones, tuple(apps))
        with Cluster.load(fleet.objects()).trial() as trial:
            with trial.step():
                by_greed(trial)
                greedy = len(free_now(trial))
            trial.undo()
            answer = trial.free_nodes(len(fleet.cpu), max_moves=1000)
            replayed(trial, answer)

        assert len(answer.free) >= greedy, seed
        more[len(answer.free) - greedy] += 1
    print(dict(more))


# What a plan says, and heeds.

GPU: Final = "nvidia.com/gpu"


def machine(name: str, gpus: int = 8, **labels: str) -> Object:
    gpu_node = node(name, "64", labels=labels)
    gpu_node["status"]["allocatable"] |= {GPU: str(gpus)} if gpus else {}
    return gpu_node


def user(name: str, on: str, gpus: int = 0, *, owner: str = "ReplicaSet", app: str = "", **spec: Any) -> Object:
    pod_object = pod(name, "1", labels={"app": app or name}, nodeName=on, **spec)
    pod_object["metadata"] |= {"uid": name}
    if owner:
        owner_reference = {"apiVersion": "apps/v1", "kind": owner, "name": f"{name}-owner", "uid": f"{name}-owner"}
        pod_object["metadata"]["ownerReferences"] = [{**owner_reference, "controller": True}]
    if gpus:
        pod_object["spec"]["containers"][0]["resources"]["requests"][GPU] = str(gpus)
    pod_object["status"] = {"phase": "Running", "startTime": "2026-11-01T00:00:00Z"}
    return pod_object


def plan(*objects: Object, count: int = 1, **more: Any) -> PlanAnswer:
    with Cluster.load(objects).trial() as trial:
        answer = trial.free_nodes(count, **more)
        replayed(trial, answer)
        return answer


def free(answer: PlanAnswer) -> dict[str, int]:
    return {entry.node: entry.leaving for entry in answer.free}


def why_kept(answer: PlanAnswer) -> dict[str, tuple[str, str]]:
    return {entry.node: (entry.pod.name if entry.pod else "", entry.why) for entry in answer.kept}


def test_the_node_with_the_fewest_pods_is_emptied() -> None:
    answer = plan(machine("a"), machine("b"), user("a1", "a"), user("a2", "a"), user("b1", "b"))

    assert answer.summary == "1 node would be free after 1 move: b."
    assert [(move.pod.name, move.from_node, move.to_node, move.restarts) for move in answer.moves] == [
        ("b1", "b", "a", 1)
    ]
    assert (answer.fits, answer.is_complete, free(answer)) == (True, True, {"b": 1})


def test_nodes_that_are_free_already_count_and_are_kept_free() -> None:
    objects = [machine("a"), machine("b"), machine("c"), user("a1", "a"), user("b1", "b")]

    assert free(plan(*objects, count=1)) == {"c": 0}
    assert plan(*objects, count=1).summary == "1 node is free without any move: c."
    assert sorted(free(plan(*objects, count=2)).values()) == [0, 1]


def test_with_a_resource_only_pods_that_request_it_leave() -> None:
    objects = [
        machine("a"),
        machine("b"),
        machine("c", 0),
        user("a1", "a", 2),
        user("a2", "a"),
        user("b1", "b", 2),
        user("b2", "b", 1),
    ]
    with Cluster.load(objects).trial() as trial:
        answer = trial.free_nodes(1, of=GPU)

    assert [move.pod.name for move in answer.moves] == ["a1"]
    assert (answer.resource, [(row.node, row.before, row.after) for row in answer.nodes]) == (
        GPU,
        [("a", 2, 0), ("b", 3, 5)],
    )


def test_pods_of_daemon_sets_keep_no_node_but_one_that_uses_its_gpu() -> None:
    daemon = user("daemon", "a", 1, owner="DaemonSet")

    assert free(plan(machine("a"), daemon)) == {"a": 0}
    with Cluster.load([machine("a"), machine("b"), daemon]).trial() as trial:
        assert why_kept(trial.free_nodes(2, of=GPU)) == {"a": ("daemon", "belongs to its node")}


def test_all_nodes_are_in_one_rack() -> None:
    sizes = {"a1": 1, "a2": 3, "b1": 2, "b2": 1, "c1": 1}
    racks = [machine(name, rack=name[0]) for name in sizes]
    users = [user(f"{name}-{index}", name) for name, size in sizes.items() for index in range(size)]
    answer = plan(*racks, machine("x"), *users, count=2, same="rack")

    assert (free(answer), len(answer.moves)) == ({"b2": 1, "b1": 2}, 3)
    assert why_kept(answer) == {"x": ("", "it has no label rack")}


def test_a_pod_makes_room_for_another_one_that_leaves() -> None:
    """What is free on each other node is too little for the pod, until one more moves."""
    answer = plan(
        machine("a", 8), machine("b", 8), machine("c", 8),
        user("a1", "a", 4), user("b1", "b", 3), user("b2", "b", 2), user("c1", "c", 5), of=GPU,
    )  # fmt: skip

    assert [(move.pod.name, move.to_node) for move in answer.moves] == [("b1", "c"), ("a1", "b")]
    assert answer.is_complete


def test_pods_that_mind_each_other_are_kept_apart() -> None:
    objects = [machine(name) for name in "abcd"] + [
        user(f"web-{name}", name, app="web", affinity=away_from(app="web")) for name in "abc"
    ]
    objects.append(user("one", "d", 8))

    assert free(plan(*objects, count=1)) == {"a": 1}
    assert plan(*objects, count=1).moves[0].to_node == "d"
    assert not plan(*objects, count=2).fits


def budgeted(allowed: int) -> list[Object]:
    of_budget = {**budget("web", {"matchLabels": {"app": "web"}}), "status": {"disruptionsAllowed": allowed}}
    return [
        machine("a"),
        machine("b"),
        of_budget,
        *(user(f"web-{index}", "a", app="web") for index in range(3)),
        *(user(f"b{index}", "b") for index in range(4)),
    ]


def test_moves_wait_for_the_budget_that_earlier_ones_have_used_up() -> None:
    assert [move.waits_for for move in plan(*budgeted(2)).moves] == [(), (), ("web",)]


def test_a_node_is_kept_by_a_pod_that_may_not_move() -> None:
    answer = plan(*budgeted(0), user("bare", "b", owner=""))

    assert (answer.fits, answer.is_complete, answer.moves) == (False, True, ())
    assert answer.summary == "No node would be free. No plan with at most 20 moves frees more."
    assert why_kept(answer) == {
        "a": ("web-0", "has a PodDisruptionBudget that allows no eviction now"),
        "b": ("bare", "has no controller that would recreate it"),
    }


def test_a_node_is_kept_by_the_first_pod_that_finds_no_place() -> None:
    answer = plan(machine("a"), machine("b"), user("a1", "a", 5), user("a2", "a", 1), user("b1", "b", 6), of=GPU)

    why = "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) were unschedulable."
    assert why_kept(answer) == {"a": ("a1", why), "b": ("b1", why)}


def test_a_node_is_kept_by_the_limit_of_moves() -> None:
    users = [user(f"{on}{number}", on) for on in "ab" for number in range(3)]
    answer = plan(machine("a"), machine("b"), *users, max_moves=2)

    assert (answer.fits, answer.is_complete) == (False, True)
    assert why_kept(answer) == dict.fromkeys("ab", ("", "3 more moves would free it"))


def test_a_cordoned_node_is_not_freed() -> None:
    cordoned = machine("b")
    cordoned["spec"]["unschedulable"] = True
    answer = plan(machine("a"), cordoned, machine("c"), user("a1", "a"), user("c1", "c"), user("c2", "c"), count=2)

    assert (free(answer), why_kept(answer)["b"]) == ({"a": 1}, ("", "it is cordoned"))


def test_what_the_scheduler_would_prefer_is_cordoned_until_the_pod_runs() -> None:
    """A pod of four would go where fewest is requested, and then one of six would fit nowhere."""
    answer = plan(
        machine("a"), machine("b"), machine("c"),
        user("a1", "a", 4), user("a2", "a", 2), user("b1", "b", 4), user("c1", "c", 2), user("c2", "c", 4), of=GPU,
    )  # fmt: skip

    assert answer.fits
    assert all(name not in free(answer) for move in answer.moves for name in move.cordon)


def test_what_moves_lose_is_told() -> None:
    answer = plan(machine("a"), machine("b"), user("a1", "a", 2), user("b1", "b", 2), user("b2", "b", 1), of=GPU)

    (move,) = answer.moves
    assert answer.hours == move.hours > 500
    assert answer.gpu_hours == move.gpu_hours == pytest.approx(2 * move.hours, abs=0.01)


def test_pods_of_a_victim_policy_stay() -> None:
    protected = {"name": "DefaultPreemption", "args": {"protect": {"selector": {"matchLabels": {"app": "a1"}}}}}
    protecting = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": [protected]}],
    }
    objects = [machine("a"), machine("b"), user("a1", "a"), user("b1", "b"), user("b2", "b")]
    with Cluster.load(objects).trial(protecting) as trial:
        answer = trial.free_nodes(1)

    assert (free(answer), why_kept(answer)) == ({"b": 2}, {"a": ("a1", "is protected by the victim policy")})


@cases(
    "more, words",
    ("no GPUs anywhere", {"of": GPU}, "no node offers nvidia.com/gpu"),
    ("unknown resource", {"of": "memry"}, "no node offers memry; did you mean memory?"),
    ("more nodes than there are", {"count": 3}, "3 nodes cannot be free: there are 2"),
    ("unknown label", {"same": "rack"}, 'no node has the label "rack"'),
    ("label that is near", {"same": "zon"}, 'no node has the label "zon"; did you mean zone?'),
    ("small domains", {"same": "zone", "count": 2}, "2 nodes cannot be free: there are 1 of one domain"),
    ("none", {"count": 0}, "0 nodes cannot be free: give a whole number of at least 1"),
    ("no moves", {"max_moves": 0}, "0 moves are no limit: give a whole number of at least 1"),
    ("no name", {"of": 5}, "5 is not a resource's name: give a text"),
)
def test_a_question_that_makes_no_sense_is_refused_in_a_line(more: dict[str, Any], words: str) -> None:
    objects = [machine("a", 0, zone="a"), machine("b", 0, zone="b"), user("a1", "a")]

    with Cluster.load(objects).trial() as trial, pytest.raises(ReprieveError) as raised:
        trial.free_nodes(**({"count": 1} | more))

    assert str(raised.value) == words


def test_a_cluster_without_nodes_has_none_to_free() -> None:
    with Cluster.load([]).trial() as trial, pytest.raises(ReprieveError, match="there are no nodes"):
        trial.free_nodes(1)


# A cluster in pieces: 150 nodes of 8 GPUs, 271 GPUs free, and no node whole.


def in_pieces() -> list[Object]:
    chance, free_gpus = random.Random(3), {f"g{index:03}": 8 for index in range(150)}
    pods = list[Object]()
    for _ in range(900):
        gpus = chance.choice([1, 1, 1, 2, 2, 4, 8])
        fitting = [name for name, num_free in free_gpus.items() if num_free >= gpus]
        if fitting:
            name = chance.choice(fitting)
            if chance.random() >= 0.55:  # the others have ended
                free_gpus[name] -= gpus
                pods.append(user(f"p{len(pods)}", name, gpus))
    assert (sum(free_gpus.values()), max(free_gpus.values())) == (271, 7)
    return [*map(machine, free_gpus), *pods]


def test_as_many_nodes_are_free_as_there_is_room_for() -> None:
    """33 times 8 of 271 GPUs."""
    answer = plan(*in_pieces(), count=33, of=GPU, max_moves=100)

    assert answer.fits
    assert len(answer.moves) <= 74


def test_more_nodes_than_there_is_room_for_are_not_promised() -> None:
    answer = plan(*in_pieces(), count=34, of=GPU, max_moves=200)

    assert (answer.fits, len(answer.free), answer.is_complete) == (False, 33, True)


def test_room_is_made_for_three_pods_that_take_a_node_each() -> None:
    big_pods = [pod(f"big-{index}", "8") for index in range(3)]
    for big_pod in big_pods:
        big_pod["spec"]["containers"][0]["resources"] = {"requests": {GPU: "8"}, "limits": {GPU: "8"}}
    with TemporaryDirectory() as folder:
        dump, manifest = Path(folder, "dump.json"), Path(folder, "wanted.json")
        state_file(dump, *in_pieces())
        state_file(manifest, *big_pods)
        done = reprieve("plan", "--for", str(manifest), "--dump", str(dump), "-o", "json")

    assert len(json.loads(done.stdout)["moves"]) == 3
