"""What holds for trials of any cluster: here of random ones, with devices, volumes and pod groups."""

import copy
import random
from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import given, settings, strategies as st

from extender.testing import name_term, random_cluster
from extender.values.objects.decoding import replaced
from extender.values.objects.pod import Pod, PodSchedulingGroup
from reprieve import Cluster, ReprieveError, Trial
from tests.extender.answers.test_trial import NO_SHRINKING, objects_of
from tests.kit.devices import exactly, make_claim, make_device_class, make_slice
from tests.kit.examples import examples
from tests.kit.objects import GROUP_GATES, pod_group
from tests.kit.random_claims import with_claims
from tests.kit.random_storage import random_cluster_with_volumes
from tests.kit.storage import make_claim as make_volume_claim, make_class, make_volume
from tests.reprieve.test_library import as_mapping, node, pod, state_of

EACH_TIME: Final = range(25)
"""Seeds of the clusters that are tried in every run of the tests."""


def drawn_objects(chance: random.Random) -> list[dict[str, Any]]:
    """Returns a cluster with what `random_cluster` has, and perhaps volumes, devices, pod groups, and pods with claims."""
    drawn = objects_of(chance.choice((random_cluster, random_cluster_with_volumes))(chance), chance)
    if chance.random() < 0.5:
        drawn = with_claims(drawn, chance)
    groups = [pod_group(name, chance.choice((None, 1, 2, 3))) for name in ("gang", "crew") if chance.random() < 0.5]
    for group in groups:
        group["metadata"]["namespace"] = "default"
    names = [group["metadata"]["name"] for group in groups]

    def perhaps_in_a_group(obj: Any) -> Any:
        if not names or not isinstance(obj, Pod) or obj.namespace != "default" or chance.random() < 0.5:
            return obj
        group = PodSchedulingGroup(pod_group_name=chance.choice(names))
        return replaced(obj, spec=replaced(obj.spec, scheduling_group=group))

    also = with_reservations(chance) if chance.random() < 0.7 else []
    return [*groups, *(as_mapping(perhaps_in_a_group(obj)) for obj in drawn), *also]


def with_reservations(chance: random.Random) -> list[dict[str, Any]]:
    """Returns nodes with room, and pods for which a volume or a device is chosen and kept: which ones others get
    depends on the order in which they came and went.
    """
    names = [f"roomy-{number}" for number in range(chance.randint(1, 3))]
    sizes = chance.sample(range(1, 12), chance.randint(2, 6))
    volumes = [
        make_volume(
            f"local-{size}",
            storage_class="own",
            size=f"{size}Gi",
            affinity=[name_term("In", chance.choice(names))] if chance.random() < 0.5 else None,
        )
        for size in sizes
    ]
    slices = [
        make_slice(*(f"card-{number}" for number in range(chance.randint(1, 3))), name=name, pool=name, nodeName=name)
        for name in names
    ]
    objects = [make_class("own", provisioner="kubernetes.io/no-provisioner"), *volumes, *slices]
    if chance.random() < 0.7:
        objects.append(make_device_class("cards"))
    manifests = [as_mapping(obj) for obj in objects]
    for manifest in manifests:
        if manifest["kind"] == "DeviceClass":
            manifest["spec"]["extendedResourceName"] = "example.com/card"
    return [*manifests, *(node(name) for name in names), *with_claimants(chance)]


def with_claimants(chance: random.Random) -> list[dict[str, Any]]:
    claimants: list[dict[str, Any]] = []
    for number in range(chance.randint(3, 9)):
        claimant, kind = pod(f"claimant-{number}", "500m"), chance.random()
        claimants.append(claimant)
        if kind < 0.5:
            size = f"{chance.randint(1, 6)}Gi"
            claimants.append(as_mapping(make_volume_claim(f"volume-{number}", storage_class="own", size=size)))
            source = {"claimName": f"volume-{chance.choice((number, number, 0))}"}
            claimant["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": source}]
        elif kind < 0.7:
            claimants.append(as_mapping(make_claim(f"card-{number}", exactly(device_class="cards"))))
            claimant["spec"]["resourceClaims"] = [{"name": "r", "resourceClaimName": f"card-{number}"}]
        elif kind < 0.9:
            claimant["spec"]["containers"][0]["resources"]["requests"]["example.com/card"] = "1"
    return claimants


def trial_of(cluster: Cluster) -> Trial:
    return cluster.trial(feature_gates=GROUP_GATES)


def waiting(trial: Trial) -> list[str]:
    return [key for key, on in trial.pods.items() if not on]


