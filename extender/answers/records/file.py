"""Records in a file, so that they outlive the process: a line of JSON for each attempt and preemption. Of each id the
last line counts.

The file is appended to each second. When it has become too long, it is replaced by what is still kept. A line that was
cut off by a crash or a full disk is skipped. Only the end of the service waits for the disk.
"""

import asyncio
import os
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, final

import msgspec

from extender.answers.records.record_store import AttemptRecord, Limits, PreemptionRecord, Record
from extender.answers.records.records import Records
from extender.values import limits
from extender.values.concurrency.replaced_file import private, remove_leftovers, replaced_file
from extender.values.klog.logger import Logger
from extender.values.reasons import in_one_line

WRITE_EVERY: Final = 1.0
"""Seconds."""

_LOG: Final = Logger(__name__)


class RecordsFileError(ValueError):
    """The file cannot be used. The message is one line and names the file."""


@asynccontextmanager
async def kept_in(
    path: Path, limits: Limits | None = None, *, now: Callable[[], float] = time.time
) -> AsyncIterator[Records]:
    """Yields records that begin with those in the file, and are kept there meanwhile. Raises RecordsFileError."""
    file = RecordsFile(path)
    remove_leftovers(path)
    records = Records(limits, now=now, write=file.append)
    records.restore(file.read())
    async with asyncio.TaskGroup() as group:
        writing = group.create_task(file.run(records.everything), name="records")
        try:
            yield records
        finally:
            writing.cancel()
            file.finish()


@final
class RecordsFile:
    """The file. State: the records that are still to be written, and whether the disk refused the last time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._waiting: deque[Record] = deque(maxlen=limits.RECORDS_WAITING)
        self._encode = msgspec.json.Encoder().encode
        self._writing = threading.Lock()
        self._is_refused = False

    def read(self) -> list[Record]:
        """Returns the records in the file as written; none if there is no file yet. Raises RecordsFileError."""
        try:
            with open(self._path, "ab", opener=private):
                lines = self._path.read_bytes().splitlines()
        except OSError as exc:
            raise RecordsFileError(f"records file {self._path}: {in_one_line(exc)}") from exc
        decode = msgspec.json.Decoder(AttemptRecord | PreemptionRecord).decode
        records: list[Record] = []
        torn = 0
        for line in filter(None, lines):
            try:
                records.append(decode(line))
            except msgspec.DecodeError:
                torn += 1
        if torn:
            _LOG.info(0, "Incomplete lines of the records file were skipped", file=str(self._path), lines=torn)
        return records

    def append(self, record: Record) -> None:
        """Has the record written with the next ones. Of calls, half of the number that may wait."""
        if not record.caller or len(self._waiting) < limits.RECORDS_WAITING // 2:
            self._waiting.append(record)

    async def run(self, everything: Callable[[], list[Record]]) -> None:
        """Writes new records each second, until cancelled; `everything` returns what a replaced file consists of."""
        while True:
            await asyncio.sleep(WRITE_EVERY)
            batch = self._next_batch()
            if not batch:
                continue
            # Records do not change, so that another thread may read them.
            try:
                length = await asyncio.to_thread(self._append, batch)
                batch = []
                if length > limits.RECORDS_FILE_BYTES:
                    await asyncio.to_thread(self._replace, everything())
            except OSError as exc:
                self._waiting = deque([*batch, *self._waiting], limits.RECORDS_WAITING)
                if not self._is_refused:
                    _LOG.error(exc, "Records cannot be written, and will be tried again", file=str(self._path))
                self._is_refused = True
            else:
                self._is_refused = False

    def finish(self) -> None:
        try:
            self._append(self._next_batch())
        except OSError as exc:
            _LOG.error(exc, "The last records cannot be written", file=str(self._path))

    def _next_batch(self) -> list[Record]:
        batch = list(self._waiting)
        self._waiting.clear()
        return batch

    def _lines(self, records: Iterable[Record]) -> Iterable[bytes]:
        return (self._encode(record) + b"\n" for record in records)

    def _append(self, batch: list[Record]) -> int:
        text = b"".join(self._lines(batch))
        with (
            self._writing,
            open(self._path, "ab+", opener=private) as file,
        ):  # a thread goes on after its task was cancelled
            length = file.seek(0, os.SEEK_END)
            if length:
                file.seek(length - 1)
                if file.read(1) != b"\n":
                    text = b"\n" + text  # the last line was torn
            file.write(text)
        return length + len(text)

    def _replace(self, everything: list[Record]) -> None:
        """Replaces the file. If there is too much, the oldest goes: calls first, then attempts, then preemptions."""
        room, lines = limits.RECORDS_FILE_BYTES // 2, list[bytes]()
        for line in self._lines(sorted(everything, key=_worth, reverse=True)):
            room -= len(line)
            if room < 0:
                break
            lines.append(line)
        with self._writing, replaced_file(self._path) as file:
            file.writelines(reversed(lines))


def _worth(record: Record) -> tuple[bool, bool, int]:
    return not record.caller, isinstance(record, PreemptionRecord), record.id
