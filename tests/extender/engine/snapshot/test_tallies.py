"""A tally is the sum of a question's answers per node, kept up to date as pods come and go."""

import random

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from extender.engine.snapshot import Attribute
from extender.engine.snapshot.axes import Int64s
from extender.engine.snapshot.pod_attributes import LabelClass, PodSymbol
from extender.engine.snapshot.symbols import LabelIndex
from extender.engine.snapshot.tallies import (
    JOURNAL_LENGTH,
    KEPT_COLUMNS,
    KEPT_PER_ATTRIBUTE,
    KEPT_VALUES,
    Tallies,
    classes_relevant_to,
)
from extender.testing import make_cache, make_node, make_pod, make_snapshot
from extender.values.objects.label_selectors import selector_of
from extender.values.objects.meta import LabelSelector, LabelSelectorRequirement
from tests.kit.examples import examples

WEB, DB = (LabelClass("default", frozenset({("app", app)}), False) for app in ("web", "db"))


def is_web(symbol: PodSymbol) -> int:
    return int(symbol == WEB)


class Pods:
    """Pods that move between nodes, and the tallies that are told about it."""

    def __init__(self, num_nodes: int, tallies: Tallies | None = None) -> None:
        self.num_nodes = num_nodes
        self.tallies = tallies or Tallies()
        self.codes: list[int] = []
        self.node: list[int] = []
        self.moved = 0

    def come(self, symbol: LabelClass, node: int) -> int:
        """One more pod; its slot."""
        self.codes.append(self.tallies.symbols[Attribute.LABELS].intern(symbol))
        self.node.append(-1)
        self.move(len(self.node) - 1, node)
        return len(self.node) - 1

    def move(self, slot: int, node: int) -> None:
        """Off the node it is on, if any, and onto this one, unless it is -1."""
        for place, sign in ((self.node[slot], -1), (node, +1)):
            if place >= 0:
                self.tallies.count(Attribute.LABELS, self.codes[slot], place, sign)
                self.moved += 1
        self.node[slot] = node

    def web(self) -> list[int]:
        """What the tally says of pods with app=web."""
        tally = self.tallies.of(
            Attribute.LABELS,
            "web",
            is_web,
            None,
            np.array(self.node, np.intp),
            np.array(self.codes, np.int32),
            self.num_nodes,
        )
        return [int(count) for count in tally.per_node]

    def web_counted(self) -> list[int]:
        """The same, counted pod by pod."""
        symbols = self.tallies.symbols[Attribute.LABELS]
        counts = [0] * self.num_nodes
        for code, node in zip(self.codes, self.node, strict=True):
            if node >= 0 and symbols[code] == WEB:
                counts[node] += 1
        return counts


def test_a_question_is_summed_per_node() -> None:
    pods = Pods(2)
    for symbol, node in ((WEB, 0), (WEB, 0), (DB, 0), (WEB, 1)):
        pods.come(symbol, node)

    assert pods.web() == [2, 1]


def test_pods_that_come_and_go_are_counted_in_and_out() -> None:
    pods = Pods(2)
    first = pods.come(WEB, 0)
    before = pods.web()
    pods.come(WEB, 1)
    pods.move(first, 1)
    after = pods.web()

    assert (before, after) == ([1, 0], [0, 2])


def test_symbols_that_appear_later_are_weighed_when_they_appear() -> None:
    pods = Pods(1)
    pods.come(DB, 0)
    before = pods.web()
    pods.come(WEB, 0)

    assert (before, pods.web()) == ([0], [1])


def test_a_question_is_asked_once_per_symbol() -> None:
    """Not once per pod, and not again for symbols that are known."""
    symbols: list[PodSymbol] = []

    def one(symbol: PodSymbol) -> int:
        symbols.append(symbol)
        return 1

    cache = make_cache(make_node("n"), pods=[make_pod(f"p{number}").label(app="web").node("n") for number in range(5)])

    for _ in range(2):
        cache.update_snapshot().tally(Attribute.LABELS, "asked", one)

    assert symbols == [WEB]


@pytest.mark.parametrize("moves", [1, JOURNAL_LENGTH, JOURNAL_LENGTH + 1, 2 * JOURNAL_LENGTH, 3 * JOURNAL_LENGTH + 7])
def test_a_tally_that_missed_more_than_the_journal_holds_is_summed_anew(moves: int) -> None:
    pods = Pods(3)
    slot = pods.come(WEB, 0)
    pods.web()
    for turn in range(moves):
        pods.move(slot, turn % 3)

    assert pods.web() == pods.web_counted()


