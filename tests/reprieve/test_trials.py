"""Steps in which a caller decides: pods are placed on a node, nodes and pods come and go, and steps nest."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from extender.testing import random_cluster
from reprieve import Cluster, ReprieveError, Trial
from tests.extender.answers.test_trial import NO_SHRINKING, objects_of
from tests.kit.examples import examples
from tests.kit.objects import pod_group
from tests.kit.random_storage import random_cluster_with_volumes
from tests.reprieve.test_library import as_mapping, node, nodes_of, pod, state_of


def waiting(trial: Trial) -> list[str]:
    return [key for key, on in trial.pods.items() if not on]


def by_name(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(
        objects, key=lambda obj: [obj["kind"], *(obj["metadata"].get(part, "") for part in ("namespace", "name"))]
    )


def drawn_cluster(seed: int) -> tuple[Cluster, random.Random]:
    chance = random.Random(seed)
    drawn = chance.choice((random_cluster, random_cluster_with_volumes))(chance)
    return Cluster.load(map(as_mapping, objects_of(drawn, chance))), chance


# Properties, on random clusters.


def some_steps(trial: Trial, chance: random.Random, depth: int = 0) -> int:
    """Does as many steps as it returns."""

    def some_node() -> str:
        return chance.choice(list(trial.nodes().names))

    def nested() -> None:
        with trial.step():
            done = some_steps(trial, chance, depth + 1)
            trial.undo(chance.randint(0, done))

    def failing() -> None:
        before = state_of(trial)
        with pytest.raises(ZeroDivisionError), trial.step():
            some_steps(trial, chance, depth + 1)
            _ = 1 / 0
        assert state_of(trial) == before

    steps: list[Callable[[], object]] = [
        trial.schedule,
        lambda: trial.schedule(nodes=[some_node(), some_node()]),
        lambda: trial.place(chance.choice(waiting(trial) or [pod(f"new-{chance.random()}")]), some_node()),
        lambda: trial.add([pod(f"new-{chance.random()}"), node(f"node-{chance.random()}")]),
        lambda: trial.remove(*chance.sample(keys := [*trial.pods], len(keys) // 3)),
        lambda: trial.remove(nodes=some_node()),
        lambda: trial.cordon(some_node()),
        lambda: trial.taint(some_node(), "team=red:NoSchedule", "team:NoExecute"),
        lambda: trial.drain(some_node()),
        *([] if depth > 1 else [nested, failing]),
    ]
    done = 0
    for step in chance.choices(steps, k=4):
        if not len(trial.nodes().names):
            break
        step()
        done += step is not failing
    return done


@pytest.mark.slow
@settings(deadline=None, max_examples=examples(60), phases=NO_SHRINKING)
@given(st.integers(0, 2**32))
def test_what_a_caller_decided_is_taken_back_without_a_trace(seed: int) -> None:
    cluster, chance = drawn_cluster(seed)
    with cluster.trial() as tried, cluster.trial() as untouched:
        before, objects = state_of(tried), by_name(tried.objects())

        tried.undo(some_steps(tried, chance))

        assert state_of(tried) == before == state_of(untouched)
        assert by_name(tried.objects()) == objects
        assert tried.schedule() == untouched.schedule()
        assert list(map(tried.preempt, waiting(tried))) == list(map(untouched.preempt, waiting(untouched)))


@pytest.mark.slow
@settings(deadline=None, max_examples=examples(40), phases=NO_SHRINKING)
@given(st.integers(0, 2**32))
def test_place_refuses_where_filters_do_in_their_words(seed: int) -> None:
    cluster, _ = drawn_cluster(seed)
    with cluster.trial() as trial:
        for key in waiting(trial)[:3]:
            nodes = trial.nodes(key)
            for name, feasible, reason in zip(nodes.names, nodes.feasible.tolist(), nodes.reasons, strict=True):
                placed = trial.place(key, name)
                trial.undo()

                if placed.message.startswith(("skip schedule deleting", "Pod ", "waiting for")):
                    continue  # it is not in the queue
                assert (placed.node == name) == feasible
                # A plugin that fails on one node fails for all that are looked at together.
                assert placed.message == reason or reason.startswith("running ")


@pytest.mark.slow
@settings(deadline=None, max_examples=examples(40), phases=NO_SHRINKING)
@given(st.integers(0, 2**32))
def test_cluster_of_the_objects_of_a_trial_decides_alike(seed: int) -> None:
    """Without volumes: a claim says on which node somebody's scheduler has put its pod, also after a drain."""
    chance = random.Random(seed)
    cluster = Cluster.load(map(as_mapping, objects_of(random_cluster(chance), chance)))
    with cluster.trial() as trial:
        trial.drain(chance.choice(list(trial.nodes().names)))
        placed = trial.schedule()
        with Cluster.load(trial.objects()).trial() as again:
            assert again.pods == trial.pods
            assert len(placed) >= len(again.schedule())
            assert sorted(again.nodes().names) == sorted(trial.nodes().names)


