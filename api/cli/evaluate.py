"""`reprieve evaluate`: what the scheduler would decide about each scenario of a file."""

import asyncio
import gzip
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final, cast

import orjson
import typer

from extender.engine.evaluation.scenario import evaluate_scenario
from extender.values.config.configuration import ConfigErrors, Configuration
from extender.values.golang.json import JsonError
from extender.values.golang.json_bytes import check_json, read
from extender.values.objects.decoding import DecodeError
from extender.values.reasons import in_one_line
from reprieve.errors import StartUpError
from reprieve.sources.configurations import usable_configuration

_MAX_LINE: Final = 2**28
"""Bytes of one scenario."""


def evaluate(
    file: Annotated[
        str, typer.Argument(help="JSON Lines of scenarios, also .gz; - reads standard input.", metavar="FILE|-")
    ],
    config: Annotated[Path | None, typer.Option(help="KubeSchedulerConfiguration for scenarios without one.")] = None,
) -> None:
    """Print what the scheduler would decide about every scenario in a file, one answer a line.

    A line of the file is a scenario, or an object with a `scenario`. Lines that cannot be answered are reported on
    standard error by number; the others are answered, and the exit code is 2.
    """
    if asyncio.run(_answer_all(usable_configuration(config), file)):
        raise typer.Exit(2)


async def _answer_all(configuration: Configuration, file: str) -> int:
    failed = 0
    is_shown = sys.stderr.isatty()
    for number, line in enumerate(_lines(file), start=1):
        if not line.strip():
            continue
        try:
            answer = await evaluate_scenario(_scenario(line), configuration)
        except (JsonError, DecodeError, ConfigErrors) as exc:
            failed += 1
            print(f"line {number}: {in_one_line(exc)}", file=sys.stderr)
            continue
        except Exception as exc:
            failed += 1
            print(f"line {number}: internal error: {type(exc).__name__}: {in_one_line(exc)}", file=sys.stderr)
            continue
        sys.stdout.buffer.write(orjson.dumps(answer) + b"\n")
        if is_shown and number % 10 == 0:
            print(f"\r{number} scenarios" + (f", {failed} failed" if failed else ""), end="\r", file=sys.stderr)
    sys.stdout.buffer.flush()
    return failed


def _scenario(line: bytes) -> dict[str, Any]:
    document = read(dict[str, Any], line, "the scenario")
    check_json(line)
    scenario = document.get("scenario", document)
    if not isinstance(scenario, dict):
        raise JsonError("scenario: expected an object")
    return scenario


def _lines(file: str) -> Iterator[bytes]:
    try:
        with _opened(file) as lines:
            while line := lines.readline(_MAX_LINE + 1):
                if len(line) > _MAX_LINE:
                    raise StartUpError(f"{file}: a line of more than {_MAX_LINE} bytes")
                yield line
    except OSError as exc:
        raise StartUpError(f"{file}: {in_one_line(exc)}; give a file of scenarios, or - for standard input") from exc
    except (EOFError, zlib.error) as exc:
        raise StartUpError(f"{file}: not a complete gzip file") from exc


@contextmanager
def _opened(file: str) -> Iterator[BinaryIO | gzip.GzipFile]:
    with nullcontext(sys.stdin.buffer) if file == "-" else open(file, "rb") as raw:
        is_packed = cast("Any", raw).peek(2)[:2] == b"\x1f\x8b"
        with gzip.open(raw) if is_packed else nullcontext(raw) as content:
            yield content
