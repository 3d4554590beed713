"""Many sets of labels are matched with a selector at once, and each as it would be by itself."""

import pytest
from hypothesis import given, settings, strategies as st

from extender.values.objects.label_selectors import NOTHING, Operator, Requirement, Selector, selector_with
from extender.values.objects.label_sets import LabelSets, as_bits, places_of
from tests.kit.examples import examples

KEYS, VALUES = st.sampled_from(["app", "tier", "zone"]), st.sampled_from(["a", "b", "c", "1", "20"])
REQUIREMENTS = st.one_of(
    st.builds(
        Requirement,
        KEYS,
        st.sampled_from([Operator.IN, Operator.NOT_IN]),
        st.lists(VALUES, min_size=1, max_size=4).map(tuple),
    ),
    st.builds(
        Requirement, KEYS, st.sampled_from([Operator.EQUALS, Operator.NOT_EQUALS]), VALUES.map(lambda value: (value,))
    ),
    st.builds(Requirement, KEYS, st.sampled_from([Operator.EXISTS, Operator.DOES_NOT_EXIST])),
    st.builds(Requirement, KEYS, st.sampled_from([Operator.GREATER_THAN, Operator.LESS_THAN]), st.just(("5",))),
)
MANY = tuple(f"v{number}" for number in range(40))
PADDING = st.sampled_from(
    [
        [],
        [Requirement("app", Operator.NOT_IN, MANY)],
        [Requirement("tier", Operator.IN, ("a", *MANY))],
        [Requirement(f"absent-{number}", Operator.DOES_NOT_EXIST) for number in range(40)],
        [Requirement(f"needed-{number}", Operator.EXISTS) for number in range(40)],
    ]
)


@settings(deadline=None, max_examples=examples(400))
@given(st.lists(st.dictionaries(KEYS, VALUES), max_size=20), st.lists(REQUIREMENTS, max_size=4), PADDING, st.booleans())
def test_each_set_of_labels_is_selected_as_by_itself(
    sets: list[dict[str, str]], parts: list[Requirement], longer: list[Requirement], knows_keys: bool
) -> None:
    """By short selectors and by long ones, and also if only the labels that they name are looked at."""
    selector = selector_with([*parts, *longer])
    index = LabelSets({requirement.key for requirement in selector.requirements} if knows_keys else None)
    for labels in sets:
        index.add(labels.items())

    selected = index.selected(selector)

    assert places_of(selected) == [place for place, labels in enumerate(sets) if selector.matches(labels)]


@pytest.mark.parametrize("selector", [NOTHING, Selector(), selector_with([Requirement("app", Operator.EXISTS)])])
def test_index_without_sets_selects_nothing(selector: Selector) -> None:
    assert not LabelSets().selected(selector)


def test_sets_that_come_later_are_selected_too() -> None:
    index, selector = LabelSets(), selector_with([Requirement("app", Operator.NOT_IN, ("a",))])
    places = [index.add({"app": value}.items()) for value in "ab"]
    before = index.selected(selector)
    places.append(index.add({"app": "c"}.items()))

    assert (places, len(index)) == ([0, 1, 2], 3)
    assert (places_of(before), places_of(index.selected(selector))) == ([1], [1, 2])


@given(st.sets(st.integers(0, 300)))
def test_bits_stand_for_places(places: set[int]) -> None:
    assert places_of(as_bits([*places])) == sorted(places)
