"""Workload: what can be played. Each reader of a form of files makes one."""

import gzip
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from extender.lab.simulation.expectations import ExpectedFigure
from extender.lab.simulation.scene import Scene
from extender.values import limits
from extender.values.config import Configuration

GZIP_MAGIC: Final = b"\x1f\x8b"


class WorkloadError(Exception):
    """The workload cannot be played. The message is one line, with file and line where there is one."""


class Workload(ABC):
    """Nodes and pods, and when they come and go."""

    name: str
    labels: tuple[str, ...] = ()
    """By which workloads of one file are chosen."""
    expectations: tuple[ExpectedFigure, ...] = ()
    own_configuration: Configuration | None = None
    """The configuration with which the workload is played if no other one is given; None for the default one."""

    def configured(self, configuration: Configuration) -> Configuration:
        """Returns the configuration with which the workload is to be played.

        Raises:
            WorkloadError: the workload needs one that cannot be had.
        """
        return configuration

    @abstractmethod
    async def play(self, scene: Scene) -> None:
        """Plays the workload. Whatever it makes happen has happened when this returns, but pods may still wait.

        Raises:
            WorkloadError: it asks for something that cannot be done.
        """


def lines_of(path: Path, limit: int = limits.WORKLOAD_BYTES) -> Iterator[str]:
    """Yields the lines of a text file, packed or not.

    Arguments:
        limit: the most bytes, unpacked.

    Raises:
        WorkloadError: it cannot be read, or is too large.
    """
    read = 0
    try:
        with open(path, "rb") as raw:
            is_packed = raw.peek(2)[:2] == GZIP_MAGIC
            with gzip.open(raw) if is_packed else raw as content:
                while line := content.readline(limit - read + 1):
                    read += len(line)
                    if read > limit:
                        raise WorkloadError(f"{path}: more than {limit} bytes")
                    yield line.decode()
    except OSError as exc:
        raise WorkloadError(f"{path}: {(exc.strerror or str(exc)).lower()}") from exc
    except (EOFError, zlib.error) as exc:
        raise WorkloadError(f"{path}: not a complete gzip file") from exc
    except UnicodeDecodeError as exc:
        raise WorkloadError(f"{path}: not UTF-8") from exc
