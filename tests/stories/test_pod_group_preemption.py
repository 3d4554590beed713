"""Pod groups that make room for themselves, and that have to go.

Upstream: test/integration/scheduler/preemption/podgrouppreemption_test.go, TestPodGroupPreemption;
podgroup/podgroup_test.go, TestWorkloadAwarePreemptionInvocation.
"""

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import httpx
import pytest

from extender.engine.preemption.minimal_victims import ANNOTATION as MINIMAL_VICTIMS
from extender.rules.api_resources import POD_GROUPS, Object
from reprieve.cluster.in_memory import EmbeddedTransport
from reprieve.cluster.kube_api import KubeApi
from tests.kit.objects import GROUP_GATES, ONLY_GANGS, budget, members, node, pod, pod_group, priority_class
from tests.kit.scene import a_scene, stages
from tests.stories.test_pod_groups import nodes_of, said_of


@final
@dataclass(frozen=True)
class Preemption:
    """One after upstream's TestPodGroupPreemption.

    Attributes:
        nodes: name -> processors.
        running: name -> (node, processors, priority).
        wants: the members' processors.
        goes: who of those that run has to go.
        group: the group that wants room; None for single pods.
        victims: the group of those that run.
        member_priority: the priority of the members, where it is another than the group's.
    """

    nodes: dict[str, str]
    running: dict[str, tuple[str, str, str]]
    wants: Sequence[str]
    goes: set[str]
    group: Object | None
    victims: Object | None = None
    budget: Object | None = None
    member_priority: str = ""
    waits: bool = False


def on_n(*priorities: str, cpu: str = "1") -> dict[str, tuple[str, str, str]]:
    return {f"r{place}": ("n", cpu, priority) for place, priority in enumerate(priorities)}


ALL_OF_THEM = {"r0", "r1", "r2"}
LOWS, HIGHS = on_n("low", "low", "low"), on_n("high", "high", "high")
TWO_NODES = {"n": "2", "m": "2"}
TWO_OF_THEM = {"matchExpressions": [{"key": "name", "operator": "In", "values": ["r0", "r1"]}]}
KEEP_TWO = budget("keep", TWO_OF_THEM, minAvailable=2)
GANG, BASIC, ONE = (
    pod_group(min_count=3, priority="high"),
    pod_group(priority="high"),
    pod_group(min_count=1, priority="high"),
)
WHOLE = {"v": pod_group("v", 3, "low", as_a_whole=True), "basic": pod_group("v", None, "low", as_a_whole=True)}
PREEMPTIONS = {
    "all of them, if all are needed": Preemption({"n": "3"}, LOWS, "111", ALL_OF_THEM, GANG),
    "for a basic group, too": Preemption({"n": "3"}, LOWS, "111", ALL_OF_THEM, BASIC),
    "only where there is no room": Preemption(
        TWO_NODES, {"r0": ("n", "2", "low"), "r1": ("m", "1", "low")}, "111", {"r0"}, GANG
    ),
    "for the rest of a basic group": Preemption(
        TWO_NODES, {"r0": ("n", "2", "low"), "r1": ("m", "1", "middle")}, "111", {"r0"}, BASIC
    ),
    "whom no budget keeps": Preemption(
        {"n": "3"}, LOWS, ["500m"] * 2, {"r2"}, pod_group(min_count=2, priority="high"), budget=KEEP_TWO
    ),
    "on several nodes": Preemption(
        TWO_NODES,
        {**on_n("low", "low"), "r2": ("m", "1", "low"), "r3": ("m", "1", "low")},
        "1111",
        {*ALL_OF_THEM, "r3"},
        pod_group(min_count=4, priority="high"),
    ),
    "nobody, if it does not help": Preemption({"n": "3"}, on_n("higher", "low", "low"), "111", set(), GANG, waits=True),
    "only the least important": Preemption(
        {"n": "3"}, on_n("middle", "low", "low"), "11", {"r1", "r2"}, pod_group(min_count=2, priority="high")
    ),
    "a whole group for one pod": Preemption({"n": "3"}, LOWS, "1", ALL_OF_THEM, ONE, victims=WHOLE["v"]),
    "a whole basic group for one pod": Preemption({"n": "3"}, LOWS, "1", ALL_OF_THEM, ONE, victims=WHOLE["basic"]),
    "by the priority of groups, not of pods": Preemption(
        {"n": "3"}, HIGHS, "1", ALL_OF_THEM, ONE, victims=WHOLE["v"], member_priority="low"
    ),
    "nobody for a less important group": Preemption(
        {"n": "3"},
        LOWS,
        "1",
        set(),
        pod_group(min_count=1, priority="low"),
        victims=pod_group("v", 3, "high", as_a_whole=True),
        member_priority="high",
        waits=True,
    ),
    "one of a whole group for a single pod": Preemption(
        {"n": "3"}, on_n("middle", "middle", "low"), "1", {"r2"}, None, victims=WHOLE["v"]
    ),
}


