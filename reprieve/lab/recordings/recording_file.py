"""Writes a recording, within a number of bytes, without keeping the scheduler waiting.

The file is rotated: FILE is the newest, then FILE.1, and so on. Each begins with the cluster as it was, so that the
oldest can be dropped. If the disk takes no more, nothing is recorded and the log says so; a new file is begun once it
takes something again.
"""

import asyncio
import errno
import threading
import zlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final, final

import msgspec

from extender import __version__
from extender.assembly.backend import Tap
from extender.values.concurrency.replaced_file import private
from extender.values.config.completion import written
from extender.values.config.configuration import Configuration
from extender.values.golang.times import rfc3339
from extender.values.klog.logger import Logger
from extender.values.objects.meta import HasMetadata
from extender.values.reasons import in_one_line
from reprieve.lab.recordings.entries import (
    FORMAT,
    Entry,
    ObjectGone,
    ObjectPut,
    Ready,
    RecordedAttempt,
    RecordingEnded,
    RecordingStarted,
    WriteAnswered,
)
from reprieve.lab.recordings.extender_answers import RecordedCalls, recorded_address, without_texts
from reprieve.lab.recordings.recorder import ClusterAtOnce, Recorder, RecordingDispatcher
from reprieve.lab.recordings.redaction import Redaction, Redacts

WRITE_EVERY: Final = 0.25
"""Seconds between two writes to the file."""
RETRY_EVERY: Final = 10.0
"""Seconds between two attempts to begin a file after the disk took none."""
KEPT_FILES: Final = 4
_OF_CONNECTIONS: Final = ("clientConnection", "leaderElection", "extenders")
"""Parts of the configuration on which no decision depends, or that name addresses and credentials. Extenders are named
by themselves.
"""

_LOG: Final = Logger(__name__)


class RecordingFileError(ValueError):
    """The file cannot be written. The message is one line and names the file."""


@asynccontextmanager
async def recorded_in(
    path: Path,
    configuration: Configuration,
    *,
    redacts: Redacts = "annotations",
    max_bytes: int = 256 * 2**20,
    every: float = WRITE_EVERY,
) -> AsyncIterator[Tap]:
    """Yields a tap that records a backend until the end of the block. `max_bytes` bounds all files together.

    An existing file becomes FILE.1. Raises RecordingFileError if the file cannot be written.
    """
    clock = asyncio.get_running_loop().time
    file, began = RecordingFile(path, configuration, Redaction(redacts), max_bytes), clock()
    recorder = Recorder(lambda: clock() - began)
    try:
        await asyncio.to_thread(file.begin, ClusterAtOnce(0.0))
    except OSError as exc:
        raise RecordingFileError(f"recording {path}: {in_one_line(exc)}") from exc
    async with asyncio.TaskGroup() as group:
        ended = asyncio.Event()
        writing = group.create_task(_write(recorder, file, every, ended), name="recording")
        try:
            yield tap_of(recorder)
        finally:
            # Not cancelled: what a thread is about to write would be lost.
            ended.set()
            await asyncio.wait([writing])
            _finish(recorder, file, clock() - began)


def tap_of(recorder: Recorder) -> Tap:
    return Tap(
        changed=recorder.changed,
        reporter=recorder,
        dispatcher=partial(RecordingDispatcher, recorder),
        chance=recorder.chance,
        through=partial(RecordedCalls, recorder),
        attached=recorder.watch,
    )


async def _write(recorder: Recorder, file: "RecordingFile", every: float, ended: asyncio.Event) -> None:
    while True:
        with suppress(TimeoutError):
            async with asyncio.timeout(every if recorder.is_on else RETRY_EVERY):
                await ended.wait()
                return
        if not recorder.is_on:
            await _begin_again(recorder, file)
            continue
        # Both at the same moment, so that nothing is between the end of one file and the beginning of the next.
        entries = recorder.take()
        next_one = recorder.cluster_at_once() if file.is_full else None
        if entries or next_one is not None:
            try:
                await asyncio.to_thread(file.write, entries, next_one)
            except OSError as exc:
                recorder.lost += len(entries)
                _give_up(recorder, file, exc)


def _give_up(recorder: Recorder, file: "RecordingFile", exc: OSError) -> None:
    recorder.stop()
    file.close()
    _LOG.error(exc, "The recording has stopped, and will be tried again; scheduling continues", file=str(file.path))


async def _begin_again(recorder: Recorder, file: "RecordingFile") -> None:
    at_once = recorder.cluster_at_once()
    if at_once is None:
        return
    recorder.is_on = True
    try:
        await asyncio.to_thread(file.begin, at_once)
    except OSError as exc:
        _give_up(recorder, file, exc)
        return
    lost, recorder.lost = recorder.lost, 0
    message = "The recording continues in a new file, without what happened in between"
    _LOG.info(0, message, file=str(file.path), entries=lost)