# Place.


def test_pod_is_placed_where_the_caller_says() -> None:
    with Cluster.load([node("a"), node("b"), pod("waits")]).trial() as trial:
        for name in ("b", "a"):
            placed = trial.place("waits", name)

            assert (placed.node, placed.message, trial.pods) == (name, "", {"default/waits": name})
            trial.undo()
        assert trial.place(pod("new"), "b").node == "b"


def test_pod_that_a_node_refuses_stays_pending_with_its_reason() -> None:
    tainted = node("c", zone="x") | {"spec": {"taints": [{"key": "team", "value": "red", "effect": "NoSchedule"}]}}
    waits = pod("waits", "2", nodeSelector={"zone": "x"})
    with Cluster.load([node("a"), node("b", "1", zone="x"), tainted, waits]).trial() as trial:
        placed = [trial.place("waits", name) for name in "abc"]

        assert [each.node for each in placed] == ["", "", ""]
        assert [each.message for each in placed] == [
            "node(s) didn't match Pod's node affinity/selector",
            "Insufficient cpu",
            "node(s) had untolerated taint(s)",
        ]
        assert trial.pods == {"default/waits": ""}


# Candidates.


def test_only_candidates_take_pods() -> None:
    objects = [node("a"), node("b", "2"), node("c", "1"), *(pod(f"p{number}") for number in range(5))]
    with Cluster.load(objects).trial() as trial:
        assert trial.fits("p0", nodes=["b", "c"]).fits == 3
        placed = trial.schedule(nodes=("b", "c"))

        assert sorted(each.node for each in placed) == ["", "", "b", "b", "c"]
        assert {each.message for each in placed if not each.node} == {"0/3 nodes are available: 2 Insufficient cpu."}
        assert trial.fits(pod("new"), nodes="a").fits == 4
        assert {each.node for each in trial.schedule()} == {"a"}


def test_candidates_of_pod_groups_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPRIEVE_FEATURE_GATES", "GenericWorkload=true,GangScheduling=true")
    group = pod_group("gang", 1)
    group["metadata"]["namespace"] = "default"
    member = pod("m", schedulingGroup={"podGroupName": "gang"})
    with Cluster.load([node("a")]).trial() as trial:
        with pytest.raises(ReprieveError, match="is of a pod group, which is placed as a whole"):
            trial.schedule([group, member], nodes=["a"])
        assert trial.pods == {}


# What comes and goes.


def test_objects_are_added_and_nothing_is_placed() -> None:
    with Cluster.load([node("a")]).trial() as trial:
        added = trial.add([node("b"), pod("new"), pod("there", on="a")])

        assert added == ["default/new"]
        assert trial.pods == {"default/new": "", "default/there": "a"}
        assert sorted(trial.nodes().names) == ["a", "b"]


