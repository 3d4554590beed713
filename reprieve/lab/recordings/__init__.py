"""Recordings: what a scheduler saw and decided, in a file from which it can be decided again.

A recorder takes note in the event loop; everything else happens in a thread. Deciding again is
`reprieve.lab.simulation.replaying`. What writes recordings is loaded when it is asked for: readers need no service.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from reprieve.lab.recordings.entries import Recording, RecordingError, is_recording

if TYPE_CHECKING:
    from reprieve.lab.recordings.recording_file import RecordingFileError, recorded_in


def __getattr__(name: str) -> Any:
    if name not in ("RecordingFileError", "recorded_in"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.recording_file"), name)
