"""The engine: the right profile and the right cluster for each question, and an answer in words where there is no
other.
"""

import asyncio
import re
from collections.abc import Sequence
from typing import Any

import pytest

from extender.engine.cache import Cache
from extender.engine.cache.cluster import Cluster
from extender.engine.evaluation.scenario import evaluate_scenario
from extender.engine.framework import BindPod, CallConflict, RecordEvent
from extender.testing import NodeBuilder, PodBuilder, make_node, make_pod, make_verbs
from extender.values import limits
from extender.values.config.configuration import ConfigErrors, Configuration
from extender.values.config.loading import load
from extender.values.objects.cluster import ClusterState
from extender.values.objects.decoding import DecodeError
from extender.values.objects.meta import HasMetadata
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod
from extender.values.protocol.wire_types import MetaVictims
from extender.verbs import VerbError, Verbs
from tests.extender.verbs.verb_calls import filtered, scored
from tests.kit.tables import cases
from tests.kit.writes import RecordedWrites

ASKED = make_pod("asked").req(cpu=1)
IN_THE_WAY = "node(s) didn't have free ports for the requested pod ports"
A, B = (make_node(name).capacity(cpu=1) for name in "ab")


def engine(
    *nodes: NodeBuilder, pods: Sequence[PodBuilder] = (), profiles: str = "", configuration: Configuration | None = None
) -> Verbs:
    """An engine for these nodes and pods; profiles in YAML, the default one without."""
    if profiles:
        header = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
        configuration = load(header + profiles)
    # As written: pods of a dump made by hand have no UIDs.
    state = ClusterState(nodes=[node.obj() for node in nodes], pods=[pod._pod for pod in pods])
    return make_verbs(state, configuration)


def fitting(verbs: Verbs, *names: str, pod: PodBuilder = ASKED) -> list[str]:
    return [names[place] for place in filtered(verbs, pod.obj(), node_names=names).kept]


def refusal(verbs: Verbs, pod: PodBuilder = ASKED, **arguments: Any) -> str:
    with pytest.raises(VerbError) as caught:
        filtered(verbs, pod.obj(), **({"node_names": ["a"]} | arguments))
    return str(caught.value)


def test_a_pod_goes_where_there_is_room() -> None:
    ready = engine(A, B, pods=[make_pod("full").req(cpu=1).node("a")])

    assert fitting(ready, "a", "b") == ["b"]
    assert filtered(ready, ASKED.obj(), node_names=["a", "c"]).failed == {
        "a": "Insufficient cpu",
        "c": "node not known to the extender yet",
    }


@pytest.mark.parametrize("names", ["abcd", "dcba", "cadb", "dxab", "ca"])
def test_the_order_of_the_names_is_that_of_the_answer(names: str) -> None:
    """kube-scheduler names nodes in the order in which its threads came to them."""
    nodes = [make_node(name).capacity(cpu=cpu) for name, cpu in (("a", 1), ("b", 3), ("c", 0), ("d", 2))]
    ready = engine(*nodes, pods=[make_pod("full").req(cpu=1).node("a")])

    result = filtered(ready, ASKED.obj(), node_names=list(names))

    assert [names[place] for place in result.kept] == [name for name in names if name in "bd"]
    assert sorted(result.failed | result.failed_and_unresolvable) == sorted(name for name in names if name not in "bd")
    assert dict(zip(names, scored(ready, ASKED.obj(), node_names=list(names)), strict=True)) == dict(
        zip(sorted(names), scored(ready, ASKED.obj(), node_names=sorted(names)), strict=True)
    )


def test_reason_of_thousands_of_resources_is_shortened() -> None:
    """It is repeated for each node: in full it would make an answer of a gigabyte in a large cluster."""
    greedy = make_pod("greedy").req(**{f"example.com/thing-{number:04}": 1 for number in range(2_000)})

    failed = filtered(engine(A, B), greedy.obj(), node_names=["a", "b"]).failed_and_unresolvable

    assert failed["a"] == failed["b"]
    assert failed["a"].startswith("Insufficient example.com/thing-0000, Insufficient example.com/thing-0001, ")
    assert re.search(r"Insufficient example\.com/thing-0\d{3} and 19\d\d more reasons$", failed["a"])
    assert len(failed["a"]) < limits.NODE_REASON + 100


