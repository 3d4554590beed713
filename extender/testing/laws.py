"""The laws of `FilterPlugin`, checked on random hypotheses.

check_filter(MyPlugin(), make_snapshot(...), make_pod("p").obj(), random.Random(1), arrivals=[make_pod("q").obj()])
"""

import itertools
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from extender.engine.cache import Cache
from extender.engine.framework import CycleState, EachNodeFilterPlugin, FilterPlugin, PreFilterPlugin, Status, Verdicts
from extender.engine.runtime.each_node import EachNodeFilter
from extender.engine.snapshot import PodChanges, Rows, Snapshot
from extender.engine.snapshot.axes import Index
from extender.values.objects.decoding import replaced
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
    """Checks that the plugin keeps the laws of `FilterPlugin` for this pod and cluster, under hypotheses drawn with
    `chance`.

    1. A row is an honest hypothesis: filtering a changed row gives what the row's node gives once those pods really
       moved.
    2. Rows do not talk: filtering some of the rows gives those rows the same answers.
    3. A plugin that promises not to look at pods gives changed rows the same answers.

    Arguments:
        snapshot: the cluster; it is copied, not read later.
        arrivals: pods that may be added to a node; pods of the cluster may be removed from theirs.

    Raises:
        AssertionError: a law is broken; with the law, the node, both answers and the pods that moved.
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
    """Returns two hypotheses, one on top of the other. Within each, pods are removed before others are added, as with
    `PodChanges`.

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
    some: Index = np.array([row for row in range(len(rows)) if chance.random() < 0.5], np.intp)
    alone = plugin.filter(state, pod, rows.take(some))
    for place, row in enumerate(some.tolist()):
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