def by_name(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(
        objects, key=lambda obj: [obj["kind"], *(obj["metadata"].get(part, "") for part in ("namespace", "name"))]
    )


def contents(trial: Trial) -> list[object]:
    return [*state_of(trial), by_name(trial.objects())]


def decided(trial: Trial) -> list[object]:
    """What is decided from here on: placements, then victims, and where what still waits might go."""
    placed = trial.schedule()
    pending_names = waiting(trial)
    fits = [(name, trial.nodes(name).feasible.tolist(), trial.nodes(name).reasons) for name in pending_names]
    answers = [placed, fits, [trial.preempt(name) for name in pending_names]]
    trial.undo()
    return answers


def does_some_steps(trial: Trial, chance: random.Random, depth: int = 0) -> int:
    """Returns how many steps were done."""

    def some_node() -> str:
        return chance.choice(list(trial.nodes().names))

    def a_few(keys: list[str]) -> list[str]:
        return chance.sample(keys, min(len(keys), 2))

    def nested() -> None:
        with trial.step():
            done = does_some_steps(trial, chance, depth + 1)
            trial.undo(chance.randint(0, done))

    def failing() -> None:
        before = contents(trial)
        with pytest.raises(ZeroDivisionError), trial.step():
            does_some_steps(trial, chance, depth + 1)
            _ = 1 / 0
        assert contents(trial) == before

    def forking() -> None:
        before = contents(trial)
        with trial.fork() as other:
            assert contents(other) == before
            assert decided(other) == decided(trial)
            does_some_steps(other, chance, depth + 1)
            assert contents(trial) == before

    def asking() -> None:
        before = contents(trial)
        for key in waiting(trial)[:2]:
            trial.preempt(key)
            trial.nodes(key)
            trial.fits(key, 3)
        assert contents(trial) == before

    new = f"new-{chance.random()}"
    steps: list[Callable[[], object]] = [
        trial.schedule,
        lambda: trial.schedule(stop_on_failure=True),
        lambda: trial.place(chance.choice(waiting(trial) or [pod(new)]), some_node()),
        lambda: trial.add([pod(new), node(f"node-{new}")]),
        lambda: trial.schedule([pod(new), pod(f"{new}-2")]),
        lambda: trial.remove(a_few([*trial.pods])),
        lambda: trial.remove(nodes=some_node()),
        lambda: trial.evict(a_few([key for key, on in trial.pods.items() if on])),
        lambda: trial.add_nodes(like=some_node(), count=2),
        lambda: trial.cordon(some_node()),
        lambda: trial.taint(some_node(), "team=red:NoSchedule", "team:NoExecute"),
        lambda: trial.drain(some_node()),
        *([] if depth > 1 else [nested, failing, forking, asking]),
    ]
    done = 0
    for step in chance.choices(steps, k=4):
        if not len(trial.nodes().names):
            break
        try:
            step()
        except ReprieveError:
            assert step not in (nested, failing, forking, asking)
            continue
        done += step not in (failing, forking, asking)
    return done


def check_cluster(seed: int) -> None:
    chance = random.Random(seed)
    objects = drawn_objects(chance)
    given_objects = copy.deepcopy(objects)
    cluster = Cluster.load(objects)
    with trial_of(cluster) as trial, trial_of(cluster) as untouched:
        before = contents(trial)
        first = does_some_steps(trial, chance)
        middle, later = contents(trial), decided(trial)

        # A fork decides as its parent would, which what is done in it leaves as it is.
        with trial.fork() as fork:
            assert contents(fork) == middle
            assert decided(fork) == later
            fork.undo(does_some_steps(fork, chance))
            assert contents(fork) == middle == contents(trial)
            assert decided(fork) == later == decided(trial)

        # What is taken back leaves no trace.
        trial.undo(does_some_steps(trial, chance))
        assert contents(trial) == middle
        assert decided(trial) == later
        trial.undo(first)
        assert contents(trial) == before == contents(untouched)
        assert decided(trial) == decided(untouched)

        refuses_as_filters_do(untouched)
    assert objects == given_objects


def refuses_as_filters_do(trial: Trial) -> None:
    for key in waiting(trial)[:3]:
        nodes = trial.nodes(key)
        for name, feasible, reason in zip(nodes.names, nodes.feasible.tolist(), nodes.reasons, strict=True):
            placed = trial.place(key, name)
            trial.undo()

            if placed.message.startswith(("skip schedule deleting", "Pod ", "waiting for")):
                continue  # it is not in the queue
            if reason.startswith("running "):
                continue  # a plugin that fails on one node fails for all that are looked at together
            assert (placed.node == name, placed.message) == (feasible, reason)


@pytest.mark.parametrize("seed", EACH_TIME)
def test_trials_of_a_random_cluster(seed: int) -> None:
    """Steps, blocks of them and forks are taken back without a trace; a fork leaves its parent as it is."""
    check_cluster(seed)


@pytest.mark.slow
@settings(deadline=None, max_examples=examples(500), phases=NO_SHRINKING)
@given(st.integers(0, 2**32))
def test_trials_of_further_random_clusters(seed: int) -> None:
    check_cluster(seed)
