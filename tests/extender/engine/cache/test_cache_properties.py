"""After any steps, with snapshots taken at any time, the cache equals one that is filled at once with the remaining
objects.

The machine below is a second, naive cache: dicts of nodes and pods. After any steps a snapshot must show what a new
cache shows that is filled from those dicts.
"""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from extender.engine.cache import Cache, CacheError
from extender.engine.cache.column_writer import SPARE_PARTS, SPARE_SYMBOLS
from extender.engine.cache.dump import NodeDump
from extender.engine.snapshot.pod_attributes import HostPort, num_parts
from extender.testing import PodBuilder, make_cache, make_node, make_pod
from extender.values.objects.decoding import replaced
from extender.values.objects.node import HOSTNAME_LABEL, ZONE_LABEL, Node
from extender.values.objects.pod import Container, ContainerPort, PersistentVolumeClaimVolumeSource, Pod, Volume
from tests.extender.engine.cache.snapshot_contents import NodeSeen, pod_seen, slots_agree, view, without_image_counts
from tests.kit.examples import examples
from tests.kit.snapshot_dump import dump_snapshot
from tests.kit.tables import cases

NODES = ("n0", "n1", "n2", "n3")
NEVER_ADDED = "elsewhere"
PODS = tuple(f"p{number}" for number in range(6))
PORTS: tuple[HostPort, ...] = tuple(("0.0.0.0", "TCP", 8000 + number) for number in range(len(PODS)))
"""One a pod, so that no port is held twice."""


@st.composite
def nodes(draw: st.DrawFn) -> Node:
    """A node under one of a few names; one in a while has an allocatable that cannot be read."""
    name, cpu = draw(st.sampled_from(NODES)), draw(st.sampled_from(("1", "4", "4", "x")))
    node = make_node(name).capacity(cpu=cpu, memory="1Gi")
    if draw(st.booleans()):
        node = node.label({ZONE_LABEL: draw(st.sampled_from(("z1", "z2")))})
    if draw(st.booleans()):
        node = node.label(disk=draw(st.sampled_from(("ssd", "hdd"))))
    if draw(st.booleans()):
        node = node.label({HOSTNAME_LABEL: draw(st.sampled_from((name, "shared")))})
    if draw(st.booleans()):
        node = node.taint("dedicated", draw(st.sampled_from("ab")))
    if draw(st.booleans()):
        node = node.capacity({f"example.com/{draw(st.sampled_from(('gpu', 'fpga')))}": 2})
    for name, size in (("img-a", 100), ("img-b", 7)):
        if draw(st.booleans()):
            node = node.image(name, size=size)
    return (node.unschedulable() if draw(st.booleans()) else node).obj()


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    """A pod under one of a few names, on one of the nodes or on one that never comes."""
    number = draw(st.integers(0, len(PODS) - 1))
    pod = make_pod(PODS[number]).node(draw(st.sampled_from((*NODES, NEVER_ADDED))))
    pod = pod.req(cpu=draw(st.sampled_from(("0", "500m", "2"))))
    if draw(st.booleans()):
        pod = pod.req({f"example.com/{draw(st.sampled_from(('gpu', 'fpga', 'tpu')))}": 1})
    if draw(st.booleans()):
        pod = pod.label(app=draw(st.sampled_from(("web", "db"))))
    if draw(st.booleans()):
        pod = pod.host_port(PORTS[number][2])
    if draw(st.booleans()):
        pod = pod.priority(draw(st.integers(-1, 1))).start_time("2026-01-01T00:00:00Z")
    if draw(st.booleans()):
        pod = pod.pod_anti_affinity("zone", app="web").claim("data")
    return (pod.terminating() if draw(st.booleans()) else pod).obj()


unreadable_pods = pods().map(
    lambda pod: make_pod(pod.name).node(pod.spec.node_name).req({"example.com/odd": 1}).req(cpu="x").obj()
)