@pytest.mark.anywhere
@pytest.mark.parametrize("case", PREEMPTIONS.values(), ids=PREEMPTIONS.keys())
async def test_a_group_evicts_as_a_whole(case: Preemption) -> None:
    victim_groups = [] if case.victims is None else [case.victims]
    in_group: dict[str, Any] = {} if case.victims is None else {"schedulingGroup": {"podGroupName": "v"}}
    running = [
        pod(name, cpu, priority, labels={"name": name}, nodeName=place, terminationGracePeriodSeconds=0, **in_group)
        for name, (place, cpu, priority) in case.running.items()
    ]
    priority = case.member_priority or "high"
    preemptors = [pod("g0", case.wants[0], priority)] if case.group is None else [case.group]
    preemptors += (
        []
        if case.group is None
        else [members(1, cpu=cpu, priority=priority, first=place)[0] for place, cpu in enumerate(case.wants)]
    )
    nodes = [node(name, cpu) for name, cpu in case.nodes.items()]
    async with a_scene(*nodes, *victim_groups, *running, *filter(None, [case.budget]), features=GROUP_GATES) as scene:
        await scene.has(*preemptors, within=60.0)

        assert {*case.running} - scene.pods() == case.goes
        assert all(scene.node_of(f"g{place}") for place in range(len(case.wants))) is not case.waits
        for name in case.goes if case.group is not None else ():
            uid = scene.api.get(POD_GROUPS, "default", "g")["metadata"]["uid"]
            assert ("Preempted", f"Preempted by podgroup {uid} on node cluster") in scene.events(name)


@pytest.mark.anywhere
@pytest.mark.parametrize("asks", [False, True])
async def test_a_gang_that_asks_for_it_evicts_as_few_as_it_can(asks: bool) -> None:
    """One pod of middle priority has the room of four of low priority. It takes its time to go, in which nobody else is
    evicted.
    """
    small = [pod(f"r{place}", "1", "low", nodeName="n", stays=True) for place in range(4)]
    large = pod("large", "4", "middle", nodeName="n", stays=True)
    gang = pod_group(min_count=2, priority="high")
    if asks:
        gang["metadata"]["annotations"] = {MINIMAL_VICTIMS: "true"}
    async with a_scene(node("n", "8"), *small, large, features=GROUP_GATES) as scene:
        await scene.has(gang, *members(2, cpu="2", priority="high"), within=120.0)
        leaving = scene.leaving()
        saving = "fewest victims: 1 pod instead of 4 pods that kube-scheduler would evict"
        message = scene.api.get(POD_GROUPS, "default", "g")["status"]["conditions"][0]["message"]
        for name in leaving:
            await scene.lets_go(name)
        await scene.passes(60.0)

        assert leaving == ({"large"} if asks else {"r0", "r1", "r2", "r3"})
        assert (saving in message) is asks
        assert nodes_of(scene, 2) == ["n", "n"]
        assert scene.leaving() == set()


async def test_malformed_annotation_is_reported_once_for_each_value(caplog: pytest.LogCaptureFixture) -> None:
    def says(value: str) -> Callable[[Object], Any]:
        return lambda obj: obj["metadata"].update(annotations={MINIMAL_VICTIMS: value})

    gang = pod_group(min_count=3, priority="high")
    says("soon")(gang)
    caplog.set_level(logging.INFO)
    async with a_scene(node("n", "2"), features=GROUP_GATES) as scene:
        await scene.has(gang, *members(3, cpu="2", priority="high"), within=60.0)
        for value in ("soon", "200ms", "later"):
            await scene.changes("g", says(value), resource=POD_GROUPS)
            await scene.has(node(f"small-{value}", "1"), within=60.0)
        notes = [note for reason, note in scene.events("g") if reason == "InvalidAnnotation"]

    assert [note.split('"')[1] for note in notes] == ["soon", "later"]
    assert notes[0].startswith("the annotation reprieve.dev/minimal-victims is ignored")
    assert sum("Ignoring an annotation of a pod group" in line for line in caplog.messages) == 2


