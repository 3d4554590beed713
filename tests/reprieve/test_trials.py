"""Steps in which a caller decides: pods are placed on a node, nodes and pods come and go, and steps nest."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from extender.testing import random_cluster
from reprieve import Cluster, ReprieveError, Trial, plugin as fwk
from tests.extender.answers.test_trial import NO_SHRINKING, objects_of
from tests.kit.examples import examples
from tests.kit.objects import ONLY_GANGS, workload
from tests.kit.storage import make_claim, make_class, make_volume
from tests.kit.tables import cases
from tests.reprieve.test_library import as_mapping, gang, node, nodes_of, pod, state_of


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
        with Cluster.load(trial.objects()).trial() as reloaded:
            assert reloaded.pods == trial.pods
            assert len(placed) >= len(reloaded.schedule())
            assert sorted(reloaded.nodes().names) == sorted(trial.nodes().names)


DEPLOYMENT = workload("Deployment", "web", {"spec": {"containers": [{"name": "c", "image": "i"}]}}, replicas=2)


@cases(
    "first",
    ("placed", lambda trial: trial.schedule(DEPLOYMENT)),
    ("pending", lambda trial: trial.add(DEPLOYMENT)),
    ("in a later step", lambda trial: (trial.add(pod("x")), trial.schedule(DEPLOYMENT))),
    ("one of them gone again", lambda trial: (trial.schedule(DEPLOYMENT), trial.remove("web-1"))),
)
def test_pods_of_a_trial_stay_beside_those_of_a_later_one(first: Callable[[Trial], object]) -> None:
    """All have UIDs of their own."""
    cluster = Cluster.load([node("a"), node("b")])
    with cluster.trial() as trial:
        first(trial)
        for later_cluster in (Cluster.load(trial.objects()), cluster.updated(trial.objects())):
            with later_cluster.trial() as later:
                before = later.pods
                placed = [later.schedule(DEPLOYMENT | {"metadata": {"name": name}}) for name in ("more", "many")]

                assert later.pods == {**before, **nodes_of(placed[0]), **nodes_of(placed[1])}


# Why.


def test_why_says_what_a_pending_pod_lacks_and_what_would_help() -> None:
    with Cluster.load([node("a"), node("b"), pod("waits", "6")]).trial() as trial:
        before, answer = state_of(trial), trial.why("waits")

        assert answer.summary.startswith("It fits on none of 2 nodes: NodeResourcesFit refuses 2;")
        assert answer.message.startswith("0/2 nodes are available: 2 Insufficient cpu.")
        assert [(near.node, near.lacks[0].short) for near in answer.nearest] == [("a", "2"), ("b", "2")]
        assert [fix.text for fix in answer.fixes] == ["ask for 4 of cpu instead of 6"]
        assert str(answer).splitlines()[1:] == [
            "it would fit if you            nodes",
            "ask for 4 of cpu instead of 6  2",
        ]
        assert state_of(trial) == before


def test_why_is_asked_of_a_pod_that_does_not_exist_and_as_things_are_in_the_trial() -> None:
    with Cluster.load([node("a")]).trial() as trial:
        assert trial.why(pod("new", "4")).summary == "It fits on the only node, a."
        trial.cordon("a")
        assert trial.why(pod("new", "4")).facts == ()
        assert trial.why(pod("new", "4")).message.startswith("0/1 nodes are available: 1 node(s) were unschedulable.")
        assert trial.pods == {}


def test_why_of_a_pod_of_another_scheduler_says_whose_it_is() -> None:
    profiles = [{"schedulerName": "one"}, {"schedulerName": "two"}]
    configuration = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    with Cluster.load([node("a"), pod("waits")]).trial({**configuration, "profiles": profiles}) as trial:
        assert trial.why("waits").state == "NotOurs"


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

        assert [placement.node for placement in placed] == ["", "", ""]
        assert [placement.message for placement in placed] == [
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

        assert sorted(item.node for item in placed) == ["", "", "b", "b", "c"]
        assert {item.message for item in placed if not item.node} == {"0/3 nodes are available: 2 Insufficient cpu."}
        assert trial.fits(pod("new"), nodes="a").fits == 4
        assert {item.node for item in trial.schedule()} == {"a"}


def test_candidates_of_pod_groups_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPRIEVE_FEATURE_GATES", "GenericWorkload=true,GangScheduling=true")
    with Cluster.load([node("a")]).trial() as trial:
        with pytest.raises(ReprieveError, match="is of a pod group, which is placed as a whole"):
            trial.schedule(gang(1), nodes=["a"])
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
        displaced = trial.remove(nodes="a")

        assert displaced == ["default/two"]
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
            (node_object,) = (obj for obj in trial.objects() if obj["kind"] == "Node")
            entries = node_object.get("spec", {}).get("taints", [])
            return [(taint["key"], taint.get("value", ""), taint["effect"]) for taint in entries]

        trial.taint("a", "team=red:NoSchedule", "gpu:NoExecute")
        assert taints() == [("team", "red", "NoSchedule"), ("gpu", "", "NoExecute")]
        assert trial.fits(pod("new")).fits == 0
        trial.taint("a", "team=blue:NoSchedule", "team:NoExecute", "gpu-")
        assert taints() == [("team", "blue", "NoSchedule"), ("team", "", "NoExecute")]
        trial.taint("a", "team:NoExecute-")
        assert taints() == [("team", "blue", "NoSchedule")]
        assert trial.pods == {"default/one": "a"}


@pytest.mark.parametrize("leaves", ["x", "y"])
@pytest.mark.parametrize("in_a_fork", [False, True])
def test_volume_of_a_claim_is_kept_until_the_last_of_its_pods_has_left(leaves: str, *, in_a_fork: bool) -> None:
    storage = [
        make_class("local", provisioner="kubernetes.io/no-provisioner"),
        make_volume("only", storage_class="local"),
        *(make_claim(name, storage_class="local") for name in ("shared", "own")),
    ]
    claims = {"x": "shared", "y": "shared", "z": "own"}
    volumes = {name: {"name": "v", "persistentVolumeClaim": {"claimName": claim}} for name, claim in claims.items()}
    pods = [pod(name, volumes=[volume]) for name, volume in volumes.items()]
    with Cluster.load([node("a"), *map(as_mapping, storage), *pods]).trial() as trial:
        trial.schedule(["x", "y"])
        trial.remove(leaves)
        with trial.fork() if in_a_fork else trial as then:
            assert not then.schedule("z")[0].node
            then.remove({"x": "y", "y": "x"}[leaves])
            assert then.schedule("z")[0].node


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

    for asks in (trial.schedule, trial.objects, trial.fork, trial.step().__enter__):
        with pytest.raises(ReprieveError, match="this trial is over"):
            asks()


# Forks.


def test_fork_begins_as_the_trial_is_and_both_go_on_by_themselves() -> None:
    with Cluster.load([node("a"), node("b"), pod("one", on="a")]).trial() as trial:
        trial.schedule(pod("two", "4"))
        trial.add(pod("three", "4"))
        other = trial.fork()
        assert state_of(other) == state_of(trial)

        other.remove("one", "two")
        assert nodes_of(other.schedule()) == {"default/three": "b"}
        assert trial.pods == {"default/one": "a", "default/two": "b", "default/three": ""}
        assert nodes_of(trial.schedule()) == {"default/three": ""}
        with pytest.raises(ReprieveError, match="3 steps cannot be taken back: 2 were done"):
            other.undo(3)
        trial.undo(3)
        assert other.pods == {"default/three": "b"}
    with other.fork() as third:
        other.__exit__()
        assert third.pods == {"default/three": "b"}
        assert third.schedule(pod("four"))[0].node == "a"


def test_fork_within_a_block_stays_when_the_block_fails() -> None:
    with Cluster.load([node("a")]).trial() as trial:
        with pytest.raises(ZeroDivisionError), trial.step():
            trial.schedule(pod("one"))
            other = trial.fork()
            _ = 1 / 0

        assert (trial.pods, other.pods) == ({}, {"default/one": "a"})


def test_volume_that_is_kept_for_a_pod_is_kept_in_a_fork() -> None:
    objects = [make_class("local", provisioner="kubernetes.io/no-provisioner")]
    volumes = [make_volume(name, storage_class="local", size=size) for name, size in (("one", "1Gi"), ("two", "2Gi"))]
    claims = [make_claim(name, storage_class="local") for name in "xyz"]
    pods = [pod(name, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": name}}]) for name in "xyz"]
    with Cluster.load([node("a"), *map(as_mapping, [*objects, *volumes, *claims]), *pods]).trial() as trial:
        assert nodes_of(trial.schedule(["x", "y"])) == {"default/x": "a", "default/y": "a"}
        with trial.fork() as other:
            assert not other.schedule("z")[0].node
            other.remove("x")
            assert other.schedule("z")[0].node
        assert not trial.schedule("z")[0].node


def test_volumes_are_reserved_again_after_a_node_has_come_before_that_of_the_pod() -> None:
    def in_zone(name: str, zone: str) -> dict[str, Any]:
        return node(name) | {"metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone}}}

    objects = [make_class("local", provisioner="kubernetes.io/no-provisioner"), make_claim("x", storage_class="local")]
    objects.append(make_volume("one", storage_class="local", size="1Gi"))
    with Cluster.load(
        [in_zone("a", "1"), in_zone("b", "2"), in_zone("c", "1"), *map(as_mapping, objects)]
    ).trial() as trial:
        trial.place(pod("x", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "x"}}]), "c")
        trial.add_nodes(like=in_zone("d", "3"))
        assert list(trial.nodes().names).index("c") == 3
        before = trial.objects()
        trial.evict("x")
        trial.undo()
        assert trial.objects() == before
        with trial.fork() as other:
            assert other.objects() == before


class Numbered(fwk.ReservePlugin):
    """Keeps in mind whom it has reserved a number for, which is not in the cluster."""

    def __init__(self, arguments: Any = None, handle: fwk.Handle | None = None) -> None:
        super().__init__(arguments, handle)
        self.numbers: list[str] = []

    def reserve(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> fwk.Status:
        if len(self.numbers) > 1:
            return fwk.unschedulable("no number is left")
        self.numbers.append(pod.name)
        return fwk.SUCCESS

    def unreserve(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> None:
        if pod.name in self.numbers:
            self.numbers.remove(pod.name)


def test_own_plugin_reserves_in_a_fork_what_it_has_reserved() -> None:
    with Cluster.load([node("a")]).trial(plugins=[Numbered]) as trial:
        trial.schedule([pod("one"), pod("two")])
        with trial.fork() as other:
            assert "no number is left" in other.schedule(pod("three"))[0].message
            other.remove("one")
            assert other.schedule("three")[0].node == "a"
        assert "no number is left" in trial.schedule(pod("three"))[0].message


SLOTS = fwk.Account(
    2,
    lambda node: [10, 10],
    lambda pod: [10 * (pod.annotations.get("example.com/slot") == str(slot)) for slot in range(2)],
)


class Slotted(fwk.FilterPlugin, fwk.ReservePlugin):
    """Gives each pod the first free one of two slots, and does not look what it has given it before."""

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        return fwk.reject(rows.left(SLOTS).max(1) < 10, "node(s) had no free slot")

    def reserve(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> fwk.Status | None:
        row = fwk.Rows.of(state.snapshot, np.array([state.snapshot.nodes.index[node]]))
        free = np.flatnonzero(state.with_nominated_pods(row).left(SLOTS)[0] == 10)
        if not len(free):
            return fwk.unschedulable("node(s) had no free slot")
        state.write(fwk.BINDING_ANNOTATIONS, {"example.com/slot": str(free[0])})
        return None

    def unreserve(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> None:
        """There is no state to release."""


def slots_of(trial: Trial) -> dict[str, str]:
    pods = [item["metadata"] for item in trial.objects() if item["kind"] == "Pod"]
    return {pod["name"]: pod["annotations"]["example.com/slot"] for pod in pods if "annotations" in pod}


@cases(
    "step",
    ("evict", lambda trial: trial.evict("one")),
    ("remove", lambda trial: trial.remove("one")),
    ("drain", lambda trial: trial.drain("a")),
    ("remove the node", lambda trial: trial.remove(nodes="a")),
)
@pytest.mark.parametrize("pods", [["one"], ["one", "two"], ["two", "one"], ["gone", "one"]], ids="-".join)
def test_what_a_plugin_wrote_on_a_pod_is_there_again_after_undo_and_in_a_fork(
    pods: list[str], step: Callable[[Trial], object]
) -> None:
    """Reserve is asked again on a node where the pod is already, and with it others that came later."""
    with Cluster.load([node("a"), node("b")]).trial(plugins=[Slotted]) as trial:
        trial.schedule(list(map(pod, pods)), nodes="a")
        if "gone" in pods:
            trial.remove("gone")  # the first slot is free, and the pod has the second one
        before = slots_of(trial)
        for _ in range(2):
            trial.add_nodes(like="b")
            step(trial)
            assert slots_of(trial) != before
            trial.undo()
            assert slots_of(trial) == before
        with trial.fork() as other:
            assert slots_of(other) == before
            step(other)
            other.undo()
            assert slots_of(other) == before


# The first failure.


def test_pod_that_fits_nowhere_may_be_the_last_one_that_is_tried() -> None:
    pods = [pod("first", priority=3), pod("large", "9", priority=2), pod("last", priority=1)]
    with Cluster.load([node("a")]).trial() as trial:
        placed = trial.schedule(pods, stop_on_failure=True)

        assert nodes_of(placed) == {"default/first": "a", "default/large": ""}
        assert trial.pods == {"default/large": "", "default/last": "", "default/first": "a"}
        assert len(trial.schedule()) == 2


def test_group_that_does_not_fit_may_be_the_last_one_that_is_tried() -> None:
    objects = [node("a"), *gang(3, "2", priority=2), pod("last", priority=1)]
    with Cluster.load(objects).trial(feature_gates=ONLY_GANGS) as trial:
        assert nodes_of(trial.schedule(stop_on_failure=True)) == {f"default/m{n}": "" for n in range(3)}
        assert len(trial.schedule()) == 4


# Objects.


def test_objects_of_a_trial_are_those_that_decide(tmp_path: Path) -> None:
    """What is saved is read again, from a file of each kind, and decides alike."""
    with Cluster.load([node("a"), node("b", "2"), pod("one", on="a"), pod("two", "2")]).trial() as trial:
        trial.place("two", "b")
        saved = Cluster.load(trial.objects())
        assert [item["metadata"].get("namespace") for item in trial.objects()] == [None, None, "default", "default"]
        for name in ("cluster.json", "cluster.yaml.gz"):
            saved.save(tmp_path / name)
            with Cluster.load(tmp_path / name).trial() as reloaded:
                assert reloaded.pods == trial.pods == {"default/one": "a", "default/two": "b"}
                assert np.array_equal(reloaded.nodes(pod("new")).feasible, trial.nodes(pod("new")).feasible)


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
