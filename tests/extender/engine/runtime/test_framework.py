"""What the framework makes of what PreFilter and Filter plugins say."""

import numpy as np
import pytest

from extender.engine import framework as fwk
from extender.engine.runtime.cycle import NO_NOMINATIONS, Cycle, Nominations
from extender.engine.runtime.plugin_calls import PluginError
from extender.engine.snapshot import Rows, Snapshot
from extender.testing import PodBuilder, make_cache, make_framework, make_node, make_pod, make_snapshot
from tests.extender.plugins_by_table import Answers, Holds, Looks, NeedsCompany, Refuses, raising
from tests.kit.places import without_place
from tests.kit.tables import cases

POD = make_pod("p").obj()
NO, NEVER, LATER = fwk.unschedulable("no"), fwk.unresolvable("never"), fwk.Status(fwk.Code.PENDING, ("later",))


def nodes(*names: str) -> Snapshot:
    return make_snapshot(*(make_node(name) for name in names))


def statuses(verdicts: fwk.Verdicts, rows: Rows) -> dict[str, fwk.Status]:
    """Node -> answer, for the nodes that are refused."""
    return {name: verdicts.status_of(row) for row, name in enumerate(rows.names) if not verdicts.ok[row]}


# PreFilter.


@cases(
    "plugins, names, narrowed_by",
    ("no plugin narrows: all nodes", [Looks("A")], None, ()),
    ("one narrows", [Looks("A", fwk.SUCCESS, "a", "b")], {"a", "b"}, ("A",)),
    (
        "two: what both leave",
        [Looks("B", fwk.SUCCESS, "a", "b"), Looks("X"), Looks("A", fwk.SUCCESS, "b", "c")],
        {"b"},
        ("A", "B"),
    ),
    ("a skipping plugin does not narrow", [Looks("A", fwk.SKIP, "a"), Looks("B", fwk.SUCCESS, "b")], {"b"}, ("B",)),
)
def test_pre_filters_narrow_the_search_together(
    plugins: list[Looks], names: set[str] | None, narrowed_by: tuple[str, ...]
) -> None:
    framework = make_framework(*plugins)

    outcome = Cycle(framework, nodes("a", "b", "c"), POD).run_pre_filter_plugins()

    assert outcome.status == fwk.SUCCESS
    assert outcome.node_names == names
    assert outcome.narrowed_by == narrowed_by


@cases(
    "plugins, message",
    ("by one", [Looks("A", fwk.SUCCESS, "*")], "node(s) didn't satisfy plugin A"),
    (
        "by two",
        [Looks("B", fwk.SUCCESS, "a"), Looks("A", fwk.SUCCESS, "b")],
        "node(s) didn't satisfy plugin(s) [A B] simultaneously",
    ),
)
def test_a_search_that_is_narrowed_to_nothing_is_over(plugins: list[Looks], message: str) -> None:
    """It cannot be helped, and no plugin after those is asked."""
    after = Looks("C")
    framework = make_framework(*plugins, after)

    outcome = Cycle(framework, nodes("a", "b"), POD).run_pre_filter_plugins()

    assert outcome.status == fwk.unresolvable(message)
    assert after.looked == 0


@cases(
    "says, status, looked",
    ("all content", [fwk.SUCCESS, fwk.SUCCESS, fwk.SUCCESS], fwk.SUCCESS, 3),
    ("unschedulable: the others look all the same", [NO, fwk.SUCCESS, fwk.SUCCESS], NO.by("P0"), 3),
    ("the last one that says so", [NO, NO, fwk.SUCCESS], NO.by("P1"), 3),
    ("unresolvable: no other plugin runs", [NEVER, fwk.SUCCESS, fwk.SUCCESS], NEVER.by("P0"), 1),
    ("unresolvable goes before unschedulable", [NO, fwk.SUCCESS, NEVER], NEVER.by("P2"), 3),
)
def test_a_pre_filter_that_refuses_is_named(says: list[fwk.Status], status: fwk.Status, looked: int) -> None:
    """Preemption wants to see what all plugins keep, unless there will be none."""
    plugins = [Looks(f"P{place}", answer) for place, answer in enumerate(says)]
    framework = make_framework(*plugins)

    outcome = Cycle(framework, nodes("a"), POD).run_pre_filter_plugins()

    assert outcome.status == status
    assert sum(plugin.looked for plugin in plugins) == looked


