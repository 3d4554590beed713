"""The forms in which a workload may be written; and the same one with several seeds and configurations, in a process
for each processor or on a cluster.
"""

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import msgspec

from extender import how_to_install
from extender.values.config.completion import written
from extender.values.config.configuration import Configuration
from extender.values.config.feature_gates import FeatureGates
from extender.values.config.loading import load
from reprieve.lab import limits
from reprieve.lab.recordings.entries import is_recording
from reprieve.lab.simulation.openb_trace import OpenbTrace
from reprieve.lab.simulation.playing import Played, play
from reprieve.lab.simulation.recorded_workload import RecordedWorkload
from reprieve.lab.simulation.report import SimulationReport
from reprieve.lab.simulation.scheduler_perf import read_scheduler_perf
from reprieve.lab.simulation.workload import Workload, WorkloadError, lines_of
from reprieve.lab.simulation.workload_file import WorkloadFile

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
    first = next(
        (line for line in lines_of(path, limits.WORKLOAD_BYTES) if line.strip() and not line.startswith(("#", "---"))),
        "",
    )
    return first.lstrip().startswith(("-", "["))


# Sweeps.

SECONDS_TO_CONNECT: Final = 10


def sweep(
    path: Path,
    workload: str,
    configurations: Sequence[Configuration | None],
    seeds: Sequence[int],
    advance: Callable[[int, int], None] = lambda done, all_of_them: None,
    *,
    on: str | None = None,
    keep: Callable[[int, Played], None] | None = None,
) -> list[list[SimulationReport]]:
    """Returns for each configuration a report for each seed.

    Raises WorkloadError if one of the plays is not possible, there are too many, or nobody plays at that address.

    Arguments:
        path: the file or folder of the workload of this name, which each process reads itself.
        configurations: None for the default one, or the workload's own.
        advance: called with the number of plays that are done, and that of all.
        on: the address of a scheduler of dask.distributed, whose workers play; None for processes of this machine.
        keep: takes each play in full, with the place of its configuration.
    """
    plays = [(place, seed) for seed in seeds for place in range(len(configurations))]
    if len(plays) > limits.WORKLOAD_PLAYS:
        raise WorkloadError(f"{len(plays)} plays, but at most {limits.WORKLOAD_PLAYS}")
    found: dict[tuple[int, int], SimulationReport] = {}
    sent = [
        None if each is None else (msgspec.json.encode(written(each)), each.feature_gates) for each in configurations
    ]
    with _of_this_machine(len(plays)) if on is None else _of_a_cluster(on) as workers:
        in_full = keep is not None
        waiting = {
            workers.submit(_played, path.resolve(), workload, sent[place], seed, in_full): (place, seed)
            for place, seed in plays
        }
        try:
            for done in as_completed(waiting):
                place, seed = waiting.pop(done)
                played = done.result()
                found[place, seed] = played.report
                if keep is not None:
                    keep(place, played)
                advance(len(found), len(plays))
        except BrokenProcessPool as exc:
            raise WorkloadError(
                f"{workload}: a process that played it has ended, perhaps because memory ran out"
            ) from exc
        finally:
            for play in waiting:
                play.cancel()
    return [[found[place, seed] for seed in seeds] for place in range(len(configurations))]


@contextmanager
def _of_this_machine(plays: int) -> Iterator[Executor]:
    # A process that is forked off a program with threads may stand still.
    with ProcessPoolExecutor(min(plays, os.cpu_count() or 1), multiprocessing.get_context("spawn")) as pool:
        yield pool


@contextmanager
def _of_a_cluster(address: str) -> Iterator[Executor]:
    try:
        distributed: Any = import_module("distributed")
    except ImportError as exc:
        raise WorkloadError(f"--on needs dask.distributed: {how_to_install('dask')}") from exc
    try:
        client = distributed.Client(address, timeout=SECONDS_TO_CONNECT)
    except (OSError, ValueError) as exc:
        raise WorkloadError(f"--on {address}: no scheduler of dask.distributed answers there") from exc
    with client:
        if not client.scheduler_info()["workers"]:
            raise WorkloadError(f"--on {address}: the scheduler has no workers")
        yield client.get_executor(pure=False)


def _played(path: Path, name: str, sent: tuple[bytes, FeatureGates] | None, seed: int, in_full: bool) -> Played:
    workload = _workloads(path).get(name)
    if workload is None:
        raise WorkloadError(f"{path}: there is no workload {name} here")
    chosen = workload.own_configuration or Configuration() if sent is None else load(*sent)
    return play(workload, chosen, seed, keeps_decisions=in_full)


@lru_cache(maxsize=1)
def _workloads(path: Path) -> dict[str, Workload]:
    return {workload.name: workload for workload in read_workloads(path)}
