"""A symbol table is a bijection that only grows; a volume index finds the classes that use a claim or a disk."""

from hypothesis import given, strategies as st

from extender.engine.snapshot import Attribute
from extender.engine.snapshot.symbols import ABSENT, SymbolTable, VolumeIndex
from extender.testing import make_cache, make_node, make_pod
from tests.kit.storage import ebs_disk, ephemeral


def test_symbols_get_codes_in_order_of_appearance() -> None:
    table: SymbolTable[str] = SymbolTable("cpu", "memory")

    assert [table.intern(name) for name in ("gpu", "cpu", "gpu", "fpga")] == [2, 0, 2, 3]
    assert list(table) == ["cpu", "memory", "gpu", "fpga"]
    assert len(table) == 4


def test_looking_up_a_code_makes_none() -> None:
    table: SymbolTable[str] = SymbolTable()

    assert table.code_of("gpu") == ABSENT
    assert len(table) == 0


@given(st.lists(st.text(max_size=2)))
def test_a_code_never_changes_its_meaning(symbols: list[str]) -> None:
    """Whatever comes later, every code leads back to its symbol, and no two symbols share one."""
    table: SymbolTable[str] = SymbolTable()
    codes = [table.intern(symbol) for symbol in symbols]

    assert [table[code] for code in codes] == symbols
    assert [table.code_of(symbol) for symbol in symbols] == codes
    assert sorted(set(codes)) == list(range(len(set(symbols))))


def test_classes_are_found_by_the_names_of_their_claims() -> None:
    """In all namespaces, each class once, also those that come later."""
    cache = make_cache(make_node("n"), pods=[make_pod("a").claim("x").claim("x").claim("y").node("n")])
    snapshot = cache.update_snapshot()
    before = snapshot.tallies.index(Attribute.VOLUMES, VolumeIndex).users(["x", "y"])
    cache.add_pod(make_pod("b").claim("x").namespace("other").node("n").obj())
    index = cache.update_snapshot().tallies.index(Attribute.VOLUMES, VolumeIndex)

    assert before == [0]
    assert index.users(["x", "y"]) == [0, 1]
    assert index.users(["x"], first=1) == [1]
    assert index.users(["z"]) == []


def test_classes_with_disks() -> None:
    pods = [make_pod("a").claim("x"), make_pod("b").volume(ebs_disk("v")), make_pod("c").volume(ephemeral())]
    snapshot = make_cache(make_node("n"), pods=[pod.node("n") for pod in pods]).update_snapshot()

    index = snapshot.tallies.index(Attribute.VOLUMES, VolumeIndex)

    assert index.with_disks() == [1]
    assert index.with_disks(first=2) == []