def test_removed_pods_do_not_come_back_and_those_of_a_removed_node_do() -> None:
    alone = pod("alone", on="a")
    del alone["metadata"]["ownerReferences"]
    daemon = pod("daemon", on="a")
    daemon["metadata"]["ownerReferences"][0]["kind"] = "DaemonSet"
    objects = [node("a"), node("b"), pod("one", on="a"), pod("two", on="a"), pod("waits"), alone, daemon]
    with Cluster.load(objects).trial() as trial:
        assert trial.remove("one", ["waits"]) == []
        again = trial.remove(nodes="a")

        assert again == ["default/two"]
        assert trial.pods == {"default/two": ""}
        assert list(trial.nodes().names) == ["b"]
        trial.undo(2)
        assert len(trial.pods) == 5


def test_cordoned_nodes_take_no_pods_until_they_may() -> None:
    with Cluster.load([node("a"), node("b"), pod("one", on="a")]).trial() as trial:
        trial.cordon("a", ["b"])
        assert trial.schedule(pod("two"))[0].message == "0/2 nodes are available: 2 node(s) were unschedulable."
        trial.cordon("b", is_on=False)
        assert nodes_of(trial.schedule()) == {"default/two": "b"}


def test_taints_are_put_on_and_taken_off_as_kubectl_does() -> None:
    with Cluster.load([node("a"), pod("one", on="a")]).trial() as trial:

        def taints() -> list[tuple[str, str, str]]:
            (there,) = (each for each in trial.objects() if each["kind"] == "Node")
            found = there.get("spec", {}).get("taints", [])
            return [(each["key"], each.get("value", ""), each["effect"]) for each in found]

        trial.taint("a", "team=red:NoSchedule", "gpu:NoExecute")
        assert taints() == [("team", "red", "NoSchedule"), ("gpu", "", "NoExecute")]
        assert trial.fits(pod("new")).fits == 0
        trial.taint("a", "team=blue:NoSchedule", "team:NoExecute", "gpu-")
        assert taints() == [("team", "blue", "NoSchedule"), ("team", "", "NoExecute")]
        trial.taint("a", "team:NoExecute-")
        assert taints() == [("team", "blue", "NoSchedule")]
        assert trial.pods == {"default/one": "a"}


# Steps of steps.


def test_steps_of_a_block_are_one_step() -> None:
    with Cluster.load([node("a"), pod("one", on="a")]).trial() as trial:
        trial.add_nodes(like="a")
        with trial.step():
            trial.schedule(pod("x"))
            with trial.step() as same:
                assert same is trial
                trial.evict("one")
                trial.schedule(pod("y"))
            with pytest.raises(ReprieveError, match="3 steps cannot be taken back: 2 were done"):
                trial.undo(3)
        assert len(trial.pods) == 3

        trial.undo()

        assert trial.pods == {"default/one": "a"}
        assert len(trial.nodes().names) == 2


def test_block_that_fails_leaves_nothing() -> None:
    with Cluster.load([node("a")]).trial() as trial:
        with pytest.raises(ReprieveError, match="not found"), trial.step():
            trial.schedule(pod("x"))
            trial.evict("y")

        assert trial.pods == {}
        with pytest.raises(ReprieveError, match="0 were done"):
            trial.undo()


def test_trial_that_ends_in_a_block_is_over() -> None:
    trial = Cluster.load([node("a")]).trial()
    with trial.step():
        trial.schedule(pod("x"))
        trial.__exit__()

    for asks in (trial.schedule, trial.objects, trial.step().__enter__):
        with pytest.raises(ReprieveError, match="this trial is over"):
            asks()


# Objects.


