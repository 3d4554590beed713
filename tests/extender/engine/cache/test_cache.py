"""The cache by example; `test_cache_properties.py` tests any sequence of steps, and `tests/parity` compares it with
upstream.
"""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from extender.engine.cache import Cache, CacheError
from extender.engine.snapshot import Attribute, PodChanges, Rows, Snapshot
from extender.engine.snapshot.pod_attributes import LabelClass
from extender.testing import PodBuilder, make_cache, make_node, make_pod, make_snapshot
from extender.values.objects.pod import Pod
from extender.values.objects.quantity import QuantityError
from tests.extender.engine.cache.snapshot_contents import on_node, view
from tests.kit.snapshot_dump import dump_snapshot
from tests.kit.tables import cases

NODE, GPU = make_node("n").capacity(cpu=4), "example.com/gpu"


def names_on(cache: Cache, node: str) -> list[str]:
    return [pod.name for pod in on_node(cache.update_snapshot(), node)]


def used_cpu(snapshot: Snapshot, node: str) -> int:
    return int(snapshot.nodes.requested[snapshot.nodes.index[node], 0])


# Ghosts.


def test_pods_that_are_seen_before_their_node_are_on_it_once_it_is_there() -> None:
    """Watches of pods and nodes are not in step."""
    cache = make_cache(pods=[make_pod("early").req(cpu=1).node("n")])
    before = cache.update_snapshot()
    nodes_before = list(before.nodes.index)
    cache.add_node(NODE.obj())
    after = cache.update_snapshot()

    assert nodes_before == []
    assert used_cpu(after, "n") == 1000


def test_a_node_that_is_gone_while_its_pods_are_not_stays_as_a_ghost_that_no_snapshot_shows() -> None:
    cache = make_cache(NODE, pods=[make_pod("late").node("n")])
    cache.remove_node(NODE.obj())
    as_ghost = cache.dump()
    visible_nodes = list(cache.update_snapshot().nodes.index)
    cache.remove_pod(make_pod("late").node("n").obj())

    assert as_ghost["n"].has_node is False
    assert as_ghost["n"].pods == ("default/late",)
    assert visible_nodes == []
    assert cache.dump() == {}


def test_a_node_that_comes_back_has_the_pods_that_stayed() -> None:
    cache = make_cache(NODE, pods=[make_pod("late").req(cpu=1).node("n")])
    cache.remove_node(NODE.obj())
    cache.update_snapshot()
    cache.add_node(NODE.obj())

    assert used_cpu(cache.update_snapshot(), "n") == 1000


# Assumptions.


def test_an_assumed_pod_counts() -> None:
    cache = make_cache(NODE)
    pod = make_pod("p").req(cpu=1).node("n").obj()
    cache.assume_pod(pod)

    assert cache.is_assumed(pod)
    assert used_cpu(cache.update_snapshot(), "n") == 1000


def test_an_assumed_pod_is_confirmed_elsewhere() -> None:
    """What the API server says goes before what we believed."""
    cache = make_cache(NODE, make_node("other"))
    cache.assume_pod(make_pod("p").req(cpu=1).node("n").obj())
    cache.update_snapshot()
    confirmed = make_pod("p").req(cpu=1).node("other").obj()
    cache.add_pod(confirmed)
    snapshot = cache.update_snapshot()

    assert not cache.is_assumed(confirmed)
    assert (used_cpu(snapshot, "n"), used_cpu(snapshot, "other")) == (0, 1000)


def test_a_forgotten_assumption_leaves_no_trace() -> None:
    cache = make_cache(NODE)
    before = view(cache.update_snapshot())
    pod = make_pod("p").req(cpu=1).label(app="web").host_port(80).node("n").obj()
    cache.assume_pod(pod)
    cache.update_snapshot()
    cache.forget_pod(pod)

    assert view(cache.update_snapshot()) == before
    assert not cache.is_assumed(pod)


def test_a_pod_that_was_only_assumed_may_be_gone() -> None:
    cache = make_cache(NODE)
    pod = make_pod("p").node("n").obj()
    cache.assume_pod(pod)
    cache.remove_pod(pod)

    assert (names_on(cache, "n"), cache.assumed_pods) == ([], frozenset())


