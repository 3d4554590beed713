"""Which units of pods violate budgets when all of them go for a pod group: the budgets after one that is used up are
not asked.
"""

from random import Random

import numpy as np
import pytest

from extender.engine.preemption.pod_group_victims import VictimUnits, violates_budgets
from extender.engine.snapshot.axes import Mask
from extender.testing import PodBuilder, make_node, make_pod, make_snapshot
from extender.values.objects.grouping import PodDisruptionBudget
from extender.values.objects.label_selectors import selector_of
from extender.values.objects.meta import LabelSelector, LabelSelectorRequirement
from tests.extender.engine.preemption.test_budgets import DB, WEB, budget
from tests.kit.tables import cases


def violating(units: list[list[PodBuilder]], budgets: list[PodDisruptionBudget]) -> Mask:
    """The units in order of importance, and which of them violate a budget."""
    named_pods = [
        pod.name(f"p{unit}-{place}").node("n").obj()
        for unit, pods in enumerate(units)
        for place, pod in enumerate(pods)
    ]
    snapshot = make_snapshot(make_node("n"), pods=named_pods, objects=budgets)
    slots = np.array([snapshot.pods.slots[pod.uid] for pod in named_pods], np.intp)
    first = np.r_[0, np.cumsum([len(pods) for pods in units])].astype(np.intp)
    return violates_budgets(VictimUnits(snapshot, slots, first, np.arange(len(units)), np.zeros(len(units), np.int64)))


EXISTS = LabelSelector(match_expressions=[LabelSelectorRequirement("app", "Exists", [])])


@cases(
    "units, budgets, expected",
    ("no budgets", [[WEB], [WEB]], [], [0, 0]),
    ("the most important use it up", [[WEB], [DB], [WEB]], [budget(1)], [0, 0, 1]),
    ("all pods of a unit count", [[WEB, WEB], [WEB]], [budget(2)], [0, 1]),
    ("a unit violates a budget if one of its pods does", [[WEB, WEB, WEB]], [budget(1)], [1]),
    ("later budgets are not asked", [[WEB], [DB]], [budget(0, name="web"), budget(1, EXISTS, name="all")], [1, 0]),
    ("earlier ones were", [[WEB], [DB]], [budget(1, EXISTS, name="all"), budget(0, name="web")], [1, 1]),
    ("eviction already granted", [[WEB], [WEB]], [budget(0, disrupted=("p0-0",))], [0, 1]),
)
def test_units_use_budgets_up(
    units: list[list[PodBuilder]], budgets: list[PodDisruptionBudget], expected: list[int]
) -> None:
    assert violating(units, budgets).tolist() == [bool(flag) for flag in expected]


@pytest.mark.parametrize("seed", range(5))
def test_violations_of_units_equal_those_counted_pod_by_pod(seed: int) -> None:
    chance = Random(seed)
    units = [
        [
            make_pod().label(**({"app": f"app-{chance.randrange(6)}"} if chance.random() < 0.9 else {}))
            for _ in range(chance.choice([1, 1, 3]))
        ]
        for _ in range(40)
    ]
    excluding = [
        LabelSelector(match_expressions=[LabelSelectorRequirement("app", "NotIn", [f"app-{number}"])])
        for number in range(8)
    ]
    excluding.append(LabelSelector())
    budgets = [budget(chance.randrange(30), chance.choice(excluding), name=f"b{number}") for number in range(20)]

    allowed, expected = [pdb.status.disruptions_allowed for pdb in budgets], []
    for unit in units:
        for pod in unit:
            matching = [
                place for place, pdb in enumerate(budgets) if selector_of(pdb.spec.selector).matches(pod.obj().labels)
            ]
            refused = next((place for place in matching if allowed[place] <= 0), None)
            for place in matching if refused is None else matching[: matching.index(refused)]:
                allowed[place] -= 1
            if refused is not None:
                expected.append(True)
                break
        else:
            expected.append(False)

    assert violating(units, budgets).tolist() == expected
