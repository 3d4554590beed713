"""Rows are hypotheses: a column has for each row what counting the row's pods would give."""

import random
from collections.abc import Callable

import numpy as np
from hypothesis import given, settings, strategies as st

from extender.engine.snapshot import Attribute, PodChanges, Rows, Snapshot
from extender.engine.snapshot.pod_attributes import LabelClass, PodSymbol, host_ports, label_class
from extender.testing import make_cache, make_node, make_pod, make_snapshot, random_cluster
from extender.values.objects.pod import Pod
from extender.values.objects.resource_amounts import assigned_requests
from tests.extender.moves import moves, slot_of
from tests.kit.examples import examples
from tests.kit.tables import cases

PORT = ("0.0.0.0", "TCP", 80)


def is_web(symbol: PodSymbol) -> int:
    return int(isinstance(symbol, LabelClass) and ("app", "web") in symbol.labels)


def two_nodes() -> Snapshot:
    """n1 with pods a and b, n2 with c."""
    pods = [
        make_pod("a").req(cpu=1).label(app="web").node("n1"),
        make_pod("b").req(cpu=2).node("n1"),
        make_pod("c").req(cpu=4).node("n2"),
    ]
    return make_snapshot(make_node("n1").capacity(cpu=8).label(rank="1"), make_node("n2").capacity(cpu=16), pods=pods)


