"""The library decides as the scheduler does, takes back what it has done, and says in words what it cannot do."""

import asyncio
import pickle
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from inspect import signature
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from extender.testing import random_cluster, virtual_time
from extender.values.config.loading import load
from extender.values.objects.decoding import replaced
from extender.values.objects.meta import HasMetadata
from extender.values.objects.pod import Pod
from reprieve import Cluster, Placement, ReprieveError, Trial, plugin as fwk
from tests.extender.answers.test_trial import NO_SHRINKING, Decisions, objects_of
from tests.kit.examples import examples
from tests.kit.objects import ONLY_GANGS, budget, owner, pod_group, priority_class, state_file
from tests.kit.service import kubeconfig_for, serving
from tests.kit.told_scheduler import ToldScheduler
from tests.reprieve.lab.recordings.recorded_cluster import create, record, zoned

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "api" / "examples" / "cluster.yaml"
WEB = ROOT / "examples" / "1-web.yaml"
NO_PREEMPTION = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"plugins": {"postFilter": {"disabled": [{"name": "*"}]}}}],
}


def node(name: str, cpu: str = "4", **labels: str) -> dict[str, Any]:
    status = {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "10"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def pod(name: str, cpu: str = "1", *, on: str = "", **more: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name, "namespace": "default", "labels": {"app": "web"}, "ownerReferences": [owner()]}
    spec = {"containers": [container], **({"nodeName": on} if on else {}), **more}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {**metadata, "uid": f"uid-{name}"}, "spec": spec}


def gang(number: int, cpu: str = "1", **more: Any) -> list[dict[str, Any]]:
    """A pod group and its members, which are placed as a whole."""
    group = pod_group("gang", number)
    group["metadata"]["namespace"] = "default"
    in_group = {"schedulingGroup": {"podGroupName": "gang"}, **more}
    return [group, *(pod(f"m{member}", cpu, **in_group) for member in range(number))]


def as_mapping(obj: HasMetadata) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(obj)
    return {"kind": type(obj).__name__, **fields}


def nodes_of(placements: Sequence[Placement]) -> dict[str, str]:
    return {placement.pod: placement.node for placement in placements}


def state_of(trial: Trial) -> list[object]:
    """What a caller can see of a trial."""
    nodes = trial.nodes()
    arrays = (nodes.allocatable, nodes.requested, nodes.pods)
    return [trial.pods, nodes.names, nodes.resources, *(array.tolist() for array in arrays)]


# Properties, on random clusters.


async def decided(objects: Sequence[HasMetadata]) -> list[tuple[str, str, str]]:
    """What the scheduler decides about each pod that waits, the first time that it tries it."""
    decisions = Decisions()
    scheduling = ToldScheduler(decisions, load(msgspec.json.encode(NO_PREEMPTION)))
    for obj in objects:
        scheduling.alone.handlers.changed(None, obj)
    results: list[tuple[str, str, str]] = []
    for _ in range(len(scheduling.cluster.pending)):
        await scheduling.decides(1)
        if len(decisions.made) == len(results):
            continue  # one that is being deleted is skipped
        key, on, message, _ = decisions.made[-1]
        results.append((key, on, message))
        pod = scheduling.cluster.find(key)
        if on and pod is not None:
            scheduling.alone.handlers.changed(pod, replaced(pod, spec=replaced(pod.spec, node_name=on)))
    return results


@pytest.mark.slow
@settings(deadline=None, max_examples=examples(150), phases=NO_SHRINKING)
@given(st.integers(0, 2**32))
def test_schedule_decides_as_the_scheduler_does(seed: int) -> None:
    """All pods that wait, in its order, to the node and the message."""
    chance = random.Random(seed)
    objects = objects_of(random_cluster(chance), chance)
    does = virtual_time.run(decided(objects))
    with Cluster.load(map(as_mapping, objects)).trial(NO_PREEMPTION) as trial:
        for framework in trial._trial.frameworks.values():
            framework.random.seed(1)  # that of `ToldScheduler`

        answers = [(placement.pod, placement.node, placement.message) for placement in trial.schedule()]

    assert [answer for answer in answers if not answer[2].startswith("skip schedule deleting pod")] == does


