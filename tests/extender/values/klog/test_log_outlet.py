"""Nobody waits for the log: what cannot be written is dropped, counted, and told of later."""

import fcntl
import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from extender.values.klog.setup import Outlet, TextFormatter

F_SETPIPE_SZ = 1031
ONE_PAGE = 4096


class Pipe:
    """One that holds a page, and what speaks into it."""

    def __init__(self, reads: int, writes: int) -> None:
        self.reads, self.writes = reads, writes
        self.outlet = Outlet(writes)
        self.outlet.setFormatter(TextFormatter())

    def heard(self) -> str:
        return os.read(self.reads, 2**20).decode()


@contextmanager
def a_pipe() -> Iterator[Pipe]:
    reads, writes = os.pipe()
    fcntl.fcntl(writes, F_SETPIPE_SZ, ONE_PAGE)
    try:
        yield Pipe(reads, writes)
    finally:
        for descriptor in (reads, writes):
            try:
                os.close(descriptor)
            except OSError:
                assert descriptor == reads, "closed by the test"


def test_a_line_is_a_line_of_the_descriptor() -> None:
    with a_pipe() as pipe:
        pipe.outlet.handle(
            logging.LogRecord("x", logging.WARNING, "/a/b.py", 7, "half \ud800 of a %s", ("character",), None)
        )

        assert re.fullmatch(r"W\d{4} .* b\.py:7\] half \\ud800 of a character\n", pipe.heard())
        assert pipe.outlet.dropped() == 0


def test_lines_that_a_full_pipe_drops_are_counted_and_reported_once_it_is_read() -> None:
    """The lines before are whole, and the first that gets through afterwards says how many are missing."""
    with a_pipe() as pipe:
        while pipe.outlet.dropped() < 3:
            pipe.outlet.write_line("x" * 99)
        before = pipe.heard()
        pipe.outlet.write_line("again")
        after = pipe.heard()
        pipe.outlet.write_line("and again")
        last = pipe.heard()

    assert set(before.splitlines()) == {"x" * 99}
    notice, line = after.splitlines()
    assert re.search(r'"Lines of the log were dropped, as they could not be written" lines=3$', notice)
    assert (line, last) == ("again", "and again\n")


def test_a_line_longer_than_a_pipe_does_not_run_into_the_next_one() -> None:
    with a_pipe() as pipe:
        pipe.outlet.write_line("x" * 5000)
        torn = pipe.heard()
        pipe.outlet.write_line("next")
        after = pipe.heard()

    assert (torn, pipe.outlet.dropped()) == ("x" * ONE_PAGE, 1)
    assert after.startswith("\n")
    assert after.splitlines()[-1] == "next"


def test_line_to_a_closed_pipe_is_dropped_without_an_error() -> None:
    with a_pipe() as pipe:
        os.close(pipe.reads)
        pipe.outlet.write_line("to nobody")

        assert pipe.outlet.dropped() == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_lines_to_a_full_disk_are_dropped_without_an_error() -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    outlet = Outlet(full)
    for _ in range(3):
        outlet.write_line("too much")
    os.close(full)

    assert outlet.dropped() == 3
