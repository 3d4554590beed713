"""Numbers, times and names as people read them."""

import pytest

from api.ui.resources import STEPS, Priorities
from api.ui.wording import (
    HIDDEN as SOMEBODY,
    ago,
    breakable,
    cores,
    plural,
    pod_words,
    priority_words,
    requested,
    share,
    size,
)
from tests.api.ui.samples import HIDDEN, NOW, pod_name, seconds_ago


@pytest.mark.parametrize(
    ("milli", "words"), [(0, "0"), (100, "0.1"), (1500, "1.5"), (4000, "4"), (12_345_678, "12,345.678")]
)
def test_cores(milli: int, words: str) -> None:
    assert cores(milli) == words


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1536 * 2**20, "1.5 GiB"),
        (300 * 2**30, "300 GiB"),
        (2**60, "1024 PiB"),
    ],
)
def test_sizes(count: int, words: str) -> None:
    assert size(count) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0s"),
        (59, "59s"),
        (200, "3m 20s"),
        (840, "14m"),
        (3600, "1h"),
        (7500, "2h 5m"),
        (90_000, "1d 1h"),
        (2_000_000, "23d"),
    ],
)
def test_times(seconds: int, words: str) -> None:
    assert ago(seconds_ago(seconds), NOW) == words


def test_a_time_that_is_not_known_or_cannot_be_read_is_left_out() -> None:
    assert (ago(None, NOW), ago("yesterday", NOW)) == ("", "")


def test_shares_are_never_rounded_up_to_full() -> None:
    assert [share(*pair) for pair in ((999, 1000), (1000, 1000), (0, 0), (1, 0))] == [99, 100, 0, 100]


def test_words_for_counts() -> None:
    assert [plural(1, "node"), plural(5000, "node"), plural(2, "entry")] == ["1 node", "5,000 nodes", "2 entries"]


def test_system_priorities_are_worded_relative_to_their_base() -> None:
    assert [priority_words(value) for value in (1000, -5, 2_000_001_000)] == ["1,000", "-5", "system +1,000"]


def test_hidden_pod_is_worded_as_that_of_another_namespace() -> None:
    assert (pod_words(pod_name("web")), pod_words(HIDDEN)) == ("shop/web", SOMEBODY)


def test_requests_that_cannot_be_read_are_nothing() -> None:
    assert requested({"cpu": "1500m", "memory": "1Gi"}) == (1500, 2**30)
    assert requested({"cpu": "much"}) == (0, 0)


def test_few_priorities_are_as_different_as_they_can_be() -> None:
    scale = Priorities.of([10, 1000])

    assert [scale.css(value) for value in (10, 1000)] == ["p0", "p6"]


@pytest.mark.parametrize("count", [1, 3, 7, 8, 40])
def test_higher_priorities_are_never_paler(count: int) -> None:
    values = [number * 100 for number in range(count)]
    scale = Priorities.of(values)

    steps = [scale.css(value) for value in values]

    assert steps == sorted(steps)
    assert len(set(steps)) == min(count, STEPS)
    assert len(scale.legend) == min(count, STEPS)


def test_a_priority_that_is_not_on_the_scale_has_the_step_below_it() -> None:
    scale = Priorities.of([0, 100])

    assert (scale.css(50), scale.css(-1), Priorities.of([]).css(3)) == ("p0", "p0", "p3")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("NodeResourcesFit", "Node<wbr>Resources<wbr>Fit"),
        ("CSILimits", "CSILimits"),
        ("a<B>", "a&lt;B&gt;"),
        ("aB<i>", "a<wbr>B&lt;i&gt;"),
    ],
)
def test_a_plugins_name_breaks_between_its_words_and_is_no_markup(name: str, expected: str) -> None:
    assert str(breakable(name)) == expected


def test_priorities_are_called_by_their_classes() -> None:
    """A number is left where no class has it, or where so many have it that their names would tell less."""
    scale = Priorities.of([0, 10, 50, 1000], {"low": 10, "cheap": 10, "urgent": 1000, "a": 50, "b": 50, "c": 50})

    assert [scale.words(value) for value in (0, 10, 50, 1000)] == ["0", "cheap / low", "50", "urgent"]
    assert [words for _, words in scale.legend] == ["urgent", "50", "cheap / low", "0"]