def cpu(rows: Rows) -> list[int]:
    return [int(milli) // 1000 for milli in rows.requested[:, 0]]


def pods_on(rows: Rows, row: int) -> list[str]:
    return [pod.name for pod in rows.node_info(row).pods]


def test_rows_are_the_nodes_as_they_are() -> None:
    rows = Rows.of(two_nodes())

    assert rows.names == ["n1", "n2"]
    assert cpu(rows) == [3, 4]
    assert rows.pod_count.tolist() == [2, 1]
    assert rows.tally(Attribute.LABELS, "web", is_web).tolist() == [1, 0]
    assert rows.allocatable[:, 0].tolist() == [8000, 16000]
    assert rows.is_all
    assert not rows.is_hypothetical


def test_rows_can_be_some_nodes_in_any_order_and_more_than_once() -> None:
    rows = Rows.of(two_nodes(), np.array([1, 0, 1]))

    assert rows.names == ["n2", "n1", "n2"]
    assert cpu(rows) == [4, 3, 4]


def test_taking_rows_renumbers_them() -> None:
    rows = Rows.of(two_nodes())

    by_mask, by_index = rows.take(np.array([False, True])), rows.take(np.array([1]))

    assert by_mask.names == by_index.names == ["n2"]
    assert cpu(by_mask) == cpu(by_index) == [4]
    assert not by_mask.is_all


def test_a_pod_leaves_one_row_and_comes_to_another() -> None:
    snapshot = two_nodes()
    a = slot_of(snapshot, "a")

    moved = Rows.of(snapshot).changed(moves((0, a, -1), (1, a, +1)))

    assert cpu(moved) == [2, 5]
    assert moved.pod_count.tolist() == [1, 2]
    assert moved.tally(Attribute.LABELS, "web", is_web).tolist() == [0, 1]
    assert (pods_on(moved, 0), pods_on(moved, 1)) == (["b"], ["c", "a"])
    assert moved.is_hypothetical


def test_the_node_itself_stays_what_it_is() -> None:
    snapshot = two_nodes()

    moved = Rows.of(snapshot).changed(moves((0, slot_of(snapshot, "a"), -1)))

    assert moved.allocatable[:, 0].tolist() == [8000, 16000]
    assert cpu(Rows.of(snapshot)) == [3, 4]


def test_no_changes_change_nothing() -> None:
    rows = Rows.of(two_nodes())

    assert rows.changed(moves()) is rows


def test_hypotheses_build_on_one_another() -> None:
    """As in the dry run of preemption: everybody leaves, then one comes back."""
    snapshot = two_nodes()
    a, b = slot_of(snapshot, "a"), slot_of(snapshot, "b")

    emptied = Rows.of(snapshot).changed(moves((0, a, -1), (0, b, -1)))
    reprieved = emptied.take(np.array([0])).changed(moves((0, b, +1)))

    assert (cpu(emptied), cpu(reprieved)) == ([0, 4], [2])
    assert pods_on(reprieved, 0) == ["b"]


def test_a_pod_that_comes_back_is_the_last_of_its_node() -> None:
    snapshot = make_snapshot(make_node("n"), pods=[make_pod(name).node("n") for name in "abc"])
    a = slot_of(snapshot, "a")

    back = Rows.of(snapshot).changed(moves((0, a, -1))).changed(moves((0, a, +1)))

    assert pods_on(back, 0) == ["b", "c", "a"]


def test_declaring_rows_distinct_changes_no_sum() -> None:
    snapshot = two_nodes()
    changes = moves((0, slot_of(snapshot, "a"), -1), (1, slot_of(snapshot, "c"), -1))
    promised = PodChanges(changes.row, changes.pod, changes.sign, rows_are_distinct=True)

    rows = Rows.of(snapshot)

    assert cpu(rows.changed(promised)) == cpu(rows.changed(changes)) == [2, 0]


def test_a_tally_knows_by_how_much_the_row_differs_from_its_node() -> None:
    """Questions that look across nodes take the rest of the cluster from the snapshot."""
    snapshot = two_nodes()
    a, rows = slot_of(snapshot, "a"), Rows.of(snapshot)

    moved = rows.changed(moves((0, a, -1), (1, a, +1)))

    assert rows.tally_change(Attribute.LABELS, "web", is_web) is None
    difference = moved.tally_change(Attribute.LABELS, "web", is_web)
    assert difference is not None
    assert difference.tolist() == [-1, 1]


@cases(
    "changes, in_use",
    ("as it is", [], [True, False]),
    ("a leaving pod frees it", [("holds", 0, -1)], [False, False]),
    ("a coming pod takes it", [("holds", 0, -1), ("wants", 0, +1)], [True, False]),
    ("others do not matter", [("other", 0, -1)], [True, False]),
    ("on the row it comes to", [("wants", 1, +1)], [True, True]),
)
def test_host_ports(changes: list[tuple[str, int, int]], in_use: list[bool]) -> None:
    running = [make_pod(name).host_port(port).node("n1") for name, port in (("holds", 80), ("other", 81))]
    cache = make_cache(make_node("n1"), make_node("n2"), pods=running)
    wants = cache.nominate(make_pod("wants").host_port(80).obj())
    snapshot = cache.update_snapshot()
    slots = {"wants": wants, **{name: slot_of(snapshot, name) for name in ("holds", "other")}}

    rows = Rows.of(snapshot).changed(moves(*((row, slots[name], sign) for name, row, sign in changes)))

    assert rows.uses_port(PORT).tolist() == in_use


@cases(
    "label, number",
    ("a number", "7", 7),
    ("a negative one", "-7", -7),
    ("no label", None, -1),
    ("an empty one", "", -1),
    ("a word", "seven", -1),
    ("a fraction", "7.0", -1),
    ("a space", " 7", -1),
    ("an underscore", "1_000", -1),
    ("the largest int64", "9223372036854775807", 2**63 - 1),
    ("one more", "9223372036854775808", -1),
    ("as long as a label can be", "9" * 63, -1),
)
def test_labels_are_read_as_numbers(label: str | None, number: int) -> None:
    """What is no int64 is as good as missing; one odd label must not keep the others from being read."""
    odd = make_node("odd").label({} if label is None else {"rank": label})

    rows = Rows.of(make_snapshot(odd, make_node("even").label(rank="2")))

    assert rows.label_number("rank", default=-1).tolist() == [number, 2]


def test_number_of_each_label_value_is_read_for_the_nodes_with_it() -> None:
    """The last number is for nodes without the label. A label may number the nodes, as hostnames do, and may change."""
    nodes = [make_node(name).label(host=name) for name in ("a", "b", "c")]
    cache = make_cache(*nodes)
    number_of = {"a": 10, "b": 20, "c": 30, "x": 40, None: 50}

    def numbers(*places: int) -> list[int]:
        rows = Rows.of(cache.update_snapshot(), np.array(places) if places else None)
        column = rows.snapshot.nodes.label("host")
        return [*map(int, rows.of_values(column, np.array([number_of[value] for value in [*column.values, None]])))]

    before = numbers(), numbers(2, 0)
    cache.update_node(nodes[1].obj(), make_node("b").label(host="x").obj())
    renamed = numbers(), numbers(1, 1, 2)
    cache.update_node(nodes[0].obj(), make_node("a").obj())
    unlabelled = numbers(), numbers(0, 1)

    assert before == ([10, 20, 30], [30, 10])
    assert renamed == ([10, 40, 30], [40, 40, 30])
    assert unlabelled == ([50, 40, 30], [50, 40])


def test_rows_have_a_readable_repr() -> None:
    snapshot = two_nodes()

    rows = Rows.of(snapshot).take(np.array([0])).changed(moves((0, slot_of(snapshot, "a"), -1)))

    assert repr(rows) == "<Rows [1 of 2 nodes, 1 hypotheses]>"


# Any hypothesis.


class Hypothesis:
    """Rows made by chance, and beside them a list of pods per row, moved one by one."""

    def __init__(self, chance: random.Random) -> None:
        cluster = random_cluster(chance)
        cache = make_cache(*cluster.nodes, pods=cluster.pods)
        self.waiting = [cache.nominate(pod) for pod in cluster.arrivals]
        self.snapshot = cache.update_snapshot()
        self.chance = chance
        self.rows = Rows.of(self.snapshot)
        self.slots = [list(slots) for slots in self.snapshot.pods.on_node]

    def step(self) -> None:
        self.chance.choice((self.take, self.change, self.read))()

    def take(self) -> None:
        """Some rows, in any order; a row may be taken twice, for two hypotheses over one node."""
        index = [self.chance.randrange(len(self.slots)) for _ in range(self.chance.randrange(6))] if self.slots else []
        if self.chance.random() < 0.3:
            index = [row for row in range(len(self.slots)) if self.chance.random() < 0.7]
        self.rows = self.rows.take(np.array(index, np.intp))
        self.slots = [list(self.slots[row]) for row in index]

    def change(self) -> None:
        """Some pods leave, then some come: those that wait, and those that left, some of them several times."""
        changes: list[tuple[int, int, int]] = []
        for row, slots in enumerate(self.slots):
            elsewhere = [slot for slot in self.known_slots() if slot not in slots]
            for slot in [slot for slot in slots if self.chance.random() < 0.3]:
                slots.remove(slot)
                changes.append((row, slot, -1))
            for slot in elsewhere:
                if self.chance.random() < 0.2:
                    times = self.chance.choice((1, 1, 3))
                    slots.extend([slot] * times)
                    changes.append((row, slot, times))
        self.rows = self.rows.changed(moves(*changes))

    def read(self) -> None:
        """A column that was read before further changes is a column that is kept."""
        assert len(self.rows.requested) == len(self.rows.tally(Attribute.LABELS, "web", is_web)) == len(self.slots)

    def known_slots(self) -> list[int]:
        return [*self.waiting, *(slot for slots in self.snapshot.pods.on_node for slot in slots)]

    def pods(self, row: int) -> list[Pod]:
        return [self.snapshot.pod_at(slot) for slot in self.slots[row]]

    def summed(self, amount: Callable[[Pod], int]) -> list[int]:
        return [sum(amount(pod) for pod in self.pods(row)) for row in range(len(self.slots))]


def spelled_out(rows: Rows) -> list[list[Pod]]:
    return [list(rows.node_info(row).pods) for row in range(len(rows))]


def milli_cpu(pod: Pod) -> int:
    return assigned_requests(pod)[0].milli_cpu


@settings(deadline=None, max_examples=examples(150))
@given(st.randoms(use_true_random=False))
def test_a_column_is_what_counting_the_rows_pods_gives(chance: random.Random) -> None:
    """After any steps of taking and changing, whichever columns were read on the way."""
    hypothesis = Hypothesis(chance)
    for _ in range(chance.randrange(6)):
        hypothesis.step()

    rows, snapshot = hypothesis.rows, hypothesis.snapshot
    assert spelled_out(rows) == [hypothesis.pods(row) for row in range(len(rows))]
    assert rows.pod_count.tolist() == hypothesis.summed(lambda pod: 1)
    assert rows.requested[:, 0].tolist() == hypothesis.summed(milli_cpu)
    assert rows.non_zero_requested[:, 1].tolist() == hypothesis.summed(lambda pod: assigned_requests(pod)[2])
    web = rows.tally(Attribute.LABELS, "web", is_web)
    assert web.tolist() == hypothesis.summed(lambda pod: int(pod.labels.get("app") == "web"))
    ports = rows.tally(Attribute.HOST_PORTS, "ports", lambda symbol: len(symbol) if isinstance(symbol, tuple) else 0)
    assert ports.tolist() == hypothesis.summed(lambda pod: len(host_ports(pod)))
    labels = snapshot.tallies.symbols[Attribute.LABELS]
    assert [{labels[code] for code in codes} for codes in rows.codes_on(range(len(rows)), Attribute.LABELS)] == [
        {label_class(pod) for pod in hypothesis.pods(row)} for row in range(len(rows))
    ]
    assert rows.names == [snapshot.nodes.objects[place].name for place in rows.node.tolist()]
    assert rows.allocatable.tolist() == snapshot.nodes.allocatable[rows.node].tolist()
    change_of_web = rows.tally_change(Attribute.LABELS, "web", is_web)
    if change_of_web is not None:
        as_it_is = snapshot.tally(Attribute.LABELS, "web", is_web).per_node[rows.node]
        assert (as_it_is + change_of_web).tolist() == web.tolist()


@settings(deadline=None, max_examples=examples(100))
@given(st.randoms(use_true_random=False))
def test_taking_and_changing_commute(chance: random.Random) -> None:
    """Changing some rows and taking them out is taking them out and changing them."""
    hypothesis = Hypothesis(chance)
    rows, slots = hypothesis.rows, hypothesis.known_slots()
    chosen = np.array([row for row in range(len(rows)) if chance.random() < 0.5], np.intp)
    came = [(row, slot, +1) for row in range(len(rows)) for slot in slots if chance.random() < 0.3]

    changed_first = rows.changed(moves(*came)).take(chosen)
    place = {row: place for place, row in enumerate(chosen.tolist())}
    came_to_chosen = ((place[row], slot, sign) for row, slot, sign in came if row in place)
    taken_first = rows.take(chosen).changed(moves(*came_to_chosen))

    assert changed_first.requested.tolist() == taken_first.requested.tolist()
    assert changed_first.pod_count.tolist() == taken_first.pod_count.tolist()
    assert changed_first.uses_port(PORT).tolist() == taken_first.uses_port(PORT).tolist()
    assert spelled_out(changed_first) == spelled_out(taken_first)


@settings(deadline=None, max_examples=examples(100))
@given(st.randoms(use_true_random=False))
def test_changes_to_one_row_leave_the_others_unchanged(chance: random.Random) -> None:
    """Two hypotheses in step are two hypotheses: changes to one row leave all others as they were."""
    hypothesis = Hypothesis(chance)
    rows, slots = hypothesis.rows, hypothesis.known_slots()
    changed_row = chance.randrange(len(rows))
    rest = np.array([row for row in range(len(rows)) if row != changed_row], np.intp)

    changed = rows.changed(moves(*((changed_row, slot, +1) for slot in slots)))

    assert changed.take(rest).requested.tolist() == rows.take(rest).requested.tolist()
    assert changed.take(rest).uses_port(PORT).tolist() == rows.take(rest).uses_port(PORT).tolist()