def test_a_pod_whose_node_is_not_told_is_removed_from_where_it_is() -> None:
    cache = make_cache(NODE)
    cache.add_pod(make_pod("p").node("n").obj())

    cache.remove_pod(make_pod("p").obj())

    assert names_on(cache, "n") == []


def test_a_fork_has_the_assumed_pods() -> None:
    cache = make_cache(NODE)
    pod = make_pod("p").node("n").obj()
    cache.assume_pod(pod)
    fork = cache.fork()
    fork.forget_pod(pod)

    assert (list(fork.assumed_pods), list(cache.assumed_pods)) == ([], [pod.uid])
    assert (names_on(fork, "n"), names_on(cache, "n")) == ([], ["p"])


# Refusals. The sentences are upstream's.

POD = make_pod("p").uid("1").node("n")
IN_CACHE = "pod 1(default/p) is in the cache, so can't be assumed"
ADDED = make_cache(NODE, pods=[POD])
ASSUMED = make_cache(NODE)
ASSUMED.assume_pod(POD.obj())


@cases(
    "cache, act, pod, error",
    ("added twice", ADDED, Cache.add_pod, POD, "pod 1(default/p) was already in added state"),
    ("assumed although there", ADDED, Cache.assume_pod, POD, IN_CACHE),
    ("assumed twice", ASSUMED, Cache.assume_pod, POD, IN_CACHE),
    (
        "forgotten although there",
        ADDED,
        Cache.forget_pod,
        POD,
        "pod 1(default/p) wasn't assumed so cannot be forgotten",
    ),
    (
        "forgotten elsewhere",
        ASSUMED,
        Cache.forget_pod,
        POD.node("m"),
        "pod 1(default/p) was assumed on m but assigned to n",
    ),
    (
        "removed elsewhere",
        ADDED,
        Cache.remove_pod,
        POD.node("m"),
        "pod 1(default/p) was added to a different node than it was assumed to be on",
    ),
    (
        "removed, unknown",
        ADDED,
        Cache.remove_pod,
        POD.uid("2"),
        "pod 2(default/p) is not found in scheduler cache, so cannot be removed from it",
    ),
)
def test_contradictory_calls_are_refused(
    cache: Cache, act: Callable[[Cache, Pod], None], pod: PodBuilder, error: str
) -> None:
    with pytest.raises(CacheError) as caught:
        act(cache, pod.obj())

    assert str(caught.value) == error


@cases(
    "cache, new, error",
    ("still assumed", ASSUMED, POD, "assumed pod 1(default/p) should not be updated"),
    ("moved", ADDED, POD.node("m"), "pod 1(default/p) updated on a different node than previously added to"),
    ("unknown", make_cache(NODE), POD, "pod 1(default/p) is not added to scheduler cache, so cannot be updated"),
    ("another pod", ADDED, POD.uid("2"), "pod 1(default/p) cannot be updated to 2(default/p), which is another pod"),
)
def test_contradictory_updates_are_refused(cache: Cache, new: PodBuilder, error: str) -> None:
    """A pod that is deleted and made again under its name is another pod: it has another UID."""
    with pytest.raises(CacheError) as caught:
        cache.update_pod(POD.obj(), new.obj())

    assert str(caught.value) == error


def test_an_update_that_cannot_be_read_leaves_the_pod_where_it_was() -> None:
    """Also its place among the pods of its node, and its ports."""
    pods = [make_pod(name).node("n").host_port(port) for name, port in (("a", 80), ("b", 81), ("c", 82))]
    cache = make_cache(NODE, pods=pods)
    before = view(cache.update_snapshot())

    with pytest.raises(QuantityError, match="cpu"):
        cache.update_pod(pods[0].obj(), pods[0].req(cpu="much").obj())

    assert view(cache.update_snapshot()) == before


def test_a_pod_without_a_uid_is_refused() -> None:
    with pytest.raises(CacheError, match="cannot get cache key for pod with empty UID"):
        Cache().add_pod(Pod())


# The order of a node's pods.


