"""A scheduler that decides alone asks the extenders of its configuration, in upstream's order, and lives with what they
answer.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest

from extender.client.http_extender import Transports
from extender.rules.api_resources import NODES, PODS
from extender.values.config.configuration import Configuration, Extender, ExtenderManagedResource
from extender.values.objects.decoding import convert
from extender.values.objects.pod import Pod
from reprieve.cluster.registry import subresources
from tests.kit.extenders import NO_FAILURES, InMemory, Says, an_extender, keeping, scoring
from tests.kit.objects import node, pod, priority_class
from tests.kit.scene import ClusterByHand
from tests.kit.scene.followed import a_followed_cluster

HIGH = priority_class("high", 1000)


def extenders(*configs: Extender) -> Configuration:
    return Configuration(extenders=configs)


@asynccontextmanager
async def asking(
    configuration: Configuration, memory: InMemory, objects: Iterable[Any]
) -> AsyncIterator[ClusterByHand]:
    """A cluster with these objects whose scheduler asks these extenders."""
    transports: Transports = memory.transport
    async with a_followed_cluster(*objects, configuration=configuration, transports=transports) as (cluster, _):
        yield cluster
    assert memory.open == 0  # connections end with the scheduler


def condition_of(cluster: ClusterByHand, name: str) -> tuple[str, str, str]:
    """(status, reason, message)."""
    condition = cluster.condition(name)
    assert condition is not None
    return condition


def binding_in(cluster: ClusterByHand) -> Says:
    def bind(arguments: Any) -> Any:
        target = {"apiVersion": "v1", "kind": "Node", "name": arguments["Node"]}
        meta = {"name": arguments["PodName"], "uid": arguments["PodUID"]}
        subresources.bind(
            cluster.registry, arguments["PodNamespace"], arguments["PodName"], {"metadata": meta, "target": target}
        )
        return {"Error": ""}

    return bind


async def test_refusal_by_an_extender_is_in_the_condition_and_any_event_requeues_the_pod() -> None:
    """An extender cannot say what would help, so that even a label of a node may."""
    memory = InMemory(one_filter=keeping(failed={"a": "broken fan"}, unresolvable={"a": "no fan", "b": "no fan"}))

    async with asking(
        extenders(an_extender("one", filter_verb="filter")), memory, [node("a"), node("b"), node("c")]
    ) as cluster:
        cluster.create(pod("p"))
        await asyncio.sleep(5)

        assert condition_of(cluster, "p")[1] == "Unschedulable"
        assert cluster.events("p")[0] == (
            "FailedScheduling",
            "0/3 nodes are available: 2 no fan. no new claims to deallocate, "
            "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
        )
        await asyncio.sleep(60)
        num_calls = len(memory.asked)
        await asyncio.sleep(60)
        assert len(memory.asked) == num_calls  # nothing happens, so that nobody is asked again

        memory.says["one_filter"] = keeping("a", "b", "c")
        cluster.change("c", lambda changed: changed["metadata"].update(labels={"fan": "yes"}), resource=NODES)
        await asyncio.sleep(15)

        assert cluster.node_of("p") != ""


@pytest.mark.parametrize(
    "answer", [500, 201, 302, {"Error": "on fire"}, {"NodeNames": ["nowhere"]}, {"NodeNames": 1}, [1]], ids=str
)
async def test_an_extender_that_fails_keeps_pods_from_being_scheduled_until_it_recovers(answer: Any) -> None:
    memory = InMemory(one_filter=lambda _: answer)

    async with asking(extenders(an_extender("one", filter_verb="filter")), memory, [node("a")]) as cluster:
        cluster.create(pod("p"))
        await asyncio.sleep(5)

        _, reason, message = condition_of(cluster, "p")
        assert reason == "SchedulerError"
        assert message in {
            "on fire",
            "failed filter with extender at URL http://one/filter, code 500",
            "failed filter with extender at URL http://one/filter, code 201",
            "failed filter with extender at URL http://one/filter, code 302",
            'extender "http://one/" claims a filtered node "nowhere" which is not found in the input node list',
            "json: cannot unmarshal number into Go struct field ExtenderFilterResult.NodeNames of type []string",
            "json: cannot unmarshal array into Go struct field ExtenderFilterResult",
        }

        memory.says["one_filter"] = keeping("a")
        await asyncio.sleep(15)

        assert cluster.node_of("p") == "a"


async def test_an_ignorable_extender_may_fail_and_is_asked_last() -> None:
    memory = InMemory(frail_filter=lambda _: 500, firm_filter=keeping("b"))
    configuration = extenders(
        an_extender("frail", filter_verb="filter", ignorable=True), an_extender("firm", filter_verb="filter")
    )

    async with asking(configuration, memory, [node("a"), node("b")]) as cluster:
        cluster.create(pod("p"))
        await asyncio.sleep(5)

        assert cluster.node_of("p") == "b"
        assert memory.verbs_for("p") == [("firm", "filter"), ("frail", "filter")]


async def test_an_extender_binds_the_pods_it_is_interested_in() -> None:
    """Its failure is the binding's: the pod is tried again. Others are bound as ever."""
    gpu = {"containers": [{"name": "main", "image": "web:1", "resources": {"limits": {"example.com/gpu": "1"}}}]}
    managed = (ExtenderManagedResource("example.com/gpu", ignored_by_scheduler=True),)
    memory = InMemory(binder_bind=lambda _: {"Error": "no driver"})

    async with asking(
        extenders(an_extender("binder", bind_verb="bind", managed_resources=managed)), memory, [node("a")]
    ) as cluster:
        cluster.create(pod("gpu") | {"spec": gpu})
        cluster.create(pod("plain"))
        await asyncio.sleep(1)

        assert (cluster.node_of("gpu"), cluster.node_of("plain")) == ("", "a")
        assert condition_of(cluster, "gpu")[2] == "no driver"

        memory.says["binder_bind"] = binding_in(cluster)
        await asyncio.sleep(15)

        assert cluster.node_of("gpu") == "a"  # though the node offers none of what the scheduler is told to ignore
        assert memory.verbs_for("plain") == []
        assert cluster.events("gpu")[-1] == ("Scheduled", "Successfully assigned default/gpu to a")


