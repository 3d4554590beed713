from dataclasses import dataclass

from extender.engine import framework as fwk
from extender.engine.cache.cluster import Cluster
from extender.engine.plugins.pod_groups import PERMIT_SECONDS, GangScheduling
from extender.engine.runtime.framework import Framework
from extender.testing import PodBuilder, make_framework, make_node, make_pod, make_pod_group
from extender.values.objects.cluster import ClusterState
from extender.values.objects.grouping import PodGroup
from extender.values.objects.pod import Pod
from tests.kit.tables import cases

GATES = {"GenericWorkload": True, "GangScheduling": True}


@dataclass(frozen=True)
class Scene:
    framework: Framework
    cluster: Cluster

    @property
    def plugin(self) -> GangScheduling:
        (plugin,) = self.framework.plugins.permit
        assert isinstance(plugin, GangScheduling)
        return plugin

    def permit(self, pod: Pod, in_cycle: fwk.GroupCycle | None = None) -> tuple[fwk.Status, float]:
        state = fwk.CycleState()
        state.write(fwk.GROUP_CYCLE, in_cycle)
        return self.plugin.permit(state, pod, "n")


def a_scene(*pods: PodBuilder, groups: tuple[PodGroup, ...] = ()) -> Scene:
    state = ClusterState(nodes=[make_node().obj()], pods=[pod.obj() for pod in pods], pod_groups=groups)
    cluster = Cluster.of(state)
    return Scene(make_framework(GangScheduling, live=cluster.cache, features=GATES), cluster)


def member(name: str) -> PodBuilder:
    return make_pod(name).group("g")


def test_a_pod_without_a_group_is_none_of_its_business() -> None:
    scene = a_scene(make_pod("p"))

    assert scene.plugin.pre_enqueue(make_pod("p").obj()).is_success
    assert scene.permit(make_pod("p").obj())[0].is_success


@cases(
    "groups, count, why",
    ("its group does not exist", (), 2, 'waiting for pods\'s pod group "g" to appear in scheduling queue'),
    ("its group is no gang", (make_pod_group(),), 1, ""),
    (
        "too few are known",
        (make_pod_group(min_count=2),),
        1,
        "waiting for minCount pods from a gang to appear in scheduling queue",
    ),
    ("enough are known", (make_pod_group(min_count=2),), 2, ""),
)
def test_a_pod_is_gated_until_its_gang_can_be_complete(groups: tuple[PodGroup, ...], count: int, why: str) -> None:
    scene = a_scene(*(member(f"m{number}") for number in range(count)), groups=groups)

    status = scene.plugin.pre_enqueue(member("m0").obj())

    assert status.message == why
    assert status.is_success is not bool(why)


def test_members_with_a_node_count_among_those_that_are_known() -> None:
    scene = a_scene(member("m0"), member("m1").node("n"), groups=(make_pod_group(min_count=2),))

    assert scene.plugin.pre_enqueue(member("m0").obj()).is_success


def test_permit_in_a_group_cycle_counts_its_members_with_a_node() -> None:
    """The one that is asked about is among them."""
    group = make_pod_group(min_count=2)
    scene = a_scene(member("m0"), member("m1"), groups=(group,))

    waits, seconds = scene.permit(member("m0").obj(), fwk.GroupCycle(group, 1))
    goes, _ = scene.permit(member("m1").obj(), fwk.GroupCycle(group, 2))

    assert (waits.code, seconds) == (fwk.Code.WAIT, PERMIT_SECONDS)
    assert goes.is_success


async def test_an_assumed_member_waits_for_the_others_and_the_last_one_lets_all_go() -> None:
    scene = a_scene(member("m0"), member("m1"), groups=(make_pod_group(min_count=2),))
    first, second = scene.cluster.pending
    one = scene.cluster.assume(first, "n")
    assert one is not None
    status, seconds = scene.permit(one)
    assert (status.code, seconds) == (fwk.Code.WAIT, PERMIT_SECONDS)
    waiting = scene.framework.waiting_pods.add(one, {"GangScheduling": seconds})

    two = scene.cluster.assume(second, "n")
    assert two is not None
    assert scene.permit(two)[0].is_success
    assert (await waiting.wait()).is_success


def test_a_gang_whose_group_is_gone_is_an_error_and_is_tried_again() -> None:
    status, _ = a_scene(member("m0")).permit(member("m0").obj(), fwk.GroupCycle(None, 1))

    assert status.code is fwk.Code.ERROR
    assert status.message == 'failed to get podGroup default/g: podgroup.scheduling.k8s.io "g" not found'


@cases(
    "new, helps",
    ("another pod of the group", member("other").obj(), True),
    ("a pod of another group", make_pod("other").group("h").obj(), False),
    ("a pod without a group", make_pod("other").obj(), False),
    ("the group", make_pod_group(), True),
    ("another group", make_pod_group("h"), False),
)
def test_hint_queues_a_member_when_its_gang_may_be_completed(new: Pod | PodGroup, helps: bool) -> None:
    resource = fwk.EventResource.POD_GROUP if isinstance(new, PodGroup) else fwk.EventResource.POD
    (hint,) = [
        entry.hint
        for entry in a_scene().plugin.events_to_register()
        if entry.event == fwk.ClusterEvent(resource, fwk.ActionType.ADD)
    ]
    assert hint is not None

    assert hint(member("m0").obj(), None, new) is (fwk.QueueingHint.QUEUE if helps else fwk.QueueingHint.QUEUE_SKIP)


@cases(
    "old, new, helps",
    ("it needs fewer", make_pod_group(min_count=3), make_pod_group(min_count=2), True),
    ("it is no gang any more", make_pod_group(min_count=3), make_pod_group(min_count=None), True),
    ("it needs more", make_pod_group(min_count=2), make_pod_group(min_count=3), False),
    ("only its status changed", make_pod_group(min_count=3), make_pod_group(min_count=3), False),
    ("another group", make_pod_group("h", min_count=3), make_pod_group("h", min_count=2), False),
)
def test_a_member_is_queued_when_its_group_needs_fewer(old: PodGroup, new: PodGroup, helps: bool) -> None:
    """As from kubernetes#139279 on, which came after v1.36.2."""
    event = fwk.ClusterEvent(fwk.EventResource.POD_GROUP, fwk.ActionType.UPDATE)
    (hint,) = [entry.hint for entry in a_scene().plugin.events_to_register() if entry.event == event]
    assert hint is not None

    assert hint(member("m0").obj(), old, new) is (fwk.QueueingHint.QUEUE if helps else fwk.QueueingHint.QUEUE_SKIP)
