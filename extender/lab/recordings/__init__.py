"""Recordings: what a scheduler saw and decided, in a file from which it can be decided again.

A recorder takes note in the event loop; everything else happens in a thread. Deciding again is
`extender.lab.simulation.replaying`.
"""

from extender.lab.recordings.entries import (
    Recording,
    RecordingError,
    is_recording,
)
from extender.lab.recordings.recording_file import RecordingFileError, recorded_in
