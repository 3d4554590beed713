"""Files of a workload that is sent to another machine: they go with it."""

import shutil
import weakref
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import final


@final
class SentFiles:
    """The files that a workload reads again while it is played. State: where they lie on this machine.

    A pickled one holds their bytes, and writes them to a folder that lasts as long as it.
    """

    def __init__(self, paths: Iterable[Path] = ()) -> None:
        self._places = {path: path for path in paths}

    def at(self, path: Path) -> Path:
        """Returns where the file lies here that had this path where the workload was read."""
        return self._places.get(path, path)

    def __getstate__(self) -> dict[Path, bytes]:
        contents = {}
        for path, place in self._places.items():
            with suppress(OSError):  # who reads it says why
                contents[path] = place.read_bytes()
        return contents

    def __setstate__(self, content: dict[Path, bytes]) -> None:
        folder = Path(mkdtemp(prefix="reprieve-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._places = {path: folder / f"{number}-{path.name}" for number, path in enumerate(content)}
        for path, place in self._places.items():
            place.write_bytes(content[path])
