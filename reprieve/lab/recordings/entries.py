"""The entries of a recording: a line of JSON each, a list that begins with the kind of entry; the file is gzipped.

A file begins with `Begins`, then come the objects that were there, then `Ready`, then what happened, in the order in
which the scheduler saw and decided it. Each file stands for itself. One whose end is missing, because its process was
killed, the disk was full, or it is still being written, holds up to there.
"""

import zlib
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, final

import msgspec

from extender.engine import framework as fwk
from extender.values.config.configuration import Configuration
from extender.values.config.feature_gates import FeatureGates
from extender.values.config.loading import load
from extender.values.golang.times import Duration, DurationError, moment_of
from extender.values.objects import decoding
from extender.values.objects.kinds import KINDS, WatchedKind
from extender.values.objects.meta import HasMetadata, Object
from extender.values.reasons import InputError, in_one_line
from reprieve.lab import limits

FORMAT: Final = 1
"""The form of files that this version writes and reads."""
_PART: Final = 1 << 18
_HEAD: Final = b'["recording",'

_KIND_OF_NAME: Final[Mapping[str, WatchedKind[Any]]] = {kind.name: kind for kind in KINDS}


class RecordingError(InputError, ValueError):
    """The file is no recording, or cannot be read. The message is one line and names the file."""


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An entry of a recording."""


@final
class Begins(Entry, frozen=True, tag="recording"):
    """The first entry of each file: which scheduler is recorded, and how it is configured."""

    format: int
    version: str
    """Of Reprieve."""
    began: str
    """RFC 3339. Times of entries are seconds after it."""
    configuration: dict[str, Any]
    """The KubeSchedulerConfiguration in force, without what is about connections."""
    emulated_version: str
    gates: list[str]
    """The feature gates that are on."""
    extenders: int = 0
    """How many extenders the scheduler calls."""
    redacted: str = ""
    called: list[dict[str, Any]] = []
    """The extenders of the configuration with names for their addresses; empty in files of versions that did not record
    their answers.
    """


@final
class ExtenderAnswer(msgspec.Struct, frozen=True, array_like=True):
    """What an extender answered to a question of an attempt. Nodes are places in the question."""

    extender: str
    """The name that stands for its address."""
    verb: str
    question: str
    """A digest of what it was asked about."""
    error: str | None = None
    """Why the call failed."""
    is_left_out: bool = False
    """Whether the answer is missing, because it is too long."""
    passed: list[int] | None = None
    """The nodes that pass, in the order of the answer; None for all, in the order of the question."""
    failed: list[tuple[str, list[int]]] = []
    """(reason, nodes): preemption might help there."""
    unresolvable: list[tuple[str, list[int]]] = []
    """(reason, nodes): preemption cannot help there."""
    unknown: list[str] = []
    """The names of nodes that pass although they were not asked about."""
    scores: list[int] = []
    """The score of each node, 0 without one."""
    victims: list[tuple[str, int, list[str] | None]] = []
    """(node, violated disruption budgets, UIDs of victims); None where null stands for the victims."""


@final
class ObjectPut(Entry, frozen=True, tag="+"):
    """An object came or changed."""

    at: float
    kind: str
    object: Any
    """Typed when it is written, plain when it is read."""


@final
class ObjectGone(Entry, frozen=True, tag="-"):
    """An object is gone."""

    at: float
    kind: str
    namespace: str
    name: str


@final
class Assumed(Entry, frozen=True, tag="assumed"):
    """In the beginning, a pod is already on its way to a node."""

    at: float
    uid: str
    node: str


@final
class Nominated(Entry, frozen=True, tag="nominated"):
    """In the beginning, a pod is already nominated to a node."""

    at: float
    uid: str
    node: str


@final
class Ready(Entry, frozen=True, tag="ready"):
    """The state at the beginning is complete."""

    at: float


@final
class RecordedAttempt(Entry, frozen=True, tag="?"):
    """The scheduler decided about a pod. It stands where the decision was taken, before anything that came of it."""

    at: float
    uid: str
    pod: str
    """The pod as namespace/name."""
    node: str
    """Empty if the pod has none."""
    code: str
    message: str
    nominated: str | None
    """The node that preemption nominated, "" if it cleared the nomination, None if it left it alone."""
    victims: list[str]
    """The UIDs of the pods to evict."""
    draws: list[tuple[int, int]]
    """(number of bits, value) of every number that was drawn, such as the one that breaks a tie between nodes."""
    answers: list[ExtenderAnswer] = []
    """What extenders answered, in the order of the answers."""


@final
class Written(Entry, frozen=True, tag="w"):
    """A write of the scheduler for a pod, its volumes or devices was answered."""

    at: float
    call: str
    key: str
    error: str = ""
    """The name of the error's type; empty if it succeeded."""
    message: str = ""
    kind: str = ""
    object: Any = None
    """What the API server answered, where a plugin goes on with it."""


@final
class Unbound(Entry, frozen=True, tag="!"):
    """A pod that had a node could not be bound to it."""

    at: float
    uid: str


@final
class Ends(Entry, frozen=True, tag="ends"):
    """The recording ended orderly: nothing is missing."""

    at: float


AnyEntry = Begins | ObjectPut | ObjectGone | Assumed | Nominated | Ready | RecordedAttempt | Written | Unbound | Ends

_ERRORS: Final = {
    each.__name__: each
    for each in (fwk.CallError, fwk.CallNotFound, fwk.CallConflict, fwk.CallUnknown, fwk.CallSkipped, fwk.CallMerged)
}