def test_a_pre_filter_that_refuses_does_not_narrow() -> None:
    framework = make_framework(Looks("A", NO, "a"), Looks("B", fwk.SUCCESS, "a", "b"))

    outcome = Cycle(framework, nodes("a", "b"), POD).run_pre_filter_plugins()

    assert outcome.status == NO.by("A")
    assert (outcome.node_names, outcome.narrowed_by) == (frozenset("ab"), ("B",))


@pytest.mark.parametrize("last", [fwk.SUCCESS, NO, NEVER])
def test_filter_of_a_plugin_that_skipped_does_not_run(last: fwk.Status) -> None:
    """Also when a later PreFilter refuses: preemption filters, too."""
    skips, stays = Looks("A", fwk.SKIP), Looks("B")
    framework = make_framework(skips, stays, Looks("C", last))
    state = Cycle(framework, nodes("a"), POD)

    state.run_pre_filter_plugins()
    state.run_filter_plugins(Rows.of(state.snapshot))

    assert state.skip_filter_plugins == {"A"}
    assert (skips.filtered, stays.filtered) == (0, 1)


# Filter.


def test_rows_are_narrowed_plugin_by_plugin() -> None:
    """A row that was refused is not asked about again, so that its reason is the first one."""
    first, second, third = Refuses("A", {"a": NO, "b": NEVER}), Refuses("B", {"a": NEVER, "c": LATER}), Refuses("C")
    framework = make_framework(first, second, third)
    rows = Rows.of(nodes("a", "b", "c", "d"))

    verdicts = Cycle(framework, rows.snapshot, POD).run_filter_plugins(rows)

    assert statuses(verdicts, rows) == {"a": NO.by("A"), "b": NEVER.by("A"), "c": LATER.by("B")}
    assert (first.asked, second.asked, third.asked) == ([["a", "b", "c", "d"]], [["c", "d"]], [["d"]])


def test_filter_is_not_called_when_no_row_is_left() -> None:
    after = Refuses("B")
    framework = make_framework(Refuses("A", {"a": NO}), after)
    snapshot = nodes("a")

    Cycle(framework, snapshot, POD).run_filter_plugins(Rows.of(snapshot))

    assert after.asked == []


def test_without_filters_every_row_passes() -> None:
    framework = make_framework()
    snapshot = nodes("a", "b")

    assert Cycle(framework, snapshot, POD).run_filter_plugins(Rows.of(snapshot)).all_ok


def test_a_row_keeps_all_reasons_of_the_plugin_that_refused_it() -> None:
    both = fwk.unschedulable("Insufficient cpu", "Insufficient memory")
    one = fwk.unschedulable("Insufficient memory")
    framework = make_framework(Refuses("A", {"a": both, "b": one}), Refuses("B", {"c": NO}))
    rows = Rows.of(nodes("a", "b", "c"))

    verdicts = Cycle(framework, rows.snapshot, POD).run_filter_plugins(rows)

    assert [tuple(verdicts.reasons_of(row)) for row in range(3)] == [both.reasons, one.reasons, NO.reasons]


class Cordons(fwk.FilterPlugin):
    """Refuses everything, whatever pods are there."""

    looks_at_pods = False

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        return fwk.reject(np.ones(len(rows), np.bool_), "cordoned")


def test_rows_that_differ_only_in_their_pods_need_not_be_asked_everything_again() -> None:
    """Preemption asks about the same nodes with other pods, often."""
    framework, snapshot = make_framework(Cordons, Holds(0)), nodes("a")
    state, rows = Cycle(framework, snapshot, POD), Rows.of(snapshot)

    assert state.run_filter_plugins(rows).reasons_of(0) == ["cordoned"]
    assert state.run_filter_plugins(rows, only_pods_changed=True).reasons_of(0) == ["full"]