@cases(
    "removed_names, names_left",
    ("the last", "d", ["a", "b", "c"]),
    ("the last one takes the place", "b", ["a", "d", "c"]),
    ("and the next last one the next", "ab", ["d", "c"]),
)
def test_the_last_pod_moves_into_the_hole(removed_names: str, names_left: list[str]) -> None:
    """As in upstream's NodeInfo: among equal pods the order decides who is preempted."""
    cache = make_cache(NODE, pods=[make_pod(name).node("n") for name in "abcd"])
    for name in removed_names:
        cache.remove_pod(make_pod(name).node("n").obj())

    assert names_on(cache, "n") == names_left


def test_an_updated_pod_goes_to_the_end() -> None:
    cache = make_cache(NODE, pods=[make_pod(name).node("n") for name in "abc"])
    cache.update_pod(make_pod("a").node("n").obj(), make_pod("a").label(app="web").node("n").obj())

    assert names_on(cache, "n") == ["c", "b", "a"]


# What a node offers.


def test_the_number_of_nodes_of_an_image_is_that_when_the_node_last_changed() -> None:
    """As in upstream's NodeInfo, which learns of other nodes' images when it is copied into a snapshot."""
    with_image = make_node("a").image("img", size=10).obj()
    cache = make_cache(with_image)
    alone = dump_snapshot(cache.update_snapshot())["a"].images
    cache.add_node(make_node("b").image("img", size=10).obj())
    both = {name: node.images for name, node in dump_snapshot(cache.update_snapshot()).items()}
    cache.update_node(with_image, with_image)
    touched = {name: node.images for name, node in dump_snapshot(cache.update_snapshot()).items()}

    assert alone == {"img": (10, 1)}
    assert both == {"a": {"img": (10, 1)}, "b": {"img": (10, 2)}}
    assert touched == {"a": {"img": (10, 2)}, "b": {"img": (10, 2)}}


def test_a_fork_and_its_original_count_the_nodes_of_an_image_for_themselves() -> None:
    """Whichever of the two changes first, and also for a node that is gone while pods are on it."""
    with_image = {name: make_node(name).image("img", size=10).obj() for name in "abcd"}
    original = make_cache(with_image["a"], with_image["b"], with_image["c"])
    original.add_pod(make_pod("p").uid("p").node("c").obj())
    original.remove_node(with_image["c"])
    fork = original.fork()

    fork.add_node(with_image["d"])
    original.remove_node(with_image["b"])
    second_fork = original.fork()
    original.remove_node(with_image["a"])

    def counts(cache: Cache) -> dict[str, int]:
        return {name: node.images["img"][1] for name, node in cache.dump().items()}

    assert counts(fork) == {"a": 3, "b": 3, "c": 2, "d": 3}
    assert counts(second_fork) == {"a": 1, "c": 1}
    assert counts(original) == {"c": 0}


def test_the_size_of_an_image_is_that_of_the_first_node_with_it() -> None:
    cache = make_cache(make_node("a").image("img", size=10), make_node("b").image("img", size=20))

    assert {name: node.images["img"][0] for name, node in cache.dump().items()} == {"a": 10, "b": 10}


def test_a_node_that_alone_still_has_an_image_says_its_size_when_it_changes() -> None:
    """Until then the size is that which a node reported that is gone by now."""
    first, last = make_node("first").image("img", size=10).obj(), make_node("last").image("img", size=20).obj()
    cache = make_cache(first, last)
    cache.remove_node(first)
    before = cache.dump()["last"].images["img"]

    cache.update_node(last, make_node("last").label(disk="ssd").image("img", size=20).obj())

    assert (before, cache.dump()["last"].images["img"]) == ((10, 1), (20, 1))


def test_a_port_that_two_pods_hold_is_free_when_one_of_them_leaves() -> None:
    """So it is upstream, which keeps a set. (Two pods on one port only meet when something else than a scheduler placed
    them.)
    """
    cache = make_cache(NODE, pods=[make_pod(name).host_port(80).node("n") for name in "ab"])
    cache.remove_pod(make_pod("a").node("n").obj())

    assert cache.dump()["n"].used_ports == frozenset()


def test_a_node_with_invalid_allocatable_has_no_resources_and_an_error() -> None:
    cache = make_cache(make_node("n").capacity(cpu="four", memory="8Gi"))
    snapshot = cache.update_snapshot()

    assert snapshot.nodes.allocatable.tolist() == [[0, 0, 0]]
    assert snapshot.nodes.allowed_pods.tolist() == [0]
    assert "status.allocatable[cpu]" in snapshot.nodes.invalid[0]
    assert cache.dump()["n"].allocatable == {}


