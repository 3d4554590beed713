"""The laws of `FilterPlugin`, checked on random hypotheses; and small random clusters to check them on.

check_filter(MyPlugin(), make_snapshot(...), make_pod("p").obj(), random.Random(1), arrivals=[make_pod("q").obj()])
"""

import itertools
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar, final

import numpy as np

from extender.engine.cache import Cache
from extender.engine.framework import CycleState, EachNodeFilterPlugin, FilterPlugin, PreFilterPlugin, Status, Verdicts
from extender.engine.runtime.each_node import EachNodeFilter
from extender.engine.snapshot import PodChanges, Rows, Snapshot
from extender.engine.snapshot.axes import Index
from extender.testing.builders import NodeBuilder, PodBuilder, label_term, make_node, make_pod, make_snapshot, name_term
from extender.values.objects.decoding import replaced
from extender.values.objects.meta import HasMetadata
from extender.values.objects.node import HOSTNAME_LABEL, ZONE_LABEL, Node
from extender.values.objects.pod import Pod


@final
@dataclass(frozen=True, slots=True)
class _Move:
    """A pod is added to a row (+1) or removed from it (-1)."""

    row: int
    slot: int
    sign: int


def check_filter(
    plugin: FilterPlugin | EachNodeFilterPlugin,
    snapshot: Snapshot,
    pod: Pod,
    chance: random.Random,
    *,
    arrivals: Sequence[Pod] = (),
) -> None:
    """Checks that the plugin keeps the laws of `FilterPlugin` for this pod and a copy of this cluster.

    1. A row is an honest hypothesis: filtering a changed row gives what the row's node gives once those pods really
       moved.
    2. Rows do not talk: filtering some of the rows gives those rows the same answers.
    3. A plugin that promises not to look at pods gives changed rows the same answers.

    The hypotheses are drawn: pods may leave their nodes, and `arrivals` may be added to one. Raises AssertionError with
    the law that is broken, the node, both answers and the pods that moved.
    """
    if isinstance(plugin, EachNodeFilterPlugin):
        plugin = EachNodeFilter(plugin)
    cache = _copy_of(snapshot)
    waiting = [cache.nominate(arrival) for arrival in arrivals]
    before = cache.update_snapshot()
    state = _state_for(plugin, pod, before)
    if state is None or not len(before.nodes):
        return
    everything = Rows.of(before)
    steps = _draw_steps(before, waiting, chance)
    changed = _changed_in_steps(everything, steps, chance)

    verdicts = plugin.filter(state, pod, changed)
    _check_form(plugin, verdicts, len(changed))
    _check_rows_do_not_talk(plugin, state, pod, changed, verdicts, chance)
    if not plugin.looks_at_pods:
        _check_pods_do_not_matter(plugin, state, pod, everything, verdicts)
    # From here on the cache changes, so that `before` and everything made from it must not be read any more.
    answers = [verdicts.status_of(row) for row in range(len(changed))]
    names = everything.names
    by_row: defaultdict[int, list[tuple[Pod, int]]] = defaultdict(list)
    for move in itertools.chain(*steps):
        by_row[move.row].append((before.pod_at(move.slot), move.sign))
    for row in chance.sample(range(len(names)), min(len(names), _ROWS_MOVED_FOR_REAL)):
        _check_honest(plugin, cache, pod, names[row], by_row[row], answers[row])


_ROWS_MOVED_FOR_REAL = 3


def _copy_of(snapshot: Snapshot) -> Cache:
    cache = Cache()
    for node in snapshot.nodes.objects:
        cache.add_node(node)
    for slots in snapshot.pods.on_node:
        for slot in slots:
            cache.add_pod(snapshot.pod_at(slot))
    for field in snapshot.objects.__dataclass_fields__:
        getattr(cache.objects, field).update(getattr(snapshot.objects, field))
    return cache


def _state_for(plugin: FilterPlugin, pod: Pod, snapshot: Snapshot) -> CycleState | None:
    """Returns the state that Filter gets; None when PreFilter leaves nothing to filter."""
    state = CycleState()
    if isinstance(plugin, PreFilterPlugin) and not plugin.pre_filter(state, pod, snapshot).status.is_success:
        return None
    return state