@settings(deadline=None, max_examples=examples(100))
@given(st.randoms(use_true_random=False))
def test_a_tally_is_the_sum_over_the_pods(chance: random.Random) -> None:
    """Whenever it is asked, and whatever moved since it was asked last."""
    pods = Pods(3)
    for _ in range(chance.randrange(60)):
        match chance.choice(("come", "move", "ask", "renumber")):
            case "come":
                pods.come(chance.choice((WEB, DB)), chance.randrange(-1, 3))
            case "move" if pods.node:
                pods.move(chance.randrange(len(pods.node)), chance.randrange(-1, 3))
            case "ask":
                assert pods.web() == pods.web_counted()
            case "renumber" if chance.random() < 0.2:
                pods.node = [2 - node if node >= 0 else node for node in pods.node]
                pods.tallies.forget()

    assert pods.web() == pods.web_counted()


def test_the_sums_cannot_be_written_to() -> None:
    tally = make_snapshot(make_node("n")).tally(Attribute.LABELS, "web", is_web)

    with pytest.raises(ValueError, match="read-only"):
        tally.per_node[0] = 1


def test_the_least_recently_read_questions_are_dropped() -> None:
    """A forgotten question is simply asked again."""
    snapshot = make_snapshot(make_node("n"), pods=[make_pod("p").node("n")])
    questions: list[object] = []

    def ask(question: int) -> int:
        def one(_: PodSymbol) -> int:
            questions.append(question)
            return 1

        return int(snapshot.tally(Attribute.LABELS, question, one).per_node[0])

    answers = [ask(question) for question in (0, *range(1, KEPT_PER_ATTRIBUTE), 0, KEPT_PER_ATTRIBUTE, 0, 1)]

    assert set(answers) == {1}
    assert questions == [*range(KEPT_PER_ATTRIBUTE + 1), 1]


