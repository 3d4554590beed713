"""Reserve assumes the volumes that Filter found; Unreserve drops them."""

from functools import reduce

import pytest

from extender.engine.cache import Cache
from extender.engine.framework import CycleState, Status, error
from extender.engine.plugins.volume_binding.plugin import ASSUMED, VolumeBinding
from extender.engine.plugins.volume_binding.pod_claims import FEW, AssumeCache, AssumeError
from extender.engine.runtime.cycle import Cycle
from extender.engine.runtime.framework import Framework
from extender.engine.snapshot import Rows
from extender.testing import PodBuilder, label_term, make_cache, make_framework, make_node, make_pod
from extender.values.objects.claims import BOUND_BY_CONTROLLER_ANNOTATION, SELECTED_NODE_ANNOTATION
from extender.values.objects.meta import HasMetadata
from extender.values.objects.node import HOSTNAME_LABEL
from extender.values.objects.pod import Pod
from extender.values.objects.storage import PersistentVolume
from tests.kit.storage import make_claim, make_class, make_volume
from tests.kit.tables import cases

LOCAL = make_class("local", provisioner="kubernetes.io/no-provisioner")


class Scheduler:
    """One profile with VolumeBinding, over a cluster whose objects may change."""

    def __init__(self, *objects: HasMetadata) -> None:
        nodes = (make_node(name).label({HOSTNAME_LABEL: name}) for name in "ab")
        self.cache: Cache = make_cache(*nodes, objects=objects)
        self.framework: Framework = make_framework(VolumeBinding)
        (self.plugin,) = self.framework.plugins.reserve

    def feasible(self, pod: Pod) -> tuple[Cycle, list[str]]:
        """A cycle begun for the pod, and the nodes that pass."""
        snapshot = self.cache.update_snapshot()
        state, rows = Cycle(self.framework, snapshot, pod), Rows.of(snapshot)
        if not state.run_pre_filter_plugins().status.is_success:
            return state, []
        return state, rows.take(state.run_filter_plugins(rows).ok).names

    def reserve(self, pod: Pod, node: str) -> tuple[Cycle, Status]:
        """A cycle that ends with the pod on this node."""
        state, _ = self.feasible(pod)
        status = self.plugin.reserve(state, pod, node)
        assert status is not None
        return state, status


def pod(name: str, *claims: str) -> Pod:
    return reduce(PodBuilder.claim, claims, make_pod(name)).obj()


def with_local_volumes(*nodes: str) -> list[HasMetadata]:
    """Two claims, and a volume on each of these nodes."""
    places = {node: [label_term(HOSTNAME_LABEL, "In", node)] for node in nodes}
    volumes = [make_volume(f"v-{node}", storage_class="local", affinity=place) for node, place in places.items()]
    return [LOCAL, *(make_claim(name, storage_class="local") for name in "cd"), *volumes]


def test_a_volume_that_was_reserved_is_taken() -> None:
    """The next pod does not get it, though the API server knows nothing of it yet."""
    scheduler = Scheduler(*with_local_volumes("a", "b"))
    _, status = scheduler.reserve(pod("first", "c"), "a")

    _, nodes_left = scheduler.feasible(pod("second", "d"))

    assert status.is_success
    assert nodes_left == ["b"]


def test_an_assumed_volume_names_its_claim() -> None:
    """Volumes name their claims, as the volume controller would have it."""
    state, _ = Scheduler(*with_local_volumes("a")).reserve(pod("first", "c"), "a")

    (volume,) = state.read(ASSUMED).volumes

    claim = volume.spec.claim_ref
    assert claim is not None
    assert (claim.namespace, claim.name, claim.uid) == ("default", "c", "uid-c")
    assert volume.metadata.annotations == {BOUND_BY_CONTROLLER_ANNOTATION: "yes"}


def test_provisioning_selects_the_node() -> None:
    """The claim names the node, and holds other pods with it there."""
    scheduler = Scheduler(make_class(), make_claim("c"))
    state, _ = scheduler.reserve(pod("first", "c"), "a")

    _, nodes_left = scheduler.feasible(pod("second", "c"))

    assert [claim.metadata.annotations[SELECTED_NODE_ANNOTATION] for claim in state.read(ASSUMED).claims] == ["a"]
    assert nodes_left == ["a"]


def test_unreserve_frees_the_volumes() -> None:
    scheduler = Scheduler(*with_local_volumes("a"), make_class(), make_claim("e"))
    first = pod("first", "c", "e")
    state, _ = scheduler.reserve(first, "a")

    scheduler.plugin.unreserve(state, first, "a")

    assert scheduler.feasible(pod("second", "d"))[1] == ["a"]
    assert scheduler.feasible(pod("third", "e"))[1] == ["a", "b"]


@pytest.mark.parametrize("leaves", [0, 1])
@cases(
    "objects, other",
    ("a volume for their claim", with_local_volumes("a"), "d"),
    ("a volume that is provisioned for their claim", [make_class(), make_claim("c")], "c"),
)
def test_what_pods_share_is_free_when_the_last_one_leaves(objects: list[HasMetadata], other: str, leaves: int) -> None:
    scheduler = Scheduler(*objects)
    pods = [pod("first", "c"), pod("second", "c")]
    states = [scheduler.reserve(user, "a")[0] for user in pods]
    third = pod("third", other)
    nodes_before = scheduler.feasible(third)[1]

    for _ in range(2):  # the second time does nothing
        scheduler.plugin.unreserve(states[leaves], pods[leaves], "a")
        assert scheduler.feasible(third)[1] == nodes_before
    scheduler.plugin.unreserve(states[1 - leaves], pods[1 - leaves], "a")

    assert len(scheduler.feasible(third)[1]) == len(nodes_before) + 1


