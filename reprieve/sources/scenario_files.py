"""Files of scenarios for `reprieve evaluate`: JSON Lines, perhaps packed."""

import gzip
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, BinaryIO, Final, cast

from extender.values.golang.json import JsonError
from extender.values.golang.json_bytes import check_json, read
from extender.values.reasons import in_one_line
from reprieve.errors import StartUpError

_MAX_LINE: Final = 2**28
"""Bytes of one scenario."""


def scenario_in(line: bytes) -> dict[str, Any]:
    """Returns the scenario of a line. Raises JsonError or DecodeError if it holds none."""
    document = read(dict[str, Any], line, "the scenario")
    check_json(line)
    scenario = document.get("scenario", document)
    if not isinstance(scenario, dict):
        raise JsonError("scenario: expected an object")
    return scenario


def lines_of(file: str) -> Iterator[bytes]:
    """Yields the lines of the file, or of standard input for -. Raises StartUpError if it cannot be read."""
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