@pytest.mark.slow
def test_threads_use_a_cluster_each() -> None:
    def decisions(seed: int) -> list[Placement]:
        chance = random.Random(seed)
        with Cluster.load(map(as_mapping, objects_of(random_cluster(chance), chance))).trial() as trial:
            return [*trial.schedule(), *trial.schedule([pod(f"new-{number}") for number in range(20)])]

    alone = [decisions(seed) for seed in range(24)]
    with ThreadPoolExecutor(8) as threads:
        together = list(threads.map(decisions, range(24)))

    assert together == alone


# Where clusters come from.


def test_cluster_behind_an_api_server_is_read_once(tmp_path: Path) -> None:
    objects = [node("a"), pod("one", on="a"), pod("large", "9")]
    file = tmp_path / "cluster.json"
    state_file(file, *objects)
    with serving(state=file) as service:
        kubeconfig = kubeconfig_for(service.port, tmp_path)

        cluster = Cluster.connect(kubeconfig)

    with cluster.trial() as trial, Cluster.load(file).trial() as of_file:
        assert state_of(trial) == state_of(of_file)
        assert nodes_of(trial.schedule(pod("two"))) == {"default/two": "a"}


def test_cluster_behind_an_api_server_is_read_with_what_feature_gates_are_about(tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"
    state_file(file, node("a"), *gang(2, "3"))
    with serving(state=file, feature_gates="GenericWorkload=true,GangScheduling=true") as service:
        kubeconfig = kubeconfig_for(service.port, tmp_path)

        plain, cluster = Cluster.connect(kubeconfig), Cluster.connect(kubeconfig, feature_gates=ONLY_GANGS)

    for connected in (plain, pickle.loads(pickle.dumps(plain)), plain.updated([node("b")])):
        with pytest.raises(ReprieveError, match=r"without what GenericWorkload is about"):
            connected.trial(feature_gates=ONLY_GANGS)
    for gates in (None, ONLY_GANGS):
        with cluster.trial(feature_gates=gates) as trial:
            assert nodes_of(trial.schedule()) == {"default/m0": "", "default/m1": ""}
            trial.add_nodes(like="a")
            assert all(placement.node for placement in trial.schedule())
    with cluster.trial(feature_gates=dict.fromkeys(ONLY_GANGS, False)) as trial:
        assert nodes_of(trial.schedule("m0")) == {"default/m0": "a"}


def test_recording_is_read_at_a_moment(tmp_path: Path) -> None:
    async def tell(cluster: Any) -> None:
        create(cluster, "early")
        await asyncio.sleep(60)
        create(cluster, "late")
        await asyncio.sleep(60)

    file = record(tmp_path / "recording", tell, zoned("n", "zone-a"))

    states = []
    for moment in ("30s", None):
        with Cluster.load(file, at=moment).trial() as trial:
            states.append(trial.pods)
    assert states == [{"default/early": "n"}, {"default/early": "n", "default/late": "n"}]


# What a trial does.


def test_cluster_of_a_trial_never_changes() -> None:
    cluster = Cluster.load(EXAMPLE)
    with cluster.trial() as trial:
        before = state_of(trial)
        trial.schedule(WEB)
        trial.drain("node-a1")

    with cluster.trial() as another:
        assert state_of(another) == before


def test_pods_of_files_and_workloads_are_placed_with_their_scores() -> None:
    with Cluster.load(EXAMPLE).trial() as trial:
        placed = trial.schedule(str(WEB), scores=True)

        assert [placement.pod for placement in placed] == ["default/web-1", "default/web-2", "default/web-3"]
        best = trial.nodes()
        assert all(placement.node in best.names and sum(placement.scores.values()) > 300 for placement in placed)


def test_placed_pod_has_the_scores_that_its_node_has_for_it() -> None:
    with Cluster.load([node("a"), node("b", "8"), pod("big", "3")]).trial() as trial:
        expected = trial.nodes("big")

        (placed,) = trial.schedule("big", scores=True)

        index = expected.names.index(placed.node)
        assert placed.scores == {plugin: int(scores[index]) for plugin, scores in expected.scores.items()}
        assert sum(placed.scores.values()) == max(sum(scores) for scores in zip(*expected.scores.values(), strict=True))


def test_texts_and_folders_are_read_as_files_are(tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text(WEB.read_text())

    with Cluster.load([node(name, **{"topology.kubernetes.io/zone": name}) for name in "abc"]).trial() as trial:
        placed = []
        for source in (WEB, str(WEB), WEB.read_text(), tmp_path):
            placed.append(nodes_of(trial.schedule(source)))
            trial.undo()

    assert len(placed[0]) == 3
    assert placed == [placed[0]] * 4


def test_objects_of_a_caller_stay_as_they_are() -> None:
    original, untouched = pod("a"), pod("a")
    with Cluster.load([node("n")]).trial() as trial:
        trial.schedule(original)

        assert original == untouched


@pytest.mark.slow
def test_more_pods_than_a_question_may_create_are_placed_in_one_call() -> None:
    nodes = [node(f"n{number}", "4000") for number in range(2)]
    for large_node in nodes:
        large_node["status"]["allocatable"]["pods"] = "5000"
    with Cluster.load(nodes).trial() as trial:
        placed = trial.schedule([pod(f"p{number}", "1m") for number in range(5001)])

    assert sum(bool(placement.node) for placement in placed) == 5001


def test_pod_that_names_its_node_is_there_or_refused_in_words() -> None:
    with Cluster.load([node("n", "1")]).trial() as trial:
        placed = trial.schedule(pod("a", on="n"))

        assert (placed, trial.pods) == ([], {"default/a": "n"})
        with pytest.raises(ReprieveError, match="default/b is not scheduled, because it names node n itself"):
            trial.schedule(pod("b", on="n"))


def test_pods_that_come_later_have_uids_of_their_own() -> None:
    with Cluster.load([node("n")]).trial() as trial:
        for name in ("a", "b"):
            new_pod = pod(name)
            del new_pod["metadata"]["uid"]
            trial.schedule(new_pod)

        assert trial.pods == {"default/a": "n", "default/b": "n"}


def test_refused_pod_stays_pending_and_is_tried_again() -> None:
    with Cluster.load([node("n", "1"), pod("first", on="n")]).trial() as trial:
        (refused,) = trial.schedule(pod("second"))
        trial.add_nodes(like="n")

        (placed,) = trial.schedule()

        assert (refused.node, refused.message) == ("", "0/1 nodes are available: 1 Insufficient cpu.")
        assert (placed.pod, placed.node) == ("default/second", "n-new-1")


def test_preemption_names_victims_and_evicts_nobody() -> None:
    high = priority_class("high", 9)
    objects = [node("a", "1"), node("b", "2"), pod("one", on="a"), pod("two", "2", on="b"), high]
    with Cluster.load(objects).trial() as trial:
        before = state_of(trial)

        answer = trial.preempt(pod("urgent", priority=9, priorityClassName="high"))

        victims = [victim.pod.key for victim in answer.victims]
        assert (answer.node, victims) in (("a", ["default/one"]), ("b", ["default/two"]))
        assert [bool(candidate.why_not) for candidate in answer.candidates] == [False, True]
        assert state_of(trial) == before


def test_victims_leave_and_the_pod_takes_their_room() -> None:
    with Cluster.load([node("a", "1"), pod("one", on="a"), pod("urgent", priority=9)]).trial() as trial:
        answer = trial.preempt("urgent")
        trial.evict(*(victim.pod.key for victim in answer.victims))

        placed = trial.schedule()

    assert nodes_of(placed) == {"default/urgent": "a", "default/one": ""}


def test_pod_that_fits_needs_no_victims() -> None:
    with Cluster.load([node("a")]).trial() as trial:
        answer = trial.preempt(pod("small"))

        assert (answer.node, answer.victims, trial.pods) == ("a", (), {})


def test_drained_node_takes_no_pods_and_budgets_are_counted_down() -> None:
    of_web = budget("web", {"matchLabels": {"app": "web"}}) | {"status": {"disruptionsAllowed": 1}}
    of_web["metadata"]["namespace"] = "default"
    objects = [node("a"), node("b"), pod("one", on="a"), pod("two", on="a"), of_web]
    with Cluster.load(objects).trial() as trial:
        evicted = trial.drain("a")

        assert evicted == {"default/one": (), "default/two": ("web",)}
        assert nodes_of(trial.schedule()) == {"default/one": "b", "default/two": "b"}


def test_pods_that_are_leaving_already_are_not_evicted_by_a_drain() -> None:
    leaving = pod("leaving", on="a")
    leaving["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}
    with Cluster.load([node("a"), node("b"), leaving, pod("stays", on="a")]).trial() as trial:
        assert trial.drain("a") == {"default/stays": ()}
        assert trial.pods == {"default/leaving": "a", "default/stays": ""}


def test_copies_are_counted_and_none_stays() -> None:
    with Cluster.load([node("a"), node("b", "2")]).trial() as trial:
        capacity = trial.fits(pod("any"))

        assert (capacity.fits, {room.node: room.pods for room in capacity.by_node}) == (6, {"a": 4, "b": 2})
        assert capacity.stopped_by == "0/2 nodes are available: 2 Insufficient cpu."
        assert trial.pods == {}


def test_arrays_are_in_the_units_that_they_say() -> None:
    with Cluster.load([node("a"), node("b", "2"), pod("one", "500m", on="b")]).trial() as trial:
        nodes = trial.nodes(pod("big", "3"))

        row_of = {name: place for place, name in enumerate(nodes.names)}
        cpu, memory = nodes.resources.index("cpu"), nodes.resources.index("memory")
        assert nodes.allocatable[row_of["a"], [cpu, memory]].tolist() == [4000, 8 * 2**30]
        assert nodes.requested[row_of["b"], [cpu, memory]].tolist() == [500, 0]
        assert nodes.pods[row_of["b"]] == 1
        assert nodes.feasible.tolist() == [name == "a" for name in nodes.names]
        assert [nodes.reasons[row_of["a"]], nodes.reasons[row_of["b"]]] == ["", "Insufficient cpu"]
        assert all(scores.shape == (2,) and scores[row_of["b"]] == 0 for scores in nodes.scores.values())


def test_pod_group_is_placed_as_a_whole_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPRIEVE_FEATURE_GATES", "GenericWorkload=true,GangScheduling=true")
    with Cluster.load([node("a", "2")]).trial() as trial:
        none = trial.schedule(gang(3))
        trial.add_nodes(like="a")

        all_of_them = trial.schedule()

    assert [placement.node for placement in none] == ["", "", ""]
    assert all(placement.message for placement in none)
    assert {placement.node for placement in all_of_them} == {"a", "a-new-1"}


# Own plugins, configurations and feature gates.


def test_trials_of_one_cluster_have_feature_gates_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the environment apply where none is given, and the API server of a trial knows what is on in it."""

    def placed(cluster: Cluster, gates: dict[str, bool] | None, objects: list[dict[str, Any]] | None) -> int:
        with cluster.trial(feature_gates=gates) as trial:
            return sum(bool(placement.node) for placement in trial.schedule(objects))

    for objects, what in (([node("a", "2"), *gang(3)], None), ([node("a", "2")], gang(3))):
        cluster = Cluster.load(objects)
        assert [placed(cluster, gates, what) for gates in (None, ONLY_GANGS, {})] == [2, 0, 2]
    monkeypatch.setenv("REPRIEVE_FEATURE_GATES", "GenericWorkload=true,GangScheduling=true")
    cluster = Cluster.load([node("a", "2"), *gang(3)])
    off = dict.fromkeys(ONLY_GANGS, False)
    assert [placed(cluster, gates, None) for gates in (None, {"DRAPartitionableDevices": False}, off)] == [0, 0, 2]


def test_feature_gates_hold_beside_a_configuration_of_the_callers() -> None:
    with Cluster.load([node("a", "2"), *gang(3)]).trial(NO_PREEMPTION, feature_gates=ONLY_GANGS) as trial:
        assert not any(placement.node for placement in trial.schedule())


@fwk.node_filter
def only_blue(pod: Any, node: Any) -> Any:
    return None if node.labels.get("colour") == "blue" else "node(s) were not blue"


def test_own_plugin_decides_beside_the_others() -> None:
    cluster = Cluster.load([node("a"), node("b", colour="blue"), node("c", "1m", colour="blue")])
    with cluster.trial() as default, cluster.trial(plugins=[only_blue]) as custom:
        assert default.fits(pod("any")).fits == 8
        assert custom.fits(pod("any")).fits == 4
        assert custom.nodes(pod("any")).reasons[custom.nodes().names.index("a")] == "node(s) were not blue"


def test_configuration_decides(tmp_path: Path) -> None:
    args = {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}}
    profile = {"pluginConfig": [{"name": "NodeResourcesFit", "args": args}]}
    packing = {key: value for key, value in NO_PREEMPTION.items() if key != "profiles"} | {"profiles": [profile]}
    file = tmp_path / "packing.json"
    file.write_bytes(msgspec.json.encode(packing))
    cluster = Cluster.load([node("a"), node("b"), pod("one", on="b")])

    chosen = []
    for configuration in (None, packing, file):
        with cluster.trial(configuration) as trial:
            chosen += [placement.node for placement in trial.schedule(pod("two"))]

    assert chosen == ["a", "b", "b"]


# How it is used.


async def test_trial_works_where_a_loop_runs() -> None:
    """As in a notebook."""
    assert asyncio.get_running_loop().is_running()
    with Cluster.load([node("a", "1"), pod("one", on="a")]).trial() as trial:
        assert trial.preempt(pod("urgent", priority=9)).node == "a"


@pytest.mark.parametrize(
    ("asks", "says"),
    [
        (lambda: Cluster.load("no.yaml"), "no.yaml: no such file or directory"),
        (lambda: Cluster.load([{"kind": "Pod", "metadata": {"name": "x"}, "spec": 3}]), "Pod x: "),
        (lambda: Cluster.load([]).trial({"kind": "Pod"}), "Object 'apiVersion' is missing"),
        (lambda: Cluster.load([]).trial(plugins=[int]), "is not a class derived from one of the plugin classes"),  # type: ignore[list-item]
        (lambda: Cluster.connect("no-kubeconfig"), "no-kubeconfig"),
    ],
)
def test_cluster_that_cannot_be_opened_says_why(asks: Callable[[], object], says: str) -> None:
    with pytest.raises(ReprieveError) as refused:
        asks()

    assert says in str(refused.value)


def reply_of(trial: Trial, name: str) -> object:
    """What a method answers to texts for all that it needs; or what an attribute is."""
    member = getattr(trial, name)
    if not callable(member):
        return member
    needed = [parameter for parameter in signature(member).parameters.values() if parameter.default is parameter.empty]
    by_name = {parameter.name: "a" for parameter in needed if parameter.kind is parameter.KEYWORD_ONLY}
    answer = member(*("a" for parameter in needed if parameter.kind is parameter.POSITIONAL_OR_KEYWORD), **by_name)
    return answer.__enter__() if name == "step" else answer


@pytest.mark.parametrize("name", [name for name in dir(Trial) if not name.startswith("_")])
def test_trial_that_is_over_says_so_whatever_it_is_asked(name: str) -> None:
    """The parent of a fork and the fork, each by itself."""
    with Cluster.load([node("a"), pod("one", on="a")]).trial() as trial, trial.fork() as other:
        pass

    for ended in (trial, other):
        with pytest.raises(ReprieveError, match=r"^this trial is over: open another one with Cluster.trial\(\)$"):
            reply_of(ended, name)


def test_import_loads_nothing_and_lists_its_names() -> None:
    code = "import reprieve, sys; print(*(each for each in sys.modules if each.partition('.')[0] in ('api', 'extender', 'numpy'))); print(*dir(reprieve))"

    done = subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, capture_output=True, text=True)

    loaded, names = done.stdout.splitlines()
    assert loaded == ""
    assert {"Cluster", "Trial", "ReprieveError", "main"} <= set(names.split())


def test_arrays_are_copies() -> None:
    with Cluster.load([node("a")]).trial() as trial:
        trial.nodes().requested[:] = 10**9

        assert np.count_nonzero(trial.nodes().requested) == 0


def test_pod_is_typed_as_one() -> None:
    """A plugin gets the engine's own objects."""
    pods: list[object] = []

    class Looks(fwk.EachNodeFilterPlugin):
        def filter(self, state: fwk.CycleState, pod: Pod, node: fwk.NodeInfo) -> fwk.Status:
            pods.append(pod)
            return fwk.SUCCESS

    with Cluster.load([node("a")]).trial(plugins=[Looks]) as trial:
        trial.schedule(pod("x"))

    assert all(isinstance(pod, Pod) for pod in pods)
    assert pods