# Filter with nominated pods.


@cases(
    "nominated, fits",
    ("as important: the place is taken", make_pod("other").priority(5), False),
    ("more important: the place is taken", make_pod("other").priority(6), False),
    ("less important: the place may be taken from it", make_pod("other").priority(4), True),
    ("the pod itself", make_pod("p").priority(5), True),
)
def test_a_nominated_pod_counts_for_pods_that_are_not_more_important(nominated: PodBuilder, fits: bool) -> None:
    cache = make_cache(make_node("a"))
    nominations = Nominations({"a": ((cache.nominate(nominated.obj()), nominated.obj()),)})
    snapshot = cache.update_snapshot()
    framework = make_framework(Holds(1))
    state = Cycle(framework, snapshot, make_pod("p").priority(5).obj(), nominations)

    verdicts = state.run_filters_with_nominated_pods(Rows.of(snapshot))

    assert verdicts.all_ok == fits


def nominated_to_a() -> tuple[Snapshot, Nominations]:
    """Two nodes without pods; a pod is nominated to the first."""
    cache, other = make_cache(make_node("a"), make_node("b")), make_pod("other").obj()
    nominations = Nominations({"a": ((cache.nominate(other), other),), "gone": ((cache.nominate(other), other),)})
    return cache.update_snapshot(), nominations


def test_rows_with_nominated_pods_must_pass_without_them_too() -> None:
    """Nothing says that the nominated pods will really come."""
    snapshot, nominations = nominated_to_a()
    framework = make_framework(NeedsCompany)
    rows = Rows.of(snapshot)

    verdicts = Cycle(framework, snapshot, POD, nominations).run_filters_with_nominated_pods(rows)

    assert statuses(verdicts, rows) == dict.fromkeys("ab", fwk.unschedulable("lonely").by("NeedsCompany"))


def test_only_rows_that_passed_with_nominated_pods_are_asked_without_them() -> None:
    snapshot, nominations = nominated_to_a()
    roomy, tight = Holds(2), Holds(1)
    for plugin in (roomy, tight):
        state = Cycle(make_framework(plugin), snapshot, POD, nominations)
        state.run_filters_with_nominated_pods(Rows.of(snapshot))

    assert roomy.seen == [[1, 0], [0]]
    assert tight.seen == [[1, 0]]


def test_without_nominated_pods_rows_are_asked_once() -> None:
    once = Holds(1)
    framework, snapshot = make_framework(once), nodes("a", "b")
    Cycle(framework, snapshot, POD, NO_NOMINATIONS).run_filters_with_nominated_pods(Rows.of(snapshot))

    assert once.seen == [[0, 0]]


def test_a_nominated_pod_is_on_every_row_of_its_node() -> None:
    """Rows may be several hypotheses over one node."""
    snapshot, nominations = nominated_to_a()
    framework = make_framework(Holds(1))
    rows = Rows.of(snapshot, np.array([0, 1, 0]))

    verdicts = Cycle(framework, snapshot, POD, nominations).run_filters_with_nominated_pods(rows)

    assert verdicts.ok.tolist() == [False, True, False]


# Plugins that go wrong. The sentences are upstream's; what comes after the colon is ours where Go's types rule the case
# out.


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        pytest.param(raising(ValueError("boom")), "boom", id="it raises"),
        pytest.param(lambda: fwk.PreFilterResult(fwk.error("boom")), "boom", id="an error"),
        pytest.param(lambda: fwk.PreFilterResult(LATER), "later", id="pending is no answer here"),
        pytest.param(lambda: fwk.SUCCESS, "it returned Status, not PreFilterResult", id="a Status"),
        pytest.param(lambda: fwk.PreFilterResult(True), "it returned bool, not Status", id="yes"),  # type: ignore[arg-type]
        pytest.param(
            lambda: fwk.PreFilterResult(fwk.SUCCESS, ["a"]),  # type: ignore[arg-type]
            "it returned list, not frozenset",
            id="a list of nodes",
        ),
    ],
)
def test_a_pre_filter_that_goes_wrong_fails_the_cycle_in_its_own_name(answer: object, message: str) -> None:
    framework = make_framework(Answers("pre_filter", answer))  # type: ignore[arg-type]

    with pytest.raises(PluginError) as caught:
        Cycle(framework, nodes("a"), POD).run_pre_filter_plugins()

    expected = f'running PreFilter plugin "Answers": {message}'
    assert (caught.value.plugin, without_place(str(caught.value))) == ("Answers", expected)