def _draw_steps(snapshot: Snapshot, waiting: Sequence[int], chance: random.Random) -> tuple[list[_Move], list[_Move]]:
    """Returns two hypotheses, one on top of the other. In each, pods are removed before others are added.

    Terminating pods do not move: upstream's topology spread counts them when they move, but not where they are.
    """
    removed = [
        _Move(row, slot, -1)
        for row, slots in enumerate(snapshot.pods.on_node)
        for slot in slots
        if chance.random() < 0.5
    ]
    added = [_Move(chance.randrange(len(snapshot.nodes)), slot, +1) for slot in waiting if chance.random() < 0.8]
    moves = [move for move in removed + added if not snapshot.pod_at(move.slot).is_terminating]
    steps: tuple[list[_Move], list[_Move]] = ([], [])
    for move in moves:
        chance.choice(steps).append(move)
    return steps


def _changed_in_steps(rows: Rows, steps: tuple[list[_Move], list[_Move]], chance: random.Random) -> Rows:
    """Returns all rows with all moves made. Between the two hypotheses the rows are shuffled."""
    order = np.array(chance.sample(range(len(rows)), len(rows)), np.intp)
    back = np.argsort(order)
    first, second = steps
    shuffled = rows.changed(_changes(first)).take(order)
    return shuffled.changed(_changes([_Move(int(back[move.row]), move.slot, move.sign) for move in second])).take(back)


def _changes(moves: Sequence[_Move]) -> PodChanges:
    return PodChanges(
        row=np.array([move.row for move in moves], np.intp),
        pod=np.array([move.slot for move in moves], np.intp),
        sign=np.array([move.sign for move in moves], np.int64),
    )


def _check_form(plugin: FilterPlugin, verdicts: Verdicts, num_rows: int) -> None:
    if len(verdicts) != num_rows:
        raise AssertionError(f"{plugin.name} answered {len(verdicts)} rows of {num_rows}")
    for reason, mask in verdicts.reasons:
        if (mask & verdicts.ok).any():
            raise AssertionError(f"{plugin.name} gives a reason for rows that pass: {reason}")


def _check_rows_do_not_talk(
    plugin: FilterPlugin, state: CycleState, pod: Pod, rows: Rows, verdicts: Verdicts, chance: random.Random
) -> None:
    subset: Index = np.array([row for row in range(len(rows)) if chance.random() < 0.5], np.intp)
    alone = plugin.filter(state, pod, rows.take(subset))
    for place, row in enumerate(subset.tolist()):
        _agree(plugin, "law 2, rows do not talk", rows.names[row], verdicts.status_of(row), alone.status_of(place))


def _check_pods_do_not_matter(
    plugin: FilterPlugin, state: CycleState, pod: Pod, rows: Rows, verdicts: Verdicts
) -> None:
    as_they_are = plugin.filter(state, pod, rows)
    for row, name in enumerate(rows.names):
        _agree(plugin, "looks_at_pods is False", name, as_they_are.status_of(row), verdicts.status_of(row))


def _check_honest(
    plugin: FilterPlugin, cache: Cache, pod: Pod, node: str, moved: Sequence[tuple[Pod, int]], supposed: Status
) -> None:
    """Moves only this node's pods, because the other rows are other hypotheses."""
    for other, sign in moved:
        _move(cache, other, sign, node)
    after = cache.update_snapshot()
    state = _state_for(plugin, pod, after)
    if state is not None:
        row = after.nodes.index[node]
        actual = plugin.filter(state, pod, Rows.of(after)).status_of(row)
        pods = ", ".join(f"{'+' if sign > 0 else '-'}{other.key}" for other, sign in moved) or "nothing"
        _agree(plugin, f"law 1, a row is an honest hypothesis ({pods})", node, actual, supposed)
    for other, sign in reversed(moved):
        _move(cache, other, -sign, node)


def _move(cache: Cache, pod: Pod, sign: int, node: str) -> None:
    on_node = replaced(pod, spec=replaced(pod.spec, node_name=node))
    if sign > 0:
        cache.unnominate(pod.uid)
        cache.add_pod(on_node)
    else:
        cache.remove_pod(on_node)


def _agree(plugin: FilterPlugin, law: str, node: str, expected: Status, actual: Status) -> None:
    if expected.code != actual.code or sorted(expected.reasons) != sorted(actual.reasons):
        raise AssertionError(
            f"{plugin.name} breaks {law}: on node {node} expected {_text(expected)}, got {_text(actual)}"
        )


def _text(status: Status) -> str:
    return f"{status.code} [{status.message}]"


# Random clusters, rich in what Filters look at. Names and sizes come from tiny pools, so that they collide often.

T = TypeVar("T")

