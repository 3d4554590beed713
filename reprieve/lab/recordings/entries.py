"""The entries of a recording: a line of JSON each, a list that begins with the kind of entry; the file is gzipped.

A file has `RecordingStarted`, the objects at the beginning, `Ready`, and then the events in the order in which the
scheduler saw and decided them. Each file stands for itself. A file without its end, since its process was killed, the
disk was full, or it is still being written, is valid up to there.
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
class RecordingStarted(Entry, frozen=True, tag="recording"):
    """The first entry of each file: the version of the scheduler, and its configuration."""

    format: int
    version: str
    """Of Reprieve."""
    began: str
    """RFC 3339. Times of entries are seconds after it."""
    configuration: dict[str, Any]
    """The KubeSchedulerConfiguration in force, without its connections."""
    emulated_version: str
    gates: list[str]
    """The feature gates that are on."""
    extenders: int = 0
    """How many extenders the scheduler calls."""
    redacted: str = ""
    called: list[dict[str, Any]] = []
    """The extenders, with aliases for their addresses; empty in files of versions that did not record answers."""


@final
class ExtenderAnswer(msgspec.Struct, frozen=True, array_like=True):
    """The answer of an extender during an attempt. Nodes are places in the question."""

    extender: str
    """The name that stands for its address."""
    verb: str
    question: str
    """A digest of the nodes or candidates in question."""
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

    seconds: float
    kind: str
    object: Any
    """Typed when it is written, plain when it is read."""


@final
class ObjectGone(Entry, frozen=True, tag="-"):
    """An object is gone."""

    seconds: float
    kind: str
    namespace: str
    name: str


@final
class Assumed(Entry, frozen=True, tag="assumed"):
    """In the beginning, a pod is already on its way to a node."""

    seconds: float
    uid: str
    node: str


@final
class Nominated(Entry, frozen=True, tag="nominated"):
    """In the beginning, a pod is already nominated to a node."""

    seconds: float
    uid: str
    node: str


@final
class Ready(Entry, frozen=True, tag="ready"):
    """The state at the beginning is complete."""

    seconds: float


@final
class RecordedAttempt(Entry, frozen=True, tag="?"):
    """The scheduler decided about a pod. The entry comes before all consequences of the decision."""

    seconds: float
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
    """(number of bits, value) of each random number, such as one that breaks a tie between nodes."""
    answers: list[ExtenderAnswer] = []
    """In the order in which they came."""


@final
class WriteAnswered(Entry, frozen=True, tag="w"):
    """The API server answered a write for a pod, its volumes or devices."""

    seconds: float
    call: str
    key: str
    error: str = ""
    """The name of the error's type; empty if it succeeded."""
    message: str = ""
    kind: str = ""
    object: Any = None
    """The object in the answer, where a plugin uses it."""


@final
class BindingFailed(Entry, frozen=True, tag="!"):
    """A pod that had a node could not be bound to it."""

    seconds: float
    uid: str


@final
class RecordingEnded(Entry, frozen=True, tag="ends"):
    """The recording ended in order: nothing is missing."""

    seconds: float


AnyEntry = (
    RecordingStarted
    | ObjectPut
    | ObjectGone
    | Assumed
    | Nominated
    | Ready
    | RecordedAttempt
    | WriteAnswered
    | BindingFailed
    | RecordingEnded
)

_ERRORS: Final = {
    error_type.__name__: error_type
    for error_type in (
        fwk.CallError,
        fwk.CallNotFound,
        fwk.CallConflict,
        fwk.CallUnknown,
        fwk.CallSkipped,
        fwk.CallMerged,
    )
}


def error_of(entry: WriteAnswered) -> fwk.CallError | None:
    """Returns the error with which a write ended; None if it succeeded."""
    return _ERRORS.get(entry.error, fwk.CallError)(entry.message) if entry.error else None