TWO_ROWS = np.array([True, False])
NO_INTEGERS, NO_BOOLEANS = (f"it returned no array of 2 {kind}, one a row" for kind in ("integers", "booleans"))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        pytest.param(raising(ZeroDivisionError("division by zero")), "division by zero", id="it raises"),
        pytest.param(lambda: fwk.Verdicts(np.array([1, 0], np.int8), (("boom", TWO_ROWS),)), "boom", id="an error"),
        pytest.param(
            lambda: fwk.Verdicts(np.array([5, 0], np.int8)), "it answered code 5", id="skip is no answer here"
        ),
        pytest.param(lambda: fwk.Verdicts(np.array([99, 0], np.int8)), "it answered code 99", id="no code at all"),
        pytest.param(lambda: fwk.SUCCESS, "it returned Status, not Verdicts", id="a Status"),
        pytest.param(lambda: fwk.accept(3), NO_INTEGERS, id="too many rows"),
        pytest.param(lambda: fwk.Verdicts([0, 0]), NO_INTEGERS, id="a list"),  # type: ignore[arg-type]
        pytest.param(lambda: fwk.Verdicts(np.array([np.nan, 2.0])), NO_INTEGERS, id="floats, and not a number"),
        pytest.param(
            lambda: fwk.Verdicts(np.array([2, 0], np.int8), (("no", np.array([True])),)),
            NO_BOOLEANS,
            id="a reason for one row",
        ),
        pytest.param(lambda: fwk.reject(np.array([2, 0]), "no"), NO_BOOLEANS, id="a mask of numbers"),
        pytest.param(
            lambda: fwk.Verdicts(np.array([2, 0], np.int8), ("no",)),  # type: ignore[arg-type]
            NO_BOOLEANS,
            id="a reason without its rows",
        ),
    ],
)
def test_a_filter_that_goes_wrong_fails_the_cycle_in_its_own_name(answer: object, message: str) -> None:
    snapshot = nodes("a", "b")
    framework = make_framework(Answers("filter", answer))  # type: ignore[arg-type]

    with pytest.raises(PluginError) as caught:
        Cycle(framework, snapshot, POD).run_filter_plugins(Rows.of(snapshot))

    expected = f'running "Answers" filter plugin: {message}'
    assert (caught.value.plugin, without_place(str(caught.value))) == ("Answers", expected)


def test_the_cause_is_kept() -> None:
    framework, snapshot = make_framework(Answers("filter", raising(KeyError("x")))), nodes("a")

    with pytest.raises(PluginError) as caught:
        Cycle(framework, snapshot, POD).run_filter_plugins(Rows.of(snapshot))

    assert isinstance(caught.value.__cause__, KeyError)


def test_the_next_pod_does_not_notice() -> None:
    """What a plugin does wrong for one pod is forgotten with that pod's cycle."""
    answers = iter((fwk.SUCCESS, fwk.accept(1)))
    framework, snapshot = make_framework(Answers("filter", lambda: next(answers))), nodes("a")
    with pytest.raises(PluginError):
        Cycle(framework, snapshot, POD).run_filter_plugins(Rows.of(snapshot))

    assert Cycle(framework, snapshot, POD).run_filter_plugins(Rows.of(snapshot)).all_ok


def test_a_state_without_a_framework_has_no_snapshot_and_no_filters() -> None:
    for ask in (
        lambda: fwk.CycleState().snapshot,
        lambda: fwk.CycleState().run_filters_with_nominated_pods(Rows.of(nodes("a"))),
    ):
        with pytest.raises(RuntimeError, match="belongs to no cycle"):
            ask()
