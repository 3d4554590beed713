"""After any changes the cluster equals one made from a fresh list, and every pod is in one place."""

import random
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import Phase, given, settings, strategies as st

from extender.engine.cache.cluster import Cluster, ClusterFeed
from extender.engine.snapshot.pod_attributes import HostPort, host_ports
from extender.testing import PodBuilder, make_node, make_pod, make_verbs
from extender.values.objects.cluster import ClusterState
from extender.values.objects.decoding import replaced
from extender.values.objects.grouping import Namespace
from extender.values.objects.kinds import KINDS
from extender.values.objects.meta import HasMetadata, ObjectMeta
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod
from extender.verbs import Verbs
from extender.verbs.verbs import VerbError
from tests.extender.engine.cache.snapshot_contents import view, without_image_counts
from tests.extender.verbs.verb_calls import filtered, scored
from tests.kit.examples import examples
from tests.kit.random_storage import random_cluster_with_volumes
from tests.kit.tables import cases

FIELD_OF = {kind.type: kind.field for kind in KINDS}
Objects = dict[tuple[str, str, str], HasMetadata]

A = make_node("a").capacity(cpu=4)
WEB = make_pod("web").uid("1").req(cpu=1)


# By example.


def test_a_pod_moves_from_waiting_to_its_node() -> None:
    cluster = cluster_of(A.obj(), WEB.obj())

    cluster.changed(WEB.obj(), WEB.node("a").obj())

    assert whereabouts(cluster, "1") == ["a"]


def test_a_pod_that_comes_back_under_its_name_is_another_pod() -> None:
    cluster = cluster_of(A.obj(), WEB.node("a").obj())

    cluster.changed(WEB.node("a").obj(), WEB.uid("2").obj())

    assert whereabouts(cluster, "1") == []
    assert whereabouts(cluster, "2") == ["pending"]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
@cases("pod", ("pending", WEB), ("on a node", WEB.node("a")))
def test_a_pod_that_finishes_takes_nothing(pod: PodBuilder, phase: str) -> None:
    cluster = cluster_of(A.obj(), pod.obj())

    cluster.changed(pod.obj(), pod.phase(phase).obj())

    assert whereabouts(cluster, "1") == []


def test_a_pod_that_moves_to_another_node_is_where_its_last_update_has_it() -> None:
    """The API server never says so of one pod; a watch that lost an event can."""
    cluster = cluster_of(A.obj(), make_node("b").obj(), WEB.node("a").obj())

    cluster.changed(WEB.node("a").obj(), WEB.node("b").obj())

    assert whereabouts(cluster, "1") == ["b"]


def test_a_bound_pod_whose_update_has_no_node_is_pending() -> None:
    cluster = cluster_of(A.obj(), WEB.node("a").obj())

    cluster.changed(WEB.node("a").obj(), WEB.obj())

    assert whereabouts(cluster, "1") == ["pending"]


def test_a_pod_that_cannot_be_read_any_more_is_reported_until_it_can() -> None:
    bad = WEB.node("a").req(cpu="much").obj()
    cluster = cluster_of(A.obj(), WEB.node("a").obj())

    cluster.changed(WEB.node("a").obj(), bad)

    assert whereabouts(cluster, "1") == ["unreadable"]
    assert cluster.unreadable["1"][0] == "default/web"

    cluster.changed(bad, WEB.node("a").obj())

    assert whereabouts(cluster, "1") == ["a"]


def test_deletion_is_idempotent() -> None:
    cluster = cluster_of(A.obj(), WEB.node("a").obj())

    for _ in range(2):
        cluster.changed(WEB.node("a").obj(), None)
        cluster.changed(A.obj(), None)

    assert cluster.cache.dump() == {}


def test_an_assumed_pod_is_confirmed_wherever_it_turns_out_to_be() -> None:
    cluster = cluster_of(A.obj(), make_node("b").obj(), WEB.obj())
    cluster.cache.assume_pod(WEB.node("a").obj())

    cluster.changed(WEB.obj(), WEB.node("b").obj())

    assert whereabouts(cluster, "1") == ["b"]
    assert not cluster.cache.assumed_pods


def test_a_pod_that_was_bound_counts_before_it_is_seen_on_its_node() -> None:
    """What the watch says of it from before changes nothing."""
    cluster = cluster_of(A.obj(), WEB.obj())

    cluster.assume("1", "a")
    cluster.changed(WEB.obj(), WEB.label(late="yes").obj())

    assert whereabouts(cluster, "1") == ["a"]

    cluster.changed(WEB.obj(), None)

    assert whereabouts(cluster, "1") == []


def test_a_forgotten_pod_is_pending_in_its_last_state() -> None:
    cluster = cluster_of(A.obj(), WEB.obj())
    cluster.assume("1", "a")
    cluster.changed(WEB.obj(), WEB.label(late="yes").obj())

    cluster.forget("1")

    assert whereabouts(cluster, "1") == ["pending"]
    assert cluster.pending["1"].labels == {"late": "yes"}


def test_a_nomination_holds_until_it_is_withdrawn() -> None:
    cluster = cluster_of(A.obj(), WEB.nominated_node("a").obj())
    profiles = {"default-scheduler"}

    assert [pod.name for _, pod in cluster.nominees(profiles)["a"]] == ["web"]

    cluster.changed(WEB.nominated_node("a").obj(), WEB.obj())

    assert cluster.nominees(profiles) == {}