async def test_an_extender_may_spare_a_node() -> None:
    """It is told who would have to go, by UID, and strikes out one of two nodes."""

    def sparing_a(arguments: Any) -> Any:
        victims = arguments["NodeNameToMetaVictims"]
        return {"NodeNameToMetaVictims": {name: of_node for name, of_node in victims.items() if name != "a"}}

    memory = InMemory(one_preempt=sparing_a)

    nodes = [node("a"), node("b")]
    for labelled_node in nodes:
        labelled_node["metadata"]["labels"] = {"name": labelled_node["metadata"]["name"]}
    async with asking(extenders(an_extender("one", preempt_verb="preempt")), memory, [*nodes, HIGH]) as cluster:
        for name in ("a", "b"):
            cluster.create(pod(f"low-{name}", cpu="1500m", nodeSelector={"name": name}))
        await asyncio.sleep(5)
        low = {name: cluster.pod(f"low-{name}")["metadata"]["uid"] for name in ("a", "b")}
        cluster.create(pod("high", cpu="1500m", priorityClassName="high"))
        await asyncio.sleep(10)

        assert cluster.node_of("high") == "b"
        assert cluster.node_of("low-a") == "a"
        call = next(arguments for _, _, arguments in memory.asked)
        assert call["NodeNameToVictims"] is None
        assert call["NodeNameToMetaVictims"] == {
            name: {"Pods": [{"UID": uid}], "NumPDBViolations": 0} for name, uid in low.items()
        }


async def test_preemption_that_an_extender_fails_evicts_no_pod() -> None:
    memory = InMemory(one_preempt=lambda _: {"NodeNameToMetaVictims": {"a": None}})

    async with asking(extenders(an_extender("one", preempt_verb="preempt")), memory, [node("a"), HIGH]) as cluster:
        cluster.create(pod("low", cpu="1500m"))
        await asyncio.sleep(5)
        cluster.create(pod("high", cpu="1500m", priorityClassName="high"))
        await asyncio.sleep(10)

        assert cluster.node_of("low") == "a"
        message = condition_of(cluster, "high")[2]
        assert message == (
            "0/1 nodes are available: 1 Insufficient cpu. "
            "preemption: extender: http://one/ claims to preempt pods on node: a, but has null for them"
        )