def test_a_node_that_can_be_read_again_is_as_good_as_any() -> None:
    broken, mended = make_node("n").capacity(cpu="four").obj(), make_node("n").capacity(cpu=4).obj()
    cache = make_cache(broken)
    cache.update_snapshot()
    cache.update_node(broken, mended)
    snapshot = cache.update_snapshot()

    assert snapshot.nodes.allocatable[0, 0] == 4000
    assert snapshot.nodes.invalid == {}


def test_sums_wrap_as_int64_do() -> None:
    """Pods can ask for more together than an int64 holds; better to be wrong as upstream is than to stop there."""
    huge = [make_pod(name).req(memory="8Ei").node("n").obj() for name in "ab"]
    one_by_one, at_once = make_cache(NODE), make_cache(NODE, pods=huge)
    one_by_one.update_snapshot()
    for pod in huge:
        one_by_one.add_pod(pod)

    assert one_by_one.update_snapshot().nodes.requested[0, 1] == at_once.update_snapshot().nodes.requested[0, 1] == -2


# Nominated pods.


def test_a_nominated_pod_has_a_slot_and_no_node() -> None:
    cache = make_cache(NODE)
    slot = cache.nominate(make_pod("p").req(cpu=1).label(app="web").obj())
    snapshot = cache.update_snapshot()

    assert (snapshot.pod_at(slot).name, snapshot.pods.node[slot]) == ("p", -1)
    assert snapshot.pods.requests[slot, 0] == 1000
    assert snapshot.nodes.pod_count.tolist() == [0]


def test_a_pod_nominated_between_two_snapshots_is_in_the_second() -> None:
    """Also when it is the first to ask for some resource, and when there was no room for another slot."""
    cache = make_cache(make_node("n").capacity({GPU: 8}, cpu=4, memory="8Gi", pods=10))
    cache.update_snapshot()
    slots = [cache.nominate(make_pod(f"p{number}").req({GPU: 2}).obj()) for number in range(300)]
    snapshot = cache.update_snapshot()

    gpu = snapshot.resources.code_of(GPU)
    assert snapshot.pods.requests[slots, gpu].tolist() == [2] * 300


def test_the_slot_of_a_pod_that_is_nominated_no_more_is_used_again() -> None:
    cache = make_cache(NODE)
    first = cache.nominate(make_pod("p").obj())
    cache.unnominate(make_pod("p").obj().uid)
    cache.update_snapshot()

    assert cache.nominate(make_pod("q").obj()) == first


def test_pods_that_come_and_go_between_two_snapshots_take_one_slot() -> None:
    """Nobody may ask a follower for a snapshot for days."""
    cache = make_cache(NODE, pods=[make_pod("stays").node("n")])
    cache.update_snapshot()
    for number in range(300):
        pod = make_pod(f"p{number}").node("n" if number % 2 else f"gone-{number}").obj()
        cache.add_pod(pod)
        cache.update_pod(pod, make_pod(f"p{number}").label(app="web").node(pod.spec.node_name).obj())
        cache.remove_pod(pod)

    snapshot = cache.update_snapshot()

    assert [pod.name for pod in snapshot.pods.objects if pod is not None] == ["stays"]
    assert len(snapshot.pods.objects) <= 3
    assert view(snapshot) == view(make_cache(NODE, pods=[make_pod("stays").node("n")]).update_snapshot())


def test_a_pod_that_came_and_went_between_two_snapshots_has_freed_its_port() -> None:
    """As upstream: even one that another pod has, too."""
    cache = make_cache(NODE, pods=[make_pod("stays").host_port(80).node("n")])
    cache.update_snapshot()
    other = make_pod("other").host_port(80).node("n").obj()
    cache.add_pod(other)
    cache.remove_pod(other)

    assert cache.update_snapshot().nodes.used_ports == [frozenset()]


