"""Readers: the forms in which a workload may be written."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from extender.lab.recordings.entries import is_recording
from extender.lab.simulation.openb_trace import OpenbTrace
from extender.lab.simulation.recorded_workload import RecordedWorkload
from extender.lab.simulation.scheduler_perf import read_scheduler_perf
from extender.lab.simulation.workload import Workload, WorkloadError, lines_of
from extender.lab.simulation.workload_file import WorkloadFile

PERFORMANCE_CONFIG: Final = "performance-config.yaml"
"""What scheduler_perf calls its files."""


def read_workloads(path: Path) -> Sequence[Workload]:
    """Returns the workloads at a path, in order. Raises WorkloadError if there are none, or one cannot be read."""
    if not path.exists():
        raise WorkloadError(f"{path}: no such file or directory")
    trace = OpenbTrace.find(path)
    if trace is not None:
        return [trace]
    if path.is_dir():
        files = sorted(path.rglob(PERFORMANCE_CONFIG))
        if len(files) == 1:
            return read_scheduler_perf(files[0])
        if files:
            return [
                workload
                for file in files
                for workload in read_scheduler_perf(file, prefix=f"{file.parent.relative_to(path)}/")
            ]
    if is_recording(path):
        return [RecordedWorkload(path)]
    if path.name.endswith((".yaml", ".yml")):
        return read_scheduler_perf(path) if _is_list(path) else [WorkloadFile(path)]
    raise WorkloadError(
        f"{path}: not a workload; give a YAML file, a recording, a folder with nodes.csv and pods.csv, or one with "
        f"{PERFORMANCE_CONFIG}"
    )


def _is_list(path: Path) -> bool:
    """Whether the file begins with a list, as those of scheduler_perf do."""
    first = next((line for line in lines_of(path) if line.strip() and not line.startswith(("#", "---"))), "")
    return first.lstrip().startswith(("-", "["))