def _finish(recorder: Recorder, file: "RecordingFile", seconds: float) -> None:
    """Writes the last entries. Only the end of the service waits for the disk."""
    if recorder.is_on:
        entries = recorder.take()
        try:
            file.write([*entries, RecordingEnded(round(seconds, 4))])
        except OSError as exc:
            _LOG.error(exc, "The end of the recording could not be written", file=str(file.path), entries=len(entries))
    file.close()


@final
class RecordingFile:
    """The file that is written to. State: the open file, its packer, and how many bytes are in it."""

    def __init__(self, path: Path, configuration: Configuration, redaction: Redaction, max_bytes: int) -> None:
        self.path: Final = path
        self._redaction = redaction
        self._share = max_bytes // KEPT_FILES
        self._head = _head(configuration, redaction, rfc3339(datetime.now(UTC), "milliseconds"))
        self._encode = msgspec.json.Encoder().encode
        self._writing = threading.RLock()  # a thread goes on after its task was cancelled
        self._file: BinaryIO | None = None
        self._pack = zlib.compressobj()
        self._length = 0
        self._length_of_state = 0

    @property
    def is_full(self) -> bool:
        """Whether the next file is due. After a state of more than half a share, events get half a share."""
        return self._length > max(self._share, self._length_of_state + self._share // 2)

    def begin(self, at_once: ClusterAtOnce) -> None:
        """Begins a file with the state of the cluster, after the older ones were renamed. Raises OSError."""
        with self._writing:
            self.close()
            if self.path.exists() and not self.path.is_file():
                raise OSError(errno.EINVAL, "not a file")
            for number in range(KEPT_FILES - 1, 0, -1):
                older = self.path if number == 1 else self._numbered(number - 1)
                if older.exists():
                    older.replace(self._numbered(number))
            self._file = open(self.path, "wb", opener=private)  # noqa: SIM115 - it stays open
            self._pack, self._length = zlib.compressobj(level=1, wbits=31), 0
            self.write([self._head, *at_once.entries(), Ready(at_once.seconds)])
            self._length_of_state = self._length

    def write(self, entries: Sequence[Entry], next_one: ClusterAtOnce | None = None) -> None:
        """Writes the entries through to readers; then begins the next file with `next_one`. Raises OSError."""
        with self._writing:
            if self._file is None:
                raise OSError(errno.EBADF, "the file is closed")
            for entry in entries:
                self._length += self._file.write(self._pack.compress(self._encode(self._redacted(entry)) + b"\n"))
            is_end = next_one is not None or (bool(entries) and isinstance(entries[-1], RecordingEnded))
            self._length += self._file.write(self._pack.flush(zlib.Z_FINISH if is_end else zlib.Z_SYNC_FLUSH))
            self._file.flush()
            if next_one is not None:
                self.begin(next_one)

    def close(self) -> None:
        """Closes the file. A failure to write was reported before."""
        with self._writing:
            file, self._file = self._file, None
            if file is not None:
                with suppress(OSError):
                    file.close()

    def _numbered(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")

    def _redacted(self, entry: Entry) -> Entry:
        hide = self._redaction
        match entry:
            case ObjectPut() | WriteAnswered() if isinstance(entry.object, HasMetadata):
                entry = msgspec.structs.replace(entry, object=hide.of(entry.object))
        if not hide.hides_names:
            return entry
        match entry:
            case ObjectGone() if hide.hides_names_of(entry.kind):
                return msgspec.structs.replace(entry, namespace=hide.name(entry.namespace), name=hide.name(entry.name))
            case RecordedAttempt():
                answers = [without_texts(answer) for answer in entry.answers]
                return msgspec.structs.replace(entry, pod=hide.pod_name(entry.pod), message="", answers=answers)
            case WriteAnswered():
                return msgspec.structs.replace(entry, message="")
        return entry


def _head(configuration: Configuration, redaction: Redaction, began: str) -> RecordingStarted:
    plain: dict[str, Any] = {name: part for name, part in written(configuration).items() if name not in _OF_CONNECTIONS}
    gates, extenders = configuration.feature_gates, configuration.extenders
    aliased = replace(
        configuration,
        extenders=tuple(
            replace(extender, url_prefix=recorded_address(extender), enable_https=False, tls_config=None)
            for extender in extenders
        ),
    )
    called = written(aliased).get("extenders") or []
    return RecordingStarted(
        FORMAT, __version__, began, plain, gates.version, sorted(gates.on), len(extenders), redaction.redacts, called
    )