def test_a_nominated_pod_that_gets_a_node_is_found_there() -> None:
    """Its promise ends after the pod was assumed, as in a scheduling cycle."""
    cache = make_cache(NODE)
    cache.nominate(make_pod("p").obj())
    cache.assume_pod(make_pod("p").node("n").obj())
    cache.unnominate(make_pod("p").obj().uid)
    snapshot = cache.update_snapshot()

    (slot,) = snapshot.pods.on_node[0]
    assert snapshot.pods.slots == {"default/p": slot}


# Snapshots.


def test_an_inconsistent_order_of_nodes_is_recovered_by_the_next_snapshot() -> None:
    """Removing a node under other zone labels than it had leaves it in its old zone's list. Upstream's cache notices
    and recovers, too.
    """
    zoned_node = make_node("n").label({"topology.kubernetes.io/zone": "z1"}).obj()
    cache = make_cache(zoned_node, make_node("m"))
    cache.update_snapshot()
    with pytest.raises(CacheError, match="was not found"):
        cache.remove_node(make_node("n").obj())
    cache.add_node(make_node("n").obj())
    with pytest.raises(CacheError, match="snapshot state is not consistent"):
        cache.update_snapshot()

    assert sorted(cache.update_snapshot().nodes.index) == ["m", "n"]


def test_the_nodes_keep_their_places_until_one_comes_or_goes() -> None:
    """Whoever remembers something of a place would else have to begin again."""
    cache = make_cache(NODE, make_node("m"), make_node("o"))
    cache.update_snapshot()
    cache.remove_node(make_node("m").obj())
    renumbered = cache.update_snapshot().generation
    before = renumbered - 1
    cache.add_pod(make_pod("p").node("o").obj())
    snapshot = cache.update_snapshot()

    assert snapshot.changes.since(before) is None
    changed = snapshot.changes.since(renumbered)
    assert changed is not None and changed.tolist() == [snapshot.nodes.index["o"]]


def test_columns_that_were_looked_up_are_kept_up_to_date() -> None:
    """Labels, images and ports are read once per key; after that a change costs the nodes that changed."""
    old = make_node("n").label(disk="hdd").image("img", size=4).obj()
    new = make_node("n").label(disk="ssd").image("img", size=5).obj()
    cache = make_cache(old)
    nodes = cache.update_snapshot().nodes
    disk, image, port = nodes.label("disk"), nodes.image("img"), nodes.uses_port(("0.0.0.0", "TCP", 80))
    cache.update_node(old, new)
    cache.add_pod(make_pod("p").host_port(80).node("n").obj())
    nodes = cache.update_snapshot().nodes

    assert (nodes.label("disk"), nodes.image("img"), nodes.uses_port(("0.0.0.0", "TCP", 80))) == (disk, image, port)
    assert (disk.values[disk.codes[0]], image.size[0], port[0]) == ("ssd", 5, True)


def test_a_snapshot_cannot_be_written_to() -> None:
    snapshot = make_cache(NODE, pods=[make_pod("p").node("n")]).update_snapshot()

    nodes, rows = snapshot.nodes, Rows.of(snapshot)
    for column in (nodes.requested, nodes.allocatable, snapshot.pods.priority, rows.requested):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1


def test_columns_grow() -> None:
    """More nodes, pods and resources than the columns had room for at first."""
    cache = make_cache()
    for number in range(300):
        cache.add_node(make_node(f"n{number}").capacity({f"example.com/r{number % 20}": number}, cpu=number).obj())
        cache.add_pod(make_pod(f"p{number}").req(cpu=number).label(app="web").node(f"n{number}").obj())
        if number % 100 == 0:
            cache.update_snapshot()
    snapshot = cache.update_snapshot()

    places = [snapshot.nodes.index[f"n{number}"] for number in range(300)]
    for column in (snapshot.nodes.allocatable, snapshot.nodes.requested):
        assert column[places, 0].tolist() == list(range(0, 300_000, 1000))
    assert Rows.of(snapshot).allocatable_of("example.com/r7").sum() == sum(range(7, 300, 20))
    tally = snapshot.tally(Attribute.LABELS, "all", lambda symbol: int(isinstance(symbol, LabelClass)))
    assert np.array_equal(tally.per_node, np.ones(300, np.int64))