def error_of(entry: Written) -> fwk.CallError | None:
    """Returns the error with which a write ended; None if it succeeded."""
    return _ERRORS.get(entry.error, fwk.CallError)(entry.message) if entry.error else None


def object_of(entry: ObjectPut | Written) -> HasMetadata | None:
    """Returns the entry's object with its type; None if there is none, or its kind is unknown. Raises DecodeError."""
    kind = _KIND_OF_NAME.get(entry.kind)
    return None if kind is None or entry.object is None else decoding.convert(kind.type, entry.object)


def key_of(kind: str, namespace: str, name: str) -> tuple[str, str, str]:
    """Returns the name of an object among all of a recording."""
    known = _KIND_OF_NAME.get(kind)
    return kind, (namespace or "default") if known is not None and known.is_namespaced else "", name


def is_recording(path: Path) -> bool:
    """Returns whether the file begins like a recording. A file that cannot be read is none."""
    try:
        with path.open("rb") as file:
            return zlib.decompressobj(wbits=31).decompress(file.read(4096), len(_HEAD)) == _HEAD
    except (OSError, zlib.error):
        return False


@final
class Recording:
    """A file. What it holds is read again each time, so that the longest one takes no memory.

    What reads it raises RecordingError if it cannot be read, or something else is in it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        first = next(self.entries(), None)
        if not isinstance(first, Begins) or first.format != FORMAT:
            raise RecordingError(f"{path}: this version cannot read the recording")
        self.begins = first

    def entries(self) -> Iterator[AnyEntry]:
        decode = msgspec.json.Decoder(AnyEntry).decode
        for number, line in enumerate(self._lines(), start=1):
            try:
                yield decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
                raise RecordingError(f"{self.path}: entry {number}: {in_one_line(exc)}") from exc

    def _lines(self) -> Iterator[bytes]:
        unpack, rest, most = zlib.decompressobj(wbits=31), b"", limits.RECORDING_LINE_BYTES
        try:
            with self.path.open("rb") as file:
                while packed := unpack.unconsumed_tail or file.read(_PART):
                    *lines, rest = (rest + unpack.decompress(packed, most + 1 - len(rest))).split(b"\n")
                    if len(rest) > most:
                        raise RecordingError(f"{self.path}: an entry has more than {most} bytes")
                    yield from lines
        except OSError as exc:
            raise RecordingError(f"{self.path}: {in_one_line(exc)}") from exc
        except zlib.error as exc:
            raise RecordingError(f"{self.path}: not a recording, or a damaged one") from exc

    def object_of(self, entry: ObjectPut) -> HasMetadata | None:
        """Returns the entry's object as `object_of`, with RecordingError where it has the wrong form."""
        try:
            return object_of(entry)
        except decoding.DecodeError as exc:
            raise RecordingError(f"{self.path}: {entry.kind} at {entry.at} s: {exc}") from exc

    @property
    def configuration(self) -> Configuration:
        """The configuration that decided, without its extenders. Raises ConfigErrors if it is not valid here."""
        return self._configuration()

    @property
    def deciding_configuration(self) -> Configuration:
        """The configuration with its extenders under other names. Raises RecordingError if none is recorded."""
        if self.begins.extenders > len(self.begins.called):
            raise RecordingError(f"{self.path}: its scheduler called extenders, whose answers are not recorded")
        return self._configuration(extenders=self.begins.called)

    def _configuration(self, **further: object) -> Configuration:
        gates = FeatureGates(self.begins.emulated_version, frozenset(self.begins.gates))
        return load(msgspec.json.encode({**self.begins.configuration, **further}), gates)

    @property
    def began(self) -> datetime:
        found = moment_of(self.begins.began)
        if found is None:
            raise RecordingError(f"{self.path}: {self.begins.began!r:.40} is not a time")
        return found

    def seconds_of(self, moment: str) -> float:
        """Returns the seconds of `2026-11-23T05:00:00Z`, or of a time after the beginning, such as `90s`."""
        found = moment_of(moment)
        try:
            seconds = Duration.parse(moment).seconds if found is None else (found - self.began) / timedelta(seconds=1)
        except DurationError as exc:
            raise RecordingError(f"{moment!r:.40} is not a time; examples are 2026-11-23T05:00:00Z and 90s") from exc
        if seconds < 0:
            raise RecordingError(f"{self.path}: begins at {self.begins.began}, which is later than {moment}")
        return seconds

    def objects_at(self, seconds: float | None = None) -> list[Object]:
        """Returns the objects of the cluster so many seconds after the beginning, or at the end, as dumps have them."""
        found: dict[tuple[str, str, str], Any] = {}
        is_ready, last = False, 0.0
        for entry in self.entries():
            if isinstance(entry, Begins):
                continue
            last = entry.at
            if seconds is not None and last > seconds:
                break
            if isinstance(entry, ObjectPut):
                meta = entry.object.get("metadata", {})
                found[key_of(entry.kind, meta.get("namespace", ""), meta.get("name", ""))] = entry.object
            elif isinstance(entry, ObjectGone):
                found.pop(key_of(entry.kind, entry.namespace, entry.name), None)
            is_ready = is_ready or isinstance(entry, Ready)
        if seconds is not None and (not is_ready or seconds > last):
            raise RecordingError(
                f"{self.path}: {'ends' if is_ready else 'begins'} {last:g} s after {self.begins.began}"
            )
        return [
            {"apiVersion": kind.api_version, "kind": kind.name, **obj}
            for kind in KINDS
            for (name, _, _), obj in found.items()
            if name == kind.name
        ]
