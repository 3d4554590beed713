"""Recordings: what a scheduler saw and decided, in a file from which it can be decided again.

A recorder takes note in the event loop; everything else happens in a thread. Deciding again is
`reprieve.lab.simulation.replaying`.
"""

from reprieve.lab.recordings.entries import Recording, RecordingError, is_recording
from reprieve.lab.recordings.recording_file import RecordingFileError, recorded_in
