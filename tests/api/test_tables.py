"""What commands print on a terminal of 80 columns: no word is cut, in answers and in help."""

import io
import re
from typing import Any

import pytest
import typer
from hypothesis import given, strategies as st
from rich.console import Console
from typer.testing import CliRunner

from api.cli import SUBCOMMANDS, app
from api.cli.showing import AnswerTable, table

NODE = "ip-10-0-113-207.eu-central-1.compute.internal"
MESSAGE = (
    "0/5000 nodes are available: 4000 Insufficient nvidia.com/gpu, 1000 node(s) had untolerated taint(s). no new "
    "claims to deallocate"
)
WORDS = st.text("abcdefghij-./0123456789", min_size=1, max_size=50)


def printed(answer_table: AnswerTable, width: int = 80) -> list[str]:
    output = io.StringIO()
    Console(file=output, width=width, highlight=False, markup=False).print(answer_table)
    return output.getvalue().splitlines()


def test_a_long_message_wraps_at_blanks() -> None:
    answer_table = table("pod", "node", "message")
    answer_table.add_row("shop/web-0", NODE, MESSAGE)

    lines = printed(answer_table)

    assert max(map(len, lines)) <= 80
    assert lines[1].startswith(f"shop/web-0   {NODE}   ")
    assert {*MESSAGE.split()} <= {*" ".join(lines).split()}


def test_the_least_important_column_goes_first() -> None:
    answer_table = table("pod", "when", "node", "message", less_important=("when", "node"))
    answer_table.add_row("shop/web-0", "2026-11-23T05:00:00.123456Z", NODE, "Insufficient nvidia.com/gpu")

    assert printed(answer_table)[0].split() == ["POD", "NODE", "MESSAGE"]
    assert printed(answer_table, width=60)[0].split() == ["POD", "MESSAGE"]
    assert printed(answer_table, width=400)[0].split() == ["POD", "WHEN", "NODE", "MESSAGE"]


def test_names_that_are_wider_than_the_terminal_stand_below_each_other() -> None:
    answer_table, long, longest = table("pod", "node"), "payments-of-the-eu-region/checkout-7d4b9c6f5d-x2x9q", 90 * "x"
    answer_table.add_row(long, NODE)
    answer_table.add_row(longest, NODE)

    assert printed(answer_table)[:3] == [f"POD: {long}", f"NODE: {NODE}", ""]
    assert "".join(printed(answer_table)[3:6]) == f"POD:{longest}"


@given(st.lists(st.lists(st.lists(WORDS, max_size=8).map(" ".join), min_size=4, max_size=4), min_size=1, max_size=5))
def test_no_word_is_cut(rows: list[list[str]]) -> None:
    answer_table = table("one", "two", "three", "four", less_important=("three", "two"))
    for row in rows:
        answer_table.add_row(*row)

    words = " ".join(printed(answer_table)).replace("ONE:", "").replace("FOUR:", "").split()

    for row in rows:
        assert {*row[0].split(), *row[3].split()} <= {*words}


@pytest.mark.parametrize("arguments", [[], *([name] for name in SUBCOMMANDS)], ids=str)
def test_help_cuts_nothing(arguments: list[str]) -> None:
    help_text = CliRunner().invoke(app, [*arguments, "-h"], env={"COLUMNS": "80", "TERM": "xterm"}).stdout
    group = typer.main.get_command(app)
    command = group.commands[arguments[0]].load() if arguments else group  # type: ignore[attr-defined]

    assert [line for line in help_text.splitlines() if len(line) > 80] == []
    assert "…" not in help_text
    assert re.search(r"\w\.\.\.$", help_text, re.MULTILINE) is None
    options: list[Any] = [
        option for option in command.params if option.param_type_name == "option" and not vars(option).get("hidden")
    ]
    assert [name for option in options for name in option.opts if name not in help_text] == []
