"""What pieces of news change, whatever order they come in."""

from collections.abc import Sequence

import pytest

from extender.client.informers.store import Change, Store
from extender.values import limits
from extender.values.objects.grouping import Namespace
from extender.values.objects.meta import ObjectMeta


def ns(name: str, version: int | str, uid: str | None = None) -> Namespace:
    return Namespace(ObjectMeta(name=name, uid=uid or f"uid-{name}", resource_version=str(version)))


def last_metadata(name: str, version: int, uid: str | None = None) -> ObjectMeta:
    return ns(name, version, uid).metadata


def transitions(changes: Sequence[Change[Namespace]]) -> list[tuple[str, str]]:
    """Changes as (what was, what is), each as uid@version."""
    return [(version_text(change.old), version_text(change.new)) for change in changes]


def version_text(obj: Namespace | None) -> str:
    return "" if obj is None else f"{obj.metadata.uid}@{obj.metadata.resource_version}"


def holding(*objects: Namespace) -> Store[Namespace]:
    store: Store[Namespace] = Store()
    for obj in objects:
        store.put(obj)
    return store


def test_an_object_comes_changes_and_goes() -> None:
    store: Store[Namespace] = Store()
    changes = [*store.put(ns("a", 1)), *store.put(ns("a", 2)), *store.remove(last_metadata("a", 3))]

    assert transitions(changes) == [("", "uid-a@1"), ("uid-a@1", "uid-a@2"), ("uid-a@2", "")]
    assert store.objects == {}


@pytest.mark.parametrize("version", [pytest.param(5, id="again"), pytest.param(4, id="older")])
def test_version_that_is_not_newer_changes_nothing(version: int) -> None:
    store = holding(ns("a", 5))
    changes = store.put(ns("a", version))

    assert transitions(changes) == []
    assert version_text(store.objects["", "a"]) == "uid-a@5"
    assert store.num_stale == 1


def test_resource_versions_are_compared_as_numbers() -> None:
    store = holding(ns("a", 9))
    changes = store.put(ns("a", 10))

    assert transitions(changes) == [("uid-a@9", "uid-a@10")]


def test_versions_that_are_no_numbers_are_taken_as_they_come() -> None:
    store = holding(ns("a", "xyz"))
    changes = store.put(ns("a", "abc"))

    assert transitions(changes) == [("uid-a@xyz", "uid-a@abc")]


def test_another_uid_under_the_same_name_is_an_end_and_a_beginning() -> None:
    store = holding(ns("a", 5, "first"))
    changes = store.put(ns("a", 9, "second"))

    assert transitions(changes) == [("first@5", ""), ("", "second@9")]


def test_news_of_a_former_object_of_that_name_is_late() -> None:
    store = holding(ns("a", 9, "second"))
    changes = [*store.put(ns("a", 6, "first")), *store.remove(last_metadata("a", 7, "first"))]

    assert transitions(changes) == []
    assert version_text(store.objects["", "a"]) == "second@9"


def test_the_end_of_an_object_that_was_never_seen_ends_the_one_before_it() -> None:
    """Its beginning was missed, so that only the one before it is known; which cannot be there any more either."""
    store = holding(ns("a", 5, "first"))
    changes = store.remove(last_metadata("a", 9, "second"))

    assert transitions(changes) == [("first@5", "")]


def test_deleted_object_does_not_return_with_an_older_version() -> None:
    store = holding(ns("a", 5))
    changes = [*store.remove(last_metadata("a", 7)), *store.put(ns("a", 6))]

    assert transitions(changes) == [("uid-a@5", "")]
    assert store.objects == {}


def test_the_end_may_come_before_the_beginning() -> None:
    store: Store[Namespace] = Store()
    changes = [*store.remove(last_metadata("a", 7)), *store.put(ns("a", 5)), *store.put(ns("a", 6))]

    assert transitions(changes) == []
    assert store.objects == {}


def test_object_returns_when_it_matches_the_selector_again() -> None:
    """A selector makes a deletion of an object that changes; the object is the same when it changes back."""
    store = holding(ns("a", 5))
    changes = [*store.remove(last_metadata("a", 7)), *store.put(ns("a", 8))]

    assert transitions(changes) == [("uid-a@5", ""), ("", "uid-a@8")]


def test_number_of_remembered_deletions_is_limited() -> None:
    store: Store[Namespace] = Store()
    store.remove(last_metadata("first", 1))
    for number in range(limits.DELETIONS_REMEMBERED):
        store.remove(last_metadata(f"n{number}", 2 + number))
    changes = [*store.put(ns("first", 1)), *store.put(ns("n0", 1))]

    assert transitions(changes) == [("", "uid-first@1")]


def test_a_list_tells_only_of_differences() -> None:
    store = holding(ns("same", 1), ns("changed", 2), ns("gone", 3), ns("again", 4, "first"))
    new = [ns("same", 1), ns("changed", 12), ns("again", 14, "second"), ns("new", 15)]
    changes = store.replace({("", obj.metadata.name): obj for obj in new}, {})

    assert transitions(changes) == [
        ("uid-gone@3", ""),
        ("uid-changed@2", "uid-changed@12"),
        ("first@4", ""),
        ("", "second@14"),
        ("", "uid-new@15"),
    ]
    assert list(store.objects.values()) == new


def test_a_list_is_taken_at_its_word_even_if_it_is_older() -> None:
    """The server was restored from a copy: its versions count from there, and what was deleted is back."""
    store = holding(ns("a", 50), ns("b", 51))
    store.remove(last_metadata("b", 52))
    back = {("", "a"): ns("a", 40), ("", "b"): ns("b", 41)}
    changes = store.replace(back, {})
    changes_since = store.put(ns("b", 42))

    assert transitions(changes) == [("uid-a@50", "uid-a@40"), ("", "uid-b@41")]
    assert transitions(changes_since) == [("uid-b@41", "uid-b@42")]


def test_after_a_list_what_was_deleted_before_may_come_again() -> None:
    store = holding(ns("b", 51))
    store.remove(last_metadata("b", 52))
    store.replace({}, {})
    changes = store.put(ns("b", 42))

    assert transitions(changes) == [("", "uid-b@42")]


def test_an_object_that_the_list_holds_but_cannot_show_stays_as_it_was() -> None:
    store = holding(ns("a", 5), ns("b", 6))
    changes = store.replace({}, {("", "a"): "uid-a"})

    assert transitions(changes) == [("uid-b@6", "")]
    assert list(store.objects) == [("", "a")]


def test_an_object_that_cannot_be_read_ends_another_one_of_that_name() -> None:
    """What was there before cannot be there any more."""
    lists, watched = holding(ns("a", 5, "first")), holding(ns("a", 5, "first"))

    assert transitions(lists.replace({}, {("", "a"): "second"})) == [("first@5", "")]
    assert transitions(watched.keep_unreadable(last_metadata("a", 9, "second"))) == [("first@5", "")]
    assert transitions(watched.put(ns("a", 6, "first"))) == []


@pytest.mark.parametrize(
    ("version", "uid"), [pytest.param(9, "first", id="the same"), pytest.param(4, "before", id="one from before")]
)
def test_an_object_that_cannot_be_read_stays_as_it_was(version: int, uid: str) -> None:
    store = holding(ns("a", 5, "first"))

    assert transitions(store.keep_unreadable(last_metadata("a", version, uid))) == []
    assert version_text(store.objects["", "a"]) == "first@5"