class CacheMachine(RuleBasedStateMachine):
    """The naive cache, and the real one."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = Cache()
        self.nodes: dict[str, Node] = {}
        self.on_node: dict[str, list[str]] = {}
        """Node -> UIDs, in the order of upstream's NodeInfo."""
        self.pods: dict[str, Pod] = {}
        self.assumed: set[str] = set()
        self.nominated: dict[str, Pod] = {}
        self.snapshot = self.cache.update_snapshot()
        self.last_seen: dict[str, NodeSeen] = {}
        self.last_nominated: dict[int, dict[str, Any]] = {}
        """Slot -> what the last snapshot shows of the pod that is nominated in it."""
        self.left_behind: list[tuple[Cache, dict[str, NodeDump], frozenset[str]]] = []
        """Caches at which the ways parted, and what they knew then."""

    # The naive cache.

    def place(self, pod: Pod) -> None:
        self.pods[pod.uid] = pod
        self.on_node.setdefault(pod.spec.node_name, []).append(pod.uid)

    def take(self, uid: str) -> None:
        uids = self.on_node[self.pods.pop(uid).spec.node_name]
        hole, last = uids.index(uid), uids.pop()
        if last != uid:
            uids[hole] = last
        self.assumed.discard(uid)

    def rebuilt(self) -> Cache:
        cache = Cache()
        for node in self.nodes.values():
            cache.add_node(node)
        for uids in self.on_node.values():
            for uid in uids:
                cache.add_pod(self.pods[uid])
        return cache

    def refused(
        self, act: Callable[[], Any], error: type[Exception] | tuple[type[Exception], ...] = CacheError
    ) -> None:
        """What does not go with what the cache holds is refused, and changes nothing."""
        before = (self.cache.dump(), self.cache.pods, self.cache.assumed_pods)

        with pytest.raises(error):
            act()

        assert (self.cache.dump(), self.cache.pods, self.cache.assumed_pods) == before

    # Nodes.

    @rule(node=nodes())
    def node_is_seen(self, node: Node) -> None:
        old = self.nodes.get(node.name)
        if old is None:
            self.cache.add_node(node)
        else:
            self.cache.update_node(old, node)
        self.nodes[node.name] = node

    @rule(name=st.sampled_from(NODES))
    def node_is_gone(self, name: str) -> None:
        if name in self.nodes:
            self.cache.remove_node(self.nodes.pop(name))
        elif not self.on_node.get(name):
            self.refused(lambda: self.cache.remove_node(make_node(name).obj()))

    # Pods.

    @rule(pod=pods())
    def pod_is_seen(self, pod: Pod) -> None:
        if pod.uid in self.pods and pod.uid not in self.assumed:
            self.refused(lambda: self.cache.add_pod(pod))
            return
        self.cache.add_pod(pod)
        if pod.uid in self.pods:
            self.take(pod.uid)
        self.place(pod)

    @rule(pod=pods())
    def pod_changes(self, pod: Pod) -> None:
        recorded_pod = self.pods.get(pod.uid)
        if recorded_pod is None or pod.uid in self.assumed or recorded_pod.spec.node_name != pod.spec.node_name:
            self.refused(lambda: self.cache.update_pod(recorded_pod or pod, pod))
            return
        self.cache.update_pod(recorded_pod, pod)
        self.take(pod.uid)
        self.place(pod)

    @rule(pod=pods())
    def pod_is_gone(self, pod: Pod) -> None:
        recorded_pod = self.pods.get(pod.uid)
        if recorded_pod is None or recorded_pod.spec.node_name != pod.spec.node_name:
            self.refused(lambda: self.cache.remove_pod(pod))
            return
        self.cache.remove_pod(pod)
        self.take(pod.uid)

    @rule(pod=pods())
    def pod_is_assumed(self, pod: Pod) -> None:
        if pod.uid in self.pods:
            self.refused(lambda: self.cache.assume_pod(pod))
            return
        self.cache.assume_pod(pod)
        self.place(pod)
        self.assumed.add(pod.uid)

    @rule(pod=pods())
    def pod_is_forgotten(self, pod: Pod) -> None:
        recorded_pod = self.pods.get(pod.uid)
        if recorded_pod is None:
            self.cache.forget_pod(pod)
        elif pod.uid not in self.assumed or recorded_pod.spec.node_name != pod.spec.node_name:
            self.refused(lambda: self.cache.forget_pod(pod))
        else:
            self.cache.forget_pod(pod)
            self.take(pod.uid)

    @rule(pod=unreadable_pods, act=st.sampled_from(("add_pod", "assume_pod", "update_pod", "nominate")))
    def pod_cannot_be_read(self, pod: Pod, act: str) -> None:
        if act == "update_pod":
            self.refused(lambda: self.cache.update_pod(self.pods.get(pod.uid, pod), pod), (ValueError, CacheError))
        elif act != "nominate" or pod.uid not in self.nominated:
            self.refused(lambda: getattr(self.cache, act)(pod), (ValueError, CacheError))

    # Pods that were promised a node.

    @rule(pod=pods())
    def pod_is_nominated(self, pod: Pod) -> None:
        slot = self.cache.nominate(pod)
        self.nominated.setdefault(pod.uid, pod)

        assert self.cache.nominate(pod) == slot

    @rule(name=st.sampled_from(PODS))
    def nomination_ends(self, name: str) -> None:
        uid = make_pod(name).obj().uid
        self.cache.unnominate(uid)
        self.nominated.pop(uid, None)

    # Looking.

    @rule()
    def last_snapshot_still_holds(self) -> None:
        """Until the next one is taken, a snapshot shows what it showed."""
        assert view(self.snapshot, PORTS) == self.last_seen
        assert {slot: pod_seen(self.snapshot, slot) for slot in self.last_nominated} == self.last_nominated
        slots_agree(self.snapshot)

    @rule()
    def snapshot_is_taken(self) -> None:
        before, nodes_before = self.snapshot.generation, self.last_seen
        self.snapshot = self.cache.update_snapshot()
        self.last_seen = view(self.snapshot, PORTS)

        assert self.cache.update_snapshot() is self.snapshot
        as_new = view(self.rebuilt().update_snapshot(), PORTS)
        assert without_image_counts(self.last_seen) == without_image_counts(as_new)
        assert slots_agree(self.snapshot) == {uid for uid, pod in self.pods.items() if pod.spec.node_name in self.nodes}
        assert self.cache.assumed_pods == self.assumed
        self.check_changes(before, nodes_before)
        self.last_nominated = self.nominated_seen()
        assert [*self.last_nominated.values()] == [*map(pod_seen_alone, self.nominated.values())]
        assert all(self.snapshot.pods.node[slot] == -1 for slot in self.last_nominated)

    def nominated_seen(self) -> dict[int, dict[str, Any]]:
        slots = map(self.cache.nominate, self.nominated.values())
        return {slot: pod_seen(self.snapshot, slot) for slot in slots}

    def check_changes(self, generation: int, nodes_before: dict[str, NodeSeen]) -> None:
        """Whoever remembers the last snapshot is told of every node that is another now."""
        changed = self.snapshot.changes.since(generation)
        if changed is None:
            return
        assert list(self.last_seen) == list(nodes_before)
        changed_names = {self.snapshot.nodes.objects[place].name for place in changed}
        assert {name for name in nodes_before if nodes_before[name] != self.last_seen[name]} <= changed_names

    @rule(goes_on=st.booleans())
    def cache_forks(self, goes_on: bool) -> None:
        """Two caches that know the same, and neither hears of what happens to the other: the steps from here on are
        those of one of them.
        """
        dump, fork = self.cache.dump(), self.cache.fork()
        self.cache, other = (fork, self.cache) if goes_on else (self.cache, fork)
        self.left_behind.append((other, dump, other.assumed_pods))
        if goes_on:
            self.snapshot = self.cache.update_snapshot()
            self.last_seen = view(self.snapshot, PORTS)
            self.last_nominated = self.nominated_seen()

        assert fork.dump() == dump

    def teardown(self) -> None:
        """In the end all nodes are touched once, so that the counts of their images are those of this moment."""
        for node in self.nodes.values():
            self.cache.update_node(node, node)
        self.snapshot_is_taken()

        assert self.last_seen == view(self.rebuilt().update_snapshot(), PORTS)
        for cache, dump, assumed in self.left_behind:
            assert (cache.dump(), cache.assumed_pods) == (dump, assumed)
            snapshot = cache.update_snapshot()
            assert dump_snapshot(snapshot).keys() == {name for name, node in dump.items() if node.has_node}
            slots_agree(snapshot)