def test_the_emptier_node_is_the_better_one() -> None:
    full, empty, unknown = scored(engine(A, make_node("b").capacity(cpu=4)), ASKED.obj(), node_names=["a", "b", "c"])

    assert (full, empty) == (0, 10)
    assert unknown == 0


def test_the_pods_that_have_to_go() -> None:
    full = engine(A, pods=[make_pod("low").uid("1").req(cpu=1).node("a")])

    assert asyncio.run(full.preempt(ASKED.priority(10).obj(), {"a": MetaVictims.of(("1",), 0)})) == {
        "a": MetaVictims.of(("1",), 0)
    }
    assert asyncio.run(full.preempt(ASKED.priority(0).obj(), {"a": MetaVictims.of(("1",), 0)})) == {}


def test_a_protected_pod_that_the_caller_names_stays() -> None:
    """Another pod that makes as much room goes for it."""
    protect = "- pluginConfig: [{name: DefaultPreemption, args: {protect: {selector: {matchLabels: {tier: web}}}}}]"
    web, batch = (make_pod(tier).uid(tier).label(tier=tier).req(cpu=1).node("a") for tier in ("web", "batch"))
    preemptor, candidates = ASKED.priority(10).obj(), {"a": MetaVictims.of(("web",), 0)}

    both, alone = (
        engine(make_node("a").capacity(cpu=len(pods)), pods=pods, profiles=protect) for pods in ([web, batch], [web])
    )

    assert asyncio.run(both.preempt(preemptor, candidates)) == {"a": MetaVictims.of(("batch",), 0)}
    assert asyncio.run(alone.preempt(preemptor, candidates)) == {}


def test_binding_is_not_ours() -> None:
    with pytest.raises(VerbError) as caught:
        asyncio.run(engine(A).bind("web", "shop", "1", "a"))

    assert str(caught.value) == (
        "pod shop/web was not bound to a: this extender has no API server to bind through; "
        "leave bindVerb empty so that kube-scheduler binds"
    )


# Writing.


def live_verbs(*pods: PodBuilder, cluster: Cluster | None = None) -> tuple[Verbs, RecordedWrites]:
    """Verbs for node a and these pods that can write."""
    cluster = cluster or Cluster()
    items: list[HasMetadata] = [A.obj(), *(pod.obj() for pod in pods)]
    for item in items:
        cluster.changed(None, item)
    writes = RecordedWrites(cluster.cache)
    return make_verbs(cluster, dispatcher=writes), writes


def test_a_pod_is_bound_by_name_and_uid() -> None:
    ready, writes = live_verbs(ASKED)

    asyncio.run(ready.bind("asked", "default", "default/asked", "a"))

    assert writes.calls == [BindPod("default", "asked", "default/asked", "a")]


def test_a_bound_pod_takes_its_room_before_the_watch_shows_it() -> None:
    ready, _ = live_verbs(ASKED)

    asyncio.run(ready.bind("asked", "default", "default/asked", "a"))

    assert fitting(ready, "a", pod=make_pod("next").req(cpu=1)) == []


@cases(
    "pod, came, lacks",
    ("its cpu", ASKED, make_pod("other").req(cpu=1), "NodeResourcesFit refused it: Insufficient cpu"),
    ("its port", ASKED.host_port(80), make_pod("other").host_port(80), f"NodePorts refused it: {IN_THE_WAY}"),
)
def test_binding_is_refused_when_the_node_became_full_after_the_filter(
    pod: PodBuilder, came: PodBuilder, lacks: str
) -> None:
    """The caller hears that it was not bound, and tries it again."""
    cluster = Cluster()
    ready, writes = live_verbs(pod, cluster=cluster)
    assert fitting(ready, "a", pod=pod) == ["a"]
    cluster.changed(None, came.node("a").obj())

    with pytest.raises(VerbError) as refused:
        asyncio.run(ready.bind("asked", "default", "default/asked", "a"))

    assert str(refused.value) == f"pod default/asked was not bound to a: {lacks}"
    assert writes.calls == []


