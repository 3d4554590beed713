"""Pods that start together or not at all.

Upstream: test/integration/scheduler/podgroup, TestPodGroupScheduling, TestPodGroupAdmission,
TestTopologyAwareSchedulingWithGangPolicy.
"""

import httpx
import pytest

from extender.rules.api_resources import POD_GROUPS
from tests.kit.objects import GROUP_GATES, ONLY_GANGS, is_binding, members, node, pod_group, refusal
from tests.kit.scene import Scene, a_scene

WAITING = (
    "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled, "
    "one or more plugins asked to wait and no plugin rejected pod"
)


def nodes_of(scene: Scene, number: int, group: str = "g") -> list[str]:
    """The nodes of members, in order; those without one have an empty one."""
    return sorted(scene.node_of(f"{group}{place}") for place in range(number))


def said_of(scene: Scene, name: str = "g") -> tuple[str, str, str] | None:
    """(status, reason, message) of the group's condition."""
    for condition in (scene.api.get(POD_GROUPS, "default", name).get("status") or {}).get("conditions") or ():
        return condition["status"], condition["reason"], condition.get("message", "")
    return None


@pytest.mark.over_a_socket
async def test_a_gang_that_fits_starts_as_a_whole() -> None:
    async with a_scene(node("n", "2"), node("m", "2"), features=GROUP_GATES) as scene:
        await scene.has(pod_group(min_count=3), *members(3))

        assert nodes_of(scene, 3) in (["m", "m", "n"], ["m", "n", "n"])
        assert said_of(scene) == ("True", "Scheduled", "")


@pytest.mark.over_a_socket
async def test_no_pod_of_a_gang_that_does_not_fit_starts() -> None:
    """Three would fit, four are needed."""
    async with a_scene(node("n", "3"), features=ONLY_GANGS) as scene:
        await scene.has(pod_group(min_count=4), *members(4))

        assert nodes_of(scene, 4) == ["", "", "", ""]
        assert said_of(scene) == ("False", "Unschedulable", "pod group is unschedulable")
        messages = [scene.condition(f"g{place}") for place in range(4)]
        assert messages.count(("False", "Unschedulable", WAITING)) == 3


@pytest.mark.over_a_socket
async def test_a_gang_starts_once_there_is_room_for_it() -> None:
    async with a_scene(node("n", "3"), features=ONLY_GANGS) as scene:
        await scene.has(pod_group(min_count=4), *members(4))
        await scene.has(node("m", "1"), within=30.0)

        assert nodes_of(scene, 4) == ["m", "n", "n", "n"]
        assert said_of(scene) == ("True", "Scheduled", "")


@pytest.mark.over_a_socket
async def test_pods_of_a_gang_are_held_back_until_enough_of_them_are_there() -> None:
    async with a_scene(node("n", "4"), features=ONLY_GANGS) as scene:
        await scene.has(pod_group(min_count=3), *members(2))
        assert nodes_of(scene, 2) == ["", ""]
        assert [scene.waits_in(name) for name in ("g0", "g1")] == ["gated", "gated"]

        await scene.has(*members(1, first=2))

        assert nodes_of(scene, 3) == ["n", "n", "n"]


@pytest.mark.over_a_socket
async def test_pods_wait_for_a_group_that_comes_after_them() -> None:
    async with a_scene(node("n", "4"), features=ONLY_GANGS) as scene:
        await scene.has(*members(2))
        assert [scene.waits_in(name) for name in ("g0", "g1")] == ["gated", "gated"]

        await scene.has(pod_group(min_count=2))

        assert nodes_of(scene, 2) == ["n", "n"]


@pytest.mark.anywhere
async def test_pods_that_come_late_join_a_gang_that_runs() -> None:
    """One of them finds no room, and that does not take back what was said of the group."""
    async with a_scene(node("n", "3"), features=ONLY_GANGS) as scene:
        await scene.has(pod_group(min_count=2), *members(2))
        await scene.has(*members(2, first=2))

        assert nodes_of(scene, 4) == ["", "n", "n", "n"]
        assert said_of(scene) == ("True", "Scheduled", "")


@pytest.mark.anywhere
async def test_more_pods_than_a_gang_needs_start_as_far_as_there_is_room() -> None:
    async with a_scene(node("n", "3"), features=ONLY_GANGS) as scene:
        await scene.has(pod_group(min_count=2), *members(4))

        assert nodes_of(scene, 4) == ["", "n", "n", "n"]


@pytest.mark.anywhere
async def test_the_pods_of_a_basic_group_start_each_by_itself() -> None:
    async with a_scene(node("n", "1"), features=ONLY_GANGS) as scene:
        await scene.has(pod_group(), *members(2))

        assert nodes_of(scene, 2) == ["", "n"]
        assert said_of(scene) == ("True", "Scheduled", "")


@pytest.mark.over_a_socket
async def test_two_gangs_that_each_fit_alone_do_not_block_each_other() -> None:
    """The one that goes first gets all of its nodes, the other none."""
    async with a_scene(node("n", "4"), features=ONLY_GANGS) as scene:
        await scene.has(
            pod_group("g", 3),
            pod_group("h", 3),
            *(member for pair in zip(members(3), members(3, "h"), strict=True) for member in pair),
        )
        started = [nodes_of(scene, 3, name) == ["n", "n", "n"] for name in ("g", "h")]
        waiting = [nodes_of(scene, 3, name) == ["", "", ""] for name in ("g", "h")]

        assert sorted(started) == sorted(waiting) == [False, True]
        assert started != waiting