@pytest.mark.anywhere
async def test_no_pod_is_evicted_for_a_gang_that_would_not_fit_even_then() -> None:
    running = [pod(f"r{place}", "1", "low", nodeName="n") for place in range(2)]
    async with a_scene(node("n", "2"), *running, features=GROUP_GATES) as scene:
        await scene.has(pod_group(min_count=3, priority="high"), *members(3, priority="high"), within=30.0)

        assert {"r0", "r1"} <= scene.pods()
        assert scene.leaving() == set()
        assert nodes_of(scene, 3) == ["", "", ""]


@pytest.mark.anywhere
async def test_without_preemption_as_a_whole_members_preempt_only_if_their_group_then_fits() -> None:
    """Each of two members finds a victim, the third none."""
    running = [pod(f"r{place}", "1", "low", nodeName="n") for place in range(2)]
    async with a_scene(node("n", "2"), *running, features=ONLY_GANGS) as scene:
        await scene.has(pod_group(min_count=3), *members(3, priority="high"), within=30.0)

        assert {"r0", "r1"} <= scene.pods()
        assert nodes_of(scene, 3) == ["", "", ""]


@pytest.mark.anywhere
async def test_members_preempt_one_by_one_where_groups_do_not_preempt() -> None:
    running = [pod(f"r{place}", "1", "low", nodeName=f"n{place}") for place in range(2)]
    async with a_scene(node("n0", "1"), node("n1", "1"), *running, features=ONLY_GANGS) as scene:
        await scene.has(pod_group(min_count=2), *members(2, priority="high"), within=60.0)

        assert nodes_of(scene, 2) == ["n0", "n1"]
        assert {"r0", "r1"} & scene.pods() == set()


ALPHA, BETA = b"scheduling.k8s.io/v1alpha2", b"scheduling.k8s.io/v1beta1"


@final
class ServesV1Beta1(httpx.AsyncBaseTransport):
    """An API server of 1.37: it does not serve groups as v1alpha2, and says otherwise how a group may be disrupted."""

    def __init__(self, api: KubeApi) -> None:
        self._server = EmbeddedTransport(api)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        path = request.url.raw_path
        if ALPHA in path:
            return httpx.Response(404, text="404 page not found", request=request)
        if BETA not in path:
            return await self._server.handle_async_request(request)
        url = request.url.copy_with(raw_path=path.replace(BETA, ALPHA))
        alpha_request = httpx.Request(request.method, url, headers=request.headers, content=await request.aread())
        answer = await self._server.handle_async_request(alpha_request)
        lines = self._as_beta(answer.aiter_raw())
        return httpx.Response(
            answer.status_code, headers={"Content-Type": "application/json"}, content=lines, request=request
        )

    async def _as_beta(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for chunk in chunks:
            yield chunk.replace(ALPHA, BETA).replace(b'"disruptionMode":"PodGroup"', b'"disruptionMode":{"all":{}}')


@pytest.mark.parametrize(
    "server", [pytest.param(EmbeddedTransport, id="v1alpha2"), pytest.param(ServesV1Beta1, id="v1beta1")]
)
async def test_a_group_that_goes_as_a_whole_goes_as_a_whole(
    monkeypatch: pytest.MonkeyPatch, server: Callable[[KubeApi], httpx.AsyncBaseTransport]
) -> None:
    """
    One pod of room is wanted. The group has less priority than the pod by itself, so that both of its pods have to go.
    """
    monkeypatch.setattr(stages, "EmbeddedTransport", server)
    group_that_runs = pod_group("v", 2, "low", as_a_whole=True)
    running = members(2, "v", priority="low", nodeName="n")
    async with a_scene(
        node("n", "3"), group_that_runs, *running, pod("r", "1", "middle", nodeName="n"), features=GROUP_GATES
    ) as scene:
        await scene.has(pod_group(min_count=1, priority="high"), *members(1, priority="high"), within=60.0)

        assert nodes_of(scene, 1) == ["n"]
        assert scene.pods() == {"g0", "r"}
        assert said_of(scene) == ("True", "Scheduled", "")


@pytest.mark.anywhere
async def test_a_group_never_preempts_of_which_a_pod_never_does() -> None:
    gentle = priority_class("gentle", 150, preemptionPolicy="Never")
    async with a_scene(node("n", "1"), gentle, pod("r", "1", "low", nodeName="n"), features=GROUP_GATES) as scene:
        await scene.has(pod_group(min_count=1, priority="gentle"), *members(1, priority="gentle"), within=30.0)

        assert "r" in scene.pods()
        condition = said_of(scene)
        assert condition is not None
        assert condition[2].endswith("not eligible due to preemptionPolicy=Never.")