def pod_seen_alone(pod: Pod) -> dict[str, Any]:
    cache = Cache()
    slot = cache.nominate(pod)
    return pod_seen(cache.update_snapshot(), slot)


TestCache = CacheMachine.TestCase
TestCache.settings = settings(
    deadline=None, max_examples=examples(150), stateful_step_count=30, report_multiple_bugs=False
)


class RenumberingCacheMachine(CacheMachine):
    """The same, where symbols that no pod has any more are dropped with each snapshot, and not only when they are
    many.
    """

    def __init__(self) -> None:
        self.spare = patch("extender.engine.cache.column_writer.SPARE_SYMBOLS", -(10**6))
        self.spare.start()
        super().__init__()

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            self.spare.stop()


TestRenumberingCache = RenumberingCacheMachine.TestCase
TestRenumberingCache.settings = settings(
    deadline=None, max_examples=examples(50), stateful_step_count=30, report_multiple_bugs=False
)


def test_pods_with_labels_of_their_own_take_no_memory_once_they_are_gone() -> None:
    cache = make_cache(make_node("n"))
    symbol_counts = []
    for number in range(3 * SPARE_SYMBOLS):
        job = make_pod(f"job-{number}").label(**{"controller-uid": f"{number}"}).host_port(1 + number).node("n").obj()
        cache.add_pod(job)
        tallies = cache.update_snapshot().tallies
        cache.remove_pod(job)
        symbol_counts.append(max(map(len, tallies.symbols)))

    assert max(symbol_counts) <= SPARE_SYMBOLS + 4


