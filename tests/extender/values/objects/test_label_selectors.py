"""Label selectors are values: they match, print, compare and narrow down."""

import pytest
from hypothesis import given, settings, strategies as st

from extender.values.objects.label_selectors import (
    EVERYTHING,
    NOTHING,
    Operator,
    Requirement,
    Selector,
    SelectorError,
    requirement_of,
    selector_from_labels,
    selector_of,
    selector_with,
    with_requirements,
)
from extender.values.objects.label_syntax import parse_selector
from extender.values.objects.meta import LabelSelector, LabelSelectorRequirement
from tests.kit.examples import examples
from tests.kit.tables import cases


def expression(key: str, operator: str, *values: str) -> LabelSelector:
    return LabelSelector(match_expressions=[LabelSelectorRequirement(key=key, operator=operator, values=list(values))])


@cases(
    "operator, values, absent, empty, a, c",
    ("in", Operator.IN, ("a", "b"), False, False, True, False),
    ("not in holds without the label", Operator.NOT_IN, ("a", "b"), True, True, False, True),
    ("an empty value is a value", Operator.EQUALS, ("",), False, True, False, False),
    ("not equal holds without the label", Operator.NOT_EQUALS, ("a",), True, True, False, True),
    ("exists", Operator.EXISTS, (), False, True, True, True),
    ("does not exist", Operator.DOES_NOT_EXIST, (), True, False, False, False),
)
def test_a_requirement_on_a_label(
    operator: Operator, values: tuple[str, ...], absent: bool, empty: bool, a: bool, c: bool
) -> None:
    """A requirement is asked about a value, where None means that the label is missing."""
    requirement = Requirement("app", operator, values)

    assert [requirement.matches_value(value) for value in (None, "", "a", "c")] == [absent, empty, a, c]


@cases(
    "value, greater, less",
    ("more", "6", True, False),
    ("the same is neither", "5", False, False),
    ("signs and leading zeros are read", "+04", False, True),
    ("a fraction is no integer", "5.5", False, False),
    ("nor is what only Python reads", "1_0", False, False),
    ("nor are digits of another script", "\u0667", False, False),
    ("nor is what an int64 cannot hold", "9223372036854775808", False, False),
    ("zeros in front do not matter", "0" * 100_000 + "6", True, False),
    ("nor does the length of what is no int64", "9" * 100_000, False, False),
    ("no label", None, False, False),
)
def test_greater_and_less(value: str | None, greater: bool, less: bool) -> None:
    """Labels compare as int64s; what is none never matches."""
    assert Requirement("n", Operator.GREATER_THAN, ("5",)).matches_value(value) is greater
    assert Requirement("n", Operator.LESS_THAN, ("5",)).matches_value(value) is less


def test_missing_selector_selects_nothing_and_empty_one_everything() -> None:
    assert selector_of(None) == NOTHING
    assert selector_of(LabelSelector()) == EVERYTHING
    assert (NOTHING.matches({"a": "b"}), NOTHING.is_empty) == (False, False)
    assert (EVERYTHING.matches({}), EVERYTHING.is_empty) == (True, True)
    assert NOTHING != EVERYTHING


def test_selectors_are_values() -> None:
    """Selectors that say the same in the same words are one dict key, in whatever order their keys were written."""
    one = selector_of(LabelSelector(match_labels={"app": "web", "tier": "x"}))
    other = selector_of(LabelSelector(match_labels={"tier": "x", "app": "web"}))

    assert {one: 1}[other] == 1
    assert str(one) == "app=web,tier=x"
    assert one == selector_from_labels({"tier": "x", "app": "web"})


def test_match_label_keys_narrow_a_selector() -> None:
    """Further labels must be there as well; a selector of nothing stays that."""
    selector = with_requirements(parse_selector("app=web"), {"version": "2", "aaa": ""})

    assert str(selector) == "aaa in (),app=web,version in (2)"
    assert selector.matches({"app": "web", "version": "2", "aaa": ""})
    assert not selector.matches({"app": "web", "version": "1", "aaa": ""})
    assert with_requirements(NOTHING, {"a": "b"}) == NOTHING
    assert with_requirements(EVERYTHING, {}) == EVERYTHING


@cases(
    "selector, error",
    ("unknown operator", expression("a", "Near", "b"), '"Near" is not a valid label selector operator'),
    ("an operator of node selectors", expression("a", "Gt", "1"), '"Gt" is not a valid label selector operator'),
    (
        "no values",
        expression("a", "In"),
        "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
    ),
    ("bad key", expression("a/", "Exists"), 'key: Invalid value: "a/": name part must be non-empty; name part must'),
    ("bad value", LabelSelector(match_labels={"a": "b "}), 'values[0][a]: Invalid value: "b ": a valid label must be'),
    (
        "long",
        LabelSelector(match_labels={"a": "b" * 64}),
        f'values[0][a]: Invalid value: "{"b" * 64}": must be no more',
    ),
    ("not ASCII", LabelSelector(match_labels={"a": "é"}), 'values[0][a]: Invalid value: "é": a valid label must be'),
    ("a line break", LabelSelector(match_labels={"a": "b\n"}), 'values[0][a]: Invalid value: "b\\n": a valid'),
)
def test_refused_selectors(selector: LabelSelector, error: str) -> None:
    with pytest.raises(SelectorError) as refusal:
        selector_of(selector)

    assert str(refusal.value).startswith(error)


