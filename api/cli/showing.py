"""How commands print answers: as tables for people, as JSON or YAML for programs."""

import enum
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Final, TypeVar, final

import msgspec
import orjson
import typer
import yaml
from rich.console import Console
from rich.table import Table
from rich.text import Text

from extender.records.values import PodName, Victim

A = TypeVar("A", bound=msgspec.Struct)

HIDDEN: Final = "(another namespace's pod)"


@final
class Output(enum.StrEnum):
    """The forms of --output."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"


OutputOption = Annotated[Output, typer.Option("--output", "-o", help="table, wide, json or yaml.")]


def show(answer: A, output: Output, words: Callable[[Console, A, bool], None]) -> None:
    """Prints the answer.

    Arguments:
        words: prints a table; its last argument says whether the wide form is wanted.
    """
    if output is Output.JSON:
        sys.stdout.buffer.write(orjson.dumps(msgspec.to_builtins(answer), option=orjson.OPT_INDENT_2) + b"\n")
    elif output is Output.YAML:
        print(yaml.safe_dump(orjson.loads(msgspec.json.encode(answer)), sort_keys=False, allow_unicode=True), end="")
    else:
        words(console(), answer, output is Output.WIDE)


def console() -> Console:
    """Returns a console on standard output: coloured and as wide as a terminal, plain and never folded elsewhere."""
    return Console(
        highlight=False, markup=False, width=None if sys.stdout.isatty() else 400, no_color=None if sys.stdout.isatty() else True
    )


def table(*headings: str) -> Table:
    """Returns an empty table that looks like kubectl's."""
    made = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for heading in headings:
        made.add_column(heading.upper(), overflow="fold")
    return made


def name_of(pod: PodName) -> str:
    """Returns namespace/name, or a stand-in where the caller may not see the name."""
    return HIDDEN if pod.hidden else f"{pod.namespace}/{pod.name}"


def heading(text: str) -> Text:
    """Returns a heading for a part of an answer."""
    return Text(f"\n{text}", style="bold")


def plural(count: int, noun: str) -> str:
    """Returns `1 node`, `2 nodes`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def budgets(names: Sequence[str]) -> str:
    """Returns `budget a`, `budgets a, b`; without names where they may not be shown."""
    if not any(names):
        return "a budget" if len(names) == 1 else f"{len(names)} budgets"
    return f"{'budget' if len(names) == 1 else 'budgets'} {', '.join(names)}"


def first_of(names: Sequence[str], count: int = 3) -> str:
    """Returns the first few names, and how many more there are."""
    return ", ".join(names[:count]) + (f" and {len(names) - count} more" if len(names) > count else "")


def victims_table(victims: Sequence[Victim], *, wide: bool) -> Table:
    """Returns a table of pods that would be evicted."""
    made = table("pod", "priority", "started", "violates", *(("owner", "uid") if wide else ()))
    for victim in victims:
        further = (victim.owner, victim.pod.uid) if wide else ()
        made.add_row(name_of(victim.pod), str(victim.pod.priority), victim.started or "", ", ".join(victim.violates), *further)
    return made
