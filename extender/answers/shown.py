"""What values show of themselves: a line and a table, which are bounded; and as a data frame all."""

from collections.abc import Callable, Mapping
from html import escape
from importlib import import_module
from itertools import islice
from typing import Any, Final

from extender import how_to_install
from extender.values.klog.setup import escaped
from extender.values.reasons import ReprieveError

Columns = Mapping[str, Any]  # head -> as many cells as there are rows

_ROWS: Final = 8
_COLUMNS: Final = 16
_CHARACTERS: Final = 160


class Shown:
    """The base of what shows itself in one line and as a small table."""

    __slots__ = ()

    _words: Callable[[], str]  # what matters, in half a sentence
    _columns: Callable[[], Columns]

    def __repr__(self) -> str:
        return f"<{self._caption()}>"

    def _repr_html_(self) -> str:
        """Returns a table without style and script; texts are escaped."""
        heads, *rows = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in self._first_rows())
        body = "".join(f"<tr>{row}</tr>" for row in (heads.replace("td>", "th>"), *rows))
        return f"<table><caption>{escape(self._caption())}</caption>{body}</table>"

    def _as_text(self) -> str:
        rows = self._first_rows()
        widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
        lines = ("  ".join(map(str.ljust, row, widths))[:_CHARACTERS].rstrip() for row in rows)
        return "\n".join((self._caption(), *lines))

    def _caption(self) -> str:
        return escaped(f"{type(self).__name__}: {self._words()}", _CHARACTERS)

    def _first_rows(self) -> list[list[str]]:
        columns = dict(islice(self._columns().items(), _COLUMNS))
        rows = [[*columns], *islice(zip(*columns.values(), strict=True), _ROWS)]
        if (more := max(map(len, columns.values())) - _ROWS) > 0:
            rows.append([f"and {more:,} more", *[""] * (len(columns) - 1)])
        return [[escaped(str(cell), _CHARACTERS) for cell in row] for row in rows]


class Framed(Shown):
    """The base of what becomes a data frame, too."""

    __slots__ = ()

    def to_pandas(self) -> Any:
        """Returns a pandas.DataFrame with all rows. Raises ReprieveError if pandas is not installed."""
        return self._framed("pandas")

    def to_polars(self) -> Any:
        """Returns a polars.DataFrame with all rows. Raises ReprieveError if polars is not installed."""
        return self._framed("polars")

    def _framed(self, library: str) -> Any:
        try:
            return import_module(library).DataFrame(self._columns())
        except ImportError as exc:
            raise ReprieveError(f"a DataFrame needs {library}: {how_to_install(library)} ({exc})") from exc
