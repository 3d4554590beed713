"""Which victims would break a PodDisruptionBudget."""

from random import Random

import numpy as np
from hypothesis import given, settings, strategies as st

from extender.engine.preemption import V1_36
from extender.engine.preemption.budgets import broken_budgets, violating
from extender.testing import PodBuilder, make_node, make_pod, make_snapshot
from extender.values import limits
from extender.values.objects.decoding import convert
from extender.values.objects.grouping import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from extender.values.objects.label_selectors import selector_of
from extender.values.objects.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta
from tests.kit.examples import examples
from tests.kit.tables import cases


def budget(
    allowed: int,
    selector: LabelSelector | None = LabelSelector(match_labels={"app": "web"}),  # noqa: B008  (frozen)
    *,
    namespace: str = "default",
    disrupted: tuple[str, ...] = (),
    name: str = "b",
) -> PodDisruptionBudget:
    """So many disruptions are still allowed."""
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=name, namespace=namespace),
        spec=PodDisruptionBudgetSpec(selector=selector),
        status=PodDisruptionBudgetStatus(
            disruptions_allowed=allowed, disrupted_pods=dict.fromkeys(disrupted, "2026-01-01T00:00:00Z")
        ),
    )


WEB, DB, BARE = make_pod().label(app="web"), make_pod().label(app="db"), make_pod()


def marks(pods: list[PodBuilder], budgets: list[PodDisruptionBudget], rows: list[int] | None = None) -> str:
    """An x for every pod that violates a budget; the pods in order of importance, row by row."""
    rows = rows or [0] * len(pods)
    named_pods = [pods[place].name(f"p{place}").node(f"n{row}").obj() for place, row in enumerate(rows)]
    snapshot = make_snapshot(*(make_node(f"n{row}") for row in sorted(set(rows))), pods=named_pods, objects=budgets)
    slots = np.array([snapshot.pods.slots[pod.uid] for pod in named_pods], np.intp)
    return "".join("x" if violates else "." for violates in violating(snapshot, slots, np.array(rows, np.intp), V1_36))


@cases(
    "pods, budgets, violate",
    ("no budget", [WEB, WEB], [], ".."),
    ("enough for all", [WEB, WEB], [budget(2)], ".."),
    ("the most important use it up", [WEB, WEB, WEB], [budget(1)], ".xx"),
    ("nothing allowed", [WEB], [budget(0)], "x"),
    ("less than nothing", [WEB], [budget(-3)], "x"),
    ("other pods do not count", [DB, WEB], [budget(0)], ".x"),
    ("nor those of other namespaces", [WEB.namespace("other")], [budget(0)], "."),
    ("which have budgets of their own", [WEB.namespace("other")], [budget(0, namespace="other")], "x"),
)
def test_a_budget_is_used_up_by_the_most_important_pods(
    pods: list[PodBuilder], budgets: list[PodDisruptionBudget], violate: str
) -> None:
    assert marks(pods, budgets) == violate


EXISTS, NOT_DB, NO_APP, ODD = (
    LabelSelector(match_expressions=[LabelSelectorRequirement("app", operator, values)])
    for operator, values in (("Exists", []), ("NotIn", ["db"]), ("DoesNotExist", []), ("Sometimes", []))
)


@cases(
    "selector, violate",
    ("no selector selects nothing", None, "..."),
    ("an empty one selects every pod", LabelSelector(), "xxx"),
    ("empty labels", convert(LabelSelector, {"matchLabels": {}}), "xxx"),
    ("null lists", convert(LabelSelector, {"matchLabels": None, "matchExpressions": None}), "xxx"),
    ("an expression", EXISTS, "xx."),
    ("NotIn selects pods without labels", NOT_DB, "x.x"),
    ("and so does DoesNotExist", NO_APP, "..x"),
    ("one that cannot be parsed protects nothing", ODD, "..."),
)
def test_budget_counts_only_the_victims_that_its_selector_selects(selector: LabelSelector | None, violate: str) -> None:
    assert marks([WEB, DB, BARE], [budget(0, selector)]) == violate


_KEYS = st.sampled_from(["app", "tier", "old"])
_VALUES = st.sampled_from(["web", "db", "x"])
_SELECTORS = st.builds(
    LabelSelector,
    st.dictionaries(st.sampled_from(["app", "tier"]), _VALUES, max_size=1),
    st.lists(
        st.one_of(
            st.builds(
                LabelSelectorRequirement,
                _KEYS,
                st.sampled_from(["In", "NotIn"]),
                st.lists(_VALUES, min_size=1, max_size=9),
            ),
            st.builds(LabelSelectorRequirement, _KEYS, st.sampled_from(["Exists", "DoesNotExist"]), st.just([])),
        ),
        max_size=3,
    ),
)