# By chance.


@pytest.mark.slow
@settings(deadline=None, max_examples=examples(60), phases=[phase for phase in Phase if phase is not Phase.shrink])
@given(st.integers(0, 2**32))
def test_after_any_changes_everything_is_as_if_it_had_been_listed_now(seed: int) -> None:
    """Objects of all kinds come, change and go one by one, from one cluster to another that has most names in common
    with it. Along the way a live engine says of every pod what a new engine says that knows only the present.
    """
    chance = random.Random(seed)
    ports: dict[tuple[str, HostPort], str] = {}
    before, after = world(chance, ports), world(chance, ports)
    cluster = Cluster()
    live = make_verbs(cluster)
    feed = ClusterFeed(cluster.changed, live.changed)
    present: Objects = {}
    for target in (before, after):
        names = sorted({*present, *target})
        chance.shuffle(names)
        for number, name in enumerate(names):
            old, new = present.get(name), target.get(name)
            if old == new:
                continue
            feed.changed(old, new)
            if new is None:
                del present[name]
            else:
                present[name] = new
            if number % 5 == 0 or number == len(names) - 1:
                fresh = make_verbs(state_of(present))
                assert answers(live, present) == answers(fresh, present)


@settings(deadline=None, max_examples=examples(30), phases=[phase for phase in Phase if phase is not Phase.shrink])
@given(st.integers(0, 2**32))
def test_a_fork_and_its_original_are_independent(seed: int) -> None:
    """From one cluster on, two go to different ends; each knows what a cluster knows that was listed there."""
    chance = random.Random(seed)
    ports: dict[tuple[str, HostPort], str] = {}
    before, *ends = (world(chance, ports) for _ in range(3))
    origin = Cluster.of(state_of(before))
    if chance.random() < 0.5:
        origin.cache.update_snapshot()
    clusters = origin, origin.fork()
    verbs = [make_verbs(cluster) for cluster in clusters]

    names = sorted({*before, *ends[0], *ends[1]})
    chance.shuffle(names)
    for name in names:
        for cluster, end in zip(clusters, ends, strict=True):
            if before.get(name) != end.get(name):
                cluster.changed(before.get(name), end.get(name))

    for engine, end in zip(verbs, ends, strict=True):
        assert answers(engine, end) == answers(make_verbs(state_of(end)), end)


def world(chance: random.Random, owners: dict[tuple[str, HostPort], str]) -> Objects:
    random_one = random_cluster_with_volumes(chance)
    namespace = Namespace(metadata=ObjectMeta(name="default", labels={"team": chance.choice(("a", "b"))}))
    objects: Objects = {}
    # Two pods of a node never have one host port; if they had, it would be free once one of them left, as upstream.
    running = [
        pod
        for pod in random_one.pods
        if all(owners.setdefault((pod.spec.node_name, port), pod.uid) == pod.uid for port in host_ports(pod))
    ]
    waiting = [
        replaced(pod, metadata=replaced(pod.metadata, uid=f"{pod.name}-{chance.randrange(2)}"))
        for pod in random_one.arrivals
    ]
    everything: tuple[Any, ...] = (
        *random_one.nodes,
        *running,
        *waiting,
        random_one.pod,
        *random_one.objects,
        namespace,
    )
    for item in everything:
        objects[FIELD_OF[type(item)], item.metadata.namespace, item.metadata.name] = item
    return objects


def state_of(objects: Objects) -> ClusterState:
    lists: dict[str, Any] = {
        field: [item for (kind, _, _), item in objects.items() if kind == field] for field in FIELD_OF.values()
    }
    return ClusterState(**lists)


def answers(engine: Verbs, objects: Objects) -> list[object]:
    """What the engine says of every pod and every node."""
    nodes = sorted(item.name for item in objects.values() if isinstance(item, Node))
    result: list[object] = [without_image_counts(sets(view(engine._cluster.cache.update_snapshot())))]
    for item in objects.values():
        if isinstance(item, Pod) and not item.spec.node_name:
            for ask in (filtered, scored):
                try:
                    result += [item.name, ask(engine, item, node_names=nodes)]
                except VerbError as exc:
                    result += [item.name, str(exc)]
    return result


def sets(nodes: dict[str, dict[str, object]]) -> dict[str, dict[str, object]]:
    """The same, with the pods of a node in no order: that depends on who came first."""
    by_uid = lambda entry: entry["pod"].uid  # noqa: E731
    return {name: {**node, "pods": sorted(node["pods"], key=by_uid)} for name, node in sorted(nodes.items())}  # type: ignore[call-overload]


def cluster_of(*objects: HasMetadata) -> Cluster:
    return Cluster.of(state_of({(FIELD_OF[type(item)], "", str(place)): item for place, item in enumerate(objects)}))


def whereabouts(cluster: Cluster, uid: str) -> list[str]:
    """Every place where the pod is: one, if it is known at all."""
    places: Iterable[tuple[str, Iterable[str]]] = [
        ("pending", cluster.pending.keys() - cluster.cache.assumed_pods),
        ("unreadable", cluster.unreadable),
        *((name, [pod.uid for pod in on_node(cluster, name)]) for name in cluster.cache.dump()),
    ]
    return [place for place, uids in places if uid in uids]


def on_node(cluster: Cluster, name: str) -> list[Pod]:
    return [pod for pod in cluster.cache.pods if pod.spec.node_name == name]