def test_unreserve_without_a_reservation_does_nothing() -> None:
    scheduler = Scheduler(*with_local_volumes("a"))
    scheduler.reserve(pod("first", "c"), "a")
    second = pod("second", "d")
    state, _ = scheduler.feasible(second)

    scheduler.plugin.unreserve(state, second, "a")
    scheduler.plugin.unreserve(CycleState(), second, "a")

    assert scheduler.feasible(second)[1] == []


@cases(
    "claim, objects",
    ("all bound", "bound", [make_claim("bound", volume="pv"), make_volume("pv", claim="bound")]),
    ("no claims", "", []),
)
def test_pods_without_claims_to_bind(claim: str, objects: list[HasMetadata]) -> None:
    state, status = Scheduler(*objects).reserve(pod("p", *([claim] if claim else [])), "a")

    assert status.is_success
    assert state.read(ASSUMED) == type(state.read(ASSUMED))()


def test_a_volume_that_changed_meanwhile_cannot_be_reserved() -> None:
    """Then nothing is kept, and the pod is tried again."""
    claims = [make_claim(name, storage_class="local", size=size) for name, size in (("c", "1Gi"), ("d", "2Gi"))]
    scheduler = Scheduler(*claims, LOCAL)
    objects = scheduler.cache.objects
    objects.pvs["small"] = make_volume("small", storage_class="local", version="7")
    objects.pvs["large"] = make_volume("large", storage_class="local", size="2Gi", version="7")
    first = pod("first", "c", "d")
    state, _ = scheduler.feasible(first)
    objects.pvs["large"] = make_volume("large", storage_class="local", size="2Gi", version="8")

    status = scheduler.plugin.reserve(state, first, "a")

    assert status == error('v1.PersistentVolume "large" is out of sync (stored: 8, assume: 7)')
    assert scheduler.feasible(pod("second", "c"))[1] == ["a", "b"]


def test_a_volume_that_is_gone_cannot_be_reserved() -> None:
    scheduler = Scheduler(*with_local_volumes("a"))
    first = pod("first", "c")
    state, _ = scheduler.feasible(first)
    del scheduler.cache.objects.pvs["v-a"]

    assert scheduler.plugin.reserve(state, first, "a") == error('could not find v1.PersistentVolume "v-a"')


# The assume cache.


def volume(version: str, **labels: str) -> PersistentVolume:
    return make_volume("v", version=version, labels=labels)


def test_an_assumption_lasts_until_the_api_server_has_a_newer_version() -> None:
    """Then that is the truth, whether the assumption came true or not."""
    cache: AssumeCache[str, PersistentVolume] = AssumeCache("v1.PersistentVolume")
    table = {"v": volume("5")}
    assumed = volume("5", assumed="yes")
    cache.assume("v", assumed, table, "p")

    assert cache.get("v", table) is assumed
    assert cache.get("v", {"v": volume("5")}) is assumed
    assert cache.get("v", newer := {"v": volume("6")}) is newer["v"]
    assert cache.get("v", {}) is None


def test_an_assumption_can_be_made_on_top_of_another() -> None:
    cache: AssumeCache[str, PersistentVolume] = AssumeCache("v1.PersistentVolume")
    table = {"v": volume("5")}
    cache.assume("v", volume("5", first="yes"), table, "p")
    cache.assume("v", second := volume("5", second="yes"), table, "p")

    assert cache.get("v", table) is second


def test_restoring_forgets_what_was_assumed() -> None:
    cache: AssumeCache[str, PersistentVolume] = AssumeCache("v1.PersistentVolume")
    table = {"v": volume("5")}
    cache.assume("v", volume("5", assumed="yes"), table, "p")

    cache.restore("v", "p")
    cache.restore("v", "p")

    assert cache.get("v", table) is table["v"]


def test_spent_assumptions_are_not_kept() -> None:
    """Of what came true, few objects are kept, however many are assumed."""
    cache: AssumeCache[str, PersistentVolume] = AssumeCache("v1.PersistentVolume")
    table: dict[str, PersistentVolume] = {}

    for number in range(20 * FEW):
        name = f"v{number}"
        table[name] = volume("5")
        cache.assume(name, volume("5"), table, "p")
        table[name] = volume("6")

    assert len(cache) <= 2 * FEW


@cases(
    "table, message",
    ("gone", {}, 'could not find v1.PersistentVolume "v"'),
    ("changed", {"v": volume("6")}, 'v1.PersistentVolume "v" is out of sync (stored: 6, assume: 5)'),
)
def test_objects_that_cannot_be_assumed(table: dict[str, PersistentVolume], message: str) -> None:
    cache: AssumeCache[str, PersistentVolume] = AssumeCache("v1.PersistentVolume")

    with pytest.raises(AssumeError) as refused:
        cache.assume("v", volume("5"), table, "p")

    assert str(refused.value) == message