@settings(deadline=None, max_examples=examples(100))
@given(st.lists(st.dictionaries(_KEYS, _VALUES), min_size=1, max_size=8), st.lists(_SELECTORS, min_size=1, max_size=3))
def test_a_pod_violates_a_used_up_budget_whose_selector_matches_it(
    labels: list[dict[str, str]], selectors: list[LabelSelector]
) -> None:
    pods = [make_pod().label(**pod_labels) for pod_labels in labels]

    marked = marks(pods, [budget(0, selector, name=f"b{place}") for place, selector in enumerate(selectors)])

    selecting = [*map(selector_of, selectors)]
    assert marked == "".join("x" if any(it.matches(pod_labels) for it in selecting) else "." for pod_labels in labels)


def test_every_budget_that_selects_a_pod_is_charged() -> None:
    """Also after another one was broken by it: upstream does not stop at the first."""
    web, all_of_them = budget(0, name="web"), budget(1, EXISTS, name="all")

    # The first pod breaks `web` and takes the one that `all` allows; so the second, which is none of web's, breaks
    # `all`.
    assert marks([WEB, DB], [web, all_of_them]) == "xx"
    assert marks([WEB, DB], [all_of_them, web]) == "xx"


def test_pods_that_are_being_disrupted_are_off_the_budget_already() -> None:
    """The API server has counted them."""
    assert marks([WEB, WEB], [budget(0, disrupted=("p0",))]) == ".x"


def test_nodes_do_not_share_a_budget() -> None:
    """Only one of them will be chosen."""
    assert marks([WEB, WEB, WEB, DB, WEB], [budget(1)], rows=[0, 0, 1, 2, 2]) == ".x..."


def test_thousands_of_budgets_are_counted_as_one_after_the_other_would_be() -> None:
    """Each selects many pods, few or none, and allows none to be evicted, a few or many."""
    chance = Random(1)
    pods = [
        make_pod().label(app=f"app-{number % 40}", half=str(number % 2), third=str(number % 3)) for number in range(90)
    ]
    rows = [row for row, length in enumerate((5, 50, 1, 34)) for _ in range(length)]
    selectors = [
        lambda: LabelSelector({}, [LabelSelectorRequirement("app", "NotIn", [f"app-{chance.randrange(45)}"])]),
        lambda: LabelSelector({"app": f"app-{chance.randrange(45)}"}),
        lambda: LabelSelector(
            {"half": "1"}, [LabelSelectorRequirement("third", "In", ["0", str(chance.randrange(4))])]
        ),
    ]
    budgets = [
        budget(
            chance.choice([0, 1, 3, 12, 25, 30, 48, 60]),
            chance.choice(selectors)(),
            name=f"b{number}",
            namespace=chance.choice(["default"] * 9 + ["other"]),
            disrupted=tuple(f"p{chance.randrange(90)}" for _ in range(chance.choice([0] * 9 + [3]))),
        )
        for number in range(2500)
    ]
    generous = [pdb for pdb in budgets if pdb.status.disruptions_allowed > 11]

    assert marks(pods, generous, rows) == one_by_one(pods, generous, rows)
    assert marks(pods, budgets, rows) == one_by_one(pods, budgets, rows)


def one_by_one(pods: list[PodBuilder], budgets: list[PodDisruptionBudget], rows: list[int]) -> str:
    """What upstream does, budget by budget."""
    violate: set[int] = set()
    for pdb in budgets:
        selector, counts = selector_of(pdb.spec.selector), dict.fromkeys(rows, pdb.status.disruptions_allowed)
        for place, row in enumerate(rows):
            is_its = pdb.metadata.namespace == "default" and f"p{place}" not in pdb.status.disrupted_pods
            if is_its and selector.matches(pods[place].obj().labels):
                counts[row] -= 1
                if counts[row] < 0:
                    violate.add(place)
    return "".join("x" if place in violate else "." for place in range(len(pods)))


@cases(
    "budgets, names",
    ("in their order", [budget(1, name="b1"), budget(0, name="b0")], {"p0": ("b0",), "p1": ("b1", "b0")}),
    (
        "of many those that allow the fewest",
        [budget(1, name="b"), *(budget(0, name=f"b{number:02}") for number in range(100))],
        dict.fromkeys(("p0", "p1"), tuple(f"b{number:02}" for number in range(limits.BUDGETS_NAMED))),
    ),
    ("none", [budget(2)], {}),
)
def test_the_budgets_that_an_eviction_violates_are_named(
    budgets: list[PodDisruptionBudget], names: dict[str, tuple[str, ...]]
) -> None:
    pods = [WEB.name(f"p{place}").node("n").obj() for place in range(2)]
    snapshot = make_snapshot(make_node("n"), pods=pods, objects=budgets)

    broken = broken_budgets(snapshot, snapshot.all_nodes, make_pod("preemptor").priority(1).obj(), V1_36)

    assert {pod.name: broken[pod.uid] for pod in pods if pod.uid in broken} == names


def test_no_victims_violate_no_budget() -> None:
    assert marks([], [budget(0)]) == ""