@cases(
    "pod, node, why",
    (
        "its selector",
        ASKED.node_selector(nowhere="true"),
        A,
        "NodeAffinity refused it: node(s) didn't match Pod's node affinity/selector",
    ),
    ("a taint", ASKED, A.taint("gpu"), "TaintToleration refused it: node(s) had untolerated taint(s)"),
    ("a cordon", ASKED, A.unschedulable(), "NodeUnschedulable refused it: node(s) were unschedulable"),
    ("PreFilter", ASKED.claim("none"), A, 'VolumeRestrictions refused it: persistentvolumeclaim "none" not found'),
    ("it cannot be read", ASKED.req(memory="much"), A, "spec.containers[1].resources.requests[memory]: "),
    (
        "another scheduler's",
        ASKED.scheduler_name("another"),
        A,
        "its schedulerName is another, and only pods of default-scheduler are bound here",
    ),
)
def test_a_pod_is_bound_only_by_its_own_profile_and_where_its_filters_let_it(
    pod: PodBuilder, node: NodeBuilder, why: str
) -> None:
    cluster = Cluster()
    ready, writes = live_verbs(pod, cluster=cluster)
    cluster.changed(A.obj(), node.obj())

    with pytest.raises(VerbError) as refused:
        asyncio.run(ready.bind("asked", "default", "default/asked", "a"))

    assert str(refused.value).startswith(f"pod default/asked was not bound to a: {why}")
    assert writes.calls == []


def test_a_pod_that_is_not_known_yet_is_not_bound() -> None:
    """Neither its scheduler nor what it asks for is known. kube-scheduler tries it again."""
    ready, writes = live_verbs()

    with pytest.raises(VerbError, match="was not bound to a: no pod with its UID is known here, perhaps not yet"):
        asyncio.run(ready.bind("asked", "default", "default/asked", "a"))

    assert writes.calls == []


def test_last_room_goes_to_the_first_of_two_pods() -> None:
    ready, writes = live_verbs(ASKED, make_pod("second").req(cpu=1))

    asyncio.run(ready.bind("asked", "default", "default/asked", "a"))
    with pytest.raises(VerbError, match="Insufficient cpu"):
        asyncio.run(ready.bind("second", "default", "default/second", "a"))
    asyncio.run(ready.bind("asked", "default", "default/asked", "a"))  # asked again, as after an answer that was lost

    assert writes.calls == [BindPod("default", "asked", "default/asked", "a")] * 2


async def test_second_pod_is_refused_while_the_last_room_is_being_bound() -> None:
    ready, _ = live_verbs(ASKED, make_pod("second").req(cpu=1))
    binds = (ready.bind(name, "default", f"default/{name}", "a") for name in ("asked", "second"))
    first, second = await asyncio.gather(*binds, return_exceptions=True)

    assert first is None
    assert "Insufficient cpu" in str(second)


def test_without_a_uid_nothing_is_bound() -> None:
    ready, writes = live_verbs(ASKED)

    with pytest.raises(VerbError, match="without its UID it may be another pod by now"):
        asyncio.run(ready.bind("asked", "default", "", "a"))

    assert writes.calls == []


def test_refusal_of_the_api_server_is_passed_on() -> None:
    ready, writes = live_verbs(ASKED)
    writes.fail(BindPod, CallConflict('pod asked is already assigned to node "b"'))

    with pytest.raises(
        VerbError, match='pod default/asked was not bound to a: pod asked is already assigned to node "b"'
    ):
        asyncio.run(ready.bind("asked", "default", "default/asked", "a"))

    assert fitting(ready, "a", pod=ASKED) == ["a"]


def test_event_is_recorded_when_victims_are_spared() -> None:
    """The caller tells only of the victims that remain."""
    event = _event_of_preemption(make_pod("asked").req(cpu="500m").priority(10), is_waiting=True)

    assert event is not None
    assert (event.reason, event.note) == (
        "PreemptionNarrowed",
        "Extender kept 1 of 2 nodes to preempt pods on; Extender spared 1 of the victims",
    )


@pytest.mark.parametrize("uid", ["default/asked", "of-another", ""])
def test_no_event_is_recorded_about_a_pod_that_does_not_wait_here(uid: str) -> None:
    """Such as the one of `reprieve doctor`, which exists nowhere."""
    preemptor = make_pod("asked").uid(uid).req(cpu="500m").priority(10)

    assert _event_of_preemption(preemptor, is_waiting=False) is None