async def test_verbs_that_are_asked_while_an_extender_thinks_do_not_disturb_the_cycle() -> None:
    """A node goes meanwhile, and with it all others move up in the columns of the verbs' snapshot. The cycle's stays as
    it was: the pod goes to the empty node, not to the one whose place it has taken.
    """
    memory = InMemory()
    failed_names: list[set[str]] = []

    nodes = [node(name) for name in ("a", "b-full", "c-empty", "d-full")]
    config = extenders(an_extender("slow", filter_verb="filter"))
    async with a_followed_cluster(*nodes, configuration=config, transports=memory.transport) as (cluster, backend):

        async def slowly(arguments: Any) -> Any:
            cluster.delete("a", NODES)
            await asyncio.sleep(1)
            asked_pod = convert(Pod, pod("asked", cpu="100m"))
            answer = await backend.verbs.filter(asked_pod, node_names=["a", "b-full", "c-empty", "d-full"])
            failed_names.append(set(answer.failed))
            return NO_FAILURES | {"NodeNames": ["b-full", "c-empty"]}

        memory.says["slow_filter"] = slowly
        for name in ("b-full", "d-full"):
            cluster.create(pod(f"on-{name}", cpu="1800m", nodeName=name))
        await asyncio.sleep(1)
        cluster.create(pod("p", cpu="100m"))
        await asyncio.sleep(4)

        assert failed_names == [{"a"}]
        assert cluster.node_of("p") == "c-empty"


async def test_an_extender_that_never_answers_holds_a_pod_up_for_its_timeout() -> None:
    async def never(arguments: Any) -> Any:
        await asyncio.Event().wait()

    memory = InMemory(slow_filter=never)

    async with asking(extenders(an_extender("slow", filter_verb="filter")), memory, [node("a")]) as cluster:
        cluster.create(pod("p"))
        await asyncio.sleep(4.9)
        assert "conditions" not in cluster.pod("p")["status"]
        await asyncio.sleep(1)

        assert condition_of(cluster, "p")[2] == (
            'Post "http://slow/filter": context deadline exceeded (Client.Timeout exceeded while awaiting headers)'
        )


WRONG: Final[tuple[Any, ...]] = (
    500, 201, 302, None, [], {}, [None], {"Error": "no"}, {"NodeNames": ["x"]}, {"NodeNames": [None]}, {"NodeNames": []},
    {"FailedNodes": {"a": "no"}, "NodeNames": []}, [{"Host": "a", "Score": 2**63}], [{"Host": "a", "Score": -1}], "text",
    {"NodeNameToMetaVictims": {"a": None}}, {"NodeNameToMetaVictims": {"a": {"Pods": [None]}}},
    {"NodeNameToMetaVictims": {"x": {"Pods": []}}}, {"NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "x"}], "NumPDBViolations": -1}}},
)  # fmt: skip


@pytest.mark.parametrize("seed", range(8))
async def test_pods_are_scheduled_once_faulty_extenders_recover(seed: int) -> None:
    """Nothing is lost on the way, whether a call fails, hangs, or is answered with nonsense."""
    chance = random.Random(seed)
    memory = InMemory()

    low = {**HIGH, "metadata": {"name": "low"}, "value": 1}
    options: dict[str, Any] = {f"{verb}_verb": verb for verb in ("filter", "prioritize", "preempt", "bind")}
    async with asking(
        extenders(an_extender("one", weight=1, **options)), memory, [node("a"), node("b"), HIGH, low]
    ) as cluster:
        right: dict[str, Says] = {
            "one_filter": keeping("a", "b"),
            "one_prioritize": scoring(a=1, b=2),
            "one_preempt": lambda arguments: {"NodeNameToMetaVictims": arguments["NodeNameToMetaVictims"]},
            "one_bind": binding_in(cluster),
        }

        async def wrongly(arguments: Any) -> Any:
            await asyncio.sleep(chance.choice([0, 0, 0.1, 100]))
            # A binder that has nothing to say says that it has bound the pod: everybody believes that forever.
            return chance.choice(WRONG if "PodName" not in arguments else (500, 201, 302, [], {"Error": "no"}, "text"))

        def sometimes(says: Says) -> Says:
            return lambda arguments: says(arguments) if chance.random() < 0.3 else wrongly(arguments)

        memory.says = {verb: sometimes(says) for verb, says in right.items()}
        names = [f"p{number}" for number in range(6)]
        for name in names:
            cluster.create(pod(name, cpu="500m", priorityClassName=chance.choice(["high", "low"])))
            await asyncio.sleep(chance.random() * 10)
        await asyncio.sleep(60)
        memory.says = dict(right)
        await asyncio.sleep(600)

        pods = cluster.registry.list(PODS, "default")
        assert [pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName") not in ("a", "b")] == []
        assert len(pods) == len(names)  # there is room for all, so that nobody has to go
        bound = [arguments["PodUID"] for _, verb, arguments in memory.asked if verb == "bind"]
        assert {pod["metadata"]["uid"] for pod in pods} <= set(bound)
