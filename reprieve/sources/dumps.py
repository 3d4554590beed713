"""Answers about the cluster in a file: what kubectl printed, or a recording."""

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

from extender import rules
from extender.answers.questions import Questions
from extender.rules.claim_templates import templates_among
from extender.rules.state_file import HOW_TO_DUMP, load_state, read_state
from extender.values.objects.decoding import DecodeError
from reprieve.errors import StartUpError
from reprieve.sources.configurations import read_configuration
from reprieve.sources.manifest_files import state_of

STANDARD_INPUT: Final = Path("-")
_GZIP: Final = b"\x1f\x8b"
"""What a recording begins with, as other files may."""


@asynccontextmanager
async def about_dump(
    dump: Path, config: Path | None, at: str | None = None, tell: Callable[[str], None] = lambda _: None
) -> AsyncIterator[Questions]:
    """Yields answers about a file (- is standard input); of a recording at a moment or its end. Raises InputError.

    `tell` is called with a line for people about a dump that says less than it should.
    """
    recording = None
    if dump != STANDARD_INPUT and _is_gzipped(dump):
        from reprieve.lab.recordings import Recording, is_recording  # noqa: PLC0415 - most dumps are none

        recording = Recording(dump) if is_recording(dump) else None
    recorded = recording.configuration if recording is not None and config is None else None
    configuration = recorded or read_configuration(config)
    if recording is not None:
        objects = recording.objects_at(None if at is None else recording.seconds_of(at))
    elif at is not None:
        raise StartUpError(f"--at: {dump} is not a recording: it shows one moment only")
    else:
        objects = read_state(sys.stdin.buffer.read(), "standard input") if dump == STANDARD_INPUT else load_state(dump)
    source = "standard input" if dump == STANDARD_INPUT else dump
    try:
        state = state_of(objects)
    except DecodeError as exc:
        raise StartUpError(f"{source}: {exc}") from exc
    if recording is None and not state.nodes and not state.pods:
        kinds = ", ".join(sorted({str(obj.get("kind")) for obj in objects}))
        holds = f"it holds {kinds:.80}, and neither nodes nor pods" if kinds else "it is empty"
        raise StartUpError(f"{source}: {holds}; {HOW_TO_DUMP}")
    if not state.nodes:
        tell(f"{source} holds no nodes; {HOW_TO_DUMP}")
    yield Questions.of(
        configuration,
        state,
        partial(rules.trial, templates_among(objects), configuration.feature_gates),
    )


def _is_gzipped(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_GZIP)) == _GZIP
    except OSError:
        return False  # who reads the objects says why