def _event_of_preemption(pod: PodBuilder, *, is_waiting: bool) -> RecordEvent | None:
    """What is recorded when one of two nodes and one of two victims is spared."""
    running = [make_pod(name).uid(name).req(cpu="500m").node("a") for name in ("x", "y")]
    ready, writes = live_verbs(*running, *([pod] if is_waiting else []))

    async def preempt() -> None:
        await ready.preempt(pod.obj(), {"a": MetaVictims.of(("x", "y"), 0), "gone": MetaVictims.of(("z",), 0)})

    asyncio.run(preempt())

    return next((call for call in writes.calls if isinstance(call, RecordEvent)), None)


# The profile.

TWO_PROFILES = """
- schedulerName: strict
- schedulerName: lax
  plugins: {filter: {disabled: [{name: NodeResourcesFit}]}}
"""


def test_a_pod_names_its_profile() -> None:
    two = engine(A, pods=[make_pod("full").req(cpu=1).node("a")], profiles=TWO_PROFILES)

    assert fitting(two, "a", pod=ASKED.scheduler_name("lax")) == ["a"]
    assert fitting(two, "a", pod=ASKED.scheduler_name("strict")) == []


def test_unknown_scheduler_name_is_refused_with_the_known_profiles() -> None:
    assert (
        refusal(engine(A, profiles=TWO_PROFILES))
        == "no profile for this pod's schedulerName; known profiles are lax, strict"
    )


def test_with_one_profile_there_is_no_doubt() -> None:
    """kube-scheduler's profile may have any name; ours need not know it."""
    assert fitting(engine(A), "a", pod=ASKED.scheduler_name("theirs")) == ["a"]


def test_a_configuration_that_cannot_be_used_is_refused_at_start() -> None:
    with pytest.raises(ConfigErrors, match='FilterPlugin "Nobody" does not exist'):
        engine(A, profiles="- plugins: {filter: {enabled: [{name: Nobody}]}}")


# What cannot be answered.


def test_malformed_quantity_is_refused_with_its_path() -> None:
    text = refusal(engine(A), ASKED.req(memory="much"))

    assert text.startswith("spec.containers[1].resources.requests[memory]: ")


def test_a_question_without_nodes_is_none() -> None:
    assert refusal(engine(A), node_names=None) == "neither nodes nor nodeNames given"


@pytest.mark.parametrize("verb", ["filter", "prioritize"])
def test_each_verb_refuses_an_unreadable_pod_in_words(verb: str) -> None:
    with pytest.raises(VerbError, match="memory"):
        asyncio.run(getattr(engine(A), verb)(ASKED.req(memory="much").obj(), node_names=["a"]))
    with pytest.raises(VerbError, match="memory"):
        asyncio.run(engine(A).preempt(ASKED.req(memory="much").obj(), {}))


# The cluster.


def test_pods_that_cannot_be_read_are_left_out_and_reported() -> None:
    """One bad pod must not keep the others from being scheduled."""
    bad = make_pod("bad").req(cpu="much").node("a")
    worse = make_pod("worse").start_time("yesterday").node("a")

    ready = engine(A, pods=[bad, worse])

    assert fitting(ready, "a") == ["a"]
    assert [pod for pod, _ in ready._cluster.unreadable.values()] == ["default/bad", "default/worse"]


def test_pods_that_have_finished_take_nothing() -> None:
    done = [make_pod(phase).req(cpu=1).node("a").phase(phase) for phase in ("Succeeded", "Failed")]

    assert fitting(engine(A, pods=done), "a") == ["a"]


def test_pods_without_uids_are_distinguished_by_name() -> None:
    twins = [make_pod(name).req(cpu="500m").node("a") for name in ("x", "y")]

    assert fitting(engine(A, pods=twins), "a") == []


def test_a_node_that_is_listed_twice_is_one_node() -> None:
    """Also in two zones: a state made by hand may say anything."""
    twice = engine(
        A.label({"topology.kubernetes.io/zone": "z1"}), A.label({"topology.kubernetes.io/zone": "z2"}).capacity(cpu=2)
    )

    assert fitting(twice, "a", pod=make_pod("big").req(cpu=2)) == ["a"]
    assert list(filtered(twice, ASKED.obj(), nodes=[A.obj()]).kept) == [0]


# Nominations.

NOMINATED = make_pod("nominated").req(cpu=1).priority(5).nominated_node("a")


