"""In a trial, the claims of a pod are allocated and reserved once it has a node, as after its binding."""

import asyncio
from collections.abc import Sequence

import pytest

from extender.answers.trial import Trial
from extender.engine import framework as fwk
from extender.engine.cache.cluster import Cluster
from extender.testing import make_node, make_pod
from extender.values.config.feature_gates import FeatureGates
from extender.values.config.loading import load
from extender.values.objects.decoding import convert
from extender.values.objects.devices import ResourceClaim
from extender.values.objects.grouping import PodGroup
from extender.values.objects.pod import Pod
from tests.extender.answers.test_trial import everything, trial_of
from tests.kit.devices import exactly, make_claim, make_device, make_device_class, make_slice, slice_of, with_claims
from tests.kit.objects import ONLY_GANGS, pod_group
from tests.kit.owners import owned_by
from tests.kit.tables import cases

NO_PROFILES = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
NODES = [make_node(name).capacity(cpu=4, pods=10).obj() for name in ("n1", "n2")]
CLASS = make_device_class("any")
FABRIC = make_slice("fabric", name="all", pool="all", allNodes=True)
ON_N1 = slice_of("n1", "gpu")


def sharing(number: int, *claims: str, cpu: int = 1) -> list[Pod]:
    """Pods that name these claims."""
    pods = [make_pod(f"p{place}").req(cpu=cpu) for place in range(number)]
    return [owned_by(with_claims(pod, *claims), "ReplicaSet", "rs") for pod in pods]


def claim_of(trial: Trial, name: str = "c") -> ResourceClaim:
    return trial.cluster.cache.objects.resource_claims["default", name]


def users(trial: Trial, name: str = "c") -> list[str]:
    return [one.name for one in claim_of(trial, name).status.reserved_for]


def schedule(trial: Trial, pods: Sequence[Pod]) -> list[tuple[str, str]]:
    """(node, message) of each."""
    return [(attempt.node, attempt.message) for attempt in map(trial.schedule, pods)]


@pytest.mark.parametrize("number", [2, 3, 8])
def test_pods_that_share_a_claim_are_placed_one_after_the_other(number: int) -> None:
    pods = sharing(number, "c")
    trial = trial_of([*NODES, CLASS, FABRIC, make_claim("c", exactly()), *pods])

    assert all(node for node, _ in schedule(trial, pods))
    assert users(trial) == [pod.name for pod in pods]


def test_pods_that_share_a_device_of_a_node_get_that_node() -> None:
    pods = sharing(5, "c")
    trial = trial_of([*NODES, CLASS, ON_N1, make_claim("c", exactly()), *pods])

    placed = schedule(trial, pods)

    assert [node for node, _ in placed] == ["n1"] * 4 + [""]
    assert "1 resourceclaim not available on the node" in placed[-1][1]


def test_a_pod_with_a_claim_of_its_own_does_not_get_the_device_of_another() -> None:
    first, second = sharing(1, "c")[0], sharing(2, "d")[1]
    trial = trial_of([*NODES, CLASS, ON_N1, *(make_claim(name, exactly()) for name in "cd"), first, second])

    assert [node for node, _ in schedule(trial, [first, second])] == ["n1", ""]


def test_shares_of_a_device_are_counted_once() -> None:
    """Two claims of 4 GiB fit a device of 10, and a third does not."""
    device = make_device("part", allowMultipleAllocations=True, capacity={"memory": {"value": "10Gi"}})
    claims = [make_claim(name, exactly(capacity={"requests": {"memory": "4Gi"}})) for name in "cde"]
    pods = [*sharing(2, "c"), sharing(3, "d")[2], sharing(4, "e")[3]]
    shared = make_slice(device, name="all", pool="all", allNodes=True)
    trial = trial_of([*NODES, CLASS, shared, *claims, *pods])

    assert [bool(node) for node, _ in schedule(trial, pods)] == [True, True, True, False]


def test_what_is_taken_back_is_no_longer_allocated() -> None:
    pods = sharing(3, "c")
    trial = trial_of([*NODES, CLASS, ON_N1, make_claim("c", exactly()), *pods])
    before = everything(trial)

    for _ in range(2):
        with trial.transaction():
            assert [node for node, _ in schedule(trial, pods)] == ["n1"] * 3
        assert everything(trial) == before


@cases("committed", ("open", False), ("committed", True))
def test_the_last_pod_that_goes_frees_the_device(committed: bool) -> None:
    first, second = sharing(2, "c")
    third = sharing(3, "d")[2]
    trial = trial_of([*NODES, CLASS, ON_N1, *(make_claim(name, exactly()) for name in "cd"), first, second, third])
    schedule(trial, [first, second])
    if committed:
        trial.commit()

    trial.evict(first)
    assert claim_of(trial).status.allocation is not None
    assert schedule(trial, [third])[0][0] == ""
    trial.evict(second)

    assert claim_of(trial).status.allocation is None
    assert schedule(trial, [third])[0][0] == "n1"


def test_a_pod_that_was_evicted_and_put_back_has_its_devices_again() -> None:
    pods = sharing(2, "c")
    other = sharing(3, "d")[2]
    trial = trial_of([*NODES, CLASS, ON_N1, *(make_claim(name, exactly()) for name in "cd"), *pods, other])
    schedule(trial, pods)
    before = everything(trial)

    with trial.transaction():
        for pod in list(trial.cluster.cache.pods):
            trial.evict(pod)
        assert schedule(trial, [other])[0][0] == "n1"

    assert everything(trial) == before
    assert schedule(trial, [other])[0][0] == ""


@pytest.mark.parametrize("minimum", [2, 3])
def test_a_group_that_shares_a_claim_is_placed_as_a_whole(minimum: int) -> None:
    group = convert(PodGroup, {**pod_group(min_count=minimum), "metadata": {"name": "g", "namespace": "default"}})
    members = [
        convert(Pod, {"metadata": {"name": f"g{n}", "namespace": "default", "uid": f"g{n}"}, "spec": _member()})
        for n in range(minimum)
    ]
    cluster = Cluster()
    for obj in [*NODES, CLASS, ON_N1, make_claim("c", exactly()), group, *members]:
        cluster.changed(None, obj)
    with Trial.of(cluster, load(NO_PROFILES, FeatureGates.of(ONLY_GANGS))) as trial:
        result, victims = asyncio.run(trial.try_group(("default", "g"), members))
        placed = list(trial.place_group(result, len(members)))

        assert result.status == fwk.SUCCESS
        assert victims is None
        assert placed == [("n1", "")] * minimum
        assert users(trial) == [pod.name for pod in members]


def _member() -> dict[str, object]:
    return {
        "schedulingGroup": {"podGroupName": "g"},
        "resourceClaims": [{"name": "c", "resourceClaimName": "c"}],
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
    }