def test_resources_that_no_pod_requests_are_not_on_the_axis() -> None:
    """A node with thousands of extended resources adds none to axis K: only pods that ask for one do."""
    offers = {f"example.com/thing-{number}": 1 for number in range(5000)}
    asking = make_pod("p").node("n").req({"example.com/thing-7": 1})

    snapshot = make_snapshot(make_node("n").capacity(offers, cpu="4", pods=10), pods=[asking])

    assert list(snapshot.resources) == ["cpu", "memory", "ephemeral-storage", "example.com/thing-7"]
    rows = Rows.of(snapshot)
    for resource, offered, requested in (("thing-7", [1], [1]), ("thing-4000", [1], [0]), ("nothing", [0], [0])):
        assert rows.allocatable_of(f"example.com/{resource}").tolist() == offered
        assert rows.requested_of(f"example.com/{resource}").tolist() == requested


def test_resources_that_no_node_offers_are_not_on_the_axis() -> None:
    """Pods that each request a resource of their own make no array grow, and nothing stays of them afterwards."""
    cache = make_cache(NODE)
    pods = [make_pod(f"p{number}").node("n").req({f"example.com/thing-{number}": 2}).obj() for number in range(5000)]
    for pod in pods:
        cache.add_pod(pod)
    snapshot = cache.update_snapshot()
    arrays = (snapshot.nodes.requested.base, snapshot.nodes.allocatable.base, snapshot.pods.requests.base)
    requested = Rows.of(snapshot).requested_of("example.com/thing-7").tolist()
    dumped = (dump_snapshot(snapshot)["n"].requested, cache.dump()["n"].requested)
    for pod in pods:
        cache.remove_pod(pod)
    after = cache.update_snapshot()

    assert list(snapshot.resources) == ["cpu", "memory", "ephemeral-storage"]
    assert sum(array.nbytes for array in arrays if array is not None) < 2_000_000
    assert requested == [2]
    assert dumped[0] == dumped[1] == {f"example.com/thing-{number}": 2 for number in range(5000)}
    assert after.pods.unoffered == {}


@pytest.mark.parametrize("is_new", [False, True], ids=["a known node", "a node that comes"])
def test_a_node_that_begins_to_offer_a_resource_has_the_requests_of_pods_already_there(is_new: bool) -> None:
    """Also where such pods come and go in the same moment. It is as if the resource had been there from the start."""
    offering = make_node("n").capacity({GPU: 8}, cpu=4)
    first, second, third = (make_pod(f"p{number}").req({GPU: number}).node("n").obj() for number in (1, 2, 3))
    elsewhere = make_pod("elsewhere").req({GPU: 5}).node("m").obj()
    nodes = [make_node("m").capacity(cpu=4)] if is_new else [make_node("m").capacity(cpu=4), NODE]
    cache = make_cache(*nodes, pods=[first, second, elsewhere])
    cache.update_snapshot()
    cache.remove_pod(first)
    cache.add_pod(third)
    if is_new:
        cache.add_node(offering.obj())
    else:
        cache.update_node(NODE.obj(), offering.obj())
    snapshot = cache.update_snapshot()
    places = [snapshot.nodes.index[name] for name in ("n", "m")]
    requested, allocatable = Rows.of(snapshot).requested_of(GPU), Rows.of(snapshot).allocatable_of(GPU)
    cache.remove_pod(second)

    assert (requested[places].tolist(), allocatable[places].tolist()) == ([5, 5], [8, 0])
    rebuilt = make_cache(make_node("m").capacity(cpu=4), offering, pods=[third, elsewhere])
    assert view(cache.update_snapshot()) == view(rebuilt.update_snapshot())


def test_a_node_that_cannot_be_read_offers_nothing_either_when_the_nodes_are_laid_out_again() -> None:
    """If it did, a pod that is assumed would change what the last snapshot says of others."""
    unreadable = make_node("n").capacity({GPU: 8}, cpu="x")
    asking = make_pod("pending").req({GPU: 2}).obj()
    cache = make_cache(unreadable)
    cache.update_snapshot()
    cache.add_node(make_node("m").capacity(cpu=4).obj())
    cache.nominate(asking)
    before = cache.update_snapshot()
    cache.assume_pod(make_pod("assumed").req({GPU: 1}).node("m").obj())

    assert before.pods.unoffered[GPU][0] == 2
    assert list(cache.update_snapshot().resources) == ["cpu", "memory", "ephemeral-storage"]


