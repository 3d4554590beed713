"""Readers: the forms in which a workload may be written."""

from collections.abc import Sequence
from pathlib import Path

from extender.simulation.openb_trace import OpenbTrace
from extender.simulation.workload import Workload, WorkloadError
from extender.simulation.workload_file import WorkloadFile


def read_workloads(path: Path) -> Sequence[Workload]:
    """Returns the workloads at a path, in order.

    Raises:
        WorkloadError: there are none, or one cannot be read.
    """
    if not path.exists():
        raise WorkloadError(f"{path}: no such file or directory")
    trace = OpenbTrace.find(path)
    if trace is not None:
        return [trace]
    if path.name.endswith((".yaml", ".yml")):
        return [WorkloadFile(path)]
    raise WorkloadError(f"{path}: no workload; give a YAML file, or a folder with nodes.csv and pods.csv, plain or packed")