_ZONES: Final = ("z1", "z2")
_APPS: Final = ("web", "db")
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_ADDRESSES: Final = ("", "0.0.0.0", "127.0.0.1", "10.0.0.1")  # noqa: S104  (values to compare, nothing is bound)
_PROTOCOLS: Final = ("", "TCP", "UDP")


@final
@dataclass(frozen=True, slots=True)
class RandomCluster:
    """A cluster, a pod to place, and pods that may be added."""

    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]
    pod: Pod
    arrivals: tuple[Pod, ...]
    objects: tuple[HasMetadata, ...] = ()
    """Claims, volumes and the like."""

    def snapshot(self) -> Snapshot:
        return make_snapshot(*self.nodes, pods=self.pods, objects=self.objects)


def random_cluster(chance: random.Random) -> RandomCluster:
    """Returns a cluster of up to five nodes with up to three pods each, a pending pod, and up to three arrivals."""
    nodes = tuple(_node(f"n{number}", chance) for number in range(chance.randint(1, 5)))
    pods = tuple(
        _pod(f"p{number}-{node.name}", chance).node(node.name).obj()
        for node in nodes
        for number in range(chance.randint(0, 3))
    )
    arrivals = tuple(_pod(f"a{number}", chance).obj() for number in range(chance.randint(0, 3)))
    return RandomCluster(nodes, pods, _pod("pending", chance).obj(), arrivals)


def _node(name: str, chance: random.Random) -> Node:
    node = make_node(name).capacity(cpu=chance.choice((1, 2, 4)), memory="4Gi", pods=chance.choice((2, 3, 110)))
    steps: Sequence[Callable[[NodeBuilder], NodeBuilder]] = (
        lambda node: node.label({HOSTNAME_LABEL: name}),
        lambda node: node.label({ZONE_LABEL: chance.choice(_ZONES)}),
        lambda node: node.label(disk=chance.choice(("ssd", "hdd")), rank=chance.choice(("1", "7", "x"))),
        lambda node: node.taint("dedicated", chance.choice(("a", "b")), chance.choice(_EFFECTS)),
        lambda node: node.capacity({"example.com/gpu": chance.randint(0, 2)}),
    )
    rare: Sequence[Callable[[NodeBuilder], NodeBuilder]] = (
        lambda node: node.unschedulable(),
        lambda node: node.declared_features("UserNamespacesHostNetworkSupport"),
    )
    return _some(_some(node, steps, 0.6, chance), rare, 0.2, chance).obj()


def _pod(name: str, chance: random.Random) -> PodBuilder:
    pod = make_pod(name).req(cpu=chance.choice((0, "500m", 1)), memory="512Mi")
    steps: Sequence[Callable[[PodBuilder], PodBuilder]] = (
        lambda pod: pod.label(app=chance.choice(_APPS)),
        lambda pod: pod.priority(chance.randint(-1, 2)),
        lambda pod: pod.host_port(chance.choice((80, 81)), chance.choice(_PROTOCOLS), chance.choice(_ADDRESSES)),
        lambda pod: pod.toleration("dedicated", chance.choice(("a", "b")), chance.choice(("", *_EFFECTS))),
    )
    rare: Sequence[Callable[[PodBuilder], PodBuilder]] = (
        lambda pod: pod.req({"example.com/gpu": 1}),
        lambda pod: pod.toleration(operator="Exists"),
        lambda pod: pod.node_selector(disk=chance.choice(("ssd", "hdd"))),
        lambda pod: pod.node_affinity(label_term("rank", chance.choice(("Gt", "Lt")), "3"), name_term("In", "n1")),
        lambda pod: pod.pod_affinity(ZONE_LABEL, app=chance.choice(_APPS)),
        lambda pod: pod.pod_anti_affinity(chance.choice((HOSTNAME_LABEL, ZONE_LABEL)), app=chance.choice(_APPS)),
        lambda pod: pod.spread(
            chance.randint(1, 2), chance.choice((HOSTNAME_LABEL, ZONE_LABEL)), app=chance.choice(_APPS)
        ),
        lambda pod: pod.host_network(host_users=chance.choice((None, False, True))),
        lambda pod: pod.terminating(),
    )
    return _some(_some(pod, steps, 0.5, chance), rare, 0.15, chance)


def _some(start: T, steps: Sequence[Callable[[T], T]], share: float, chance: random.Random) -> T:
    for step in steps:
        if chance.random() < share:
            start = step(start)
    return start
