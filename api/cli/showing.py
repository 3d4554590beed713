"""How commands print answers: as tables for people, as JSON or YAML for programs. And what they show meanwhile."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeVar, cast, final

import msgspec
import orjson
import typer
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from extender.answers.parts import CandidateNode, PodName, Victim
from extender.answers.phrases import NOT_KNOWN, for_people, plural
from extender.values.golang.times import human_duration

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

A = TypeVar("A", bound=msgspec.Struct)
T = TypeVar("T")

SECONDS_BETWEEN: Final = 2.0
"""The pause of `--watch` between two questions."""

_NEVER_FOLDED: Final = 400
"""Columns of an output that is no terminal, or wide."""
_GAP: Final = 3
"""The number of blanks between two columns."""
_LOSERS: Final = 5
"""Nodes that were not chosen, as they are listed without `-o wide`."""
_LONG: Final = 60
"""Characters of a text that is not said twice in one column."""

HIDDEN: Final = "(another namespace's pod)"


WatchOption = Annotated[
    bool, typer.Option("--watch", "-w", help="Print the answer again whenever it changes, until Ctrl-C.")
]
Output = Literal["table", "wide", "json", "yaml"]
OutputOption = Annotated[Output, typer.Option("--output", "-o", help="table, wide, json or yaml.")]
ListOutput = Literal["table", "wide", "json", "yaml", "name"]
ListOutputOption = Annotated[ListOutput, typer.Option("--output", "-o", help="table, wide, json, yaml or name.")]
PlanOutput = Literal["table", "wide", "json", "yaml", "sh", "svg"]
PlanOutputOption = Annotated[PlanOutput, typer.Option("--output", "-o", help="table, wide, json, yaml, sh or svg.")]
NoHeadersOption = Annotated[bool, typer.Option("--no-headers", help="Print the rows without headings.")]
AllNamespacesOption = Annotated[
    bool, typer.Option("--all-namespaces", "-A", help="All namespaces, which is the default.")
]


def show(answer: A, output: str, words: Callable[[Console, A, bool], None]) -> None:
    """Prints the answer as json or yaml, or else by `words`, which is told whether the wide form is wanted."""
    if output in ("json", "yaml"):
        show_document(msgspec.to_builtins(answer), is_json=output == "json")
        return
    shown_on = console()
    if output == "wide":
        shown_on.width = max(shown_on.width, _NEVER_FOLDED)
    words(shown_on, printable(answer), output == "wide")


def show_document(document: object, *, is_json: bool) -> None:
    """Prints a document. Where a terminal would act on a character, all that are not ASCII are escaped."""
    text = orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()
    is_harmless = all(map(str.isprintable, text.split("\n")))
    if is_json:
        json_text = text if is_harmless else json.dumps(orjson.loads(text), indent=2)
        sys.stdout.buffer.write(f"{json_text}\n".encode())
    else:
        import yaml  # noqa: PLC0415 - it takes a while to load

        print(yaml.safe_dump(orjson.loads(text), sort_keys=False, allow_unicode=is_harmless), end="")


def printable(value: T) -> T:
    """Returns the value with all texts in it as a person may read them; see `for_people`."""
    if type(value) is str:
        return cast("T", for_people(str(value)))
    if isinstance(value, (tuple, list)):
        return cast("T", type(value)(map(printable, value)))
    if isinstance(value, dict):
        return cast("T", {printable(key): printable(item) for key, item in value.items()})
    if isinstance(value, msgspec.Struct):
        values = {name: printable(getattr(value, name)) for name in value.__struct_fields__}
        return cast("T", msgspec.structs.replace(value, **values))
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: printable(getattr(value, field.name)) for field in fields(value)})
    return value


async def pause(seconds: float) -> None:
    """Waits between two questions."""
    await asyncio.sleep(seconds)


async def show_until_interrupted(
    ask: Callable[[], Awaitable[A]], output: str, words: Callable[[Console, A, bool], None]
) -> None:
    """Prints the answer again whenever it has changed, until Ctrl-C. A terminal shows the newest one only."""
    last: A | None = None
    while True:
        answer = await ask()
        if answer != last:
            if sys.stdout.isatty():
                console().clear()
            elif last is not None:
                print()
            show(answer, output, words)
            sys.stdout.flush()
            last = answer
        await pause(SECONDS_BETWEEN)


def exit_code(unplaced: Iterable[str]) -> int:
    """Returns the exit code of an answer with these messages of pods that find no room, or of which it is not known."""
    return 3 if all(NOT_KNOWN in message for message in unplaced) else 1


def tell(text: str) -> None:
    """Prints a line on standard error, with what a terminal would obey escaped."""
    print(f"reprieve: {for_people(text)}", file=sys.stderr, flush=True)


def console() -> Console:
    """Returns a console on standard output: coloured and as wide as a terminal, plain and never folded elsewhere."""
    is_terminal = sys.stdout.isatty()
    return Console(
        highlight=False,
        markup=False,
        emoji=False,
        width=None if is_terminal else _NEVER_FOLDED,
        no_color=None if is_terminal else True,
    )


@final
class AnswerTable:
    """A table that looks like kubectl's, and fits its terminal without cutting a word.

    Cells wrap at blanks. Where that does not do, columns are left out, the least important first (`-o wide` folds
    nothing, so that it has all of them). Where even that does not do, each row becomes lines, one a cell.
    """

    def __init__(self, *headings: str, less_important: Sequence[str] = (), has_head: bool = True) -> None:
        self._headings = headings
        self._has_head = has_head
        self._said: dict[int, str] = {}
        self._less_important = less_important
        self._rows: list[tuple[Text, ...]] = []

    def add_row(self, *cells: str | Text) -> None:
        """Adds a row, with a cell for each heading. A long text that was said before is not said again."""
        row = [cell if isinstance(cell, Text) else Text(cell) for cell in cells]
        for place, cell in enumerate(row):
            if len(cell.plain) > _LONG and self._said.get(place) == cell.plain:
                row[place] = Text("(as above)")
            elif cell.plain:
                self._said[place] = cell.plain
        self._rows.append(tuple(row))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if options.max_width >= _NEVER_FOLDED:
            yield from self._in_lines()
            return
        columns = [*range(len(self._headings))]
        for heading in self._less_important:
            if sum(self._widths(columns, _longest_word)) <= options.max_width:
                break
            columns.remove(self._headings.index(heading))
        min_widths = self._widths(columns, _longest_word)
        if sum(min_widths) > options.max_width:
            yield from self._one_below_the_other(columns, options.max_width)
            return
        widths = self._widths(columns, cell_len)
        while sum(widths) > options.max_width:
            widest = max(
                (place for place in range(len(columns)) if widths[place] > min_widths[place]), key=widths.__getitem__
            )
            widths[widest] -= 1
        has_head = self._has_head and any(self._headings)
        from rich.table import Table  # noqa: PLC0415 - not every answer has one

        rich_table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold", show_header=has_head)
        for number, place in enumerate(columns):
            gap = 0 if number == len(columns) - 1 else _GAP
            rich_table.add_column(self._headings[place].upper(), width=widths[number] - gap)
        for row in self._rows:
            rich_table.add_row(*(row[place] for place in columns))
        yield rich_table

    def _in_lines(self) -> RenderResult:
        """Yields each row as one line, without blanks at its end, as programs and wide terminals take it."""
        widths = self._widths(range(len(self._headings)), cell_len)
        head = tuple(Text(heading.upper(), style="bold") for heading in self._headings)
        for row in ([head] if self._has_head and any(self._headings) else []) + self._rows:
            line = Text(no_wrap=True, overflow="ignore")
            for cell, width in zip(row, widths, strict=True):
                line.append_text(cell).append(" " * (width - cell_len(cell.plain)))
            line.rstrip()
            yield line

    def _widths(self, columns: Sequence[int], width_of: Callable[[str], int]) -> list[int]:
        cells = ([self._headings[place].upper(), *(row[place].plain for row in self._rows)] for place in columns)
        return [
            max(map(width_of, column)) + (0 if number == len(columns) - 1 else _GAP)
            for number, column in enumerate(cells)
        ]

    def _one_below_the_other(self, columns: Sequence[int], width: int) -> RenderResult:
        for row in self._rows:
            for place in columns:
                text = f"{self._headings[place].upper()}: {row[place].plain}"
                for line in (
                    wrap(text, width, break_long_words=False, break_on_hyphens=False) if row[place].plain else ()
                ):
                    yield Text(line, style=row[place].style, overflow="fold")
            yield Text()


def _longest_word(text: str) -> int:
    return max(map(cell_len, text.split()), default=0)


def table(
    *headings: str, rows: Iterable[Sequence[str | Text]] = (), less_important: Sequence[str] = (), has_head: bool = True
) -> AnswerTable:
    answer_table = AnswerTable(*headings, less_important=less_important, has_head=has_head)
    for row in rows:
        answer_table.add_row(*row)
    return answer_table


def age_or_time(wide: bool) -> str:
    """Returns the heading above what `age` returns."""
    return "time" if wide else "age"


def age(time: str | None, *, wide: bool = False) -> str:
    """Returns how long ago a moment in RFC 3339 was, as kubectl does; the moment itself in the wide form."""
    return time or "" if wide or not time else human_duration(datetime.now(UTC) - datetime.fromisoformat(time))


def name_of(pod: PodName) -> str:
    """Returns namespace/name, or a stand-in where the caller may not see the name."""
    return HIDDEN if pod.hidden else f"{pod.namespace}/{pod.name}"


def heading(text: str) -> Text:
    """Returns a heading for a part of an answer."""
    return Text(f"\n{text}", style="bold")


def budgets(names: Sequence[str]) -> str:
    """Returns `budget a`, `budgets a, b`; without names where they may not be shown."""
    if not any(names):
        return "a budget" if len(names) == 1 else f"{len(names)} budgets"
    return f"{'budget' if len(names) == 1 else 'budgets'} {', '.join(names)}"


def first_of(names: Sequence[str], count: int = 3) -> str:
    """Returns the first few names, and how many more there are."""
    return ", ".join(names[:count]) + (f" and {len(names) - count} more" if len(names) > count else "")


def victims_table(victims: Sequence[Victim], *, wide: bool) -> AnswerTable:
    """Returns a table of pods that would be evicted."""
    started, extra_headings = ("started", ("owner", "uid")) if wide else ("age", ())
    answer_table = table("pod", "priority", started, "violates", *extra_headings, less_important=(started,))
    for victim in victims:
        cells = (victim.owner, victim.pod.uid) if wide else ()
        its_age = age(victim.started, wide=wide)
        answer_table.add_row(name_of(victim.pod), str(victim.pod.priority), its_age, ", ".join(victim.violates), *cells)
    return answer_table


def print_losers(
    console: Console, candidates: Sequence[CandidateNode], chosen: str, number: int, *, wide: bool
) -> None:
    """Prints why the other nodes were not chosen; `number` counts all of them, known or not."""
    losers = [candidate for candidate in candidates if candidate.node != chosen]
    if not losers:
        return
    console.print(heading(f"Other candidates: {plural(number, 'node')}"))
    headings = ("node", "victims", "violations", "why not", *(("names",) if wide else ()))
    rows = (
        (candidate.node, str(len(candidate.victims)), str(candidate.num_pdb_violations), candidate.why_not)
        + ((", ".join(name_of(victim.pod) for victim in candidate.victims),) if wide else ())
        for candidate in (losers if wide else losers[:_LOSERS])
    )
    console.print(table(*headings, rows=rows))


def sized(file: Path) -> str:
    """Returns the name of a file, with its size if it takes a while to read."""
    size = file.stat().st_size / 1e6 if file.is_file() else 0
    return f"{file} ({size:.0f} MB)" if size >= 1 else str(file)


@final
class WaitingLine:
    """A line on standard error, if that is a terminal, with what is being done, and for how many seconds."""

    def __init__(self, text: str) -> None:
        self._line: Progress | None = None
        if sys.stderr is None or not sys.stderr.isatty():
            return
        from rich import progress  # noqa: PLC0415 - nobody but a person at a terminal sees it

        columns = (
            progress.SpinnerColumn(),
            progress.TextColumn("{task.description}", markup=False),
            progress.TimeElapsedColumn(),
        )
        self._line = progress.Progress(*columns, console=Console(file=sys.stderr), transient=True)
        self._task: TaskID = self._line.add_task(text, total=None)

    def __enter__(self) -> "WaitingLine":
        if self._line is not None:
            self._line.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.hide()

    def hide(self) -> None:
        """Takes the line away for good."""
        if self._line is not None:
            self._line.stop()

    def show(self, text: str) -> None:
        """Says what is being done now."""
        if self._line is not None:
            self._line.update(self._task, description=text)
