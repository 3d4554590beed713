"""A symbol table is a bijection that only grows."""

from hypothesis import given
from hypothesis import strategies as st

from extender.snapshot.symbols import ABSENT, SymbolTable


def test_symbols_get_codes_in_order_of_appearance() -> None:
    table: SymbolTable[str] = SymbolTable("cpu", "memory")

    assert [table.intern(name) for name in ("gpu", "cpu", "gpu", "fpga")] == [2, 0, 2, 3]
    assert list(table) == ["cpu", "memory", "gpu", "fpga"]
    assert len(table) == 4


def test_asking_for_a_code_makes_none() -> None:
    table: SymbolTable[str] = SymbolTable()

    assert table.code_of("gpu") == ABSENT
    assert len(table) == 0


@given(st.lists(st.text(max_size=2)))
def test_a_code_never_changes_its_meaning(symbols: list[str]) -> None:
    """
    Whatever comes later, every code leads back to its symbol, and no two symbols share one.
    """
    table: SymbolTable[str] = SymbolTable()
    codes = [table.intern(symbol) for symbol in symbols]

    assert [table[code] for code in codes] == symbols
    assert [table.code_of(symbol) for symbol in symbols] == codes
    assert sorted(set(codes)) == list(range(len(set(symbols))))