def test_all_faults_of_a_requirement_are_reported() -> None:
    with pytest.raises(SelectorError) as refusal:
        requirement_of("", Operator.GREATER_THAN, ["x", "y"], path="spec")

    first, *rest = str(refusal.value).split(", spec.")
    assert first.startswith('[spec.key: Invalid value: "": name part must be non-empty; ')
    assert rest == [
        "values: Invalid value: [\"x\",\"y\"]: for 'Gt', 'Lt' operators, exactly one value is required",
        "values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer",
        "values[1]: Invalid value: \"y\": for 'Gt', 'Lt' operators, the value must be an integer]",
    ]


@pytest.mark.parametrize(
    ("operator", "error"),
    [
        *(
            (operator, "values: Invalid value: null: for 'in', 'notin' operators, values set")
            for operator in (Operator.IN, Operator.NOT_IN)
        ),
        *(
            (operator, "values: Invalid value: []: for 'Gt', 'Lt' operators, exactly one value")
            for operator in (Operator.GREATER_THAN, Operator.LESS_THAN)
        ),
        (Operator.EQUALS, "values: Invalid value: null: exact-match compatibility requires one single value"),
    ],
)
def test_a_requirement_without_values_is_refused_in_the_words_for_its_operator(operator: Operator, error: str) -> None:
    with pytest.raises(SelectorError) as refusal:
        requirement_of("a", operator, [])

    assert str(refusal.value).startswith(error)


names = st.sampled_from(["a", "b", "in", "notin", "x.y/z"])
values = st.sampled_from(["", "a", "b", "in", "7"])
requirements = st.one_of(
    st.builds(Requirement, names, st.sampled_from([Operator.EXISTS, Operator.DOES_NOT_EXIST])),
    st.builds(
        Requirement,
        names,
        st.sampled_from([Operator.IN, Operator.NOT_IN]),
        st.sets(values, min_size=1).map(lambda chosen: tuple(sorted(chosen))),
    ),
    st.builds(
        Requirement,
        names,
        st.sampled_from([Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.NOT_EQUALS]),
        values.map(lambda one: (one,)),
    ),
    st.builds(Requirement, names, st.sampled_from([Operator.GREATER_THAN, Operator.LESS_THAN]), st.just(("7",))),
)


@settings(deadline=None, max_examples=examples(200))
@given(st.lists(requirements, max_size=4))
def test_the_text_of_a_selector_reads_back(parts: list[Requirement]) -> None:
    selector = selector_with(parts)

    assert parse_selector(str(selector)) == selector


many_values = tuple(f"v{number}" for number in range(100))
padding = st.sampled_from(
    [
        [Requirement("absent", Operator.NOT_IN, many_values)],
        [Requirement(f"absent-{number}", Operator.DOES_NOT_EXIST) for number in range(100)],
    ]
)


@settings(deadline=None, max_examples=examples(200))
@given(st.lists(requirements, max_size=4), padding, st.dictionaries(names, values), st.booleans())
def test_a_long_selector_matches_as_its_requirements_do(
    parts: list[Requirement], longer: list[Requirement], labels: dict[str, str], has_many: bool
) -> None:
    """A selector of a hundred requirements or values, most of which always hold, selects what the others select."""
    if has_many:
        labels |= {f"other-{number}": "x" for number in range(200)}

    is_selected = selector_with([*parts, *longer]).matches(labels)

    assert is_selected == all(requirement.matches_value(labels.get(requirement.key)) for requirement in parts)


@settings(deadline=None, max_examples=examples(300))
@given(st.text(alphabet="ab/.-_ \t\n\0()=!,<>inot1é", max_size=40))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        selector = parse_selector(text)
    except SelectorError as exc:
        assert str(exc)
    else:
        assert isinstance(selector, Selector)


@cases(
    "text, canonical",
    ("blanks do not matter", " a , b ", "a,b"),
    ("a missing value is the empty one", "x in (b,,a)", "x in (,a,b)"),
    ("two missing values are one", "x in (,)", "x in ()"),
    ("no value is the empty value", "x notin ()", "x notin ()"),
    ("equal to nothing", "a=,b", "a=,b"),
    ("words that are operators elsewhere", "in in (in)", "in in (in)"),
    ("every symbol", "a==b,!c,d!=e,f>1,g<2", "a==b,!c,d!=e,f>1,g<2"),
    ("a NUL parts words", "a\0b", None),
    ("and ends the text where one should begin", "a,\0", None),
    ("not, but what", "!", None),
    ("in what", "a in", None),
    ("open forever", "a in (b", None),
    ("an operator for a value", "a in (=)", None),
    ("not is no operator between words", "a ! b", None),
)
def test_selector_syntax(text: str, canonical: str | None) -> None:
    """Texts are read as upstream's parser reads them; None: refused."""
    try:
        read: str | None = str(parse_selector(text))
    except SelectorError:
        read = None

    assert read == canonical