def _with_claims(pod: PodBuilder, number: int) -> PodBuilder:
    claims = [PersistentVolumeClaimVolumeSource(claim_name=f"c{number}-{place}") for place in range(4000)]
    plain_pod = pod.obj()
    volumes = [Volume(name=claim.claim_name, persistent_volume_claim=claim) for claim in claims]
    return PodBuilder(replaced(plain_pod, spec=replaced(plain_pod.spec, volumes=volumes)))


def _with_ports(pod: PodBuilder, number: int) -> PodBuilder:
    ports = [ContainerPort(host_port=port) for port in range(1 + 4000 * number, 4001 + 4000 * number)]
    return pod.container(Container(name="c", ports=ports))


@cases(
    "large",
    ("labels", lambda pod, n: pod.label({f"k{n}-{place}": "v" for place in range(4000)})),
    ("terms", lambda pod, n: pod.pod_anti_affinity("zone", **{f"k{n}": "v" * 64 * 4000})),
    ("ports", _with_ports),
    ("claims", _with_claims),
)
def test_few_large_symbols_are_forgotten_as_many_small_ones_are(large: Callable[[PodBuilder, int], PodBuilder]) -> None:
    cache = make_cache(make_node("n"))
    part_counts = []
    for number in range(3 * SPARE_PARTS // 4000):
        pod = large(make_pod("p"), number).node("n").obj()
        cache.add_pod(pod)
        symbols = cache.update_snapshot().tallies.symbols
        cache.remove_pod(pod)
        part_counts.append(sum(num_parts(symbol) for table in symbols for symbol in table))

    assert max(part_counts) <= SPARE_PARTS + 4 * 4001
