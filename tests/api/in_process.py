"""Runs `reprieve` in this process. A process of its own is started only by tests of what a process does."""

import io
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import pytest

from api.cli import main
from extender.values.klog.setup import STDERR

ROOT = Path(__file__).parents[2]
HEADER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


@dataclass(frozen=True)
class Done:
    """What `subprocess.run` would say of the command."""

    returncode: int
    stdout: bytes
    stderr: bytes


def configured(folder: Path, text: str) -> str:
    """A configuration file with this below its kind."""
    path = folder / "config.yaml"
    path.write_text(HEADER + text)
    return str(path)


def reprieve(*arguments: str, stdin: bytes = b"", folder: Path = ROOT, **environment: str) -> Done:
    """The command, run in the repository's root, or another folder, to its end.

    Arguments:
        stdin: all of it.
        environment: there is nothing else in it.
    """
    output = io.BytesIO()
    code = 0
    with TemporaryFile() as errors, pytest.MonkeyPatch.context() as patch, _logging_as_before(), _descriptor(2, errors):
        patch.setattr(sys, "argv", ["reprieve", *arguments])
        patch.setattr(sys.modules["__main__"], "__package__", None)  # usage names argv, not `python -m pytest`
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(stdin)), encoding="utf-8"))
        patch.setattr(sys, "stdout", io.TextIOWrapper(output, encoding="utf-8", write_through=True))
        patch.setattr(
            sys, "stderr", io.TextIOWrapper(io.FileIO(2, "w", closefd=False), encoding="utf-8", write_through=True)
        )
        for name in [*os.environ]:
            patch.delenv(name)
        for name, value in {"PATH": "", **environment}.items():
            patch.setenv(name, value)
        patch.chdir(folder)
        try:
            main()
        except SystemExit as exc:
            code = exc.code if isinstance(exc.code, int) else int(exc.code is not None)
        errors.seek(0)
        return Done(code, output.getvalue(), errors.read())


@contextmanager
def _descriptor(number: int, file: IO[bytes]) -> Iterator[None]:
    """Until the end of the block the descriptor is this file: the log is written to the descriptor, past
    `sys.stderr`.
    """
    before = os.dup(number)
    os.dup2(file.fileno(), number)
    try:
        yield
    finally:
        os.dup2(before, number)
        os.close(before)


@contextmanager
def _logging_as_before() -> Iterator[None]:
    handlers, formatter = logging.root.handlers[:], STDERR.formatter
    loggers = [
        logging.root,
        *(logger for logger in logging.root.manager.loggerDict.values() if isinstance(logger, logging.Logger)),
    ]
    levels = [logger.level for logger in loggers]
    try:
        yield
    finally:
        logging.root.handlers[:] = handlers
        STDERR.setFormatter(formatter)
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
