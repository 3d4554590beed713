"""A pod goes where its tolerations let it."""

import itertools
import random

import pytest

from extender.values.objects.node import Taint
from extender.values.objects.pod import Toleration
from extender.values.objects.tolerations import Tolerations, find_untolerated_taint, tolerates
from tests.kit.tables import cases

TAINT = Taint(key="dedicated", value="batch", effect="NoSchedule")


@cases(
    "toleration, is_covered",
    ("word for word", Toleration(key="dedicated", value="batch", effect="NoSchedule"), True),
    ("any effect", Toleration(key="dedicated", operator="Equal", value="batch"), True),
    ("any value", Toleration(key="dedicated", operator="Exists"), True),
    ("any taint", Toleration(operator="Exists"), True),
    ("any key with that value", Toleration(value="batch"), True),
    ("an empty one wants the empty value", Toleration(), False),
    ("another value", Toleration(key="dedicated", value="web"), False),
    ("another key", Toleration(key="other", operator="Exists"), False),
    ("another effect", Toleration(key="dedicated", operator="Exists", effect="NoExecute"), False),
    ("an operator that is none", Toleration(key="dedicated", operator="exists"), False),
    ("comparisons are switched off", Toleration(key="dedicated", operator="Gt", value="1"), False),
)
def test_toleration_covers_taint_when_effect_key_and_value_agree(toleration: Toleration, is_covered: bool) -> None:
    """An effect, key or value that the toleration leaves empty agrees with all."""
    assert tolerates(toleration, TAINT) is is_covered


def covers(toleration: Toleration, taint: Taint, *, compares: bool) -> bool:
    """The rule, read off upstream's ToleratesTaint word by word."""
    if (toleration.effect or taint.effect) != taint.effect or (toleration.key or taint.key) != taint.key:
        return False
    if compares and toleration.operator in ("Lt", "Gt"):
        if not all(value.isdecimal() and str(int(value)) == value for value in (toleration.value, taint.value)):
            return False
        limit, number = int(toleration.value), int(taint.value)
        return number < limit if toleration.operator == "Lt" else number > limit
    return toleration.operator == "Exists" or (toleration.operator in ("", "Equal") and toleration.value == taint.value)


@pytest.mark.parametrize("compares", [False, True])
def test_many_tolerations_cover_what_one_of_them_covers(compares: bool) -> None:
    chance = random.Random(7)
    keys, values, effects = ("a", "b", ""), ("", "1", "5", "9", "x", "05"), ("NoSchedule", "NoExecute", "")
    for _ in range(300):
        tolerations = [
            Toleration(
                key=chance.choice(keys),
                operator=chance.choice(("Exists", "Equal", "", "Lt", "Gt", "exists")),
                value=chance.choice(values),
                effect=chance.choice(effects),
            )
            for _ in range(chance.randrange(4))
        ]
        together = Tolerations(tolerations)
        for key, value, effect in itertools.product(keys, values, effects[:2]):
            taint = Taint(key=key, value=value, effect=effect)

            assert together.cover(taint, compares=compares) is any(
                covers(one, taint, compares=compares) for one in tolerations
            )


def test_the_first_taint_in_the_way() -> None:
    """The first taint that no toleration covers is found, among those of the effects asked about."""
    liked_less = Taint(key="old", effect="PreferNoSchedule")
    leaving = Taint(key="gone", effect="NoExecute")
    taints = [liked_less, TAINT, leaving]

    assert find_untolerated_taint(taints, Tolerations([])) == TAINT
    assert find_untolerated_taint(taints, Tolerations([Toleration(key="dedicated", operator="Exists")])) == leaving
    assert find_untolerated_taint(taints, Tolerations([Toleration(operator="Exists")])) is None
    assert find_untolerated_taint(taints, Tolerations([]), effects=("PreferNoSchedule",)) == liked_less
    assert find_untolerated_taint(taints, Tolerations([]), effects=None) == liked_less
    assert find_untolerated_taint([], Tolerations([])) is None
