"""A plugin at which every question about a pod waits until the test lets it go on: then no question is too short to be
given up.
"""

import atexit
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from extender.engine import framework as fwk
from extender.engine.snapshot import Rows
from extender.values.objects.pod import Pod
from tests.kit.waiting import until

CONFIGURATION: Final = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    filter:
      enabled:
      - name: Gated
"""


class Gate:
    """Open unless somebody has closed it. Counts who comes. It is of files, so that it stands before threads and child
    processes alike.
    """

    def __init__(self) -> None:
        folder = Path(tempfile.mkdtemp())
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        self._closed, self._came = folder / "closed", folder / "came"
        self._came.touch()

    @property
    def calls(self) -> int:
        return self._came.stat().st_size

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Until the end of the block nobody passes. The count begins again."""
        self._came.write_bytes(b"")
        self.close()
        try:
            yield
        finally:
            self.open()

    def close(self) -> None:
        self._closed.touch()

    def open(self) -> None:
        self._closed.unlink(missing_ok=True)

    def wait_for_somebody(self) -> None:
        self.wait_for(1)

    def wait_for(self, count: int) -> None:
        until(lambda: self.calls >= count)

    def pass_through(self) -> None:
        with self._came.open("ab", buffering=0) as came:
            came.write(b".")
        until(lambda: not self._closed.exists(), pause=0.01)


GATE: Final = Gate()


class Gated(fwk.FilterPlugin):
    """Refuses no node, in its time."""

    def filter(self, state: fwk.CycleState, pod: Pod, rows: Rows) -> fwk.Verdicts:
        GATE.pass_through()
        return fwk.accept(len(rows))


@contextmanager
def installed(folder: Path) -> Iterator[Path]:
    """As a distribution of its own, until the end of the block; a configuration that uses it."""
    about = folder / "gated-0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: gated\nVersion: 0\n")
    (about / "entry_points.txt").write_text(f"[extender.plugins]\nGated = {__name__}:Gated\n")
    configuration = folder / "configuration.yaml"
    configuration.write_text(CONFIGURATION)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield configuration
