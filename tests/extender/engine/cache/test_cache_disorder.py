"""The cache under events that contradict each other: nodes come back in other zones, are added twice, or are removed
under other labels.

The machine below is upstream's cache written down naively: a tree of zones, the nodes that the last snapshot knew, the
order that it listed, and the images. Whatever the steps, a snapshot shows what upstream's would, or both report the
same inconsistency, and the next one has recovered.
"""

from dataclasses import dataclass, field

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from extender.engine.cache import Cache, CacheError
from extender.engine.cache.nodes import zone_key
from extender.engine.snapshot.columns import image_names
from extender.testing import make_node, make_pod
from extender.values.objects.node import ZONE_LABEL, Node
from extender.values.objects.pod import Pod
from tests.extender.engine.cache.snapshot_contents import slots_agree, view, without_image_counts
from tests.kit.examples import examples
from tests.kit.snapshot_dump import dump_snapshot

NODES = ("n0", "n1", "n2")
PODS = ("p0", "p1", "p2")
IMAGES = ("img-a", "img-b")


@st.composite
def nodes(draw: st.DrawFn) -> Node:
    """A node in one of a few zones, with images whose sizes nodes do not agree about."""
    node = make_node(draw(st.sampled_from(NODES))).capacity(cpu=draw(st.sampled_from(("1", "4"))))
    zone = draw(st.sampled_from(("", "z1", "z2")))
    if zone:
        node = node.label({ZONE_LABEL: zone})
    for name in IMAGES:
        size = draw(st.sampled_from((0, 7, 100)))
        if size:
            node = node.image(name, size=size)
    return node.obj()


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    return make_pod(draw(st.sampled_from(PODS))).node(draw(st.sampled_from(NODES))).req(cpu="500m").obj()


@dataclass
class ImageState:
    """An image as the nodes that have it share it."""

    size: int
    nodes: set[str]


@dataclass
class Info:
    """A node, or a ghost; its images are those of when it was last set."""

    node: Node | None = None
    images: dict[str, ImageState] = field(default_factory=dict)
    pods: list[str] = field(default_factory=list)


class NaiveTree:
    """Zones, and the names in each."""

    def __init__(self) -> None:
        self.zones: dict[str, list[str]] = {}

    def add(self, node: Node) -> None:
        names = self.zones.setdefault(zone_key(node), [])
        if node.name not in names:
            names.append(node.name)

    def remove(self, node: Node) -> bool:
        names = self.zones.get(zone_key(node), [])
        if node.name not in names:
            return False
        names.remove(node.name)
        if not names:
            del self.zones[zone_key(node)]
        return True

    def names(self) -> list[str]:
        longest = max(map(len, self.zones.values()), default=0)
        return [names[turn] for turn in range(longest) for names in self.zones.values() if turn < len(names)]