def object_of(entry: ObjectPut | WriteAnswered) -> HasMetadata | None:
    """Returns the entry's object with its type; None if there is none, or its kind is unknown. Raises DecodeError."""
    kind = _KIND_OF_NAME.get(entry.kind)
    return None if kind is None or entry.object is None else decoding.convert(kind.type, entry.object)


def key_of(kind: str, namespace: str, name: str) -> tuple[str, str, str]:
    """Returns the key of an object, unique in a recording."""
    watched_kind = _KIND_OF_NAME.get(kind)
    return kind, (namespace or "default") if watched_kind is not None and watched_kind.is_namespaced else "", name


def is_recording(path: Path) -> bool:
    """Returns whether the file begins like a recording. A file that cannot be read is none."""
    try:
        with path.open("rb") as file:
            return zlib.decompressobj(wbits=31).decompress(file.read(4096), len(_HEAD)) == _HEAD
    except (OSError, zlib.error):
        return False


@final
class Recording:
    """A file. Entries are read anew each time, so that long files take no memory.

    Methods that read it raise RecordingError if it cannot be read, or holds something else.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        first = next(self.entries(), None)
        if not isinstance(first, RecordingStarted) or first.format != FORMAT:
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
        unpack, rest, max_bytes = zlib.decompressobj(wbits=31), b"", limits.RECORDING_LINE_BYTES
        try:
            with self.path.open("rb") as file:
                while packed := unpack.unconsumed_tail or file.read(_PART):
                    *lines, rest = (rest + unpack.decompress(packed, max_bytes + 1 - len(rest))).split(b"\n")
                    if len(rest) > max_bytes:
                        raise RecordingError(f"{self.path}: an entry has more than {max_bytes} bytes")
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
            raise RecordingError(f"{self.path}: {entry.kind} at {entry.seconds} s: {exc}") from exc

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

    def _configuration(self, **parts: object) -> Configuration:
        gates = FeatureGates(self.begins.emulated_version, frozenset(self.begins.gates))
        return load(msgspec.json.encode({**self.begins.configuration, **parts}), gates)

    @property
    def began(self) -> datetime:
        moment = moment_of(self.begins.began)
        if moment is None:
            raise RecordingError(f"{self.path}: {self.begins.began!r:.40} is not a time")
        return moment

    def seconds_of(self, moment: str) -> float:
        """Returns the seconds of `2026-11-23T05:00:00Z`, or of a time after the beginning, such as `90s`."""
        date = moment_of(moment)
        try:
            seconds = Duration.parse(moment).seconds if date is None else (date - self.began) / timedelta(seconds=1)
        except DurationError as exc:
            raise RecordingError(f"{moment!r:.40} is not a time; examples are 2026-11-23T05:00:00Z and 90s") from exc
        if seconds < 0:
            raise RecordingError(f"{self.path}: begins at {self.begins.began}, which is later than {moment}")
        return seconds

    def objects_at(self, seconds: float | None = None) -> list[Object]:
        """Returns the objects of the cluster so many seconds after the beginning, or at the end, as dumps have them."""
        object_by_key: dict[tuple[str, str, str], Any] = {}
        is_ready, last = False, 0.0
        for entry in self.entries():
            if isinstance(entry, RecordingStarted):
                continue
            last = entry.seconds
            if seconds is not None and last > seconds:
                break
            if isinstance(entry, ObjectPut):
                meta = entry.object.get("metadata", {})
                object_by_key[key_of(entry.kind, meta.get("namespace", ""), meta.get("name", ""))] = entry.object
            elif isinstance(entry, ObjectGone):
                object_by_key.pop(key_of(entry.kind, entry.namespace, entry.name), None)
            is_ready = is_ready or isinstance(entry, Ready)
        if seconds is not None and (not is_ready or seconds > last):
            raise RecordingError(
                f"{self.path}: {'ends' if is_ready else 'begins'} {last:g} s after {self.begins.began}"
            )
        return [
            {"apiVersion": kind.api_version, "kind": kind.name, **obj}
            for kind in KINDS
            for (name, _, _), obj in object_by_key.items()
            if name == kind.name
        ]