@cases(
    "nominated, room",
    ("it gets its room first", NOMINATED, []),
    ("unless it is less important", NOMINATED.priority(-1), ["a"]),
    ("or is gated", NOMINATED.gate("wait"), ["a"]),
    ("or another scheduler's", NOMINATED.scheduler_name("another"), ["a"]),
    ("or its node is gone", NOMINATED.nominated_node("gone"), ["a"]),
    ("or cannot be read", NOMINATED.req(memory="much"), ["a"]),
    ("or is the pod itself", NOMINATED.name("asked"), ["a"]),
)
def test_a_pending_pod_that_is_nominated_counts(nominated: PodBuilder, room: list[str]) -> None:
    assert fitting(engine(A, pods=[nominated]), "a") == room


def test_two_nominated_pods_without_uids_are_two() -> None:
    pods = [make_pod(name).req(cpu="500m").priority(5).nominated_node("a") for name in ("x", "y")]

    assert fitting(engine(A, pods=pods), "a", pod=make_pod("small").req(cpu="500m")) == []


def test_nominated_pods_count_on_nodes_that_the_caller_describes() -> None:
    ready = engine(A, pods=[NOMINATED])

    assert filtered(ready, ASKED.obj(), nodes=[A.obj()]).failed == {"a": "Insufficient cpu"}
    assert list(filtered(ready, ASKED.obj(), nodes=[A.capacity(cpu=2).obj()]).kept) == [0]


# Nodes in full.


def test_nodes_of_the_caller_override_known_nodes_for_one_call() -> None:
    """And is forgotten with the question; the pods on it are those we know."""
    ready = engine(A, B, pods=[make_pod("here").req(cpu=1).node("a")])
    larger, new = A.capacity(cpu=2).obj(), make_node("new").capacity(cpu=1).obj()

    in_full = filtered(ready, ASKED.obj(), nodes=[larger, new])
    by_name = filtered(ready, ASKED.obj(), node_names=["a", "new"])

    assert (list(in_full.kept), in_full.failed) == ([0, 1], {})
    assert (by_name.kept, by_name.failed) == (
        [],
        {"a": "Insufficient cpu", "new": "node not known to the extender yet"},
    )


def test_scores_are_given_to_nodes_in_full() -> None:
    nodes: list[Node] = [A.obj(), make_node("new").capacity(cpu=4).obj()]

    full, empty = scored(engine(A), ASKED.obj(), nodes=nodes)

    assert (full, empty) == (0, 10)


def test_a_resource_that_only_the_callers_node_has() -> None:
    """What is learnt for one question does not disturb the columns of the others."""
    ready = engine(A, B)
    gpu = ASKED.req({"example.com/gpu": 1})

    assert list(filtered(ready, gpu.obj(), nodes=[A.capacity({"example.com/gpu": 1}).capacity(cpu=1).obj()]).kept) == [
        0
    ]
    assert filtered(ready, gpu.obj(), node_names=["a", "b"]).failed_and_unresolvable == dict.fromkeys(
        "ab", "Insufficient example.com/gpu"
    )
    assert len(scored(ready, gpu.obj(), node_names=["a", "b"])) == 2


# What-if.


def evaluated(scenario: dict[str, Any]) -> dict[str, Any]:
    return asyncio.run(evaluate_scenario(scenario, Configuration()))


POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}
NODE = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "1", "pods": "10"}}}


def test_a_scenario_has_a_cluster_of_its_own() -> None:
    answer = evaluated({"id": "x", "pod": POD, "objects": {"nodes": [NODE]}})

    assert (answer["id"], answer["nodeOrder"], answer["topNodes"]) == ("x", ["n"], ["n"])


def test_a_scenario_may_have_a_configuration_of_its_own() -> None:
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "plugins": {
                    "score": {"disabled": [{"name": "*"}]},
                    "multiPoint": {"disabled": [{"name": "NodeResourcesFit"}]},
                }
            }
        ],
    }
    small = NODE | {"status": {"allocatable": {"cpu": "500m", "pods": "10"}}}

    answer = evaluated({"pod": POD, "objects": {"nodes": [small]}, "config": config})

    assert answer["filter"]["n"] == {"code": "Success"}
    assert answer["score"]["n"]["plugins"] == {}


def test_an_empty_cluster_has_no_nodes_available() -> None:
    assert evaluated({"pod": POD})["error"] == "no nodes available to schedule pods"