def test_long_questions_are_remembered_within_a_bound_of_what_they_name() -> None:
    """Pods of a megabyte ask questions that take as much memory as a thousand others."""
    snapshot = make_snapshot(make_node("n"), pods=[make_pod("p").node("n")])
    numbers: list[int] = []

    def ask(number: int, length: int) -> int:
        def one(_: PodSymbol) -> int:
            numbers.append(number)
            return 1

        return int(snapshot.tally(Attribute.LABELS, (number, tuple(range(length))), one).per_node[0])

    answers = [ask(number, KEPT_VALUES // 3) for number in (0, 1, 2, 1, 0, 2)]
    longest = [ask(9, 2 * KEPT_VALUES), ask(9, 2 * KEPT_VALUES)]

    assert {*answers, *longest} == {1}
    assert numbers == [0, 1, 2, 0, 2, 9]


def test_weights_are_read_by_code_and_a_missing_symbol_weighs_nothing() -> None:
    snapshot = make_snapshot(make_node("n"), pods=[make_pod(app).label(app=app).node("n") for app in ("web", "db")])

    tally = snapshot.tally(Attribute.LABELS, "web", is_web)

    codes = snapshot.tallies.symbols[Attribute.LABELS]
    assert [int(tally.weights[code]) for code in (codes.code_of(WEB), codes.code_of(DB), -1)] == [1, 0, 0]
    assert tally.weights.any()
    assert not snapshot.tally(Attribute.LABELS, "nothing", lambda _: 0).weights.any()


def test_weights_that_were_read_are_read_again_when_symbols_come() -> None:
    cache = make_cache(make_node("n"))
    read = []
    for app in ("web", "db"):
        cache.add_pod(make_pod(app).label(app=app).node("n").obj())
        read.append(cache.update_snapshot().tally(Attribute.LABELS, "any", lambda _: 7).weights.tolist())

    assert read == [[7, 0], [7, 7, 0]]


SELECTORS = [
    pytest.param(LabelSelector(match_labels={"app": "web"}), id="one label"),
    pytest.param(LabelSelector(match_labels={"app": "web", "tier": "1"}), id="two labels"),
    pytest.param(
        LabelSelector(match_expressions=[LabelSelectorRequirement("app", "In", ["web", "db", "web"])]), id="In"
    ),
    pytest.param(LabelSelector(match_expressions=[LabelSelectorRequirement("app", "NotIn", ["web"])]), id="NotIn"),
    pytest.param(LabelSelector(match_expressions=[LabelSelectorRequirement("tier", "Exists")]), id="Exists"),
    pytest.param(LabelSelector(), id="everything"),
    pytest.param(None, id="nothing"),
]


@pytest.mark.parametrize("label_selector", SELECTORS)
def test_relevant_codes_change_no_sum(label_selector: LabelSelector | None) -> None:
    """Asking only the classes that the index of labels names gives what asking every class gives, also when classes
    come later.
    """
    selector = selector_of(label_selector)

    def selected(symbol: PodSymbol) -> int:
        return int(isinstance(symbol, LabelClass) and selector.matches(dict(symbol.labels)))

    cache = make_cache(make_node("n"))
    answers: list[tuple[Int64s, Int64s]] = []
    pods = [{"app": "web"}, {"app": "db", "tier": "1"}, {}, {"app": "web", "tier": "1"}, {"tier": "2"}]
    for number, labels in enumerate(pods):
        cache.add_pod(make_pod(f"p{number}").label(labels).node("n").obj())
        snapshot = cache.update_snapshot()
        in_full = snapshot.tally(Attribute.LABELS, "in full", selected)
        cut_short = snapshot.tally(Attribute.LABELS, "cut short", selected, classes_relevant_to(selector))
        answers.append((in_full.per_node.copy(), cut_short.per_node.copy()))

    assert all((in_full == cut_short).all() for in_full, cut_short in answers)


def test_the_index_names_each_class_once() -> None:
    tallies = Tallies()
    symbols = tallies.symbols[Attribute.LABELS]
    codes = [symbols.intern(symbol) for symbol in (WEB, DB)]

    either = selector_of(LabelSelector(match_expressions=[LabelSelectorRequirement("app", "In", ["web", "db"])]))

    assert sorted(tallies.index(Attribute.LABELS, LabelIndex).candidates(either)) == codes


@settings(deadline=None)
@given(st.randoms(use_true_random=False))
def test_sums_by_the_value_of_a_label_follow_pods_and_labels(chance: random.Random) -> None:
    """Pods come and go, and nodes get another zone or lose it. The sums by zone are always those of the nodes that are
    in the zone now.
    """
    nodes = {name: make_node(name).label(zone=chance.choice("xy")).obj() for name in "abc"}
    cache = make_cache(*nodes.values())
    for number in range(chance.randrange(1, 20)):
        name = chance.choice("abc")
        if chance.random() < 0.7:
            cache.add_pod(make_pod(f"p{number}").label(app=chance.choice(("web", "db"))).node(name).obj())
        elif chance.random() < 0.5 and cache.pods:
            cache.remove_pod(chance.choice(cache.pods))
        else:
            old, zones = nodes[name], {"zone": chance.choice("xyz")} if chance.random() < 0.7 else {}
            nodes[name] = make_node(name).label(zones).obj()
            cache.update_node(old, nodes[name])
        snapshot = cache.update_snapshot()
        if chance.random() < 0.5:
            continue

        tally, zone = snapshot.tally(Attribute.LABELS, "web", is_web), snapshot.nodes.label("zone")
        by_value = tally.by_value(zone)
        expected = dict.fromkeys((*zone.values, None), 0)
        for pod in cache.pods:
            expected[nodes[pod.spec.node_name].metadata.labels.get("zone")] += pod.labels["app"] == "web"
        assert dict(zip((*zone.values, None), by_value.tolist(), strict=True)) == expected
        assert tally.per_node.sum() == by_value.sum()
        assert tally.positive_by_value(zone).tolist() == (by_value > 0).tolist()
        assert zone.present.tolist() == ["zone" in node.metadata.labels for node in snapshot.nodes.objects]
        assert zone.is_everywhere == zone.present.all()


def test_sums_by_value_are_kept_for_a_few_labels() -> None:
    """Any pod may spread over any label: the sums of one question are kept for the last few of them."""
    keys = [f"key{number}" for number in range(2 * KEPT_COLUMNS)]
    cache = make_cache(make_node("n").label(dict.fromkeys(keys, "x")), pods=[make_pod("p").label(app="web").node("n")])
    for _ in range(2):
        snapshot = cache.update_snapshot()
        tally = snapshot.tally(Attribute.LABELS, "web", is_web)
        sums = [tally.by_value(snapshot.nodes.label(key)).tolist() for key in keys]
        assert sums == [[len(cache.pods), 0]] * len(keys)
        cache.assume_pod(make_pod(f"q{len(cache.pods)}").label(app="web").node("n").obj())
