"""Files that are replaced as a whole: a reader finds the old content or the new one, and only its owner may read it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replaced_file(path: Path) -> Iterator[BinaryIO]:
    """Yields a file to write to, which takes the place of `path` when the block ends without an exception.

    The content is written beside it, flushed to the disk, and renamed. Raises OSError.
    """
    temporary = path.with_name(f"{_beginning(path)}{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)  # of a process that was killed and had our number
    try:
        # Made anew, so that a link that another user has put there is not followed.
        with open(temporary, "xb", opener=private) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def remove_leftovers(path: Path) -> None:
    """Removes what writers that were killed left beside the file, while no other process writes there."""
    beginning = _beginning(path)
    for leftover in path.parent.glob(".*.tmp"):
        if leftover.name.startswith(beginning) and leftover.name.removeprefix(beginning).removesuffix(".tmp").isdigit():
            leftover.unlink(missing_ok=True)


def private(path: str, flags: int) -> int:
    """An opener for files that only their owner may read, since they name what is in all namespaces."""
    return os.open(path, flags, 0o600)


def _beginning(path: Path) -> str:
    return f".{path.name}."
