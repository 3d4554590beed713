"""Answers about the cluster in a file or a folder: what kubectl printed, or a recording."""

import sys
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

from extender import rules
from extender.answers.questions import Questions
from extender.rules.api_resources import RESOURCES, Object
from extender.rules.claim_templates import ClaimTemplates
from extender.rules.state_file import HOW_TO_DUMP, load_state, read_state, state_bytes
from extender.values import limits
from extender.values.concurrency.process import collector_paused
from extender.values.objects.decoding import DecodeError, convert
from extender.values.objects.kinds import KINDS
from extender.values.objects.listed_events import ListedEvents, WrittenEvent, newest
from extender.values.reasons import InputError
from extender.values.workloads.custom_kinds import is_custom, left_out
from reprieve.errors import StartUpError
from reprieve.sources.configurations import read_configuration
from reprieve.sources.manifest_files import state_of

_IS_NAMESPACED: Final = {kind.name: kind.is_namespaced for kind in KINDS}
STANDARD_INPUT: Final = Path("-")
_ENDINGS: Final = (".json", ".yaml", ".yml")
_GZIP: Final = b"\x1f\x8b"
"""The head of a recording; other files may have it too."""
_OWN_FORM: Final = b'{"reprieve":'
"""The head of a saved cluster; see `saved_clusters`."""


@asynccontextmanager
async def about_dump(
    dump: Path, config: Path | None, moment: str | None = None, tell: Callable[[str], None] = lambda _: None
) -> AsyncIterator[Questions]:
    """Yields answers about a file or a folder (- is standard input); of a recording at a moment or its end.

    `tell` is called with a line for people about a dump that says less than it should, or has objects that are left
    out. Raises InputError.
    """
    if moment is None and dump != STANDARD_INPUT and _begins(dump, _OWN_FORM):
        from reprieve.sources.saved_clusters import unpacked  # noqa: PLC0415 - most dumps are none

        questions, notes = unpacked(
            state_bytes(dump), str(dump), None if config is None else read_configuration(config)
        )
        for note in notes:
            tell(note)
        yield questions
        return
    recording = None
    if dump != STANDARD_INPUT and _begins(dump, _GZIP):
        from reprieve.lab.recordings import Recording, is_recording  # noqa: PLC0415 - most dumps are none

        recording = Recording(dump) if is_recording(dump) else None
    recorded = recording.configuration if recording is not None and config is None else None
    configuration = recorded or read_configuration(config)
    if recording is not None:
        objects = recording.objects_at(None if moment is None else recording.seconds_of(moment))
    elif moment is not None:
        raise StartUpError(f"--at: {dump} is not a recording: it shows one moment only")
    else:
        objects = _read(dump)
    source = "standard input" if dump == STANDARD_INPUT else dump
    try:
        objects, copies = once_each(objects)
        state = state_of(objects)
    except InputError as exc:
        raise StartUpError(f"{source}: {exc}") from exc
    if recording is None and not state.nodes and not state.pods:
        kinds = ", ".join(sorted({str(obj.get("kind")) for obj in objects}))
        holds = f"it has {kinds:.80}, but neither nodes nor pods" if kinds else "it is empty"
        raise StartUpError(f"{source}: {holds}; {HOW_TO_DUMP}")
    for note in filter(None, (copies, left_out_of(objects))):
        tell(f"{source}: {note}")
    if not state.nodes:
        tell(f"{source} has no nodes; {HOW_TO_DUMP}")
    events = partial(_events_about, [obj for obj in objects if obj.get("kind") == "Event"])
    admits = partial(rules.trial, ClaimTemplates(objects), features=configuration.feature_gates)
    with collector_paused():
        questions = Questions.of(configuration, state, admits, events=events)
    yield questions


def once_each(objects: Iterable[Object]) -> tuple[list[Object], str]:
    """Returns the objects without further copies of equal ones, and a sentence about these; empty if there are none.

    Raises StartUpError for objects that no API server has at once: two that differ and have one name, or one UID.
    """
    distinct: list[Object] = []
    object_by_name: dict[str, Object] = {}
    copied: dict[str, None] = {}
    for obj in objects:
        metadata, name = obj.get("metadata"), _name_in_cluster(obj)
        if name and isinstance(metadata, Mapping):
            uid = f"{obj['kind']} of UID {metadata['uid']}" if metadata.get("uid") else name
            for label in (name, uid):
                first = object_by_name.setdefault(label, obj)
                if first is not obj and first != obj:
                    raise StartUpError(f"{label} is there twice, and the two differ: an API server has one")
            if object_by_name[name] is not obj:
                copied[name] = None
                continue
        distinct.append(obj)
    names = ", ".join(islice(copied, 3)) + (", ..." if len(copied) > 3 else "")
    return distinct, f"what is there more than once counts once: {names}" if copied else ""


def _name_in_cluster(obj: Object) -> str:
    """Returns kind and name of an object that a scheduler reads; empty for others."""
    kind, metadata = str(obj.get("kind")), obj.get("metadata")
    if kind not in _IS_NAMESPACED or not isinstance(metadata, Mapping) or not metadata.get("name"):
        return ""
    namespace = f"{metadata.get('namespace') or 'default'}/" if _IS_NAMESPACED[kind] else ""
    return f"{kind} {namespace}{metadata['name']}"


def left_out_of(objects: Iterable[Object]) -> str:
    """Returns a sentence about the custom resources among the objects; empty if there are none."""
    resources = {resource.kind: resource.api_version for resource in RESOURCES if resource.is_stored}
    return left_out(obj for obj in objects if is_custom(obj, resources.get))


def _read(dump: Path) -> list[Object]:
    """Returns the objects of standard input, a file, or the files of a folder, as `cluster-info dump` writes it."""
    if dump == STANDARD_INPUT:
        return read_state(sys.stdin.buffer.read(), "standard input")
    if not dump.is_dir():
        return load_state(dump)
    files = sorted(file for depth in ("*", "*/*") for ending in _ENDINGS for file in dump.glob(f"{depth}{ending}"))
    if not files:
        raise StartUpError(f"{dump}: a folder without a file that ends in {', '.join(_ENDINGS)}; {HOW_TO_DUMP}")
    if sum(file.stat().st_size for file in files) > limits.STATE_FILE_BYTES:
        raise StartUpError(f"{dump}: its files have more than {limits.STATE_FILE_BYTES:d} bytes")
    return [obj for file in files for obj in load_state(file)]


async def _events_about(events: Sequence[dict[str, Any]], kind: str, namespace: str, name: str) -> ListedEvents:
    if not events:
        return ListedEvents(why_none="the file has none; `kubectl get events -A -o json` prints them")
    about = [event for event in events if _regarded(event) == (kind, namespace, name)]
    try:
        return newest(convert(list[WrittenEvent], about))
    except DecodeError as exc:
        return ListedEvents(why_none=f"the file has some that cannot be read: {exc}")


def _regarded(event: dict[str, Any]) -> tuple[object, ...]:
    about = event.get("involvedObject")
    return tuple(about.get(field) for field in ("kind", "namespace", "name")) if isinstance(about, dict) else ()


def _begins(path: Path, head: bytes) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(head)) == head
    except OSError:
        return False  # who reads the objects says why
