"""`reprieve evaluate`: what the scheduler would decide about each scenario of a file."""

import asyncio
import sys
from pathlib import Path
from typing import Annotated

import orjson
import typer

from extender.engine.evaluation.scenario import evaluate_scenario
from extender.values.config.configuration import ConfigErrors, Configuration
from extender.values.golang.json import JsonError
from extender.values.objects.decoding import DecodeError
from extender.values.reasons import in_one_line
from reprieve.sources.configurations import usable_configuration
from reprieve.sources.scenario_files import lines_of, scenario_in


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
    for number, line in enumerate(lines_of(file), start=1):
        if not line.strip():
            continue
        try:
            answer = await evaluate_scenario(scenario_in(line), configuration)
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
