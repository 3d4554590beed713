"""A plugin at which every question about a pod waits until the test lets it go on: then no question is too short to be given up."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from extender import framework as fwk
from extender.objects.pod import Pod
from extender.snapshot import Rows

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
    """Open unless somebody has closed it. Counts who comes."""

    def __init__(self) -> None:
        self.calls = 0
        self._somebody_came = threading.Event()
        self._is_open = threading.Event()
        self._is_open.set()

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Until the end of the block nobody passes. The count begins anew."""
        self.calls = 0
        self._somebody_came.clear()
        self._is_open.clear()
        try:
            yield
        finally:
            self.open()

    def open(self) -> None:
        self._is_open.set()

    def wait_for_somebody(self) -> None:
        assert self._somebody_came.wait(30)

    def pass_through(self) -> None:
        self.calls += 1
        self._somebody_came.set()
        assert self._is_open.wait(60)


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