@pytest.mark.anywhere
async def test_a_group_of_several_schedulers_is_refused() -> None:
    async with a_scene(node("n", "4"), profiles=("one", "two"), features=ONLY_GANGS) as scene:
        await scene.has(
            pod_group(min_count=2), *members(1, schedulerName="one"), *members(1, schedulerName="two", first=1)
        )

        state = scene.condition("g0")
        assert state is not None
        assert state[1] == "SchedulerError"
        assert state[2].startswith("all pods in a single pod group should have the same .spec.schedulerName set, got: ")
        assert nodes_of(scene, 2) == ["", ""]


async def test_a_group_is_tried_again_when_its_backoff_ends_and_not_before() -> None:
    """Four attempts in fifteen seconds: after one, two and four seconds."""
    async with a_scene(node("n", "1"), features=ONLY_GANGS) as scene:
        await scene.has(pod_group(min_count=2), *members(2), within=6.5)

        assert [scene.attempts(name) for name in ("g0", "g1")] in ([3, 3], [4, 4])


@pytest.mark.anywhere
async def test_a_group_stays_in_one_domain() -> None:
    """The zone with the larger node has room for two only."""
    zones = [
        node("a", "3", labels={"zone": "z1"}),
        node("b", "2", labels={"zone": "z2"}),
        node("c", "2", labels={"zone": "z2"}),
    ]
    async with a_scene(*zones, features=GROUP_GATES) as scene:
        await scene.has(pod_group(min_count=4, topology_key="zone"), *members(4))

        assert nodes_of(scene, 4) == ["b", "b", "c", "c"]


@pytest.mark.anywhere
async def test_condition_of_a_group_that_fits_no_domain_gives_the_reason() -> None:
    zones = [node("a", "3", labels={"zone": "z1"}), node("b", "3", labels={"zone": "z2"})]
    async with a_scene(*zones, features=GROUP_GATES) as scene:
        await scene.has(pod_group(min_count=4, topology_key="zone"), *members(4))

        assert nodes_of(scene, 4) == ["", "", "", ""]
        assert said_of(scene) == (
            "False",
            "Unschedulable",
            "0/2 placements are available, first placement status: pod group is unschedulable, "
            "workload aware preemption is not supported for pod groups with scheduling constraints",
        )


@pytest.mark.anywhere
async def test_late_pods_of_a_group_go_where_the_others_are() -> None:
    zones = [node("a", "3", labels={"zone": "z1"}), node("b", "8", labels={"zone": "z2"})]
    async with a_scene(*zones, features=GROUP_GATES) as scene:
        await scene.has(pod_group(min_count=2, topology_key="zone"), *members(2))
        where = set(nodes_of(scene, 2))
        await scene.has(*members(1, first=2))

        assert set(nodes_of(scene, 3)) == where
        assert len(where) == 1


# Writes that fail.


@pytest.mark.anywhere
async def test_a_binding_that_fails_is_tried_again_and_the_others_stay() -> None:
    failures: list[str] = []

    def refuses_once(request: httpx.Request) -> httpx.Response | None:
        if is_binding(request) and not failures:
            failures.append(request.url.path)
            return refusal(403, "Forbidden", "not now")
        return None

    async with a_scene(node("n", "3"), interfere=refuses_once, features=ONLY_GANGS) as scene:
        await scene.has(pod_group(min_count=3), *members(3), within=30.0)

        assert failures
        assert nodes_of(scene, 3) == ["n", "n", "n"]


@pytest.mark.anywhere
async def test_a_group_whose_condition_cannot_be_written_starts_all_the_same() -> None:
    def refuses(request: httpx.Request) -> httpx.Response | None:
        return refusal(403, "Forbidden", "not yours") if request.url.path.endswith("/podgroups/g/status") else None

    async with a_scene(node("n", "3"), interfere=refuses, features=ONLY_GANGS) as scene:
        await scene.has(pod_group(min_count=3), *members(3))

        assert nodes_of(scene, 3) == ["n", "n", "n"]
        assert said_of(scene) is None


# The group as an object.


async def test_a_group_that_is_deleted_stays_while_it_has_pods() -> None:
    async with a_scene(node("n", "1"), features=ONLY_GANGS) as scene:
        await scene.has(pod_group(min_count=1), *members(1))
        await scene.loses("g", resource=POD_GROUPS)
        assert "deletionTimestamp" in scene.api.get(POD_GROUPS, "default", "g")["metadata"]

        await scene.loses("g0", at_once=True)

        assert scene.api.list(POD_GROUPS, "default") == []


async def test_without_the_gate_pods_are_in_no_group() -> None:
    async with a_scene(node("n", "1")) as scene:
        await scene.has(*members(2))

        assert nodes_of(scene, 2) == ["", "n"]
        assert "schedulingGroup" not in scene.pod("g0")["spec"]


@pytest.mark.anywhere
@pytest.mark.parametrize(("cpu", "rest"), [("3", "n"), ("2", "")])
async def test_remaining_pods_of_a_partly_bound_gang_start_together_or_wait(cpu: str, rest: str) -> None:
    """One of three was bound before it died. The other two come together, or neither does."""
    first, *later_members = members(3)
    first["spec"]["nodeName"] = "n"
    async with a_scene(node("n", cpu), pod_group(min_count=3), first, features=ONLY_GANGS) as scene:
        await scene.has(*later_members)

        assert [scene.node_of(f"g{place}") for place in range(3)] == ["n", rest, rest]