def test_objects_of_a_trial_are_those_that_decide(tmp_path: Path) -> None:
    """What is saved is read again, from a file of each kind, and decides alike."""
    with Cluster.load([node("a"), node("b", "2"), pod("one", on="a"), pod("two", "2")]).trial() as trial:
        trial.place("two", "b")
        saved = Cluster.load(trial.objects())
        for name in ("cluster.json", "cluster.yaml.gz"):
            saved.save(tmp_path / name)
            with Cluster.load(tmp_path / name).trial() as again:
                assert again.pods == trial.pods == {"default/one": "a", "default/two": "b"}
                assert np.array_equal(again.nodes(pod("new")).feasible, trial.nodes(pod("new")).feasible)


@pytest.mark.parametrize(
    ("asks", "says"),
    [
        (lambda trial: trial.schedule("web"), "pod default/web not found"),
        (lambda trial: trial.schedule("one"), "pod default/one is not pending: it is on a"),
        (lambda trial: trial.schedule("no.yaml"), "no.yaml: no such file or directory"),
        (lambda trial: trial.schedule({"kind": "Pod"}), "Pod: an object needs an apiVersion and metadata"),
        (lambda trial: trial.schedule(5), "5: give a pod's name, a file, an object"),
        (lambda trial: trial.schedule([pod("x"), "one"]), "give a pod's name, a file, an object"),
        (lambda trial: trial.preempt([pod("x"), pod("y")]), "give one pod, not 2"),
        (lambda trial: trial.evict("waits"), "pod default/waits is pending"),
        (lambda trial: trial.drain("b"), 'node "b" not found'),
        (lambda trial: trial.add_nodes(like="b"), 'node "b" not found'),
        (lambda trial: trial.add_nodes(like="a", count=0), "0 nodes cannot be added"),
        (lambda trial: trial.undo(), "1 steps cannot be taken back: 0 were done"),
        (lambda trial: trial.place("waits", "c"), 'node "c" not found'),
        (lambda trial: trial.place("one", "a"), "pod default/one is not pending: it is on a"),
        (lambda trial: trial.place(["waits", "w"], "a"), "pod default/w not found"),
        (lambda trial: trial.add("waits"), "'waits' is a name: give objects, or a file"),
        (lambda trial: trial.add([pod("waits") | {"specs": 1}]), 'unknown field "specs"'),
        (lambda trial: trial.remove("x"), "pod default/x not found"),
        (lambda trial: trial.remove("one", nodes="x"), 'node "x" not found'),
        (lambda trial: trial.remove(None), "None is not a pod's name"),
        (lambda trial: trial.cordon("a", 5), "5 is not a node's name"),
        (lambda trial: trial.schedule(nodes=["a", "x"]), 'node "x" not found'),
        (lambda trial: trial.schedule(nodes=5), "5 is not a node's name"),
        (lambda trial: trial.fits("waits", nodes=[None]), "None is not a node's name"),
        (lambda trial: trial.taint("a", "red"), "invalid taint spec: red"),
        (lambda trial: trial.taint("a", "team=red:NoRun"), "invalid taint effect: NoRun"),
        (lambda trial: trial.taint("a", "team:NoSchedule-"), 'taint "team:NoSchedule" not found'),
        (lambda trial: trial.taint("a", 5), "5 is not a taint"),
    ],
)
def test_step_that_cannot_be_done_is_said_and_changes_nothing(asks: Callable[[Any], object], says: str) -> None:
    with Cluster.load([node("a"), pod("one", on="a"), pod("waits", "9")]).trial() as trial:
        before = state_of(trial)

        with pytest.raises(ReprieveError) as refused:
            asks(trial)

        assert says in str(refused.value)
        assert state_of(trial) == before
        with pytest.raises(ReprieveError):
            trial.undo()


@pytest.mark.parametrize("name", ["cluster.txt", "no/such/folder.json"])
def test_cluster_that_cannot_be_saved_says_why(tmp_path: Path, name: str) -> None:
    with pytest.raises(ReprieveError, match=name.rpartition("/")[2]):
        Cluster.load([node("a")]).save(tmp_path / name)