class DisorderMachine(RuleBasedStateMachine):
    """Upstream's cache, naively, and ours. Upstream: backend/cache, cache.go, node_tree.go."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = Cache()
        self.tree = NaiveTree()
        self.infos: dict[str, Info] = {}
        self.images: dict[str, ImageState] = {}
        self.pods: dict[str, Pod] = {}
        self.changed: set[str] = set()
        self.known: set[str] = set()
        """The nodes that the last snapshot knew."""
        self.listed: list[str] = []
        """The order that it showed them in."""

    # Nodes.

    def forget_images(self, node: Node | None) -> None:
        for name in image_names(node.status.images) if node is not None else ():
            if name in self.images:
                self.images[name].nodes.discard(node.name if node is not None else "")
                if not self.images[name].nodes:
                    del self.images[name]

    def set_node(self, info: Info, node: Node) -> None:
        info.node, info.images = node, {}
        for name, size in image_names(node.status.images).items():
            state = self.images.setdefault(name, ImageState(size, set()))
            state.nodes.add(node.name)
            info.images[name] = state
        self.changed.add(node.name)

    @rule(node=nodes())
    def node_is_added(self, node: Node) -> None:
        info = self.infos.setdefault(node.name, Info())
        self.forget_images(info.node)
        self.tree.add(node)
        self.set_node(info, node)
        self.cache.add_node(node)

    @rule(node=nodes(), from_cache=st.booleans(), stale=nodes())
    def node_is_updated(self, node: Node, from_cache: bool, stale: Node) -> None:
        if node.name not in self.infos:
            self.tree.add(node)
        info = self.infos.setdefault(node.name, Info())
        cached_node = info.node
        old = cached_node if from_cache and cached_node is not None else make_node(node.name).label(stale.labels).obj()
        self.forget_images(cached_node)
        if zone_key(old) != zone_key(node):
            self.tree.remove(old)
            self.tree.add(node)
        self.set_node(info, node)
        self.cache.update_node(old, node)

    @rule(node=nodes(), from_cache=st.booleans())
    def node_is_removed(self, node: Node, from_cache: bool) -> None:
        info = self.infos.get(node.name)
        if info is None:
            return
        removed_node = info.node if from_cache and info.node is not None else node
        info.node = None
        if not info.pods:
            del self.infos[node.name]
        if self.tree.remove(removed_node):
            self.forget_images(removed_node)
            self.cache.remove_node(removed_node)
            return
        try:
            self.cache.remove_node(removed_node)
        except CacheError as exc:
            assert str(exc).endswith("was not found")
        else:
            raise AssertionError("the node is not in that zone")

    # Pods.

    @rule(pod=pods(), is_assumed=st.booleans())
    def pod_comes(self, pod: Pod, is_assumed: bool) -> None:
        if pod.uid in self.pods:
            return
        (self.cache.assume_pod if is_assumed else self.cache.add_pod)(pod)
        self.pods[pod.uid] = pod
        self.infos.setdefault(pod.spec.node_name, Info()).pods.append(pod.uid)
        self.changed.add(pod.spec.node_name)

    @rule(name=st.sampled_from(PODS))
    def pod_leaves(self, name: str) -> None:
        pod = self.pods.pop(make_pod(name).obj().uid, None)
        if pod is None:
            return
        self.cache.remove_pod(pod)
        info = self.infos[pod.spec.node_name]
        last = info.pods.pop()
        if last != pod.uid:
            info.pods[info.pods.index(pod.uid)] = last
        self.changed.add(pod.spec.node_name)
        if not info.pods and info.node is None:
            del self.infos[pod.spec.node_name]

    # Looking.

    def snapshot_of_upstream(self) -> str | None:
        """Takes upstream's snapshot; returns the inconsistency that it reports."""
        alive = {name for name, info in self.infos.items() if info.node is not None}
        came = (self.changed & alive) - self.known
        self.known |= came
        is_listed_anew = bool(came)
        names = self.tree.names()
        if len(self.known) > len(names):
            self.known &= alive
            is_listed_anew = True
        if is_listed_anew:
            self.listed = [name for name in names if name in self.known]
        self.changed.clear()
        if len(self.listed) == len(names):
            return None
        error = (
            f"snapshot state is not consistent, length of NodeInfoList={len(self.listed)} not equal to length of nodes "
            "in tree="
            f"{len(names)} , length of NodeInfoMap={len(self.known)}, length of nodes in cache={len(self.infos)}, "
            "trying to recover"
        )
        self.listed = [name for name in names if name in self.known]
        return error

    @rule()
    def snapshot_is_taken(self) -> None:
        touched = set(self.changed)
        expected = self.snapshot_of_upstream()
        try:
            snapshot = self.cache.update_snapshot()
        except CacheError as exc:
            assert str(exc) == expected
            if self.snapshot_of_upstream() is None:
                snapshot = self.cache.update_snapshot()
            else:
                return
        else:
            assert expected is None
        alive = {name: info for name, info in self.infos.items() if info.node is not None}
        in_tree = {*self.tree.names()}
        dump = dump_snapshot(snapshot)
        assert {*dump} >= {name for name in self.listed if name in alive}
        assert {*dump} <= alive.keys() & in_tree
        rebuilt = Cache()
        for name in dump:
            node = self.infos[name].node
            assert node is not None
            rebuilt.add_node(node)
            for uid in self.infos[name].pods:
                rebuilt.add_pod(self.pods[uid])
        assert without_sizes(view(snapshot)) == without_sizes(view(rebuilt.update_snapshot()))
        slots_agree(snapshot)
        for name in touched & dump.keys():
            assert {image: size for image, (size, _) in dump[name].images.items()} == {
                image: state.size for image, state in alive[name].images.items()
            }
            assert {image: count for image, (_, count) in dump[name].images.items()} == {
                image: len(state.nodes) for image, state in alive[name].images.items()
            }

    def teardown(self) -> None:
        """In the end the cache holds what upstream's holds."""
        dump = self.cache.dump()
        assert {name: (node.has_node, list(node.pods), dict(node.images)) for name, node in dump.items()} == {
            name: (
                info.node is not None,
                [f"default/{self.pods[uid].name}" for uid in info.pods],
                {image: (state.size, len(state.nodes)) for image, state in info.images.items()},
            )
            for name, info in self.infos.items()
        }


def without_sizes(nodes: dict[str, dict[str, object]]) -> dict[str, dict[str, object]]:
    return {
        name: {key: value for key, value in node.items() if "images" not in key}
        for name, node in without_image_counts(nodes).items()
    }


TestDisorder = DisorderMachine.TestCase
TestDisorder.settings = settings(
    deadline=None, max_examples=examples(100), stateful_step_count=30, report_multiple_bugs=False
)
