"""The cluster with the nodes of a request in it: the caller's nodes win, and the next request is not affected."""

import asyncio
import random
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.engine.cache.cache import Cache
from extender.engine.cache.cluster import Cluster
from extender.engine.cache.overlay import STEP, Overlay
from extender.engine.snapshot import Snapshot
from extender.testing import NodeBuilder, make_node, make_pod, random_cluster
from extender.values.objects.cluster import ClusterState
from extender.values.objects.decoding import replaced
from extender.values.objects.node import Node
from tests.extender.engine.cache.seen import on_node, seen, without_image_counts
from tests.kit.examples import examples
from tests.kit.waiting import DEADLINE

KNOWN = [make_node(name).capacity(cpu=4).label(disk="hdd").obj() for name in ("a", "b")]
PODS = [make_pod("on-a").req(cpu=1).node("a").obj(), make_pod("on-new").req(cpu=2).node("new").obj()]


def overlay() -> Overlay:
    return Overlay(Cluster.of(ClusterState(nodes=KNOWN, pods=PODS)))


def with_nodes(over: Overlay, *nodes: NodeBuilder) -> Snapshot:
    return over.snapshot_with([node.obj() for node in nodes])


def cpu(snapshot: Snapshot) -> dict[str, tuple[int, int]]:
    """Node -> cores it has, cores its pods asked for."""
    nodes = snapshot.nodes
    return {
        name: (int(nodes.allocatable[at, 0]) // 1000, int(nodes.requested[at, 0]) // 1000)
        for name, at in nodes.index.items()
    }


def test_a_node_is_the_callers_and_its_pods_are_the_clusters() -> None:
    snapshot = with_nodes(overlay(), make_node("a").capacity(cpu=8))

    assert cpu(snapshot) == {"a": (8, 1), "b": (4, 0)}
    assert snapshot.nodes.label("disk").codes[snapshot.nodes.index["a"]] == -1


def test_nodes_that_are_not_in_the_request_are_the_clusters() -> None:
    """
    Spreading and affinity look at the whole cluster.
    """
    assert cpu(with_nodes(overlay())) == {"a": (4, 1), "b": (4, 0)}


def test_an_unknown_node_of_a_request_has_the_pods_that_name_it() -> None:
    """
    Cluster Autoscaler asks about nodes that do not exist yet; and a node may be new to us while its pods are not.
    """
    snapshot = with_nodes(overlay(), make_node("new").capacity(cpu=8), make_node("imagined").capacity(cpu=16))

    assert cpu(snapshot) == {"a": (4, 1), "b": (4, 0), "new": (8, 2), "imagined": (16, 0)}
    assert [pod.name for pod in on_node(snapshot, "new")] == ["on-new"]


def test_a_request_leaves_no_trace_in_the_next() -> None:
    over = overlay()
    before = seen(with_nodes(over))
    with_nodes(over, make_node("a").capacity(cpu=8).taint("x").image("img", size=1), make_node("new").capacity(cpu=8))

    assert without_image_counts(seen(with_nodes(over))) == without_image_counts(before)


def test_a_request_leaves_no_trace_in_the_cluster() -> None:
    filled = Cluster.of(ClusterState(nodes=KNOWN, pods=PODS))
    before = filled.cache.dump()
    over = Overlay(filled)
    with_nodes(
        over, make_node("a").capacity(cpu=8).image("img", size=1), make_node("new").capacity({"example.com/gpu": 8})
    )

    assert filled.cache.dump() == before
    assert list(filled.cache.update_snapshot().nodes.index) == ["a", "b"]


def test_the_same_nodes_make_no_new_generation() -> None:
    over = overlay()
    nodes = [make_node("a").capacity(cpu=8).obj(), make_node("new").capacity(cpu=8).obj()]
    first = over.snapshot_with(nodes)
    generation = first.generation

    assert over.snapshot_with(list(nodes)).generation == generation
    assert over.snapshot_with([make_node(node.name).capacity(cpu=8).obj() for node in nodes]).generation == generation


def test_an_invalid_node_of_a_request_is_marked_invalid() -> None:
    snapshot = with_nodes(overlay(), make_node("a").capacity(cpu="many"))

    assert list(snapshot.nodes.invalid) == [snapshot.nodes.index["a"]]


@settings(deadline=None, max_examples=examples(60))
@given(st.randoms(use_true_random=False))
def test_after_any_requests_a_snapshot_is_as_if_its_request_were_the_first(chance: random.Random) -> None:
    """
    A cluster with some nodes overlaid is the cluster that has those nodes in place of its own.
    """
    cluster = random_cluster(chance)
    over = Overlay(Cluster.of(ClusterState(nodes=cluster.nodes, pods=cluster.pods)))
    for _ in range(4):
        others = (random_cluster(chance).nodes[0] for _ in range(chance.randrange(3)))
        names = (f"n{number}" for number in range(chance.randrange(6), 9))
        asked = [
            replaced(node, metadata=replaced(node.metadata, name=name))
            for node, name in zip(others, names, strict=False)
        ]

        snapshot = over.snapshot_with(asked)

        as_asked = {node.name: node for node in asked}
        own = [as_asked.get(node.name, node) for node in cluster.nodes]
        new = [node for node in asked if node.name not in {node.name for node in cluster.nodes}]
        fresh = Cluster.of(ClusterState(nodes=[*own, *new], pods=cluster.pods)).cache.update_snapshot()
        assert without_image_counts(seen(snapshot)) == without_image_counts(seen(fresh))


def test_of_two_nodes_with_one_name_the_last_counts() -> None:
    """
    The faces do not let that through.
    """
    nodes: list[Node] = [make_node("a").capacity(cpu=8).obj(), make_node("a").capacity(cpu=16).obj()]

    assert cpu(overlay().snapshot_with(nodes))["a"] == (16, 1)


@pytest.mark.parametrize("num_own", [1000, 0], ids=["known nodes", "imagined nodes"])
def test_the_cluster_changes_while_many_nodes_are_taken_in(num_own: int) -> None:
    """
    The nodes of the request before are given back in the same thread. A node of the request stays as it is there.
    """
    names = [f"node-{number}" for number in range(1000)]
    over = Overlay(Cluster.of(ClusterState(nodes=[make_node(name).capacity(cpu=1).obj() for name in names[:num_own]])))
    large, many = ([make_node(name).capacity(cpu=cpu).obj() for name in names] for cpu in (9, 5))
    over.snapshot_with(large)
    turns = 0

    async def take_in() -> None:
        nonlocal turns
        taking_in = asyncio.create_task(over.take_in(many[:300]))
        while not taking_in.done():
            await asyncio.sleep(0)
            over.changed(None, make_node(f"new-{turns}").capacity(cpu=7).obj())
            over.changed(None, make_node("node-0").capacity(cpu=8).obj())
            over.changed(None, make_pod(f"pod-{turns}").uid(f"{turns}").node(f"new-{turns}").req(cpu=1).obj())
            turns += 1
        await taking_in

    asyncio.run(take_in())
    after = cpu(over.snapshot_with(many[:300]))
    given_back = cpu(over.snapshot_with(many[1:300]))

    own = dict.fromkeys(names[:num_own], (1, 0))
    came = {f"new-{turn}": (7, 1) for turn in range(turns)}
    assert turns > 1
    assert after == own | dict.fromkeys(names[:300], (5, 0)) | came
    assert given_back == own | dict.fromkeys(names[1:300], (5, 0)) | came | {"node-0": (8, 0)}


def test_many_nodes_are_laid_out_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    It is the nodes that come or go, or that are written, which take long; the same ones again do not.
    """
    own, imagined = (
        [make_node(f"{kind}-{number}").capacity(cpu=1).obj() for number in range(STEP + 1)]
        for kind in ("own", "imagined")
    )
    over = Overlay(Cluster.of(ClusterState(nodes=own)))
    threads: list[bool] = []
    update_snapshot = Cache.update_snapshot

    def recorded(cache: Cache) -> Snapshot:
        threads.append(threading.current_thread() is not threading.main_thread())
        return update_snapshot(cache)

    monkeypatch.setattr(Cache, "update_snapshot", recorded)

    def taken_in(*nodes: Node) -> list[bool]:
        threads.clear()
        asyncio.run(over.take_in(nodes))
        over.snapshot_with(nodes)
        return list(threads)

    assert taken_in(*own) == [False]
    assert taken_in(*own, imagined[0]) == [True, False]
    assert taken_in(*own, imagined[0]) == [False]
    assert taken_in(make_node("own-0").capacity(cpu=2).obj(), *own[1:], imagined[0]) == [False]
    assert taken_in(make_node("own-0").capacity(cpu=2).obj(), *own[1:]) == [True, False]
    assert taken_in(*imagined) == [True, False]
    assert taken_in(*own) == [True, False]


def test_changes_wait_while_a_thread_lays_nodes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    They are more than are applied in one step. All are in the next snapshot.
    """
    over = Overlay(Cluster())
    imagined = [make_node(f"imagined-{number}").obj() for number in range(STEP + 1)]
    is_at_work, may_end = threading.Event(), threading.Event()
    update_snapshot = Cache.update_snapshot

    def held(cache: Cache) -> Snapshot:
        is_at_work.set()
        assert may_end.wait(DEADLINE)
        return update_snapshot(cache)

    monkeypatch.setattr(Cache, "update_snapshot", held)

    async def take_in() -> int:
        taking_in = asyncio.create_task(over.take_in(imagined))
        await asyncio.to_thread(is_at_work.wait, 60)
        for number in range(2 * STEP):
            over.changed(None, make_node(f"came-{number}").obj())
        before = len(over.cluster.nodes)
        may_end.set()
        await taking_in
        return before

    before = asyncio.run(take_in())

    assert before == STEP + 1
    assert len(over.snapshot_with(imagined).nodes) == STEP + 1 + 2 * STEP