@cases(
    "scenario, error",
    ("no pod", {}, "pod is required"),
    ("a list for a pod", {"pod": []}, "pod: expected an object"),
    ("a list of objects", {"pod": POD, "objects": []}, "objects: expected an object"),
    ("unknown kind", {"pod": POD, "objects": {"things": []}}, "objects: unknown kind 'things'"),
    ("one object for a list", {"pod": POD, "objects": {"nodes": {}}}, "objects.nodes: expected a list"),
    ("a number for a node", {"pod": POD, "objects": {"nodes": [NODE, 7]}}, "objects.nodes[1]: "),
    ("nominated to nowhere", {"pod": POD, "nominated": [{"pod": POD}]}, "nominated[0]: expected a pod and a nodeName"),
)
def test_malformed_scenario_is_refused_with_its_path(scenario: dict[str, Any], error: str) -> None:
    with pytest.raises(DecodeError) as caught:
        evaluated(scenario)

    assert str(caught.value).startswith(error)


def test_asking_what_if_changes_nothing() -> None:
    ready = engine(A)
    asyncio.run(
        evaluate_scenario(
            {"pod": POD, "objects": {"nodes": [NODE]}, "nominated": [{"pod": POD, "nodeName": "a"}]}, Configuration()
        )
    )

    assert fitting(ready, "a", "n") == ["a"]


def test_an_asked_pod_is_read_as_it_was_written() -> None:
    assert fitting(engine(A), "a", pod=PodBuilder(Pod()).name("bare")) == ["a"]


def test_call_that_failed_leaves_no_trace_of_its_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    ready = engine()
    nodes = [make_node(f"node-{number}").capacity(cpu=1).obj() for number in range(3)]
    add_node = Cache.add_node

    def broken(cache: Cache, node: Node) -> None:
        if node.name == "node-1":
            raise RuntimeError("a fault")
        add_node(cache, node)

    with monkeypatch.context() as patch, pytest.raises(RuntimeError):
        patch.setattr(Cache, "add_node", broken)
        filtered(ready, ASKED.obj(), nodes=nodes)

    assert list(filtered(ready, ASKED.obj(), nodes=nodes).kept) == [0, 1, 2]


async def test_others_have_the_event_loop_between_two_calls() -> None:
    """Otherwise a probe would wait for all calls that came with it."""
    verbs, turns, decided = make_verbs(ClusterState(nodes=[make_node("a").obj()])), 0, list[int]()

    async def call(verb: str) -> None:
        if verb == "preempt":
            await verbs.preempt(make_pod("p").obj(), {})
        else:
            await getattr(verbs, verb)(make_pod("p").obj(), node_names=["a"])
        decided.append(turns)

    calls = asyncio.gather(*map(call, ["filter", "prioritize", "filter", "preempt", "filter"]))
    while not calls.done():
        await asyncio.sleep(0)
        turns += 1

    assert len(set(decided)) == len(decided) == 5


async def test_a_call_that_comes_alone_waits_for_no_turn() -> None:
    verbs = make_verbs(ClusterState(nodes=[make_node("a").obj()]))

    for _ in range(2):
        with pytest.raises(StopIteration):
            verbs.filter(make_pod("p").obj(), node_names=["a"]).send(None)
        await asyncio.sleep(0)


async def test_new_nodes_of_a_call_are_taken_some_at_a_time() -> None:
    """The call that is let go in between leaves nothing that the next one sees."""
    verbs = make_verbs(ClusterState(nodes=[make_node("a").capacity(cpu=1).obj()]))
    nodes = [make_node(f"n{number}").capacity(cpu=8, pods=9).obj() for number in range(1000)]
    pod, turns = make_pod("p").req(cpu=4).obj(), 0

    call = asyncio.create_task(verbs.filter(pod, nodes=nodes))
    while turns < 10:
        await asyncio.sleep(0)
        turns += 1
    is_under_way = not call.done()
    call.cancel()
    result = await verbs.filter(pod, nodes=[*nodes[::2], make_node("a").capacity(cpu=8, pods=9).obj()])
    by_name = await verbs.filter(pod, node_names=["a", "n0"])

    assert is_under_way
    assert (len(result.kept), result.failed) == (501, {})
    assert (list(by_name.kept), list(by_name.failed_and_unresolvable)) == ([], ["a"])