def test_hypotheses_count_resources_that_no_node_offers() -> None:
    pods = [make_pod(name).req({GPU: amount}).node("n").obj() for name, amount in (("a", 1), ("b", 2))]
    snapshot = make_snapshot(NODE, pods=pods)
    departure = PodChanges(np.array([0]), np.array([snapshot.pods.slots[pods[1].uid]]), np.array([-1]))

    assert Rows.of(snapshot).changed(departure).requested_of(GPU).tolist() == [1]


def test_a_resource_that_a_pod_is_first_to_request_is_found_on_every_node() -> None:
    """The nodes were there before anybody asked."""
    cache = make_cache(*(make_node(name).capacity({GPU: amount}, cpu=4) for name, amount in (("a", 2), ("b", 3))))
    assert Rows.of(cache.update_snapshot()).allocatable_of(GPU).tolist() == [2, 3]

    cache.add_pod(make_pod("p").node("b").req({GPU: 1}).obj())

    rows = Rows.of(cache.update_snapshot())
    assert rows.allocatable_of(GPU).tolist() == [2, 3]
    assert rows.requested_of(GPU).tolist() == [0, 1]


def test_taints_that_no_node_has_any_more_are_forgotten() -> None:
    """A node whose taints change with every heartbeat does not make every decision slower forever."""
    node = make_node("n").capacity(cpu="4", pods=10)
    cache = make_cache(node)
    taints = [node.taint("at", str(number)).obj() for number in range(3000)]
    for old, new in pairwise([node.obj(), *taints]):
        cache.update_node(old, new)
        snapshot = cache.update_snapshot()

    assert len(snapshot.nodes.taint_sets) < 2000
    assert snapshot.nodes.taints_of(int(snapshot.nodes.taint_set[0]))[0].value == "2999"


def test_label_keys_resources_and_images_that_no_node_has_any_more_are_forgotten() -> None:
    """Nodes that come and go with labels, resources and images of their own do not make the cache grow forever."""
    cache = make_cache(make_node("n").label(disk="ssd").image("base:1", size=7))
    for number in range(3000):
        other = make_node("other").label({f"key-{number}": "x"}).capacity({f"example.com/{number}": 1})
        node = other.image(f"app:{number}", size=1).obj()
        cache.add_node(node)
        nodes = cache.update_snapshot().nodes
        cache.remove_node(node)

    assert len(nodes.label_keys) + len(nodes.offered) + len(nodes.image_names) < 4000
    assert {"key-2999", "disk"} <= nodes.label_keys
    assert "example.com/2999" in nodes.offered
    assert {"app:2999", "base:1"} <= nodes.image_names
    assert (nodes.image("base:1").size[nodes.index["n"]], nodes.image("app:1").is_known) == (7, False)


def test_ranks_follow_the_pods_that_come_and_go_and_the_nodes_that_come() -> None:
    """They are worked out when somebody asks, for the nodes whose pods have changed since the last time."""
    cache = make_cache(make_node("n"), pods=[make_pod(uid).uid(uid).node("n") for uid in ("d", "b")])

    def ranks() -> dict[str, int]:
        pods = cache.update_snapshot().pods
        return dict(zip(pods.slots, pods.uid_ranks(np.array([*pods.slots.values()], np.intp)).tolist(), strict=True))

    first = ranks()
    cache.add_pod(make_pod("c").uid("c").node("n").obj())
    with_a_pod_more = ranks()
    cache.remove_pod(make_pod("b").uid("b").node("n").obj())
    with_a_pod_less = ranks()
    for uid in ("z", "y"):
        cache.add_pod(make_pod(uid).uid(uid).node("m").obj())
    cache.add_node(make_node("m").obj())

    assert (first, with_a_pod_more, with_a_pod_less) == ({"b": 0, "d": 1}, {"b": 0, "c": 1, "d": 2}, {"c": 0, "d": 1})
    assert ranks() == {"c": 0, "d": 1, "y": 0, "z": 1}
    cache.add_pod(make_pod("x").uid("x").node("m").obj())
    cache.update_snapshot()
    assert not cache.fork().update_snapshot().pods.unranked.any()
