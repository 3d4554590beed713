"""A pod goes where its tolerations let it."""

import pytest

from extender.objects.node import Taint
from extender.objects.pod import Toleration
from extender.objects.tolerations import find_untolerated_taint, tolerates

TAINT = Taint(key="dedicated", value="batch", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "covers"),
    [
        pytest.param(Toleration(key="dedicated", value="batch", effect="NoSchedule"), True, id="word for word"),
        pytest.param(Toleration(key="dedicated", operator="Equal", value="batch"), True, id="any effect"),
        pytest.param(Toleration(key="dedicated", operator="Exists"), True, id="any value"),
        pytest.param(Toleration(operator="Exists"), True, id="any taint"),
        pytest.param(Toleration(value="batch"), True, id="any key with that value"),
        pytest.param(Toleration(), False, id="an empty one wants the empty value"),
        pytest.param(Toleration(key="dedicated", value="web"), False, id="another value"),
        pytest.param(Toleration(key="other", operator="Exists"), False, id="another key"),
        pytest.param(Toleration(key="dedicated", operator="Exists", effect="NoExecute"), False, id="another effect"),
        pytest.param(Toleration(key="dedicated", operator="exists"), False, id="an operator that is none"),
        pytest.param(Toleration(key="dedicated", operator="Gt", value="1"), False, id="comparisons are switched off"),
    ],
)
def test_what_a_toleration_covers(toleration: Toleration, covers: bool) -> None:
    """
    A toleration covers a taint when effect, key and value agree; what it leaves empty agrees with all.
    """
    assert tolerates(toleration, TAINT) is covers


def test_the_first_taint_in_the_way() -> None:
    """
    The first taint that no toleration covers is found, among those of the effects asked about.
    """
    liked_less = Taint(key="old", effect="PreferNoSchedule")
    leaving = Taint(key="gone", effect="NoExecute")
    taints = [liked_less, TAINT, leaving]

    assert find_untolerated_taint(taints, []) == TAINT
    assert find_untolerated_taint(taints, [Toleration(key="dedicated", operator="Exists")]) == leaving
    assert find_untolerated_taint(taints, [Toleration(operator="Exists")]) is None
    assert find_untolerated_taint(taints, [], effects=("PreferNoSchedule",)) == liked_less
    assert find_untolerated_taint(taints, [], effects=None) == liked_less
    assert find_untolerated_taint([], []) is None
