from extender.values.objects.cluster import GroupedTable


def by_first_letter() -> GroupedTable[str, str, str]:
    return GroupedTable(lambda word: word[0])


def test_a_table_is_a_dict() -> None:
    table = by_first_letter()
    table.update(a="ant", b="bee")

    assert dict(table) == {"a": "ant", "b": "bee"}
    assert (len(table), "a" in table, table.get("c"), table.get("c", "none")) == (2, True, None, "none")


def test_groups_hold_their_members_in_order_of_arrival() -> None:
    table = by_first_letter()
    table.update(b="bee", z="asp", a="ant")

    assert list(table.group("a").items()) == [("z", "asp"), ("a", "ant")]
    assert set(table.groups()) == {"a", "b"}


def test_a_member_that_is_replaced_keeps_its_place() -> None:
    table = by_first_letter()
    table.update(x="ant", y="asp")

    table["x"] = "ape"

    assert list(table.group("a").values()) == ["ape", "asp"]


def test_a_member_that_changes_its_group_leaves_the_old_one() -> None:
    table = by_first_letter()
    table["x"] = "ant"

    table["x"] = "bee"

    assert (dict(table.group("a")), dict(table.group("b"))) == ({}, {"x": "bee"})


def test_groups_without_members_are_gone() -> None:
    table = by_first_letter()
    table["x"] = "ant"

    del table["x"]

    assert dict(table.groups()) == {}
    assert dict(table.group("a")) == {}


def test_a_copy_is_independent() -> None:
    table = by_first_letter()
    table.update(a="ant", b="bee")
    copy = table.copy()
    copy.update(a="bug", c="asp")

    assert (dict(table), dict(table.group("b"))) == ({"a": "ant", "b": "bee"}, {"b": "bee"})
    assert (dict(copy), dict(copy.group("b"))) == ({"a": "bug", "b": "bee", "c": "asp"}, {"b": "bee", "a": "bug"})
